from __future__ import annotations

import random

from schemas.events import Frame
from streams.trie import Node, tree_of

MAIN = Frame("main", "train.py", 9)
REDUCE = Frame("all_reduce", "distributed_c10d.py", 2799)
NEXT = Frame("__next__", "dataloader.py", 630)


def shown(tree: Node) -> list[tuple[str, list[int], list[int]]]:
    return [
        ("/".join(node.frame.function for node in path), sorted(path[-1].ranks), sorted(path[-1].ends))
        for path in tree.walk()
    ]


def test_each_frame_has_the_ranks_that_came_through_it() -> None:
    tree = tree_of([(0, [MAIN, REDUCE]), (1, [MAIN, NEXT]), (2, [MAIN, REDUCE]), (3, [MAIN])])

    assert sorted(tree.ranks) == [0, 1, 2, 3]
    assert shown(tree) == [
        ("main", [0, 1, 2, 3], [3]),
        ("main/__next__", [1], [1]),
        ("main/all_reduce", [0, 2], [0, 2]),
    ]


def test_names_of_different_length_are_one_frame_and_the_longest_is_shown() -> None:
    qualified = Frame("Trainer.main", "/srv/job/train.py", 12)

    tree = tree_of([(0, [MAIN]), (1, [qualified]), (2, [Frame("main", "train.py", 12)])])

    assert [path[-1].frame for path in tree.walk()] == [Frame("Trainer.main", "/srv/job/train.py", 12)]


def test_the_line_of_most_ranks_is_shown_the_smallest_of_several() -> None:
    lines = {0: 7, 1: 5, 2: 5, 3: 7}

    tree = tree_of((rank, [Frame("f", "a.py", line)]) for rank, line in lines.items())

    assert tree.children[0].frame.line == 5


def test_where_stacks_end_there_are_the_lines_of_most_who_end_there() -> None:
    at = [Frame("f", "a.py", 5), Frame("f", "a.py", 7)]
    stacks = [(0, [at[0], NEXT]), (1, [at[1], NEXT]), (2, [at[1], NEXT]), (3, [at[0], REDUCE]), (4, [at[0]])]

    lines = {"/".join(node.frame.function for node in path): path[-1].lines for path in tree_of(stacks).walk()}

    assert lines == {"f": (5,), "f/__next__": (7, 630), "f/all_reduce": (5, 2799)}
    assert tree_of(stacks[:2]).children[0].children[0].lines == (5, 630)


def test_a_rank_with_several_stacks_stands_in_each() -> None:
    tree = tree_of([(4, [MAIN, REDUCE]), (4, [MAIN, NEXT])])

    assert shown(tree) == [("main", [4], []), ("main/__next__", [4], [4]), ("main/all_reduce", [4], [4])]


def test_the_order_of_stacks_does_not_matter() -> None:
    dice = random.Random(7)
    stacks = [(rank, [MAIN, Frame(f"f{rank % 3}", "a.py", rank % 5), NEXT][: dice.randint(1, 3)]) for rank in range(40)]
    one = tree_of(stacks)
    dice.shuffle(stacks)

    assert tree_of(stacks) == one


def test_a_stack_of_thousands_of_frames_is_walked() -> None:
    deep = [Frame(f"f{depth}", "a.py", depth) for depth in range(5000)]

    assert len(list(tree_of([(0, deep)]).walk())) == 5000


def test_no_stacks_make_a_tree_without_ranks() -> None:
    assert shown(tree_of([])) == []
