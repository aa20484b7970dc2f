"""Log templates of a job: which signatures are one template, by the set of those seen so far.

A template's id is a hash of its text. When a template generalises its old ids become aliases; signatures never change.
The grouping is written down as the masked texts, since it is a function of them (``streams/mining.py``); nothing is
unpickled. Signatures of lines that the field knows are not mined: their template has the predefined id, the same in
every job, and no other line can become part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

import msgspec
import numpy as np

from schemas.identity import rank_ranges
from schemas.ids import stable_id
from schemas.results import Axis, SignatureCount, SuspiciousTemplate, Template, Window
from streams.library.healthy_contrast import NovelTemplate
from streams.lines.form import form_of
from streams.mining import templates_of
from streams.printed import Printed, printed_by
from streams.view import AttemptView

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


class PrintedTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A template that an attempt prints: the ids that it had, the present one last, and the forms of the lines."""

    ids: list[str]
    forms: list[str]

    @property
    def id(self) -> str:
        """Its present id."""
        return self.ids[-1]


Healthy = Callable[[PrintedTemplate], bool]
"""Whether healthy jobs print a template, too."""


class TemplateState(msgspec.Struct, kw_only=True):
    """``mined`` are masked texts by signature, ``aliases`` the ids that a template had before, by its id.

    ``predefined`` has the predefined template's id and the masked text of signatures that are not mined, ``chatter``
    the kind of those that are chatter, ``settled`` the first id of templates that have generalised. ``uses`` are by
    attempt|signature, ``printers``, who printed any of a kind of chatter, by attempt|kind.
    """

    mined: dict[str, str] = {}
    aliases: dict[str, list[str]] = {}
    settled: dict[str, str] = {}
    predefined: dict[str, tuple[str, str]] = {}
    chatter: dict[str, str] = {}
    printers: dict[str, list[int]] = {}
    first_seen: dict[str, int] = {}
    uses: dict[str, Use] = {}
    overflow: int = 0


def template_id(text: str) -> str:
    """The id of a template's canonical text."""
    return stable_id("template", text)


