"""The topics of a deployment: made once, compared with what everybody expects, and the snapshots in one of them."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from kafka_admin import altered, deleted, emptied, widened
from kafka_pipeline import SESSION_S, Pipeline, free_address, pipeline, run_all, until

from schemas.codec import headers
from schemas.deployment import Deployment
from schemas.ports import LogError
from schemas.results import Snapshot
from schemas.topics import MIB, TOPICS
from streams.log.kafka import KafkaLog
from streams.log.kafka_admin import SESSION_S as SHORTEST_AND_LONGEST
from streams.log.kafka_admin import groups_with_members, session_bounds
from streams.log.kafka_group import KafkaGroup
from streams.log.kafka_settings import kafka_settings
from streams.log.kafka_snapshots import KafkaSnapshots
from streams.log.kafka_topics import check_topics, create_topics
from streams.snapshots import SnapshotError

pytestmark = pytest.mark.xdist_group("kafka")
_THERE = re.compile(r" \(topic prefixes of deployments that are there: .*\)")


@pytest.fixture
def live(kafka: str, tmp_path: Path) -> Iterator[Pipeline]:
    with pipeline(kafka, tmp_path, partitions=2) as made:
        yield made


def snapshot(number: int, stage: str = "rank", text: str = "") -> Snapshot:
    state = msgspec.Raw(msgspec.json.encode({"n": number, "text": text}))
    return Snapshot(stage=stage, partition=1, end=number, config="c", offsets={"logs|1": number}, state=state)


def test_topics_are_made_once_and_another_deployment_is_refused(live: Pipeline) -> None:
    assert create_topics(live.settings, Deployment(partitions=2, ticks="publisher")) == []
    for other in (Deployment(partitions=3, ticks="publisher"), Deployment(partitions=2, ticks="workers")):
        with pytest.raises(LogError, match="2 partitions and ticks by publisher is there already"):
            create_topics(live.settings, other)
    assert check_topics(live.log) == ([], Deployment(partitions=2, ticks="publisher"))


def test_a_check_names_each_topic_that_is_not_as_it_should_be(live: Pipeline) -> None:
    prefix = live.settings.prefix
    altered(live, "windows", {"max.message.bytes": str(MIB)})
    assert check_topics(live.log)[0] == [f"topic {prefix}windows takes records of {MIB} bytes, {8 * MIB} are needed"]
    widened(live, "stacks", 3)
    deleted(live, "late", "snapshots")
    problems, deployment = check_topics(live.log)
    assert problems == [
        f"topic {prefix}stacks has 3 partitions, the deployment 2",
        f"topic {prefix}late is missing; `rankwatch topics create --topic-prefix {prefix}` makes it",
        f"topic {prefix}snapshots is missing; `rankwatch topics create --topic-prefix {prefix}` makes it",
    ]
    assert deployment == Deployment(partitions=2, ticks="publisher")
    assert printed(live, "create") == (0, [f"created {prefix}late", f"created {prefix}snapshots"])
    deleted(live, "late", "meta", "fleet")
    names = sorted(f"{prefix}{name}" for name in ("late", "meta", "fleet"))
    missing = check_topics(live.log)[0][0]
    assert missing.endswith(f" are missing; `rankwatch topics create --topic-prefix {prefix}` makes them")
    assert sorted(missing.removeprefix("topics ").partition(" are ")[0].split(", ")) == names
    assert printed(live, "create")[0] == 0


def printed(live: Pipeline, *arguments: str) -> tuple[int, list[str]]:
    """The exit code of `rankwatch topics` and the lines that it prints, in order of the alphabet."""
    code, text = run_all({"topics": ["topics", *arguments]}, *live.where)["topics"]
    return code, sorted(text.splitlines())


def test_a_check_compares_what_it_is_told_and_ends_with_1_where_it_differs(live: Pipeline) -> None:
    fixed = "2 partitions, ticks by publisher"
    assert printed(live, "check", "--partitions", "2", "--ticks", "publisher") == (0, [fixed])
    assert printed(live, "check", "--partitions", "3", "--ticks", "workers") == (
        1,
        [
            fixed,
            "the deployment has 2 partitions, not 3",
            "the deployment has ticks by publisher, not by workers",
        ],
    )


def test_a_deployment_that_is_missing_is_a_problem_to_a_check_and_an_end_to_others(kafka: str, tmp_path: Path) -> None:
    where = ["--kafka", kafka, "--topic-prefix", f"{tmp_path.name}."]
    missing = f"topic {tmp_path.name}.deployment is missing; `rankwatch topics create"
    own, recorded = (f"{more} --topic-prefix {tmp_path.name}.` makes it\n" for more in ("", " --ticks publisher"))
    commands = {
        "check": ["topics", "check"],
        "check ticks": ["topics", "check", "--ticks", "publisher"],
        "forget": ["topics", "forget"],
        "publish": ["publish", str(tmp_path)],
        "feed": ["feed"],
    }
    # Which deployments there are besides is told behind it, on the same line.
    said = {name: (code, _THERE.sub("", text)) for name, (code, text) in run_all(commands, *where).items()}
    assert said == {
        "check": (1, missing + own),
        "check ticks": (1, missing + recorded),
        "forget": (2, f"rankwatch: {missing}{own}"),
        "publish": (2, f"rankwatch: {missing}{recorded}"),
        "feed": (2, f"rankwatch: {missing}{own}"),
    }


def test_whoever_mistypes_a_prefix_is_told_which_there_are(live: Pipeline) -> None:
    mistyped = KafkaLog(msgspec.structs.replace(live.settings, prefix="mistyped-"))
    try:
        [problem], deployment = check_topics(mistyped)
    finally:
        mistyped.close()
    assert deployment is None and "\n" not in problem
    assert problem.startswith(
        "topic mistyped-deployment is missing; `rankwatch topics create --topic-prefix mistyped-`"
    )
    told = _THERE.search(problem)
    assert told is not None and (repr(live.settings.prefix) in told.group() or " more)" in told.group())


def test_what_the_cluster_refuses_is_one_line(kafka: str, tmp_path: Path) -> None:
    where = ["--kafka", kafka, "--topic-prefix", f"{tmp_path.name}."]
    code, said = run_all({"create": ["topics", "create", "--replication", "100"]}, *where)["create"]
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith(f"rankwatch: topic {tmp_path.name}.logs: Kafka at {kafka}: ")


def test_stages_that_run_cannot_be_forgotten(live: Pipeline) -> None:
    store = KafkaSnapshots(live.log)
    store.save(snapshot(1))
    groups = [live.settings.full(stage) for stage in ("rank", "job", "fleet")]
    assert groups_with_members(live.settings, groups) == []
    members = [KafkaGroup(live.settings, stage, ["windows"]) for stage in ("fleet", "job", "rank")]
    for one in members:
        until(lambda one=one: bool(one.poll(1, 0.5)) or bool(one._consumer.assignment()))
    code, said = printed(live, "forget")
    assert code == 2 and len(said) == 1
    assert (
        said[0].startswith("rankwatch: workers are running")
        and f": groups {' and '.join(groups)} have members; " in said[0]
    )
    assert store.load("rank", 1) == snapshot(1)
    members.pop().close()
    assert groups_with_members(live.settings, groups) == groups[1:]
    for one in members:
        one.close()
    assert printed(live, "forget")[0] == 0
    assert store.load("rank", 1) is None


def test_the_brokers_say_which_sessions_they_take(live: Pipeline) -> None:
    low, high = session_bounds(live.settings) or (0.0, 0.0)
    assert low <= float(SESSION_S) < SHORTEST_AND_LONGEST[0], "what the tests' broker is told"
    code, said = run_all({"worker": ["worker", "--session-s", f"{high + 1:g}"]}, *live.where)["worker"]
    reason = f"--session-s {high + 1:g}: the brokers take sessions of {low:g} to {high:g} seconds"
    assert (code, said) == (2, f"rankwatch: {reason}\n")


def test_where_nobody_says_which_sessions_are_taken_it_is_what_brokers_take_by_default() -> None:
    assert session_bounds(kafka_settings(free_address())) is None


def test_topics_that_nobody_described_are_no_deployment(live: Pipeline) -> None:
    altered(live, "deployment", {"cleanup.policy": "delete"})
    emptied(live, "deployment")
    said, deployment = check_topics(live.log)
    assert deployment is None and "deployment is empty" in said[0]
    assert create_topics(live.settings, Deployment(partitions=2, ticks="publisher")) == []
    problem = f"topic {live.settings.prefix}deployment has cleanup.policy delete, not compact"
    assert check_topics(live.log) == ([problem], Deployment(partitions=2, ticks="publisher"))
    altered(live, "deployment", {"cleanup.policy": "compact"})
    assert check_topics(live.log)[0] == []


def test_the_latest_snapshot_of_a_stage_is_found_wherever_it_lies(live: Pipeline) -> None:
    store = KafkaSnapshots(live.log)
    assert store.load("rank", 1) is None
    for number in range(3):
        store.save(snapshot(number))
    for number in range(700):
        live.log.append("snapshots", b"job|1", msgspec.json.encode(snapshot(number, "job")), headers("snapshot"), 0, 1)
    live.log.flush()
    assert store.load("rank", 1) == snapshot(2)
    assert store.load("job", 1) == snapshot(699, "job")
    assert store.load("job", 0) is None


def test_a_snapshot_of_twenty_megabytes_comes_back_and_a_damaged_one_says_so(live: Pipeline) -> None:
    store = KafkaSnapshots(live.log)
    large = snapshot(7, text=os.urandom(10 * MIB).hex())
    store.save(large)
    assert store.load("rank", 1) == large
    with pytest.raises(LogError, match="more than topic snapshots takes"):
        store.save(snapshot(8, text=os.urandom(70 * MIB).hex()))
    assert store.load("rank", 1) == large
    # What says the same again and again is packed.
    alike = snapshot(9, text="rank 5 on node07 " * (TOPICS["snapshots"].most_bytes // 8))
    store.save(alike)
    assert store.load("rank", 1) == alike
    packed = zlib.compress(msgspec.json.encode(snapshot(10)))
    for damaged, why in (
        (b'{"stage": "rank", "part', ""),
        (packed[:-9], "it is cut short"),
        (b"what is this", "neither JSON"),
    ):
        live.log.append("snapshots", b"rank|1", damaged, headers("snapshot"), 0, 1)
        live.log.flush()
        with pytest.raises(SnapshotError, match=f"the snapshot of rank 1 cannot be read: .*{why}"):
            store.load("rank", 1)


def test_a_snapshot_that_was_deleted_is_none(live: Pipeline) -> None:
    store = KafkaSnapshots(live.log)
    store.save(snapshot(1))
    live.log.append("snapshots", b"rank|1", b"", headers("snapshot"), 0, 1)
    live.log.flush()
    assert store.load("rank", 1) is None
