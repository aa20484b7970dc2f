"""What schedulers say of a job: ``scontrol show job``, and Kubernetes' pods and jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from producers.job_facts import JobFacts
from producers.readers.launch_script import take_command, take_script

_FIRST = re.compile(r"(?:^|\n)JobId=\d{1,12}(?:_\d{1,9})? (?:Array\S{0,80} ){0,4}JobName=\S")
_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z/:]{1,40})=(\S{0,2000})")
_OF_SLURM = {
    "JobName": ("labels", "job_name"),
    "Partition": ("labels", "queue"),
    "Account": ("labels", "team"),
    "QOS": ("labels", "qos"),
    "Features": ("labels", "constraint"),
    "Reservation": ("labels", "reservation"),
    "NumNodes": ("scale", "nodes"),
    "NumTasks": ("launch", "tasks"),
    "CPUs/Task": ("launch", "cpus_per_task"),
    "TresPerNode": ("launch", "gres"),
    "TimeLimit": ("launch", "time_limit"),
    "Command": ("launch", "file"),
}
_KINDS = re.compile(
    r"Pod|Job|CronJob|JobSet|(?:PyTorch|MPI|TF|XGBoost|Paddle|Train|Ray|Volcano)Job|TrainJob|RayCluster|StatefulSet|Deployment|List|PodList"
)
_OWN_LABEL = re.compile(
    r".{0,200}(?:hash|uid|pod-name|-index|rank|job-name|job_name|job-id|run-id|revision|instance|timestamp|generation|node)",
    re.IGNORECASE,
)
_QUEUES = ("kueue.x-k8s.io/queue-name", "scheduling.volcano.sh/queue-name", "volcano.sh/queue-name", "runai/queue")
_MOST_WALKED, _DEEPEST = 20_000, 12


def read(text: str, file: str) -> JobFacts | None:
    """What ``scontrol show job`` tells, null for another text. Of several jobs the first is told."""
    first = _FIRST.search(text)
    if first is None:
        return None
    facts = JobFacts(file)
    second = _FIRST.search(text, first.end())
    for name, value in _FIELD.findall(text[first.start() : second.start() if second else first.start() + 65_536]):
        facet, told = _OF_SLURM.get(name, ("", ""))
        if value in ("(null)", "None", "N/A", ""):
            continue
        if facet:
            text = value.rpartition("/")[2] if told == "file" else value
            facts.tell(facet, told, text.partition("-")[0] if name == "NumNodes" else text)
    return facts


def is_kubernetes(nested: Mapping[Any, Any]) -> bool:
    """Whether a document is an object of Kubernetes that runs something."""
    kind = nested.get("kind")
    return isinstance(kind, str) and "apiVersion" in nested and _KINDS.fullmatch(kind) is not None


def of_kubernetes(nested: Mapping[Any, Any], file: str) -> JobFacts:
    """Labels, image, command, environment and devices of what the object runs."""
    facts = JobFacts(file)
    containers = False
    for name, value in _walked(nested):
        if name == "metadata" and isinstance(value, Mapping):
            _labels(value, facts)
        elif name == "containers" and isinstance(value, list) and not containers:
            containers = True
            for one in value[:1]:
                _container(one, facts)
        elif name == "priorityClassName":
            facts.label("priority", value)
    return facts


def _walked(nested: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """All members at any depth, outer ones first, bounded."""
    level: list[Any] = [nested]
    left = _MOST_WALKED
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for one in level:
            items = list(one.items()) if isinstance(one, Mapping) else [("", item) for item in one]
            for name, value in items:
                left -= 1
                if left < 0:
                    return
                yield str(name)[:200], value
                if isinstance(value, Mapping | list) and name not in ("status", "managedFields", "annotations"):
                    inner.append(value)
        level = inner


def _labels(metadata: Mapping[Any, Any], facts: JobFacts) -> None:
    labels = metadata.get("labels")
    for name, value in labels.items() if isinstance(labels, Mapping) else ():
        if not isinstance(name, str) or not isinstance(value, str) or _OWN_LABEL.fullmatch(name):
            continue
        facts.label("queue" if name in _QUEUES else name, value)
    if isinstance(namespace := metadata.get("namespace"), str):
        facts.label("namespace", namespace)


def _container(container: Any, facts: JobFacts) -> None:
    if not isinstance(container, Mapping):
        return
    if isinstance(image := container.get("image"), str):
        facts.tell("launch", "image", image)
    for one in _list(container.get("env")):
        if isinstance(one, Mapping) and isinstance(one.get("value"), str):
            facts.variable(str(one.get("name"))[:200], one["value"])
    words = [str(word) for part in ("command", "args") for word in _list(container.get(part))]
    if words and not take_command(words, facts):
        _shell(words, facts)
    limits = container.get("resources")
    limits = limits.get("limits") if isinstance(limits, Mapping) else None
    gpus = limits.get("nvidia.com/gpu") if isinstance(limits, Mapping) else None
    if gpus is not None:
        facts.tell("scale", "gpus_per_node", gpus)


def _shell(words: list[str], facts: JobFacts) -> None:
    """What a shell in the container is told to run."""
    take_script(words[-1], facts)


def _list(value: Any) -> list[Any]:
    return value[:1000] if isinstance(value, list) else []
