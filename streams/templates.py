"""Log templates of a job: one Drain3 tree, fed with new signatures in canonical order at window close.

A template's id is a hash of its text, never Drain's cluster number, which depends on order. When a template
generalises its old ids become aliases; signatures never change. The tree is written down as the texts it was fed,
in order, since it is a function of them; nothing is unpickled. Signatures of lines that the field knows are not fed to
the tree: their template has the predefined id, the same in every job, and no other line can become part of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import msgspec
from drain3 import TemplateMiner
from drain3.template_miner_config import TemplateMinerConfig

from schemas.identity import rank_ranges
from schemas.ids import stable_id
from schemas.results import Axis, SignatureCount, SuspiciousTemplate, Template, Window
from streams.printed import Printed, printed_by
from streams.view import AttemptView, AttemptWindow

SUSPICIOUS_LIMIT = 5
MINORITY, COMMON = 0.25, 0.9
ASIDE = frozenset({"progress", "http"})
"""Chatter that says nothing of a fault by being there; what is said of a checkpoint may."""
LOOK_BACK_NS = 30_000_000_000
AROUND_NS = 3_000_000_000


class Use(msgspec.Struct, kw_only=True):
    """Who printed a signature in one attempt: its ranks, the first and the latest time."""

    first: int
    last: int
    ranks: list[int] = []


class TemplateState(msgspec.Struct, kw_only=True):
    """``fed`` are (signature, masked text) in the order in which the tree saw them; ``uses`` by attempt|signature.

    ``predefined`` has the predefined template's id and the masked text of signatures that the tree does not see,
    ``chatter`` the kind of those that are chatter, ``printers`` who printed any of a kind, by attempt|kind.
    """

    fed: list[tuple[str, str]] = []
    predefined: dict[str, tuple[str, str]] = {}
    chatter: dict[str, str] = {}
    printers: dict[str, list[int]] = {}
    first_seen: dict[str, int] = {}
    uses: dict[str, Use] = {}
    overflow: int = 0


def _miner(limit: int) -> TemplateMiner:
    config = TemplateMinerConfig()
    config.drain_sim_th = 0.5
    config.drain_depth = 4
    config.drain_max_clusters = limit
    config.mask_prefix, config.mask_suffix = "<", ">"
    config.profiling_enabled = False
    return TemplateMiner(config=config)


def template_id(text: str) -> str:
    """The id of a template's canonical text."""
    return stable_id("template", text)


Cluster = int | str
"""Drain's number of a template, or the id of a predefined one."""