class TemplateBook:
    """The templates of one job; bounded by ``limit`` signatures, beyond which new ones are only counted.

    Signatures of predefined templates have a limit of their own, so that no flood of others keeps them out.
    """

    def __init__(self, state: TemplateState, job: str, limit: int) -> None:
        self.state = state
        self._job = job
        self._limit = limit
        self._forms = {signature: form_of(masked) for signature, masked in state.mined.items()}
        self._templates: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._group()

    def learn(self, summaries: list[Window]) -> list[Template]:
        """Take in the window's new signatures; returns the templates that are new or changed, in order of their ids."""
        for count in sorted(self._fresh(summaries), key=lambda count: (count.masked, count.signature)):
            known = self.state.predefined if count.predefined else self.state.mined
            if len(known) >= self._limit:
                self.state.overflow += 1
                continue
            self.state.first_seen[count.signature] = count.first
            if count.chatter:
                self.state.chatter[count.signature] = count.chatter
            if count.predefined:
                self.state.predefined[count.signature] = (count.predefined, count.masked)
            else:
                self.state.mined[count.signature] = count.masked
                self._forms[count.signature] = form_of(count.masked)
        if len(self.state.mined) + len(self.state.predefined) == len(self._ids):
            return []
        before = self._members()
        self._regroup()
        after = self._members()
        return [self._record(id_, after[id_]) for id_ in sorted(after) if after[id_] != before.get(id_)]

    def _fresh(self, summaries: list[Window]) -> list[SignatureCount]:
        fresh: dict[str, SignatureCount] = {}
        for summary in summaries:
            for count in summary.signatures:
                if count.signature in self._ids:
                    continue
                before = fresh.get(count.signature)
                if before is None or (count.first, count.predefined) < (before.first, before.predefined):
                    fresh[count.signature] = count
        return list(fresh.values())

    def _group(self) -> None:
        """Which signature belongs to which template, as a function of all that were seen."""
        forms = set(self._forms.values())
        if not forms <= self._templates.keys():
            self._templates = templates_of(forms)
        text_of = {signature: self._templates[form] for signature, form in self._forms.items()}
        id_of = {text: template_id(text) for text in set(text_of.values())}
        self._texts = {id_: text for text, id_ in id_of.items()}
        self._ids = {signature: id_of[text] for signature, text in text_of.items()}
        for signature, (id_, masked) in self.state.predefined.items():
            self._ids[signature] = id_
            self._texts[id_] = min(masked, self._texts.get(id_, masked))

    def _regroup(self) -> None:
        before = self._ids
        self._group()
        heirs: dict[str, str] = {}
        for signature in sorted(before):
            if before[signature] not in self._texts:
                heirs.setdefault(before[signature], self._ids[signature])
        aliases, settled = self.state.aliases, self.state.settled
        known = set(before.values())
        for id_, heir in sorted(heirs.items()):
            aliases[heir] = sorted({*aliases.get(heir, []), *aliases.pop(id_, []), id_} - self._texts.keys())
            first = settled.pop(id_, id_)
            if heir not in known:
                settled.setdefault(heir, first)

    def _members(self) -> dict[str, list[str]]:
        """The signatures of each template, sorted."""
        members: dict[str, list[str]] = {}
        for signature in sorted(self._ids):
            members.setdefault(self._ids[signature], []).append(signature)
        return members

    def template_of(self, signature: str) -> str:
        """The id of a signature's template as of now; nothing where it was never taken in."""
        return self._ids.get(signature, "")

    def _record(self, id_: str, signatures: list[str]) -> Template:
        return Template(
            id=id_,
            job=self._job,
            text=self._texts[id_],
            signatures=signatures,
            first_seen=min(self.state.first_seen[signature] for signature in signatures),
            aliases=self.state.aliases.get(id_, []),
        )

    def note(self, attempt: str, table: Printed) -> None:
        """Remember who printed what in a window, for telling which templates stand apart."""
        for line, counts in zip(table.lines, table.counts, strict=True):
            ranks = [table.ranks[column] for column in np.flatnonzero(counts).tolist()]
            if line.signature in self.state.chatter:
                kind = f"{attempt}|{self.state.chatter[line.signature]}"
                self.state.printers[kind] = _joined(self.state.printers.get(kind, []), ranks)
            key = f"{attempt}|{line.signature}"
            known = self.state.uses.get(key)
            if known is None:
                self.state.uses[key] = Use(first=line.first, last=line.last, ranks=ranks)
                continue
            known.first, known.last = min(known.first, line.first), max(known.last, line.last)
            known.ranks = _joined(known.ranks, ranks)

    def printed(self, attempt: str, summaries: list[Window], members: Iterable[int]) -> Printed:
        """Who printed what in a window that is learnt and not yet noted, with what was noted before."""
        kinds = sorted(set(self.state.chatter.values()))
        printers = {kind: self.state.printers.get(f"{attempt}|{kind}", []) for kind in kinds}
        return printed_by(summaries, members, self._settled, lambda one: self._ranks_of(attempt, one), printers)

    def _settled(self, signature: str) -> str:
        """The first id of a signature's template, which stays its own when it generalises; nothing if unknown."""
        id_ = self._ids.get(signature, "")
        return self.state.settled.get(id_, id_)

    def _ranks_of(self, attempt: str, signature: str) -> list[int]:
        use = self.state.uses.get(f"{attempt}|{signature}")
        return [] if use is None else use.ranks

    def forget(self, attempt: str) -> None:
        """An attempt is over for good: what it printed no longer counts."""
        prefix = f"{attempt}|"
        self.state.uses = {key: use for key, use in self.state.uses.items() if not key.startswith(prefix)}
        self.state.printers = {key: one for key, one in self.state.printers.items() if not key.startswith(prefix)}

    def suspicious(
        self,
        view: AttemptView,
        onset: int,
        suspects: list[int],
        backed: Mapping[str, Axis] | None = None,
        novel: Set[str] | None = None,
    ) -> list[SuspiciousTemplate]:
        """What began around the onset, once training had begun: lines of a suspect that few print, or lines of all.

        Where nobody is named, lines that few print stand for themselves, rank 0's own chatter apart. The templates of
        signatures that are ``backed`` by a detector's finding are there in any case, behind a suspect's own. Where it
        is known which templates no healthy job prints, all but those (``novel``, by id) are left out, and those that
        began around the onset stand out, whoever prints them; predefined templates are judged as if nothing were known.
        """
        backed = backed or {}
        pointed_at = {self._ids[one]: axis for one, axis in backed.items() if one in self._ids}
        strange = novel or set()
        judged = strange | {id_ for id_, _ in self.state.predefined.values()} | pointed_at.keys()
        shown = [one for one in self._ids if self.state.chatter.get(one) not in ASIDE or one in backed]
        found = []
        for id_, use in self._uses(view.attempt, shown).items():
            if novel is not None and id_ not in judged:
                continue
            near = abs(use.first - onset) <= LOOK_BACK_NS
            axis = "cross-job" if near and id_ in strange else _axis(view, onset, suspects, use)
            if axis is None and id_ not in pointed_at:
                continue
            template = SuspiciousTemplate(
                id=id_,
                text=self._texts[id_],
                first_seen=use.first,
                ranks=rank_ranges(use.ranks),
                axis=axis or pointed_at[id_],
            )
            order = 0 if _by_suspect(view, use, suspects) else 1 if id_ in pointed_at else 2
            found.append((order, use.first, template.id, template))
        found.sort(key=lambda item: item[:3])
        return [item[3] for item in found[:SUSPICIOUS_LIMIT]]

    def templates(self, attempt: str) -> list[PrintedTemplate]:
        """All templates that the attempt prints, in order of their ids."""
        forms: dict[str, set[str]] = {}
        for signature, id_ in self._ids.items():
            if f"{attempt}|{signature}" in self.state.uses:
                forms.setdefault(id_, set()).add(self._form(signature))
        return [
            PrintedTemplate(ids=[*self.state.aliases.get(id_, []), id_], forms=sorted(found))
            for id_, found in sorted(forms.items())
        ]

    def _form(self, signature: str) -> str:
        known = self._forms.get(signature)
        return form_of(self.state.predefined[signature][1]) if known is None else known

    def novel(self, attempt: str, printed: list[PrintedTemplate], healthy: Healthy) -> list[NovelTemplate]:
        """Those of the templates that healthy jobs do not print, in order of their first lines."""
        strange = {one.id: one.ids for one in printed if not healthy(one)}
        found = [
            NovelTemplate(ids=strange[id_], text=self._texts[id_], first=use.first, ranks=use.ranks)
            for id_, use in self._uses(attempt, [one for one, id_ in self._ids.items() if id_ in strange]).items()
        ]
        return sorted(found, key=lambda one: (one.first, one.id))

    def _uses(self, attempt: str, signatures: list[str]) -> dict[str, Use]:
        """Who printed which template in the attempt, by these signatures."""
        uses: dict[str, Use] = {}
        for signature in signatures:
            use, id_ = self.state.uses.get(f"{attempt}|{signature}"), self._ids[signature]
            if use is None:
                continue
            known = uses.get(id_, use)
            uses[id_] = Use(
                first=min(known.first, use.first),
                last=max(known.last, use.last),
                ranks=sorted({*known.ranks, *use.ranks}),
            )
        return uses


def _joined(known: list[int], ranks: list[int]) -> list[int]:
    """Both together, ascending as they are."""
    return known if known == ranks else sorted({*known, *ranks})


def _few(view: AttemptView, use: Use) -> bool:
    members = max(len(view.members), 1)
    return len(use.ranks) <= max(1, int(MINORITY * members)) and members > 1


def _by_suspect(view: AttemptView, use: Use, suspects: list[int]) -> bool:
    return _few(view, use) and bool(set(use.ranks) & set(suspects))


def _axis(view: AttemptView, onset: int, suspects: list[int], use: Use) -> Axis | None:
    """In what a template stands out among the ranks or in time; null where it does not."""
    few, by_suspect = _few(view, use), _by_suspect(view, use, suspects)
    if few and not by_suspect and (suspects or use.ranks == [0]):
        return None
    if not few and len(use.ranks) < COMMON * max(len(view.members), 1):
        return None
    began = view.clock.began if view.clock.began is not None else view.first
    early = use.first < max(onset - (LOOK_BACK_NS if by_suspect else AROUND_NS), began)
    if early or (not few and use.first > onset + AROUND_NS):
        return None
    return "space" if few else "time"
