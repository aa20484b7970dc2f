"""``rankwatch publish``: recorded files into Kafka, in event time."""

from __future__ import annotations

import argparse

from producers.publish import clock_of, stream
from producers.recording import Recording, merged, read_recording
from rankwatch.deployments import deployment_of
from rankwatch.errors import UsageError
from rankwatch.outages import outages_told
from rankwatch.progress import watching
from rankwatch.terminal import console, printable
from rankwatch.text import print_unused
from schemas.identity import NO_JOB
from streams.config import StreamConfig
from streams.ending import say
from streams.report import moment

OWN_DEPLOYMENT = "rankwatch topics create --topic-prefix NAME. --ticks publisher"


def run(arguments: argparse.Namespace) -> int:
    """Recorded files into Kafka, in event time."""
    out = console()
    config = StreamConfig()
    with deployment_of(arguments, ticks="publisher") as (log, deployment):
        if deployment.ticks != "publisher":
            raise UsageError(
                "this deployment's time is the workers' clock, in which recordings are long over; "
                f"make one for them: {OWN_DEPLOYMENT}"
            )
        recording = merged([read_recording(folder) for folder in arguments.folders])
        clock = clock_of(log)
        if warning := lateness(recording, clock, config):
            say(warning)
        ticks = stream(
            recording,
            log,
            until=None,
            closing_ns=config.settling_ns,
            silence_ns=config.forgetting_ns,
            clock=clock,
        )
        with (
            outages_told(log.settings),
            watching(out, console(stderr=True), *recording.span, feed=False) as watch,
        ):
            for time in ticks:
                watch(time, [])
            log.flush()
    out.print(summary(recording))
    print_unused(out, recording.inputs)
    return 0


def lateness(recording: Recording, clock: int | None, config: StreamConfig) -> str:
    """What to warn of where the deployment's clock (ns) has passed the recording's first window; else nothing."""
    first, last = (time // config.window_ns * config.window_ns + config.closing_ns for time in recording.span)
    if clock is None or clock < first:
        return ""
    return (
        f"the recording begins at {moment(recording.span[0])}, but the clock of this deployment is at {moment(clock)}: "
        f"{'all of it' if clock >= last else 'what lies before'} is late and makes no incident; "
        f"make a deployment of its own: {OWN_DEPLOYMENT}"
    )


def summary(recording: Recording) -> str:
    """What was published, in one line; the jobs are named where there are several."""
    jobs = sorted({arrival.batch.identity.job for arrival in recording.arrivals} - {NO_JOB})
    named = f" of jobs {', '.join(jobs)}" if len(jobs) > 1 else ""
    records = recording.inputs.records
    return printable(f"published {records} records in {len(recording.arrivals)} batches{named}")
