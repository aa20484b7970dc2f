"""The merged flame graph as one SVG: a row a frame, the outermost on top, as wide as the ranks in it are many.

Roots are on top (an icicle), since ranks share them: read downwards, a graph says what all have in common, then where
they part; the stacks of a hang differ in depth, and from the top the fork is in one place however deep they are.
The picture runs no script, asks no network and names no font file; whatever comes from names is escaped.
"""

from __future__ import annotations

import html
import textwrap
import unicodedata
from collections.abc import Iterator

from rankwatch.stackviews.layout import Box, Layout, laid_out
from rankwatch.stackviews.picture import Picture, Ranges, counted, frame_text, one_line
from schemas.events import Frame
from schemas.identity import rank_ranges, said_ranks, shortened
from streams.stack_classes import StackClass
from streams.stacks import function_of, is_own

WIDTH = 1200
MARGIN = 20
ROW = 20
LETTER = 6.7
"""Width (px) of a character of 11 px in the widest of the fonts that are asked for."""
WRAPPED = 160
"""Characters that fit above the graphs, side by side."""
MOST_CLASSES = 40
"""Kinds of threads that are drawn; more are counted."""
BARRED = 24.0
"""How wide (px) a column is at least in which the minority has a bar too."""
UNSEEN = 16.0
"""How wide (px) the column of those who were not observed is at least."""
LONGEST_LINE = 900
"""Characters of a line above the graphs."""
LONGEST_RANKS = 400
"""Characters of ranges of ranks in a tooltip."""
LONGEST_STACK = 40
"""Frames of a whole stack in a tooltip."""
MOST_LISTED = 12
"""Frames, or reasons, that one tooltip lists."""

_STYLE = (
    "text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:11px;fill:#1c2330}"
    ".t,.s,.h,.l,.n{font-family:system-ui,'Segoe UI',Helvetica,Arial,sans-serif}"
    ".t{font-size:18px;font-weight:600}.s{font-size:13px}.h{font-size:14px;font-weight:600}"
    ".l,.n{font-size:12px}.n{fill:#5a6475}"
    "rect{stroke:#fff;stroke-width:1}"
    ".c{fill:#d3deea}.cl{fill:#e9eef4}"
    ".m{fill:#f3b45b}.ml{fill:#fbe0b5}"
    ".a{fill:#b6c8db}.k{fill:#fff;stroke:#8893a5;stroke-dasharray:3 2}"
    ".u{fill:url(#unseen);stroke:#8893a5}"
    ".pc{fill:#2b4a6f;font-weight:700}.pm{fill:#8a4600;font-weight:700}"
    ".e{stroke:#b35c00;stroke-width:3}"
)
_PATTERN = (
    '<defs><pattern id="unseen" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="7" height="7" fill="#f4f5f7" stroke="none"/><path d="M0 0V7" stroke="#b9c1cd" stroke-width="2"/>'
    "</pattern></defs>"
)


def render(picture: Picture) -> str:
    """The whole file, valid XML whatever the names."""
    drawing = _Drawing()
    title = f"Stacks of {one_line(picture.title)}"
    drawing.text(MARGIN, 34, title, "t")
    drawing.height = 46
    for line in picture.lines:
        for part in textwrap.wrap(shortened(one_line(line), LONGEST_LINE), WRAPPED, subsequent_indent="  ") or [""]:
            drawing.line(part, "s", 18)
    contrasted = [one for one in picture.classes if one.is_main or len(one.groups) > 1]
    alike = [one for one in picture.classes if not one.is_main and len(one.groups) == 1]
    shown = contrasted[:MOST_CLASSES]
    layouts = [laid_out(one, _width(one)) for one in shown]
    drawing.height += 8
    _legend(drawing, shown, layouts)
    for one, layout in zip(shown, layouts, strict=True):
        _graph(drawing, one, layout)
    if alike:
        drawing.line("Other threads, each kind in one place", "h", 36)
        drawing.height += 4
    for one in alike[:MOST_CLASSES]:
        _row(drawing, one)
    left_out = len(picture.classes) - len(shown) - len(alike[:MOST_CLASSES])
    if left_out:
        drawing.line(f"{left_out} more kinds of threads are not drawn", "l", 30)
    return drawing.whole(title, [one_line(line) for line in picture.lines])


