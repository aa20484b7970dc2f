"""``rankwatch publish``: recorded files into Kafka, in event time."""

from __future__ import annotations

import argparse

from producers.publish import stream
from producers.recording import merged, read_recording
from rankwatch.deployments import deployment_of
from rankwatch.errors import UsageError
from rankwatch.outages import outages_told
from rankwatch.progress import watching
from rankwatch.text import console, print_unused
from streams.config import StreamConfig


def run(arguments: argparse.Namespace) -> int:
    """Recorded files into Kafka, in event time."""
    out = console()
    with deployment_of(arguments) as (log, deployment):
        if deployment.ticks != "publisher":
            raise UsageError(
                "this deployment's time is the workers' clock, in which recordings are long over; "
                "make one for them: rankwatch topics create --topic-prefix NAME. --ticks publisher"
            )
        recording = merged([read_recording(folder) for folder in arguments.folders])
        with (
            outages_told(log.settings),
            watching(out, console(stderr=True), *recording.span, feed=False) as watch,
        ):
            for time in stream(recording, log, until=None, closing_ns=StreamConfig().closing_ns):
                watch(time, [])
            log.flush()
    out.print(f"published {len(recording.arrivals)} batches of {recording.inputs.records} records")
    print_unused(out, recording.inputs)
    return 0
