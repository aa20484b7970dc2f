"""Whole jobs with something changed that is nobody's fault: the blame never moves to an innocent rank."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest
from disturbed import (
    CASCADES,
    OWN_LOOKING,
    Told,
    recorded,
    renamed,
    shifted,
    sources,
    told_by,
    twice,
    with_words,
    without,
)
from simulated_crash import drawn
from streams_support import SECOND, SHARED, at, hanging, recording_of, run, slowing, steady, written_log

from producers.recording import Recording, read_recording
from schemas.identity import Identity
from schemas.results import Incident
from streams.report import latest, revisions


class Story(msgspec.Struct, frozen=True):
    """A recorded job, who may be named in it, since when (ns), and how long after that victims lose their peers (s)."""

    recording: Recording
    guilty: frozenset[int]
    onset: int
    patience_s: float


def crashed(seed: int) -> Story:
    crash = drawn(seed)
    return Story(crash.recording, frozenset(crash.guilty), crash.onset, 0.3)


STORIES: dict[str, Callable[[], Story]] = {
    "hang": lambda: Story(hanging().recording, frozenset({5}), at(31), 25),
    "slow": lambda: Story(slowing().recording, frozenset({3}), at(30), 0.3),
    "raises": lambda: crashed(0),
    "is killed": lambda: crashed(2),
    "ends silently": lambda: crashed(51),
}
RECORDED = {"exception": 6, "kill": 6, "dataloader-hang": 5}


def judged(told: Told, like: Recording) -> list[Incident]:
    log = written_log(recorded(told, like))
    run(log)
    return list(revisions(log))


def named(found: list[Incident]) -> set[int | None]:
    """All ranks that any revision names."""
    return {suspect.rank for one in found for suspect in one.suspects}


def said(found: list[Incident], to: dict[int, int] | None = None) -> list[tuple[str, str, list[int]]]:
    """What is decided in the end."""
    ranks = [sorted(one.rank for one in each.suspects if one.rank is not None) for each in latest(iter(found))]
    renewed = [sorted((to or {}).get(rank, rank) for rank in each) for each in ranks]
    return [(one.verdict, one.reason, each) for one, each in zip(latest(iter(found)), renewed, strict=True)]


def owners(told: Told) -> dict[int, Identity]:
    return {one.identity.rank: one.identity for one in told if one.identity.rank is not None}


def with_a_word(told: Told, story: Story, dice: random.Random) -> tuple[Told, object]:
    """A victim prints something, once it may have noticed."""
    who = dice.choice(sorted(owners(told).keys() - story.guilty))
    text = dice.choice(CASCADES + OWN_LOOKING)
    later = dice.choice([0.3, 2, 9.5, 14, 25, 40])
    late = max(story.patience_s, later) if text in CASCADES else later
    last = max(one.arrival for one in told)
    return with_words(told, owners(told)[who], [min(story.onset + round(late * SECOND), last)], text), (who, late, text)


@pytest.mark.parametrize("name", [name for name in STORIES if name != "slow"])
def test_a_word_of_a_victim_moves_the_blame_to_nobody_else(name: str) -> None:
    story, dice = STORIES[name](), random.Random(7)
    told = told_by(story.recording)
    for _ in range(4):
        changed, what = with_a_word(told, story, dice)
        assert named(judged(changed, story.recording)) <= story.guilty, what


@pytest.mark.parametrize("name", STORIES)
def test_a_lost_source_moves_the_blame_to_nobody_else(name: str) -> None:
    story, dice = STORIES[name](), random.Random(11)
    told = told_by(story.recording)
    lost = sources(told)
    for one in dice.sample(sorted(lost), 4):
        assert named(judged(without(told, lost[one]), story.recording)) <= story.guilty, one


@pytest.mark.parametrize(
    ("seed", "lost", "victim", "later", "text"),
    [
        (12, "launcher of node02", 1, 4, OWN_LOOKING[3]),
        (25, "all of 3", 2, 0.3, OWN_LOOKING[-1]),
        (36, "all of node00", 2, 2, OWN_LOOKING[1]),
    ],
    ids=["its node's word", "all of it", "all of its node"],
)
def test_where_the_word_of_who_failed_is_lost_a_victim_that_prints_an_error_is_not_named(
    seed: int, lost: str, victim: int, later: float, text: str
) -> None:
    story = crashed(seed)
    told = told_by(story.recording)
    kept = without(told, sources(told)[lost])
    changed = with_words(kept, owners(told)[victim], [story.onset + round(later * SECOND)], text)
    assert named(judged(changed, story.recording)) <= story.guilty


@pytest.mark.parametrize("name", STORIES)
def test_other_names_of_ranks_and_nodes_move_the_names_and_nothing_else(name: str) -> None:
    story, dice = STORIES[name](), random.Random(13)
    told = told_by(story.recording)
    before = judged(told, story.recording)
    on_node: dict[str, list[int]] = {}
    for rank, who in sorted(owners(told).items()):
        on_node.setdefault(who.node, []).append(rank)
    nodes = sorted(on_node)
    others = dice.sample(nodes, len(nodes))
    pairs = [
        pair for one, two in zip(nodes, others, strict=True) for pair in zip(on_node[one], on_node[two], strict=True)
    ]
    to = dict(pairs)
    called = {one: f"host-{number:02d}" for number, one in enumerate(others)}
    after = judged(renamed(told, to, called), story.recording)
    assert said(after) == said(before, to)
    places = [suspect.node for one in latest(iter(before)) for suspect in one.suspects]
    assert [suspect.node for one in latest(iter(after)) for suspect in one.suspects] == [called[one] for one in places]


@pytest.mark.parametrize("name", STORIES)
def test_copies_other_times_and_a_healthy_job_beside_it_change_nothing(name: str) -> None:
    story, dice = STORIES[name](), random.Random(17)
    told = told_by(story.recording)
    before = said(judged(told, story.recording))
    assert said(judged(shifted(told, 70 * SECOND), story.recording)) == before
    beside = [*told, *told_by(recording_of(steady("healthy", 4, 60)))]
    found = [one for one in judged(beside, story.recording) if one.job == story.recording.job]
    assert said(found) == before
    assert named(judged(twice(told, dice), story.recording)) <= story.guilty
    node = owners(told)[min(story.guilty)].node
    skewed = shifted(told, -SECOND, lambda who: who.node == node)
    assert named(judged(skewed, story.recording)) <= story.guilty


@pytest.mark.parametrize("name", RECORDED)
def test_disturbed_recordings_name_nobody_else(name: str) -> None:
    if not (SHARED / name).is_dir():
        pytest.skip("the recorded jobs are not there")
    recording, guilty, dice = read_recording(SHARED / name), {RECORDED[name]}, random.Random(19)
    told = told_by(recording)
    lost = sources(told)
    for one in dice.sample(sorted(lost), 3):
        assert named(judged(without(told, lost[one]), recording)) <= guilty, one
