"""What envelopes say of the line inside them."""

from __future__ import annotations

import msgspec

Label = tuple[str, int]
"""A name and a number, as in ``[default3]:``."""


class Wrap(msgspec.Struct, frozen=True, gc=False):
    """All that stood around a line; lines with the same wrap have one writer, as far as the file tells.

    ``labels`` are ``[name N]:``, outermost first; ``task`` is the number that ``srun --label`` prints, ``component``
    that of a part of a heterogeneous job; ``rank`` is a global rank that the program's own head names.
    """

    stream: str = ""
    pod: str = ""
    container: str = ""
    actor: str = ""
    pid: int | None = None
    ip: str = ""
    component: int | None = None
    task: int | None = None
    rank: int | None = None
    labels: tuple[Label, ...] = ()
    spaced: bool = False

    @property
    def prefix(self) -> str:
        """The labels as they stood before the line."""
        return "".join(f"[{name}{number}]:" for name, number in self.labels)

    def over(self, outer: Wrap) -> Wrap:
        """This wrap, with what only ``outer`` says."""
        said = {field: value for field in self.__struct_fields__ if (value := getattr(self, field)) not in _NOTHING}
        return msgspec.structs.replace(outer, **said) if said else outer


_NOTHING = ("", None, (), False)
NONE = Wrap()
