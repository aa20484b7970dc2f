"""When files were captured and whose they are, by the tables ``{file, captured[, rank, pid, node]}`` near them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from producers.rows import Fields, Row, Rows, read_rows
from producers.scan import Source

_Place = tuple[int, int]
"""Of a row: its table and its place there, which order the rows of a file."""


def fits(fields: Fields) -> bool:
    """Whether a row says when a file was captured."""
    return {"file", "captured"} <= fields.keys()


def read(source: Source) -> Rows:
    """The rows of a table of capture times. Raises OSError."""
    return read_rows(source, fits, clock="captured")


class Captures:
    """Rows by the folder of their table and the file that they name, so that a file costs its folders and no more."""

    def __init__(self, tables: Sequence[Rows], beside: Callable[[str, str], bool]) -> None:
        """``beside`` tells whether a table and a file may belong to one job."""
        self._tables = [table.file for table in tables]
        self._beside = beside
        self._rows: dict[tuple[str, str], list[tuple[_Place, Row]]] = defaultdict(list)
        for at, table in enumerate(tables):
            folder = table.file.rpartition("/")[0]
            for place, row in enumerate(table.rows):
                self._rows[folder, row.text("file")].append(((at, place), row))

    def of(self, file: str) -> list[Row]:
        """What the tables nearest to a file say of it: those beside or above it, by its name or by its path there."""
        name = file.rpartition("/")[2]
        for folder in _folders(file):
            path = file[len(folder) + 1 :] if folder else file
            found = [one for said in sorted({name, path}) for one in self._rows.get((folder, said), ())]
            near = [(at, row) for at, row in found if self._beside(self._tables[at[0]], file)]
            if near:
                return [row for _, row in sorted(near, key=lambda one: one[0])]
        return []


def _folders(file: str) -> Iterator[str]:
    """The folder of a file and all above it, the innermost first, the root of the recording last."""
    folder = file.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    yield ""