class TemplateBook:
    """The templates of one job; bounded by ``limit`` signatures, beyond which new ones are only counted.

    Signatures of predefined templates have a limit of their own, so that no flood of others keeps them out.
    """

    def __init__(self, state: TemplateState, job: str, limit: int) -> None:
        self.state = state
        self._job = job
        self._limit = limit
        self._miner = _miner(limit)
        self._cluster_of: dict[str, Cluster] = {}
        self._ids: dict[Cluster, list[str]] = {}
        for signature, masked in state.fed:
            self._feed(signature, masked)
        for signature, (id_, _) in state.predefined.items():
            self._assign(signature, id_)

    def _feed(self, signature: str, masked: str) -> int:
        mined = self._miner.add_log_message(masked or "<EMPTY>")
        cluster: int = mined["cluster_id"]
        self._cluster_of[signature] = cluster
        known = self._ids.setdefault(cluster, [])
        current = template_id(mined["template_mined"])
        if not known or known[-1] != current:
            known.append(current)
        return cluster

    def _assign(self, signature: str, id_: str) -> None:
        self._cluster_of[signature] = id_
        self._ids[id_] = [id_]

    def learn(self, summaries: list[Window]) -> list[Template]:
        """Feed the window's new signatures in canonical order; returns the templates that are new or changed."""
        fresh: dict[str, SignatureCount] = {}
        for summary in summaries:
            for count in summary.signatures:
                if count.signature in self._cluster_of or count.signature in self.state.first_seen:
                    continue
                before = fresh.get(count.signature)
                if before is None or (count.first, count.predefined) < (before.first, before.predefined):
                    fresh[count.signature] = count
        touched: set[int] = set()
        named: set[str] = set()
        for count in sorted(fresh.values(), key=lambda count: (count.masked, count.signature)):
            known = self.state.predefined if count.predefined else self.state.fed
            if len(known) >= self._limit:
                self.state.overflow += 1
                continue
            self.state.first_seen[count.signature] = count.first
            if count.chatter:
                self.state.chatter[count.signature] = count.chatter
            if count.predefined:
                self.state.predefined[count.signature] = (count.predefined, count.masked)
                self._assign(count.signature, count.predefined)
                named.add(count.predefined)
            else:
                self.state.fed.append((count.signature, count.masked))
                touched.add(self._feed(count.signature, count.masked))
        return [*map(self._record, sorted(touched)), *map(self._record, sorted(named))]

    def template_of(self, signature: str) -> str:
        """The id of a signature's template as of now; nothing where it was never fed."""
        cluster = self._cluster_of.get(signature)
        return "" if cluster is None else self._ids[cluster][-1]

    def _record(self, cluster: Cluster) -> Template:
        signatures = sorted(signature for signature, owner in self._cluster_of.items() if owner == cluster)
        ids = self._ids[cluster]
        return Template(
            id=ids[-1],
            job=self._job,
            text=self._text(cluster),
            signatures=signatures,
            first_seen=min(self.state.first_seen[signature] for signature in signatures),
            aliases=ids[:-1],
        )

    def _text(self, cluster: Cluster) -> str:
        if isinstance(cluster, str):
            return min(masked for id_, masked in self.state.predefined.values() if id_ == cluster)
        found = self._miner.drain.id_to_cluster.get(cluster)
        return found.get_template() if found is not None else ""

    def note(self, window: AttemptWindow) -> None:
        """Remember who printed what, for telling which templates stand apart."""
        found: dict[str, tuple[int, int, set[int]]] = {}
        for summary in window.summaries:
            rank = summary.identity.rank
            for count in summary.signatures:
                if rank is None or count.signature not in self._cluster_of:
                    continue
                first, last, ranks = found.get(count.signature, (count.first, count.last, set()))
                ranks.add(rank)
                found[count.signature] = (min(first, count.first), max(last, count.last), ranks)
        for signature, (first, last, ranks) in found.items():
            if signature in self.state.chatter:
                kind = f"{window.attempt}|{self.state.chatter[signature]}"
                self.state.printers[kind] = sorted(ranks | set(self.state.printers.get(kind, [])))
            key = f"{window.attempt}|{signature}"
            known = self.state.uses.get(key)
            if known is None:
                self.state.uses[key] = Use(first=first, last=last, ranks=sorted(ranks))
                continue
            known.first, known.last = min(known.first, first), max(known.last, last)
            if not ranks <= set(known.ranks):
                known.ranks = sorted({*known.ranks, *ranks})

    def printed(self, attempt: str, summaries: list[Window], members: Iterable[int]) -> Printed:
        """Who printed what in a window that is learnt and not yet noted, with what was noted before."""
        kinds = sorted(set(self.state.chatter.values()))
        printers = {kind: self.state.printers.get(f"{attempt}|{kind}", []) for kind in kinds}
        return printed_by(summaries, members, self._settled, lambda one: self._ranks_of(attempt, one), printers)

    def _settled(self, signature: str) -> str:
        """The first id of a signature's template, which stays its own when it generalises; nothing if unknown."""
        cluster = self._cluster_of.get(signature)
        return "" if cluster is None else self._ids[cluster][0]

    def _ranks_of(self, attempt: str, signature: str) -> list[int]:
        use = self.state.uses.get(f"{attempt}|{signature}")
        return [] if use is None else use.ranks

    def forget(self, attempt: str) -> None:
        """An attempt is over for good: what it printed no longer counts."""
        prefix = f"{attempt}|"
        self.state.uses = {key: use for key, use in self.state.uses.items() if not key.startswith(prefix)}
        self.state.printers = {key: one for key, one in self.state.printers.items() if not key.startswith(prefix)}

    def suspicious(
        self, view: AttemptView, onset: int, suspects: list[int], backed: Mapping[str, Axis] | None = None
    ) -> list[SuspiciousTemplate]:
        """What began around the onset, once training had begun: lines of a suspect that few print, or lines of all.

        Where nobody is named, lines that few print stand for themselves, rank 0's own chatter apart. The templates of
        signatures that are ``backed`` by a detector's finding are there in any case, behind a suspect's own.
        """
        pointed_at = {self._cluster_of[one]: axis for one, axis in (backed or {}).items() if one in self._cluster_of}
        members = max(len(view.members), 1)
        found = []
        for cluster, use in self._uses(view.attempt, backed or {}).items():
            few = len(use.ranks) <= max(1, int(MINORITY * members)) and members > 1
            by_suspect = few and bool(set(use.ranks) & set(suspects))
            axis = _axis(view, use, onset, few=few, by_suspect=by_suspect, named=bool(suspects))
            if axis is None and cluster not in pointed_at:
                continue
            template = SuspiciousTemplate(
                id=self._ids[cluster][-1],
                text=self._text(cluster),
                first_seen=use.first,
                ranks=rank_ranges(use.ranks),
                axis=axis or pointed_at[cluster],
            )
            order = 0 if by_suspect else 1 if cluster in pointed_at else 2
            found.append((order, use.first, template.id, template))
        found.sort(key=lambda item: item[:3])
        return [item[3] for item in found[:SUSPICIOUS_LIMIT]]

    def _uses(self, attempt: str, backed: Container[str]) -> dict[Cluster, Use]:
        """Who printed each template in the attempt, its signatures together; bars and access lines are left aside."""
        uses: dict[Cluster, Use] = {}
        for signature, cluster in self._cluster_of.items():
            if self.state.chatter.get(signature) in ASIDE and signature not in backed:
                continue
            use = self.state.uses.get(f"{attempt}|{signature}")
            if use is None:
                continue
            known = uses.get(cluster)
            uses[cluster] = (
                Use(first=use.first, last=use.last, ranks=use.ranks)
                if known is None
                else Use(
                    first=min(known.first, use.first),
                    last=max(known.last, use.last),
                    ranks=sorted({*known.ranks, *use.ranks}),
                )
            )
        return uses


def _axis(view: AttemptView, use: Use, onset: int, *, few: bool, by_suspect: bool, named: bool) -> Axis | None:
    """How a template stands apart by who printed it and when, or null where it does not."""
    if few and not by_suspect and (named or use.ranks == [0]):
        return None
    if not few and len(use.ranks) < COMMON * max(len(view.members), 1):
        return None
    began = view.clock.began if view.clock.began is not None else view.first
    if use.first < max(onset - (LOOK_BACK_NS if by_suspect else AROUND_NS), began):
        return None
    if not few and use.first > onset + AROUND_NS:
        return None
    return "space" if few else "time"
