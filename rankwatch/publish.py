"""``rankwatch publish``: recorded files into Kafka, in event time."""

from __future__ import annotations

import argparse

from producers.publish import publish
from producers.recording import merged, read_recording
from rankwatch.deployments import deployment_of
from rankwatch.errors import UsageError
from streams.config import StreamConfig


def run(arguments: argparse.Namespace) -> int:
    """Recorded files into Kafka, in event time."""

    with deployment_of(arguments) as (log, deployment):
        if deployment.ticks != "publisher":
            raise UsageError(
                "this deployment's time is the workers' clock, in which recordings are long over; "
                "make one for them: rankwatch --topic-prefix NAME. topics create --ticks publisher"
            )
        recording = merged([read_recording(folder) for folder in arguments.folders])
        publish(recording, log, until=None, closing_ns=StreamConfig().closing_ns)
        log.flush()
    unused = f", {len(recording.inputs.unused)} places not used" if recording.inputs.unused else ""
    print(f"published {len(recording.arrivals)} batches of {recording.inputs.records} records{unused}")
    return 0
