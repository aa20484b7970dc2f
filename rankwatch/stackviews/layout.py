"""Where the boxes of a merged flame graph stand: as wide as their ranks are many, and those who stand apart readable.

The tree is drawn in branches: frames one below the other without a fork. Work grows with the frames of the different
stacks, not with ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from rankwatch.stackviews.variants import Variant
from streams.stack_classes import StackClass
from streams.stacks import frame_name
from streams.trie import Node

MOST_PLACES = 100
"""Places that get a column; those of the fewest ranks share one with others."""
APART = 260.0
"""How wide (px) a column of the minority is at least, where there is room."""
APART_SHARE = 0.5
"""Of the width, what all columns of the minority may take beyond their share."""
SLIM = 8.0
"""How wide (px) any column is at least, where there is room."""
DEEP = 60
"""Rows beyond which long branches are shortened."""
HEAD, TAIL = 3, 6
"""Frames that are drawn at the beginning and at the end of a branch that is shortened."""


class Box(msgspec.Struct, kw_only=True):
    """One rectangle, in px and rows. A frame has a ``node``, and ``lines`` where ranks are at different ones.

    ``skipped`` are frames for which one box stands.

    A *place* says whose stacks end above it (``ranks``), a *stop* the same where others go on; *others* stands for the
    ``places`` that have no column.
    """

    kind: str
    x: float
    width: float
    row: int
    minority: bool
    ranks: frozenset[int]
    node: Node | None = None
    lines: dict[int, list[int]] = {}
    skipped: list[Node] = []
    places: int = 0


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The boxes of a class, how many rows they take, and the least width of a minority's column if it was needed."""

    boxes: list[Box]
    rows: int
    widened: float


class _Places(msgspec.Struct, frozen=True):
    """What the largest groups of a class tell of its nodes, by the node's identity in memory.

    ``apart`` has the nodes where groups stand, with whether they are minorities; ``lines`` has of each node on the way
    the ranks at each of its lines.
    """

    apart: dict[int, bool]
    lines: dict[int, dict[int, list[list[int]]]]


class _Branch(msgspec.Struct, kw_only=True):
    """Frames without a fork, and what is below them: branches, the ranks that end here, the places without a column."""

    chain: list[Node]
    children: list[_Branch] = []
    ends: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()
    other_places: int = 0
    minority: bool = False
    ends_apart: bool = False
    needed: float = 0.0


def laid_out(one: StackClass, variants: list[list[Variant]], width: float) -> Layout:
    """The boxes of a class in ``width`` px, in the order in which they are drawn; of each group its ``variants``."""
    places = _places_of(one, variants)
    order = _branches(one, places.apart)
    columns = sum(bool(branch.ends) and branch.ends_apart for branch in order)
    least = min(APART, APART_SHARE * width / columns) if columns else 0.0
    root = order[0]
    for branch in reversed(order):
        branch.needed = sum(needed for _, needed in _items(branch, least))
    # Widths are sums of least widths, so all of them shrink alike.
    scale = min(1.0, width / root.needed) if root.needed else 1.0
    deep = _depth(order) > DEEP
    boxes: list[Box] = []
    widened = False
    waiting = [(root, 0.0, width, 0)]
    while waiting:
        branch, x, room, row = waiting.pop()
        for box in _boxes_of(branch, places, x, room, row, deep=deep):
            boxes.append(box)
            row = box.row + 1
        shares = _shared_out(_items(branch, least), room, scale)
        fair = width / max(len(one.tree.ranks), 1)
        for item, share in zip(_below(branch), shares, strict=True):
            if isinstance(item, _Branch):
                waiting.append((item, x, share, row))
            else:
                boxes.append(msgspec.structs.replace(item, x=x, width=share, row=row))
                widened = widened or (item.minority and share > 1.5 * fair * len(item.ranks))
            x += share
    boxes.sort(key=lambda box: (box.row, box.x))
    rows = max((box.row for box in boxes), default=-1) + 1
    return Layout(boxes=boxes, rows=rows, widened=scale * least if widened else 0.0)


def _places_of(one: StackClass, variants: list[list[Variant]]) -> _Places:
    """Where the groups stand that have a column."""
    apart: dict[int, bool] = {}
    lines: dict[int, dict[int, list[list[int]]]] = {}
    children: dict[int, dict[str, Node]] = {}
    for group, stacks in zip(one.groups[:MOST_PLACES], variants, strict=False):
        path, node = [], one.tree
        for frame in group.frames:
            if id(node) not in children:
                children[id(node)] = {child.name: child for child in node.children}
            node = children[id(node)][frame_name(frame)]
            path.append(node)
        apart[id(node)] = group.minority
        for stack in stacks:
            for on_the_way, frame in zip(path, stack.frames, strict=True):
                lines.setdefault(id(on_the_way), {}).setdefault(frame.line, []).append(stack.ranks)
    return _Places(apart, lines)


