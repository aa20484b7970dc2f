"""Which job a file belongs to, where a folder holds several: the one whose logs lie nearest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable


class Homes:
    """The folders of the logs of every job."""

    def __init__(self, folders: Iterable[tuple[str, str]]) -> None:
        """``folders`` are pairs of a job and a folder in which its logs lie."""
        self._folders: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for job, folder in folders:
            self._folders[job].add(tuple(folder.split("/")))
        self._known: dict[str, str] = {}

    def job_of(self, file: str) -> str:
        """The job whose logs share the longest folder path with a file; empty if none or several do."""
        folder = file.rpartition("/")[0]
        if folder not in self._known:
            self._known[folder] = self._nearest(tuple(folder.split("/")))
        return self._known[folder]

    def _nearest(self, parts: tuple[str, ...]) -> str:
        shared = {job: max(_shared(parts, own) for own in folders) for job, folders in self._folders.items()}
        longest = max(shared.values(), default=0)
        nearest = [job for job, length in shared.items() if length == longest]
        return nearest[0] if len(nearest) == 1 else ""


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
