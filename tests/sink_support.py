"""Records of every kind that the sink stores, and a log to put them into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from schemas import codec, events, fleet, results
from schemas.comparison import Association, Comparison, LikeJob, Setting, Shown
from schemas.identity import Identity
from schemas.jobs import JobDescription
from schemas.library import HealthyJob, LearnedTemplate, Library
from schemas.meta import MetaAlert
from schemas.ports import Entry
from schemas.silences import Matcher, Silence
from schemas.topics import STAMPED, TOPICS

T0 = 1_764_417_600_123_456_789
"""2025-11-29T12:00:00.123456789Z"""
S = 1_000_000_000

SINGLE_TOPICS = {
    "window": "windows",
    "progress": "windows",
    "late": "late",
    "template": "templates",
    "library": "library",
    "anomaly": "anomalies",
    "merged_stacks": "merged.stacks",
    "node_history": "node.history",
    "incident": "incidents",
    "meta": "meta",
    "silence": "silences",
    "comparison": "comparisons",
    "dead_letter": "dead-letters",
}


class MemoryLog:
    """The least that a log must do."""

    def __init__(self, partitions: int = 2) -> None:
        self._entries: dict[str, list[list[Entry]]] = {name: [[] for _ in range(partitions)] for name in TOPICS}

    def partitions(self, topic: str) -> int:
        return len(self._entries[topic])

    def append(
        self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int, partition: int | None = None
    ) -> tuple[int, int]:
        place = sum(key) % self.partitions(topic) if partition is None else partition
        entries = self._entries[topic][place]
        entries.append(Entry(len(entries), key, value, headers, time))
        return place, len(entries) - 1

    def flush(self) -> None:
        """Memory is safe at once."""

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Entry]:
        return self._entries[topic][partition][offset : offset + limit]

    def end(self, topic: str, partition: int) -> int:
        return len(self._entries[topic][partition])

    def put(self, *records: msgspec.Struct, partition: int | None = None) -> None:
        for record in records:
            kind = codec.kind_of(record)
            topic = STAMPED[kind] if kind in STAMPED else SINGLE_TOPICS[kind]
            self.append(topic, b"job1|3", codec.encode(record), codec.headers(kind), T0 + 5 * S, partition)


def identity(rank: int | None = 3, **changes: object) -> Identity:
    values: dict[str, object] = {
        "job": "job1",
        "cluster": "c1",
        "node": "node02",
        "rank": rank,
        "local_rank": 1,
        "role": "trainer",
        "coordinates": {"pp": [0, 4], "dp": 1},
        "device": "GPU-1",
    }
    return msgspec.convert(values | changes, Identity)


def batch(*batch_events: events.Event, seq: int = 1, who: Identity | None = None) -> events.Batch[events.Event]:
    return events.Batch(producer="agent/node02", boot="b1", seq=seq, identity=who or identity(), events=[*batch_events])


def stamped() -> list[events.Batch[events.Event]]:
    """A batch of two events of every stamped kind, an hour and a nanosecond apart."""
    return [
        batch(*(msgspec.structs.replace(event, time=time) for time in (T0, T0 + 3600 * S + 1)))
        for event in (
            events.Log(
                time=0,
                time_source="printed",
                precision_ns=1000,
                phase="train",
                iteration=40,
                stream="stdout",
                level="WARNING",
                text="loss is nan\nat step 40 — ünïcode \x00 \t'quoted'",
                file="/logs/3.out",
                offset=77,
                line=4,
                signature="abc",
                parameters=("40", ""),
            ),
            events.Stack(
                time=0,
                process_type="dataloader",
                pid=42,
                thread="MainThread",
                active=True,
                frames=[events.Frame("main", "train.py", 10), events.Frame("all_reduce", "dist.py", 99)],
            ),
            events.Metric(
                time=0,
                name="loss",
                value=None,
                nonfinite="nan",
                counter=True,
                iteration=40,
                pid=42,
                device="GPU-7",
            ),
            events.Collective(
                time=0,
                group="dp_0",
                ranks=[0, 1, 3],
                sequence=7,
                operation="all_reduce",
                state="started",
                input_sizes=[[2, 3], []],
                output_sizes=[[6]],
                dtype="bf16",
                created=T0 - S,
                point_to_point=True,
            ),
            events.Profile(
                time=0,
                name="gemm",
                kind="gpu",
                share=0.5,
                mean=0.25,
                spread=0.125,
                count=3,
                typical=0.5,
                unrest=0.0625,
                duration=6 * 10**9,
                steps=6,
                first_step=10,
                world_size=8,
                unlisted=0.0078125,
                recorded="cpu,gpu",
            ),
            events.Timeline(
                time=0,
                time_source="inferred",
                iteration=40,
                names=["forward-compute", "forward-send"],
                operations=[0, 1, 0],
                starts=[5, 105, 110],
                durations=[100, 5, 90],
                microbatches=[0, 0, 1],
                left_out=1,
            ),
            events.Alert(time=0, name="xid", text="Xid 79", severity="critical"),
        )
    ]


def described(**environment: str) -> JobDescription:
    return JobDescription(
        framework="megatron",
        command=["torchrun", "train.py"],
        layout={"tp": 2},
        world_size=8,
        environment=environment,
        versions={"torch": "2.5.1"},
        differing={"flags.bf16": ["false", "true"]},
        scattered=["environment.NCCL_TOPO_FILE"],
    )


def window(rank: int | None = 3, start: int = T0, **changes: object) -> results.Window:
    values = results.Window(
        id=f"w-{rank}-{start}",
        identity=identity(rank),
        start=start,
        end=start + 10 * S,
        phase="train",
        iteration=40,
        iteration_time=start + S,
        total_iterations=100,
        log_records=5,
        last_log=start + 2 * S,
        pids=[42],
        heartbeats=9,
        world_size=8,
        layout={"tp": 2, "dp": 4},
        signatures=[results.SignatureCount(signature="abc", masked="loss is *", count=5, first=start, last=start + S)],
        series=[results.Series(name="loss", iterations=[39, 40], times=[start, start], values=[1.5, None])],
        gauges=[results.Gauge(name="util", count=2, mean=0.5, minimum=0.0, maximum=1.0, first=0.0, last=1.0)],
        stacks=[
            results.StackSpan(
                process_type="trainer",
                pid=42,
                thread="MainThread",
                activity="communication",
                identity="i",
                position="p",
                frames=[events.Frame("main", "train.py", 1), events.Frame("all_reduce", "dist.py", 2)],
                first=start,
                last=start + S,
                samples=2,
            )
        ],
        fatals=[
            results.Fatal(
                time=start,
                rule="oom",
                role="candidate",
                symptom="memory",
                area="memory",
                text="CUDA OOM",
                template="host.oom_node",
                values={"constraint": "CONSTRAINT_NONE", "pid": "42"},
                process_type="kernel",
            )
        ],
        exits=[results.Exit(time=start, pid=42, code=None, signal="SIGKILL"), results.Exit(time=start, pid=43, code=1)],
        drifts=[results.Drift(metric="step_time", iteration=40, time=start, before=1.0, after=2.0, steps=20)],
        dropped={"log": 3},
    )
    return msgspec.structs.replace(values, **changes)


def template(signatures: Sequence[str] = ("abc",), text: str = "loss is <*>") -> results.Template:
    return results.Template(id="t1", job="job1", text=text, signatures=[*signatures], first_seen=T0, aliases=["t0"])


def library(number: int = 3) -> Library:
    return Library(
        name="healthy",
        number=number,
        version="v1",
        masks="m1",
        rankwatch="0.1.0",
        jobs=[HealthyJob(id=f"run-{name}.1", job=f"run-{name}", ranks={"start-up": 4, "train": 8}) for name in "ab"],
        templates=[
            LearnedTemplate(id="t1", text="loss is <*>", printed={"run-a.1": {"train": 8}, "run-b.1": {"train": 4}}),
            LearnedTemplate(id="t2", text="hello", printed={"run-b.1": {"start-up": 2, "train": 8}}),
        ],
    )


def suspect() -> results.Suspect:
    return results.Suspect(rank=3, node="node02", score=0.75, why="slowest by far", coordinates={"pp": [0, 4]})


def anomaly(name: str = "a1") -> results.Anomaly:
    return results.Anomaly(
        id=name,
        detector="stack_minority",
        version=1,
        config="cfg",
        job="job1",
        attempt="0",
        start=T0,
        end=T0 + 10 * S,
        onset=T0 + 7,
        axis="space",
        layer="stack",
        symptom="hang",
        area="data",
        grounds="minority",
        text="rank 3 stands in next()",
        severity="critical",
        peers="7 of 8 in all_reduce",
        iteration=40,
        phase="train",
        suspects=[suspect(), results.Suspect(rank=None, node="node09", score=0.5, why="idle")],
        victims=[0, 1],
        about=[5, 6],
        metric="data_load",
        unobserved=[7],
        templates=["t1"],
        library="healthy 3 (v1)",
    )


def stack_class(**changes: object) -> results.MergedClass:
    values = results.MergedClass(
        process_type="trainer",
        thread="MainThread",
        role="trainer",
        observed="0-2,4-6",
        unobserved=[results.Unobserved(ranks="3", reason="Permission denied")],
        groups=[
            results.MergedGroup(
                ranks="0-2,4,6",
                activity="communication",
                place="all_reduce (dist.py:99)",
                frames=[events.Frame("main", "train.py", 10), events.Frame("all_reduce", "dist.py", 99)],
                since=T0 + 7,
                samples=3,
            ),
            results.MergedGroup(ranks="5", activity="data", place="next (loader.py:7)", minority=True, outer=2),
        ],
        rest=1,
        rest_ranks="2",
        text="ranks 0-2,4,6 in all_reduce (dist.py:99); rank 5 in next (loader.py:7)",
    )
    return msgspec.structs.replace(values, **changes)


def merged_stacks(start: int = T0, **changes: object) -> results.MergedStacks:
    unseen = results.MergedClass(
        process_type="trainer", thread="MainThread", role="critic", text="ranks 7-8 not observed"
    )
    values = results.MergedStacks(
        id=f"m-{start}",
        job="job1",
        attempt="0",
        start=start,
        end=start + 10 * S,
        since=start - 9 * S,
        iteration=40,
        phase="train",
        classes=[stack_class(), unseen],
        rest=2,
    )
    return msgspec.structs.replace(values, **changes)


def incident(revision: int = 1, **changes: object) -> results.Incident:
    values = results.Incident(
        id="i1",
        revision=revision,
        published=T0 + revision * 10 * S,
        job="job1",
        attempt="0",
        symptom="hang",
        area="data",
        severity="critical",
        verdict="supported",
        reason="one_candidate",
        status="open",
        onset=T0 + 7,
        summary="rank 3 hangs in its data loader",
        next_step="look at node02",
        scope=results.Scope(kind="rank", name="3", ranks="3", nodes=["node02"]),
        iteration=40,
        phase="train",
        suspects=[suspect()],
        victims=results.Ranks(ranks="0-2,4-6"),
        missing=results.Ranks(ranks=""),
        unobserved=results.Ranks(ranks="7"),
        templates=[results.SuspiciousTemplate(id="t1", text="loss is <*>", first_seen=T0, ranks="3", axis="space")],
        evidence=[
            results.Evidence(
                layer="stack", detector="stack_minority", start=T0, end=T0 + S, text="next()", peers="all_reduce"
            )
        ],
        notification_key="n1",
        library="healthy 3 (v1)",
        stacks=[stack_class()],
    )
    return msgspec.structs.replace(values, **changes)


def node_history(published: int = T0 + 10 * S, **changes: object) -> fleet.NodeHistory:
    values = fleet.NodeHistory(
        cluster="c1",
        node="node02",
        published=published,
        incidents=2.5,
        node_days=11.5,
        rate=0.08,
        cluster_rate=0.02,
        score=4.0,
        counted=3,
        last=T0 + 7,
    )
    return msgspec.structs.replace(values, **changes)


def late() -> results.Late:
    return results.Late(
        id="l1",
        topic="logs",
        partition=1,
        producer="agent/node02",
        boot="b1",
        seq=9,
        identity=identity(),
        window_end=T0 + 10 * S,
        events=4,
    )


def meta_alert(**changes: object) -> MetaAlert:
    values = MetaAlert(
        id="m1",
        name="skew",
        subject="job1|node02",
        status="firing",
        severity="warning",
        since=T0,
        time=T0 + 10 * S,
        text="the clock of node02 runs ahead",
        cluster="c1",
    )
    return msgspec.structs.replace(values, **changes)


def dead_letter() -> results.DeadLetter:
    return results.DeadLetter(
        topic="logs",
        partition=1,
        offset=12,
        stage="rank",
        reason="not json",
        key=b"\xffkey",
        value=b"\x00\xfe raw",
        headers={"schema": "log"},
    )


def silence(number: int = 1, ends: int = T0 + 3600 * S) -> Silence:
    return Silence(
        id="s1",
        number=number,
        matchers=[
            Matcher(label="job", value="job?", pattern=True),
            Matcher(label="severity", value="info", negated=True),
        ],
        starts=T0,
        ends=ends,
        created_by="maria",
        comment="new cable",
        kind="known",
    )


def comparison(start: int = T0, **changes: object) -> Comparison:
    setting = Setting(facet="flags", name="fp8", here="true", there=["false", ""], text="fp8=true")
    values = Comparison(
        id=f"c-{start}",
        job="job1",
        attempt="0",
        start=start,
        end=start + 10 * S,
        library="healthy 1 (v)",
        verdict="supported",
        chosen=start - 10 * S,
        jobs=[
            LikeJob(id="a", likeness=0.9, certainty=0.75, reason="like", baseline=True, like=True),
            LikeJob(id="b", likeness=0.5, certainty=0.5, reason="model", symptoms=["numerics"]),
        ],
        shows=[Shown(kind="novel_templates", text="1 template")],
        symptoms=["numerics"],
        settings=[setting],
        associations=[
            Association(
                symptom="numerics", settings=[setting], having=2, having_shown=2, others=1, others_shown=0, text="so"
            )
        ],
        caution="few",
    )
    return msgspec.structs.replace(values, **changes)


def everything() -> list[msgspec.Struct]:
    """At least one record of every kind on the topics of the sink."""
    return [
        *stamped(),
        window(described=described(NCCL_ALGO="Tree", OMP_NUM_THREADS="8")),
        window(4, described=described(NCCL_ALGO="Ring")),
        window(3, T0 + 10 * S),
        window(None),
        results.Progress(partition=0, end=T0),
        late(),
        template(),
        library(),
        anomaly(),
        merged_stacks(),
        merged_stacks(T0 - 10 * S),
        incident(),
        incident(2, status="resolved"),
        node_history(),
        meta_alert(),
        meta_alert(status="resolved", time=T0 + 20 * S),
        silence(),
        silence(2, ends=T0 + 60 * S),
        comparison(),
        comparison(T0 - 10 * S, verdict="ambiguous"),
        dead_letter(),
    ]