def _branches(one: StackClass, apart: dict[int, bool]) -> list[_Branch]:
    """All branches with a column below them, callers first; the first one is the root, which has no frames."""
    columns = _with_columns(one.tree, apart)
    root = _Branch(chain=[])
    order, waiting = [], [(root, one.tree)]
    while waiting:
        branch, node = waiting.pop()
        order.append(branch)
        drawn = [child for child in node.children if id(child) in columns]
        while branch.chain and len(node.children) == len(drawn) == 1 and not node.ends:
            node = drawn[0]
            branch.chain.append(node)
            drawn = [child for child in node.children if id(child) in columns]
        if node.ends and id(node) in apart:
            branch.ends, branch.ends_apart = node.ends, apart[id(node)]
        left_out = [child for child in node.children if id(child) not in columns]
        branch.others = frozenset().union(*(child.ranks for child in left_out))
        branch.other_places = sum(_places(child) for child in left_out)
        if node.ends and id(node) not in apart:
            branch.others |= node.ends
            branch.other_places += 1
        drawn.sort(key=lambda child: (columns[id(child)], -len(child.ranks), min(child.ranks), child.name))
        branch.children = [_Branch(chain=[child]) for child in drawn]
        waiting.extend(zip(branch.children, drawn, strict=True))
    for branch in reversed(order):
        below = [child.minority for child in branch.children] + ([branch.ends_apart] if branch.ends else [])
        branch.minority = bool(below) and all(below)
    return order


def _with_columns(tree: Node, apart: dict[int, bool]) -> dict[int, bool]:
    """The nodes on the way to a column, each with whether all columns below it are of a minority."""
    order, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(node.children)
    found: dict[int, bool] = {}
    for node in reversed(order):
        below = [found[id(child)] for child in node.children if id(child) in found]
        if id(node) in apart:
            below.append(apart[id(node)])
        if below:
            found[id(node)] = all(below)
    return found


def _places(tree: Node) -> int:
    """How many stacks end at a node or below it."""
    count, waiting = 0, [tree]
    while waiting:
        node = waiting.pop()
        count += bool(node.ends)
        waiting.extend(node.children)
    return count


def _below(branch: _Branch) -> Iterator[_Branch | Box]:
    """What stands below a branch, from left to right: the minority last, but for the places that have no column."""
    kind = "stop" if branch.children or branch.others else "place"
    ends = Box(kind=kind, x=0, width=0, row=0, minority=branch.ends_apart, ranks=branch.ends)
    if branch.ends and not branch.ends_apart:
        yield ends
    yield from branch.children
    if branch.ends and branch.ends_apart:
        yield ends
    if branch.others:
        places = branch.other_places
        yield Box(kind="others", x=0, width=0, row=0, minority=False, ranks=branch.others, places=places)


def _items(branch: _Branch, least: float) -> list[tuple[int, float]]:
    """How many ranks each thing below a branch has, and how wide it must be."""
    items = []
    for item in _below(branch):
        if isinstance(item, _Branch):
            items.append((len(item.chain[0].ranks), item.needed))
        else:
            items.append((len(item.ranks), max(SLIM, least) if item.minority else SLIM))
    return items


def _shared_out(items: list[tuple[int, float]], room: float, scale: float) -> list[float]:
    """The widths of things that share ``room`` by their ranks, none below what it needs."""
    free = set(range(len(items)))
    widths = [0.0] * len(items)
    left = room
    while free:
        ranks = sum(items[at][0] for at in free)
        short = {at for at in free if left * items[at][0] / max(ranks, 1) < scale * items[at][1]}
        for at in sorted(short or free):
            widths[at] = scale * items[at][1] if short else left * items[at][0] / max(ranks, 1)
        if not short:
            break
        left -= sum(widths[at] for at in sorted(short))
        free -= short
    return widths


def _depth(order: list[_Branch]) -> int:
    """Rows that the longest stack takes."""
    depths = {id(order[0]): len(order[0].chain)}
    for branch in order:
        for child in branch.children:
            depths[id(child)] = depths[id(branch)] + len(child.chain)
    return max(depths.values())


def _boxes_of(branch: _Branch, places: _Places, x: float, width: float, row: int, *, deep: bool) -> Iterator[Box]:
    chain = branch.chain
    short = deep and len(chain) > HEAD + TAIL + 1
    parts: list[list[Node]] = [[node] for node in chain]
    if short:
        parts[HEAD:-TAIL] = [chain[HEAD:-TAIL]]
    for at, part in enumerate(parts):
        skipped = part if len(part) > 1 else []
        yield Box(
            kind="frame" if not skipped else "skipped",
            x=x,
            width=width,
            row=row + at,
            minority=branch.minority,
            ranks=part[0].ranks,
            node=None if skipped else part[0],
            skipped=skipped,
            lines={} if skipped else _lines(places, part[0]),
        )


def _lines(places: _Places, node: Node) -> dict[int, list[int]]:
    """The ranks at each line of a frame, where they are at different ones; the line that is shown comes first."""
    found = places.lines.get(id(node), {})
    if len(found) < 2:
        return {}
    ordered = sorted(found, key=lambda line: (line != node.frame.line, line))
    return {line: sorted({rank for ranks in found[line] for rank in ranks}) for line in ordered}
