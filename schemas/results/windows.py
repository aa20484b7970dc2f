"""What the rank stage says: windows of workers, how far it is, and what came too late."""

from __future__ import annotations

from schemas.events import Timeline
from schemas.identity import Identity
from schemas.jobs import JobDescription
from schemas.packs import GaugePack, SeriesPack
from schemas.results.measured import Gauge, Gauges, Series, gauges_in, gauges_of
from schemas.results.seen import Drift, Exit, Fatal, HardwareChange, PlatformAlert, SignatureCount, StackSpan, Stop
from schemas.results.timed import CollectiveState, OperationTimes, Sketch
from schemas.results.words import Record


class Window(Record, frozen=True, omit_defaults=True, kw_only=True):
    """What the rank stage says of one worker in one window ``[start, end)``.

    ``announced`` are (pid, process type); ``stops`` are the first words of each kind by which it was told to end,
    ``stopped`` is when the first came that speaks of the job or of a launcher, ``launcher`` whether a launcher printed
    anything; ``finished`` is when the worker said that training was done, ``phase_time`` when one of its lines last
    said in which phase it is;
    ``devices`` are the PCI ids of what it said that it uses, ``sampled_devices`` those of what its processes sampled;
    ``dropped`` counts by reason what was left out or re-timed. ``tail`` is the order of its lines: the last pairs of
    (place in ``signatures``, iteration), each where it first came, chatter left out. ``timelines`` are those of the
    last steps for which there is room, ``sketches`` the profiles that were taken, in order of their times. Series and
    gauges are written as ``series_pack`` and ``gauge_pack``. How they were said before is read all the same, ``series``
    and ``gauges`` row by row, ``gauge_columns`` without packing: ask for ``reported`` and ``measured``.
    ``described`` is what the worker told of its job in the window.
    The line of ``iteration`` printed no time of its own if it may have come up to ``iteration_within_ns`` later than
    ``iteration_time``. ``alerts`` are what the platform told of the node, ``switch`` is the one that it hangs
    under, ``shifted_ns`` by how much the worker's printed times were set back.
    """

    id: str
    identity: Identity
    start: int
    end: int
    phase: str = ""
    phase_time: int | None = None
    iteration: int | None = None
    iteration_time: int | None = None
    iteration_within_ns: int = 0
    total_iterations: int | None = None
    log_records: int = 0
    last_log: int | None = None
    pids: list[int] = []
    heartbeats: int = 0
    world_size: int | None = None
    layout: dict[str, int] = {}
    devices: list[str] = []
    sampled_devices: list[str] = []
    announced: list[tuple[int, str]] = []
    signatures: list[SignatureCount] = []
    tail: list[tuple[int, int | None]] = []
    series: list[Series] = []
    gauges: list[Gauge] = []
    gauge_columns: Gauges = Gauges()
    series_pack: SeriesPack | None = None
    gauge_pack: GaugePack | None = None
    stacks: list[StackSpan] = []
    fatals: list[Fatal] = []
    exits: list[Exit] = []
    stopped: int | None = None
    stops: list[Stop] = []
    launcher: bool = False
    finished: int | None = None
    drifts: list[Drift] = []
    collectives: list[CollectiveState] = []
    operations: list[OperationTimes] = []
    timelines: list[Timeline] = []
    hardware: list[HardwareChange] = []
    sketches: list[Sketch] = []
    described: JobDescription | None = None
    alerts: list[PlatformAlert] = []
    switch: str = ""
    shifted_ns: int = 0
    dropped: dict[str, int] = {}

    @property
    def reported(self) -> list[Series]:
        """The series, in whichever way they are said."""
        if self.series_pack is None:
            return self.series
        return [
            Series(name=name, unit=unit, iterations=iterations, times=times, values=values, nonfinite=nonfinite)
            for name, unit, iterations, times, values, nonfinite in self.series_pack.rows()
        ]

    @property
    def measured(self) -> Gauges:
        """The gauges, in whichever way they are said."""
        if self.gauge_pack is not None:
            return gauges_in(self.gauge_pack)
        return gauges_of(self.gauges) if self.gauges and not self.gauge_columns else self.gauge_columns


class Progress(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Partition number ``partition`` of the raw topics is through all windows that end at or before ``end``.

    ``skipped`` is the recorded decision to go on without it: its ranks are unavailable, never missing.
    """

    partition: int
    end: int
    skipped: bool = False


class Late(Record, frozen=True, omit_defaults=True, kw_only=True):
    """Events that stood behind the tick that closed their window; counted and kept by reference."""

    id: str
    topic: str
    partition: int
    producer: str
    boot: str
    seq: int
    identity: Identity
    window_end: int
    events: int
