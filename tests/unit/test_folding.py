"""An attempt's view as it is written down: nothing is lost, and what many threads share stands there once."""

from __future__ import annotations

from typing import Any

import msgspec
from detection_support import ALL_REDUCE, GETITEM, LOADER_WAIT, OWN, TORCH, closed, healthy, new_view, stack, still

from schemas.events import Frame
from streams.attempt_window import AttemptWindow
from streams.folding import folded, unfold
from streams.stacks import MOST_SPANS
from streams.state import written
from streams.view import AttemptView

NATIVE = [*ALL_REDUCE, Frame("ncclAllReduce", f"{TORCH}/lib/libnccl.so.2")]
RANKS = 6


def hanging() -> AttemptView:
    """Most wait; rank 5 waits for its loader, a sampler of rank 4's node shows native frames as well."""
    view = new_view()
    loader = stack(GETITEM, 33, 38, process_type="dataloader", pid=7)
    apart = {5: [stack(LOADER_WAIT, 33, 38), loader], 4: [stack(NATIVE, 33)]}
    extra = {rank: {"stacks": apart.get(rank, [stack(ALL_REDUCE, 33 + rank / 10, 38)])} for rank in range(RANKS)}
    for window in (healthy(RANKS), still(RANKS, 30, extra)):
        view.update(window)
    return view


def again(view: AttemptView) -> AttemptView:
    read = msgspec.json.decode(written(folded(view)), type=AttemptView)
    unfold(read)
    return read


def test_a_view_is_read_back_as_it_was() -> None:
    view = hanging()
    assert again(view) == view
    assert again(again(view)) == view
    assert view == hanging()
    assert written(folded(again(view))) == written(folded(view))


def test_equal_positions_with_other_frames_are_places_of_their_own() -> None:
    view = hanging()
    assert view.members[0].spans.keys() == view.members[4].spans.keys()
    assert {span.position for rank in (0, 4) for span in view.members[rank].spans.values()} == {
        stack(ALL_REDUCE, 33).position
    }
    assert [span.frames for span in again(view).members[4].spans.values()] == [NATIVE]


def test_each_place_is_written_once() -> None:
    places = folded(hanging()).places
    assert [one.frames for one in places] == [ALL_REDUCE, NATIVE, GETITEM, LOADER_WAIT]


def test_a_restored_view_goes_on_as_the_other_does() -> None:
    view = hanging()
    read = again(view)
    extra = {rank: {"stacks": [stack(OWN if rank == 1 else ALL_REDUCE, 43)]} for rank in range(RANKS)}
    later: AttemptWindow = still(RANKS, 40, extra)
    for one in (view, read):
        one.update(later)
    assert read == view
    assert read.members[1].moved == view.members[1].moved is not None


def test_a_view_without_samples_is_written_too() -> None:
    view = new_view()
    view.update(closed([]))
    assert again(view) == view


def test_of_too_many_equal_threads_the_same_are_kept_whether_or_not_the_view_was_written_down() -> None:
    def threads(names: list[int], second: float) -> dict[int, Any]:
        return {0: {"stacks": [stack(OWN, second, thread=f"Thread-{name:03d}") for name in names]}}

    names = [(7 * number) % 61 + 1 for number in range(MOST_SPANS - 4)]
    view = new_view()
    for window in (healthy(RANKS), still(RANKS, 30, threads(names, 33))):
        view.update(window)
    read = again(view)
    later = still(RANKS, 40, threads([100 - number for number in range(30)], 43))
    for one in (view, read):
        one.update(later)
    assert len(view.members[0].spans) == MOST_SPANS
    assert read == view
    assert written(folded(read)) == written(folded(view))
