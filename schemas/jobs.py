"""What a job is, so that jobs can be held against each other: one flat form, the same for the same job."""

from __future__ import annotations

import msgspec

FACETS = (
    "versions",
    "code",
    "model",
    "data",
    "launch",
    "environment",
    "flags",
    "hyperparameters",
    "scale",
    "labels",
)
"""The facets that are names and texts, in the order in which they are shown; ``layout`` has numbers."""

MOST_NAMES, LONGEST_NAME, LONGEST_VALUE = 512, 120, 400
"""Names in a facet, and characters of a name and of a value. A job of more names shows the first by the alphabet."""
MOST_WORDS = 128
"""Words of a command."""
HIDDEN = "***"
"""What stands where a secret stood; two of them need not have been the same."""
MOST_VALUES = 4
"""Values of one name that are told apart; what has more is each worker's own."""


class JobDescription(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """What is known of a job, without secrets, and without what differs between two runs of one job.

    Each facet is names to values, sorted by name:

    - ``versions`` of packages, drivers and languages: ``torch``, ``nccl``, ``cuda``, ``driver``, ``python``;
    - ``code``: ``repository``, ``branch``, ``commit``, ``dirty`` (*true* or *false*), ``describe``;
    - ``model``: ``name``, ``architecture`` and its sizes by the names that its framework gives them;
    - ``data``: paths and names of data sets, tokenizer, loader workers, prefetch;
    - ``launch``: ``launcher`` (``torchrun``, ``srun`` …), ``script``, ``image`` and what the launcher was asked for;
    - ``environment``: variables; ``flags``: settings that are *true* or *false*; ``hyperparameters``: all others;
    - ``scale``: ``nodes``, ``gpus``, ``gpus_per_node``, ``gpu`` (its name);
    - ``labels`` of the scheduler and of Kubernetes: ``team``, ``queue``, ``priority``.

    ``layout`` has sizes by axis (``tp``, ``pp``, ``dp``, ``cp``, ``ep``, ``micro_batch``, ``global_batch``). The
    ``command`` is the fullest that was seen, word by word. ``differing`` are values that workers or sources tell
    differently, by facet and name (``environment.NCCL_ALGO``), sorted, two to four of them; such a name stands in no
    facet, and one of more values is in ``scattered``. ``cut`` are facets with more names than there is room for.
    ``left_out`` says by reason how much at least was left out of what workers told.
    """

    framework: str = ""
    command: list[str] = []
    world_size: int | None = None
    layout: dict[str, int] = {}
    versions: dict[str, str] = {}
    code: dict[str, str] = {}
    model: dict[str, str] = {}
    data: dict[str, str] = {}
    launch: dict[str, str] = {}
    environment: dict[str, str] = {}
    flags: dict[str, str] = {}
    hyperparameters: dict[str, str] = {}
    scale: dict[str, str] = {}
    labels: dict[str, str] = {}
    differing: dict[str, list[str]] = {}
    scattered: list[str] = []
    cut: list[str] = []
    left_out: dict[str, int] = {}

    @property
    def facets(self) -> dict[str, dict[str, str]]:
        """All facets by name, the layout among them as texts, in the order in which they are shown."""
        layout = {axis: str(size) for axis, size in self.layout.items()}
        named: dict[str, dict[str, str]] = {name: getattr(self, name) for name in FACETS}
        return {"layout": layout, **named}
