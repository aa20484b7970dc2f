"""The topics: who writes, who reads, how they are keyed and kept."""

from __future__ import annotations

from typing import Literal

import msgspec

MIB = 1024 * 1024

OVERHEAD = 1024
"""Room (bytes) for what a log puts around a record."""


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """One topic. ``raw`` topics carry ticks, have equal partition counts and are what a replay reads.

    ``most_bytes`` bounds one record; ``single`` topics have one partition, all others as many as the deployment says.
    """

    name: str
    kinds: tuple[str, ...]
    key: str
    writer: str
    readers: tuple[str, ...]
    raw: bool = False
    cleanup: Literal["delete", "compact", "compact,delete"] = "delete"
    most_bytes: int = MIB
    single: bool = False

    def takes(self, size: int) -> bool:
        """Whether a record with so many bytes of key and value fits."""
        return size + OVERHEAD <= self.most_bytes


def _raw(name: str, kind: str) -> Topic:
    return Topic(
        name=name, kinds=(kind, "tick"), key="job|worker", writer="producers", readers=("rank stage",), raw=True
    )


def _stamped(name: str, kind: str) -> Topic:
    return Topic(name=f"stamped.{name}", kinds=(kind,), key="job|worker", writer="rank stage", readers=("sink",))


RAW_KINDS: dict[str, str] = {
    "logs": "log",
    "stacks": "stack",
    "metrics": "metric",
    "collectives": "collective",
    "profiles": "profile",
    "timelines": "timeline",
    "alerts": "alert",
    "heartbeats": "heartbeat",
    "topology": "topology",
    "jobs": "job",
}
"""Raw topic to the kind it carries."""

RAW_TOPIC_OF: dict[str, str] = {kind: name for name, kind in RAW_KINDS.items()}
"""Kind to the raw topic that carries it."""

STAMPED: dict[str, str] = {
    kind: f"stamped.{name}" for name, kind in RAW_KINDS.items() if kind not in ("heartbeat", "topology", "job")
}
"""Kind to the topic on which the rank stage sends it on, stamped with phase and iteration."""

TOPICS: dict[str, Topic] = {
    topic.name: topic
    for topic in (
        *(_raw(name, kind) for name, kind in RAW_KINDS.items()),
        *(_stamped(name, kind) for name, kind in RAW_KINDS.items() if kind in STAMPED),
        Topic(
            name="windows",
            kinds=("window", "progress"),
            key="job",
            writer="rank stage",
            readers=("job stage", "sink"),
            most_bytes=8 * MIB,
        ),
        Topic(name="late", kinds=("late",), key="job|worker", writer="rank stage", readers=("sink",)),
        Topic(name="notices", kinds=("notice",), key="job", writer="rank stage", readers=("feed",)),
        Topic(
            name="templates",
            kinds=("template",),
            key="job|template",
            writer="job stage",
            readers=("sink",),
            cleanup="compact,delete",
        ),
        Topic(
            name="anomalies", kinds=("anomaly",), key="job", writer="job stage", readers=("sink",), most_bytes=8 * MIB
        ),
        Topic(
            name="merged.stacks",
            kinds=("merged_stacks",),
            key="job",
            writer="job stage",
            readers=("sink",),
            most_bytes=8 * MIB,
        ),
        Topic(
            name="incidents",
            kinds=("incident",),
            key="job",
            writer="job stage, fleet stage",
            readers=("sink", "feed"),
            most_bytes=8 * MIB,
        ),
        Topic(
            name="fleet",
            kinds=("fleet_report", "progress"),
            key="cluster",
            writer="job stage",
            readers=("fleet stage",),
            most_bytes=8 * MIB,
        ),
        Topic(
            name="node.history",
            kinds=("node_history",),
            key="cluster|node",
            writer="fleet stage",
            readers=("sink",),
            cleanup="compact",
        ),
        Topic(
            name="meta",
            kinds=("meta",),
            key="cluster",
            writer="job stage, workers and sinks",
            readers=("sink", "feed"),
        ),
        Topic(
            name="comparisons",
            kinds=("comparison",),
            key="job",
            writer="job stage",
            readers=("sink",),
            most_bytes=8 * MIB,
        ),
        Topic(
            name="snapshots",
            kinds=("snapshot",),
            key="stage|partition",
            writer="all stages",
            readers=("all stages",),
            cleanup="compact",
            most_bytes=64 * MIB,
        ),
        Topic(
            name="dead-letters",
            kinds=("dead_letter",),
            key="origin",
            writer="all",
            readers=("sink",),
            # The bytes of a record of any other topic fit in, as Base64 in JSON.
            most_bytes=16 * MIB,
        ),
        Topic(
            name="deployment",
            kinds=("deployment",),
            key="deployment",
            writer="whoever creates the topics",
            readers=("all",),
            cleanup="compact",
            single=True,
        ),
        Topic(
            name="library",
            kinds=("library",),
            key="name",
            writer="whoever imports a library",
            readers=("job stage", "sink"),
            cleanup="compact",
            most_bytes=8 * MIB,
            single=True,
        ),
        Topic(
            name="silences",
            kinds=("silence",),
            key="id",
            writer="whoever silences",
            readers=("feed", "sink"),
            cleanup="compact",
            single=True,
        ),
    )
}
"""All topics by name."""

RAW_TOPICS: tuple[str, ...] = tuple(RAW_KINDS)
"""Raw topics in canonical order."""