class _Drawing:
    """Elements so far, and how far down they reach (px)."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.height = 0

    def text(self, x: float, y: float, text: str, style: str = "") -> None:
        """Text from ``x`` on, on the line ``y``."""
        named = f' class="{style}"' if style else ""
        self.parts.append(f'<text x="{_px(x)}" y="{_px(y)}"{named}>{_escaped(text)}</text>')

    def line(self, text: str, style: str, height: int) -> None:
        """A line of text below all that is there."""
        self.height += height
        self.text(MARGIN, self.height - 4, text, style)

    def rect(self, x: float, y: float, width: float, style: str, height: float = ROW) -> None:
        """A rectangle."""
        self.parts.append(
            f'<rect x="{_px(x)}" y="{_px(y)}" width="{_px(max(width, 0.5))}" height="{_px(height)}" class="{style}"/>'
        )

    def group(self, tooltip: str) -> None:
        """What follows until ``end`` has a tooltip."""
        self.parts.append(f"<g><title>{_escaped(tooltip)}</title>")

    def end(self) -> None:
        """The end of a group."""
        self.parts.append("</g>")

    def whole(self, title: str, lines: list[str]) -> str:
        """The file."""
        height = self.height + MARGIN
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" role="img">\n'
            f"<title>{_escaped(title)}</title>\n<desc>{_escaped(' '.join(lines))}</desc>\n"
            f'<style>{_STYLE}</style>{_PATTERN}\n<rect width="{WIDTH}" height="{height}" fill="#fff" stroke="none"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def _px(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _escaped(text: str) -> str:
    """Text as XML; line ends are ours, and all else that XML or a reader of it trips over is gone before."""
    return html.escape("\n".join(one_line(part) for part in text.split("\n")))


def _fitting(text: str, width: float) -> str:
    """As much of the text as fits into ``width`` px, nothing where that says nothing."""
    room = int((width - 6) / LETTER)
    taken = 0
    for at, char in enumerate(text):
        taken += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if taken > room:
            cut = text[: max(at - 1, 0)]
            return f"{cut}…" if len(cut) >= 3 else ""
    return text


def _width(one: StackClass) -> float:
    """Of the whole width that of those who were observed (px); the rest is left to those who were not."""
    room, unseen = WIDTH - 2.0 * MARGIN, len(one.unobserved)
    return room - max(room * unseen / (len(one.tree.ranks) + unseen), UNSEEN) if unseen else room


def _legend(drawing: _Drawing, shown: list[StackClass], layouts: list[Layout]) -> None:
    drawing.height += 20
    y, x = drawing.height - 14, float(MARGIN)
    entries = [("c", "the job's own code"), ("cl", "libraries")]
    if any(group.minority for one in shown for group in one.groups):
        entries += [("m", "where only a minority is"), ("ml", "the same in libraries")]
    if any(one.unobserved for one in shown):
        entries.append(("u", "not observed: neither there nor missing"))
    for style, said in entries:
        drawing.rect(x, y, 22, style, 14)
        drawing.text(x + 28, y + 11, said, "l")
        x += 28 + 6.4 * len(said) + 24
    rule = "Rows are frames, the outermost on top. Width is the number of ranks"
    widened = [layout.widened for layout in layouts if layout.widened]
    if widened:
        rule += f", but a place of a minority is at least {int(min(widened))} px wide, so that it can be read"
    for part in textwrap.wrap(f"{rule}. Point at a frame for who is there and who is missing.", WRAPPED):
        drawing.line(part, "n", 17)


def _graph(drawing: _Drawing, one: StackClass, layout: Layout) -> None:
    drawing.line(_heading(one), "h", 36)
    top = drawing.height + 4
    who = _Who(one)
    for box in layout.boxes:
        _box(drawing, who, box, top)
    if one.unobserved:
        _unseen(drawing, one, MARGIN + _width(one), top)
    drawing.height = top + layout.rows * ROW


def _row(drawing: _Drawing, one: StackClass) -> None:
    """A kind of threads that all stand in one place: a row that says where, with the whole stack as its tooltip."""
    group = one.groups[0]
    frames = [frame_text(frame) for frame in group.frames]
    listed = [f"{len(frames) - LONGEST_STACK} frames, then", *frames[-LONGEST_STACK:]]
    said = [*(listed if len(frames) > LONGEST_STACK else frames), *_Who(one).of(frozenset(group.ranks))]
    drawing.group("\n".join(said))
    width = WIDTH - 2.0 * MARGIN
    drawing.rect(MARGIN, drawing.height, width, "c" if is_own(group.frames[-1]) else "cl")
    drawing.text(MARGIN + 5, drawing.height + 14, _fitting(f"{_heading(one)} in {one_line(group.place)}", width))
    drawing.end()
    drawing.height += ROW


def _heading(one: StackClass) -> str:
    count = len(one.tree.ranks)
    said = f"{count} ranks" if count > 1 else said_ranks(one.tree.ranks)
    said += f", in {len(one.groups)} places" if len(one.groups) > 1 else ""
    unseen = f"; {shortened(said_ranks(one.unobserved), 60)} not observed" if one.unobserved else ""
    return f"{shortened(one_line(one.name), 80)}: {said}{unseen}"


def _box(drawing: _Drawing, who: _Who, box: Box, top: int) -> None:
    x, y = MARGIN + box.x, top + box.row * ROW
    drawing.group("\n".join(_tooltip(who, box)))
    if box.kind != "place":
        drawing.rect(x, y, box.width, _style(box))
        if box.minority and box.width >= BARRED:
            drawing.parts.append(f'<path d="M{_px(x + 1.5)} {_px(y + 0.5)}v{ROW - 1}" class="e"/>')
    told = box.kind in ("place", "stop")
    style = ("pm" if box.minority else "pc") if told else ""
    if label := _fitting(_label(box, box.width - 2), box.width - 2):
        drawing.text(x + 5, y + 14, label, style)
    drawing.end()


def _style(box: Box) -> str:
    if box.node is None:
        return "k"
    kind = "m" if box.minority else "c"
    return kind if is_own(box.node.frame) else f"{kind}l"


def _label(box: Box, width: float) -> str:
    if box.node is not None:
        frame = box.node.frame
        whole = frame_text(frame, list(box.lines)[1:])
        fits = _fitting(whole, width) == whole
        return whole if fits else frame_text(Frame(function_of(frame), frame.file, frame.line), list(box.lines)[1:])
    if box.kind == "skipped":
        return f"… {len(box.skipped)} more frames of the same ranks …"
    if box.kind == "others":
        return f"{len(box.ranks)} ranks in {box.places} more places"
    said = said_ranks(box.ranks) if len(box.ranks) < 3 else f"{len(box.ranks)} ranks {rank_ranges(box.ranks)}"
    return said if box.kind == "place" else f"ends here: {said}"


def _tooltip(who: _Who, box: Box) -> Iterator[str]:
    if box.node is not None:
        yield frame_text(box.node.frame)
        yield shortened(box.node.frame.file, LONGEST_RANKS)
        for line, ranks in list(box.lines.items())[:MOST_LISTED]:
            yield f"line {line}: {counted(len(ranks), rank_ranges(ranks), LONGEST_RANKS)}"
    elif box.kind == "skipped":
        listed = [frame_text(node.frame) for node in box.skipped]
        yield f"{len(listed)} frames:"
        yield from listed[:MOST_LISTED]
        if len(listed) > MOST_LISTED:
            yield f"and {len(listed) - MOST_LISTED} more"
    elif box.kind == "others":
        yield f"{box.places} more places, each of fewer ranks"
    else:
        yield "whose stacks end here"
    yield from who.of(box.ranks)


class _Who:
    """The last lines of all tooltips of a class: who is there, who is missing, who was not observed."""

    def __init__(self, one: StackClass) -> None:
        self._ranges = Ranges(one.tree.ranks)
        self._unobserved = counted(len(one.unobserved), rank_ranges(one.unobserved), LONGEST_RANKS)

    def of(self, ranks: frozenset[int]) -> list[str]:
        """The lines of a box."""
        there, missing = self._ranges.of(ranks)
        return [
            f"has: {counted(len(ranks), there, LONGEST_RANKS)}",
            f"missing: {counted(self._ranges.everybody - len(ranks), missing, LONGEST_RANKS)}",
            f"unobserved: {self._unobserved}",
        ]


def _unseen(drawing: _Drawing, one: StackClass, x: float, top: int) -> None:
    """A column for those who were not observed, beside the outermost frames."""
    width = WIDTH - MARGIN - x
    reasons: dict[str, list[int]] = {}
    for rank, reason in one.unobserved.items():
        reasons.setdefault(reason, []).append(rank)
    told = [f"{counted(len(ranks), rank_ranges(ranks), LONGEST_RANKS)}: {reason}" for reason, ranks in reasons.items()]
    drawing.group("\n".join(["not observed", *(shortened(line, 2 * LONGEST_RANKS) for line in told[:MOST_LISTED])]))
    drawing.rect(x, top, width, "u")
    drawing.end()
