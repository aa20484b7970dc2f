"""The merged flame graph as one SVG: a row a frame, the outermost on top, as wide as the ranks in it are many.

Roots are on top (an icicle), since ranks share them: read downwards, a graph says what all have in common, then where
they part; the stacks of a hang differ in depth, and from the top the fork is in one place however deep they are.
The picture runs no script, asks no network and names no font file; whatever comes from names is escaped.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rankwatch.stackviews.drawing import MARGIN, ROW, WIDTH, Drawing, fitting, px
from rankwatch.stackviews.layout import Box, Layout, laid_out
from rankwatch.stackviews.picture import Picture, Ranges, counted, frame_text, one_line
from rankwatch.stackviews.variants import by_kind, variants_of
from schemas.events import Frame
from schemas.identity import rank_ranges, said_ranks, shortened
from streams.stack_classes import StackClass, by_reason
from streams.stacks import function_of, is_own

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
SOME_RANKS = (60, 24)
"""Characters of ranges of ranks below a stack, where all have no room."""
LONGEST_STACK = 40
"""Frames of a whole stack in a tooltip."""
MOST_LISTED = 12
"""Frames, or reasons, that one tooltip lists."""


def render(picture: Picture) -> str:
    """The whole file, valid XML whatever the names."""
    drawing = Drawing()
    title = f"Stacks of {one_line(picture.title)}"
    drawing.text(MARGIN, 34, title, "t")
    drawing.height = 46
    for line in picture.lines:
        for part in textwrap.wrap(shortened(one_line(line), LONGEST_LINE), WRAPPED, subsequent_indent="  ") or [""]:
            drawing.line(part, "s", 18)
    contrasted = [one for one in picture.classes if one.is_main or len(one.groups) > 1]
    alike = [one for one in picture.classes if not one.is_main and len(one.groups) == 1]
    shown = contrasted[:MOST_CLASSES]
    samples = by_kind(picture.samples)
    layouts = [laid_out(one, variants_of(one, samples), _width(one)) for one in shown]
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


def _width(one: StackClass) -> float:
    """Of the whole width that of those who were observed (px); the rest is left to those who were not."""
    room, unseen = WIDTH - 2.0 * MARGIN, len(one.unobserved)
    return room - max(room * unseen / (len(one.tree.ranks) + unseen), UNSEEN) if unseen else room


def _legend(drawing: Drawing, shown: list[StackClass], layouts: list[Layout]) -> None:
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
    drawing.line("Rows are frames, the outermost on top; point at one for who is there and who is missing.", "n", 20)
    widened = [layout.widened for layout in layouts if layout.widened]
    but = (
        f", but a place of a minority is at least {int(min(widened))} px wide, so that it can be read"
        if widened
        else ""
    )
    drawing.line(f"Width is the number of ranks{but}.", "n", 18)


def _graph(drawing: Drawing, one: StackClass, layout: Layout) -> None:
    drawing.line(_heading(one), "h", 36)
    top = drawing.height + 4
    who = _Who(one)
    for box in layout.boxes:
        _box(drawing, who, box, top)
    if one.unobserved:
        _unseen(drawing, one, MARGIN + _width(one), top)
    drawing.height = top + layout.rows * ROW


def _row(drawing: Drawing, one: StackClass) -> None:
    """A kind of threads that all stand in one place: a row that says where, with the whole stack as its tooltip."""
    group = one.groups[0]
    frames = [frame_text(frame) for frame in group.frames]
    listed = [f"{len(frames) - LONGEST_STACK} frames, then", *frames[-LONGEST_STACK:]]
    said = [*(listed if len(frames) > LONGEST_STACK else frames), *_Who(one).of(frozenset(group.ranks))]
    drawing.group("\n".join(said))
    width = WIDTH - 2.0 * MARGIN
    drawing.rect(MARGIN, drawing.height, width, "c" if is_own(group.frames[-1]) else "cl")
    drawing.text(MARGIN + 5, drawing.height + 14, fitting(f"{_heading(one)} in {one_line(group.place)}", width))
    drawing.end()
    drawing.height += ROW


def _heading(one: StackClass) -> str:
    count = len(one.tree.ranks)
    said = f"{count} ranks" if count > 1 else said_ranks(one.tree.ranks)
    said += f", in {len(one.groups)} places" if len(one.groups) > 1 else ""
    unseen = f"; {shortened(said_ranks(one.unobserved), 60)} not observed" if one.unobserved else ""
    return f"{shortened(one_line(one.name), 80)}: {said}{unseen}"


def _box(drawing: Drawing, who: _Who, box: Box, top: int) -> None:
    x, y = MARGIN + box.x, top + box.row * ROW
    drawing.group("\n".join(_tooltip(who, box)))
    if box.kind != "place":
        drawing.rect(x, y, box.width, _style(box))
        if box.minority and box.width >= BARRED:
            drawing.parts.append(f'<path d="M{px(x + 1.5)} {px(y + 0.5)}v{ROW - 1}" class="e"/>')
    told = box.kind in ("place", "stop")
    style = ("pm" if box.minority else "pc") if told else ""
    if label := _label(box, box.width - 2):
        drawing.text(x + 5, y + 14, label, style)
    drawing.end()


def _style(box: Box) -> str:
    if box.node is None:
        return "k"
    kind = "m" if box.minority else "c"
    return kind if is_own(box.node.frame) else f"{kind}l"


def _label(box: Box, width: float) -> str:
    """What a box says: of several ways to say it the longest that fits, or as much of the shortest as does."""
    said = _ways(box)
    return next((way for way in said if fitting(way, width) == way), fitting(said[-1], width))


def _ways(box: Box) -> list[str]:
    """The ways to say what a box is, the longest first."""
    if box.node is not None:
        frame, more = box.node.frame, list(box.lines)[1:]
        return [frame_text(frame, more), frame_text(Frame(function_of(frame), frame.file, frame.line), more)]
    if box.kind == "skipped":
        return [f"… {len(box.skipped)} more frames of the same ranks …", f"… {len(box.skipped)} more …"]
    if box.kind == "others":
        return [f"{len(box.ranks)} ranks in {box.places} more places", f"{len(box.ranks)} ranks elsewhere"]
    count, ranges = len(box.ranks), rank_ranges(box.ranks)
    if count == 1:
        ways = [f"rank {ranges}", ranges]
    else:
        some = [f"{count} ranks {ranges[:most].rpartition(',')[0]},…" for most in SOME_RANKS if most < len(ranges)]
        ways = [f"{count} ranks {ranges}", *some, f"{count} ranks"]
    return [*(f"ends here: {way}" for way in ways), *ways] if box.kind == "stop" else ways


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


def _unseen(drawing: Drawing, one: StackClass, x: float, top: int) -> None:
    """A column for those who were not observed, beside the outermost frames."""
    width = WIDTH - MARGIN - x
    reasons = by_reason(one.unobserved.items())
    told = [f"{counted(len(ranks), rank_ranges(ranks), LONGEST_RANKS)}: {reason}" for reason, ranks in reasons]
    drawing.group("\n".join(["not observed", *(shortened(line, 2 * LONGEST_RANKS) for line in told[:MOST_LISTED])]))
    drawing.rect(x, top, width, "u")
    drawing.end()
