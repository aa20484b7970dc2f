"""Pictures of stacks: what each format says of who is where, whatever the names and however deep the stacks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from stack_support import IDLE, NEXT, REDUCE, STEP, deep, hang, hostile, picture, sample

from rankwatch.stackviews import flame, folded, speedscope, svg
from rankwatch.stackviews.drawing import WIDTH
from rankwatch.stackviews.picture import Picture, Ranges, frame_text
from rankwatch.stackviews.variants import by_kind, lines_apart
from schemas.events import Frame
from streams.stack_classes import Sample

SVG = "{http://www.w3.org/2000/svg}"
RENDERERS = (svg.render, folded.render, flame.render, speedscope.render)


def tooltips(drawn: str) -> list[str]:
    return [title.text or "" for group in ElementTree.fromstring(drawn).iter(f"{SVG}g") for title in group]


def texts(drawn: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def boxes(drawn: str, style: str) -> list[ElementTree.Element]:
    return [
        rect
        for group in ElementTree.fromstring(drawn).iter(f"{SVG}g")
        for rect in group.iter(f"{SVG}rect")
        if rect.get("class") == style
    ]


def test_folded_counts_the_ranks_of_each_stack_below_its_class() -> None:
    assert folded.render(hang()) == (
        "trainer MainThread;step (train.py:40);__next__ (dataloader.py:630) 1\n"
        "trainer MainThread;step (train.py:40);all_reduce (distributed_c10d.py:2799) 3\n"
        "dataloader MainThread;get (queues.py:113) 3\n"
        "dataloader MainThread;read (files.py:12) 1\n"
    )


def test_flame_tells_who_is_at_each_frame_and_who_is_missing_but_not_who_was_not_observed() -> None:
    trainers = flame.render(hang()).splitlines()[:2]
    assert trainers == [
        "trainer MainThread (:0)@0-3|;step (/srv/train.py:40)@0-3|;"
        "__next__ (/py/site-packages/torch/utils/data/dataloader.py:630) @2|0-1/3 1",
        "trainer MainThread (:0)@0-3|;step (/srv/train.py:40)@0-3|;"
        "all_reduce (/py/site-packages/torch/distributed/distributed_c10d.py:2799) @0-1/3|2 1",
    ]


def test_speedscope_has_a_profile_of_each_class_and_of_each_place() -> None:
    found = json.loads(speedscope.render(hang()))
    assert [(profile["name"], profile["samples"], profile["weights"]) for profile in found["profiles"]] == [
        ("trainer MainThread: 4 ranks", [[0, 1], [0, 2]], [3, 1]),
        ("trainer MainThread: majority, 3 ranks 0-1,3", [[0, 1]], [3]),
        ("trainer MainThread: minority, rank 2", [[0, 2]], [1]),
        ("dataloader MainThread: 4 ranks", [[3], [4]], [3, 1]),
        ("dataloader MainThread: majority, 3 ranks 0-1,3", [[3]], [3]),
        ("dataloader MainThread: minority, rank 2", [[4]], [1]),
    ]
    assert found["shared"]["frames"][0] == {"name": "step", "file": "/srv/train.py", "line": 40}


@pytest.mark.parametrize("shown", [hang(), hostile(), deep()], ids=["hang", "hostile", "deep"])
def test_speedscope_has_the_shape_of_its_published_schema(shown: Picture) -> None:
    found = json.loads(speedscope.render(shown))
    assert found["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = found["shared"]["frames"]
    for frame in frames:
        assert set(frame) <= {"name", "file", "line"} and isinstance(frame["name"], str) and frame["name"]
        assert isinstance(frame.get("file", ""), str) and isinstance(frame.get("line", 1), int)
    for profile in found["profiles"]:
        assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "none", 0)
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
        assert all(0 <= at < len(frames) for stack in profile["samples"] for at in stack)


def test_the_graph_colours_the_minority_and_tells_who_is_there_missing_and_unobserved() -> None:
    drawn = svg.render(hang())
    assert (
        "__next__ (dataloader.py:630)\n/py/site-packages/torch/utils/data/dataloader.py\n"
        "has: rank 2\nmissing: 3 ranks 0-1,3\nunobserved: rank 4"
    ) in tooltips(drawn)
    assert "not observed\nrank 4: Permission denied" in tooltips(drawn)
    assert len(boxes(drawn, "m")) == len(boxes(drawn, "ml")) == 1
    assert {"Stacks of job a, attempt 0", "ranks 0-1,3 in all_reduce", "3 ranks 0-1,3", "rank 2"} <= set(texts(drawn))


def test_width_is_the_number_of_ranks() -> None:
    samples = [sample(rank, STEP, REDUCE if rank < 6 else NEXT) for rank in range(10)]
    step, reduce, loading = (
        float(next(box for box in boxes(svg.render(picture(samples, 10)), style)).get("width", ""))
        for style in ("c", "cl", "ml")
    )
    assert (round(reduce / step, 2), round(loading / step, 2)) == (0.6, 0.4)


def test_one_of_ten_thousand_is_wide_enough_to_be_read_and_the_legend_says_so() -> None:
    samples = [sample(rank, STEP, NEXT if rank == 4711 else REDUCE) for rank in range(10_240)]
    drawn = svg.render(picture(samples, 10_240))
    assert [float(box.get("width", "")) for box in boxes(drawn, "ml")] == [260.0]
    assert {"__next__ (dataloader.py:630)", "rank 4711", "10239 ranks 0-4710,4712-10239"} <= set(texts(drawn))
    assert "at least 260 px wide" in " ".join(texts(drawn))


def test_who_stops_where_others_go_on_is_drawn_too() -> None:
    drawn = svg.render(picture([sample(rank, *([STEP] if rank == 3 else [STEP, REDUCE])) for rank in range(8)], 8))
    assert "ends here: rank 3" in texts(drawn)


@pytest.mark.parametrize(
    ("ranks", "said"),
    [(range(40), "10 ranks 30-39"), (range(0, 400, 3), "34 ranks 300,303,306,309,312,315,…")],
)
def test_ranks_below_a_stack_are_told_as_far_as_there_is_room(ranks: range, said: str) -> None:
    apart = list(ranks)[-len(ranks) // 4 :]
    samples = [sample(rank, STEP, NEXT if rank in apart else REDUCE) for rank in ranks]
    assert said in texts(svg.render(picture(samples, 0)))


def test_lines_of_a_shared_frame_are_told_apart() -> None:
    samples = [sample(0, STEP, REDUCE), sample(1, STEP, REDUCE), sample(2, Frame("step", "/srv/train.py", 31), NEXT)]
    drawn = svg.render(picture(samples, 3))
    assert "step (train.py:40,31)" in texts(drawn)
    assert "line 40: 2 ranks 0-1\nline 31: rank 2\n" in "".join(tooltips(drawn))


def at_lines(*lines: int, inner: Frame = REDUCE) -> list[Sample]:
    return [sample(rank, Frame("step", "/srv/train.py", line), inner) for rank, line in enumerate(lines)]


def test_ranks_of_one_place_at_different_lines_of_own_code_are_told_apart_where_they_wait() -> None:
    samples = at_lines(40, 40, 41, 40)
    shown = picture(samples, 4)
    assert list(lines_apart(shown.classes[0], by_kind(samples))) == [
        "of ranks 0-3: ranks 0-1,3 at step (train.py:40), rank 2 at step (train.py:41)"
    ]
    assert "step (train.py:40,41)" in texts(svg.render(shown))
    assert "line 40: 3 ranks 0-1,3\nline 41: rank 2\n" in "".join(tooltips(svg.render(shown)))


def test_a_stack_is_told_at_the_lines_of_most_who_stand_there_and_has_nobody_at_other_lines() -> None:
    elsewhere = [sample(5, Frame("step", "/srv/train.py", 31), NEXT), sample(6, Frame("step", "/srv/train.py", 33))]
    shown = picture([*at_lines(41, 40, 40, 40, 40), *elsewhere], 7)
    assert folded.render(shown) == (
        "trainer MainThread;step (train.py:33) 1\n"
        "trainer MainThread;step (train.py:31);__next__ (dataloader.py:630) 1\n"
        "trainer MainThread;step (train.py:40);all_reduce (distributed_c10d.py:2799) 5\n"
    )
    assert [line.split(";")[1] for line in flame.render(shown).splitlines()] == [
        "step (/srv/train.py:33) @6|0-5 1",
        "step (/srv/train.py:31)@5|0-4/6",
        "step (/srv/train.py:40)@0-4|5-6",
    ]
    found = json.loads(speedscope.render(shown))
    whole = found["profiles"][0]
    lines = [found["shared"]["frames"][stack[0]]["line"] for stack in whole["samples"]]
    assert (whole["weights"], lines) == ([5, 1, 1], [40, 31, 33])


@pytest.mark.parametrize("render", RENDERERS)
def test_names_that_read_alike_in_other_parts_are_one_frame(render: Callable[[Picture], str]) -> None:
    samples = [sample(0, Frame("a b", "c.py", 1)), sample(1, Frame("a", "b c.py", 1))]
    assert "a b" in render(picture(samples, 2))


@pytest.mark.parametrize(
    "samples",
    [
        at_lines(40, 40, 40),
        at_lines(40, 41, 42, inner=Frame("work", "/srv/train.py", 3)),
        [sample(rank, STEP, Frame("all_reduce", REDUCE.file, rank)) for rank in range(3)],
    ],
    ids=["one line", "at work", "lines of a library"],
)
def test_lines_that_say_nothing_are_not_told(samples: list[Sample]) -> None:
    assert not list(lines_apart(picture(samples, 3).classes[0], by_kind(samples)))


def test_many_lines_are_counted() -> None:
    samples = at_lines(*range(40, 49))
    (told,) = lines_apart(picture(samples, 9).classes[0], by_kind(samples))
    assert told.endswith("rank 3 at step (train.py:43), others at 5 more")
    assert "step (train.py:40,41,42,…)" in texts(svg.render(picture(samples, 9)))


def test_other_threads_that_are_all_in_one_place_are_one_row_each() -> None:
    samples = [sample(rank, STEP, thread=thread) for rank in range(3) for thread in ("MainThread", f"Thread-{rank}")]
    drawn = svg.render(picture([*samples, *(sample(rank, IDLE, kind="dataloader") for rank in range(3))], 3))
    assert texts(drawn)[-3:] == [
        "Other threads, each kind in one place",
        "dataloader MainThread: 3 ranks in get (queues.py:113)",
        "trainer Thread-#: 3 ranks in step (train.py:40)",
    ]


def test_more_places_than_have_room_are_counted_and_the_picture_stays_small() -> None:
    samples = [sample(rank, STEP, Frame(f"place_{rank}", "/srv/a.py", rank)) for rank in range(2000)]
    drawn = svg.render(picture(samples, 2000))
    assert "1900 ranks in 1900 more places" in texts(drawn)
    assert len(drawn) < 100_000
    assert all(float(box.get("x", "")) + float(box.get("width", "")) <= WIDTH for box in boxes(drawn, "c"))


def test_deep_stacks_are_shortened_where_nobody_leaves_them() -> None:
    drawn = svg.render(deep())
    assert len(drawn) < 20_000
    assert "… 471 more frames of the same ranks …" in texts(drawn)
    assert {"call_0 (tree.py)", "call_479 (tree.py:479)", "call_499 (tree.py:499)"} <= set(texts(drawn))


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("shown", [hang(), hostile(), deep(5000), picture([], 3)])
def test_any_names_and_any_depth_are_written_and_always_alike(render: Callable[[Picture], str], shown: Picture) -> None:
    written = render(shown)
    assert written.encode() == render(shown).encode()
    assert all(char.isprintable() or char == "\n" for char in written)


def test_hostile_names_stay_text_in_the_graph() -> None:
    drawn = svg.render(hostile())
    names = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(drawn).iter()}
    assert names == {"svg", "title", "desc", "style", "defs", "pattern", "rect", "path", "text", "g"}
    assert any("</title><script>alert(1)</script>" in title for title in tooltips(drawn))
    assert not re.search(r"\b(?:href|onload|src|url\(h)", drawn)


@pytest.mark.parametrize("render", [folded.render, flame.render])
def test_hostile_names_stay_in_their_frame(render: Callable[[Picture], str]) -> None:
    lines = render(hostile()).splitlines()
    assert [line.count(";") for line in lines] == [2, 3]
    # Flamegraph.pl takes a number at the end of the stack itself for a second count.
    assert all(re.fullmatch(r".+(?:\)| @[\d/-]+\|[\d/-]*) \d+", line) for line in lines)


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("/srv/train.py", True),
        ("train.py", True),
        ("/py/site-packages/torch/_tensor.py", False),
        ("torch/_tensor.py", False),
        ("/usr/lib/python3.11/threading.py", False),
        ("libc.so.6", False),
    ],
)
def test_the_jobs_own_code_is_neither_of_python_nor_of_a_package(file: str, own: bool) -> None:
    drawn = svg.render(picture([sample(0, Frame("f", file), Frame("g", file))], 1))
    assert (len(boxes(drawn, "c")), len(boxes(drawn, "cl"))) == ((2, 0) if own else (0, 2))


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (Frame("f", "/a/b.py", 3), "f (b.py:3)"),
        (Frame("C.f", "b.py"), "C.f (b.py)"),
        (Frame("", ""), "? (?)"),
        (Frame("a\nb", "c\td"), "a b (c d)"),
    ],
)
def test_a_frame_is_said_in_one_line(frame: Frame, said: str) -> None:
    assert frame_text(frame) == said


@pytest.mark.parametrize(
    ("everybody", "there", "said"),
    [
        ({0, 1, 2, 3}, {0}, ("0", "1-3")),
        ({0, 1, 2, 3}, {1, 2}, ("1-2", "0/3")),
        ({0, 1, 2, 3}, {0, 1, 2, 3}, ("0-3", "")),
        ({0, 1, 4, 5, 6, 9}, {5, 9}, ("5/9", "0-1/4/6")),
        ({0, 1, 4, 5, 6, 9}, {0, 1, 4}, ("0-1/4", "5-6/9")),
        ({7}, set(), ("", "7")),
    ],
)
def test_who_is_missing_is_everybody_else(everybody: set[int], there: set[int], said: tuple[str, str]) -> None:
    assert Ranges(everybody, "/").of(frozenset(there)) == said
