"""A window's series and gauges as packs (``schemas/packs.py``): as the rank stage says them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from math import nan

import msgspec

from schemas.packs import GaugeNames, GaugePack, SeriesNames, SeriesPack, packed, packed_whole, series_names
from schemas.results import Gauges, Series, Window

MOST = 1 << 63
"""What a word of 8 bytes has no room for."""


def with_packs(window: Window) -> Window:
    """The window with packs in the place of rows and columns; as it was where iterations are too large for that."""
    try:
        series = pack_of_series(window.series) if window.series else window.series_pack
    except OverflowError:
        return window
    gauges = pack_of_gauges(window.measured) if window.measured else None
    return msgspec.structs.replace(
        window, series=[], gauges=[], gauge_columns=Gauges(), series_pack=series, gauge_pack=gauges
    )


def pack_of(summary: Window) -> SeriesPack | None:
    """The series of a window packed; as rows they were said before. What has no reading or no room is left out."""
    if summary.series_pack is not None or not summary.series:
        return summary.series_pack
    telling = [one for one in summary.series if one.iterations and _fits(one)]
    return pack_of_series(telling) if telling else None


def names_of(summaries: Iterable[Window]) -> set[str]:
    """The names of all their series; most have the same."""
    words = {bytes(pack.words) for one in summaries if (pack := pack_of(one)) is not None}
    return {name for names in words for name in series_names(names).names}


def _fits(one: Series) -> bool:
    return all(-MOST <= min(numbers) <= max(numbers) < MOST for numbers in (one.iterations, one.times))


def pack_of_series(series: Sequence[Series]) -> SeriesPack:
    """The series packed; those of one line have their iterations and times once.

    Raises OverflowError where a number does not fit, ValueError for columns of different length.
    """
    axes: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    of = [axes.setdefault((tuple(one.iterations), tuple(one.times)), len(axes)) for one in series]
    names = SeriesNames(
        names=[one.name for one in series],
        units=[one.unit for one in series],
        axes=of,
        lengths=[len(iterations) for iterations, _ in axes],
    )
    values = chain.from_iterable(one.values for one in series)
    return SeriesPack(
        words=msgspec.Raw(msgspec.json.encode(names)),
        iterations=packed_whole(list(chain.from_iterable(iterations for iterations, _ in axes))),
        times=packed_whole(list(chain.from_iterable(times for _, times in axes))),
        values=packed([nan if value is None else value for value in values]),
        nonfinite=[(number, at, what) for number, one in enumerate(series) for at, what in one.nonfinite],
    )


def pack_of_gauges(gauges: Gauges) -> GaugePack:
    """The gauges packed."""
    names = GaugeNames(list(gauges.names), list(gauges.devices), list(gauges.units))
    columns = (gauges.means, gauges.minima, gauges.maxima, gauges.firsts, gauges.lasts)
    return GaugePack(
        words=msgspec.Raw(msgspec.json.encode(names)),
        numbers=packed_whole(gauges.counts) + b"".join(packed(column) for column in columns),
    )
