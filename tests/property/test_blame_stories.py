"""Findings that follow from a true story: whatever victims add and whatever is missing, nobody else is named."""

from __future__ import annotations

from blame_table import RANKS, behind, cascade, error, fault, left, others, outside, slow, stall, waiting
from detection_support import FIXED, anomaly, at, situation
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.results import Anomaly
from streams.incidents.blame import decide
from streams.incidents.situation import Situation

LIMITED = settings(FIXED, max_examples=150)


def failing(kind: str, culprit: int) -> list[Anomaly]:
    """What is found of a rank that fails at second 12; its peers notice two seconds later."""
    lost = cascade(*others(culprit), onset=14)
    return {
        "raises": [error(culprit), lost],
        "dies": [anomaly("own_death", [culprit], start=10, onset=12, precision_ns=10**9, subject="killed"), lost],
        "loses its GPU": [fault(culprit, 11), error(culprit), lost],
        "ends well": [stall(), waiting("all_in_communication", culprit), left(culprit)],
        "blocks": [stall(), outside(culprit), behind(culprit)],
        "blocks, by stacks": [stall(), outside(culprit)],
        "blocks, by dumps": [stall(), behind(culprit), waiting("all_in_communication", culprit)],
    }[kind]


CRASHES = ("raises", "dies", "loses its GPU")
HANGS = ("ends well", "blocks", "blocks, by stacks", "blocks, by dumps")
RANK = st.integers(0, RANKS - 1)
WORD = st.tuples(RANK, st.floats(2.5, 60), st.booleans(), st.sampled_from("bcd"))
"""Who adds a word, how many seconds after the others may have noticed, whether it looks like an error of its own."""


def named(anomalies: list[Anomaly], known: Situation) -> set[int | None]:
    """Whom blame names by these, the first of which opens the incident."""
    opening = sorted(anomalies, key=lambda one: (one.severity == "info", one.end))
    return {suspect.rank for suspect in decide(opening, known).suspects} if opening else set()


def word(told: tuple[int, float, bool, str], since: float) -> Anomaly:
    rank, after, own, template = told
    second = since + after
    if own:
        return error(rank, second, template)
    return cascade(rank, start=second // 10 * 10, onset=second, text=f"word of {rank}")


@LIMITED
@given(st.sampled_from(CRASHES + HANGS), RANK, st.lists(WORD, max_size=4), st.integers(0, 9))
def test_words_of_victims_move_the_blame_to_nobody_else(
    kind: str, culprit: int, words: list[tuple[int, float, bool, str]], windows: int
) -> None:
    # A standstill is one only once it has lasted, and what a victim prints before may be why nothing comes.
    since = 12 if kind in CRASHES else 18
    more = [word(one, since) for one in words if one[0] != culprit]
    now = 30 + 10 * windows
    known = [one for one in [*failing(kind, culprit), *more] if one.end <= at(now)]
    assert named(known, situation(now=now)) <= {culprit}


@LIMITED
@given(st.sampled_from(CRASHES + HANGS), RANK, st.data())
def test_what_a_lost_source_would_have_told_moves_the_blame_to_nobody_else(
    kind: str, culprit: int, data: st.DataObject
) -> None:
    found = failing(kind, culprit)
    lost = data.draw(st.sampled_from(sorted({one.detector for one in found})))
    silent = data.draw(st.sets(RANK, max_size=2))
    kept = [one for one in found if one.detector != lost]
    assert named(kept, situation(unobserved=sorted(silent))) <= {culprit}


@LIMITED
@given(RANK, RANK, st.sampled_from(["slow_and_changed", "slow_against_peers"]), st.booleans())
def test_two_sources_of_equal_weight_that_contradict_each_other_name_nobody(
    one: int, two: int, grounds: str, knows_layout: bool
) -> None:
    found = [slow(grounds, one), slow("busy_changed_and_cpu", two)]
    known = situation(knows_layout=knows_layout)
    assert named(found, known) <= ({one} if one == two else set())
    # That its stack waits would strike the other out.
    apart = anomaly("outside_communication", [one], others(one, two), start=10, onset=9)
    assert named([stall(), apart, behind(two)], known) <= ({one} if one == two else set())


@LIMITED
@given(st.sampled_from([("config", "configuration"), ("storage gone", "data"), ("nan", "code")]), st.integers(0, 1))
def test_what_befalls_all_ranks_alike_names_nobody(what: tuple[str, str], left_out: int) -> None:
    ranks = list(range(RANKS - left_out))
    alike = anomaly("own_error", ranks, start=10, templates=[what[0]], area=what[1])
    assert named([alike, cascade(*ranks, onset=14)], situation()) == set()
