"""What tells a job from healthy ones, each template once, naming nobody."""

from __future__ import annotations

import msgspec
from detection_support import at, closed, new_view, run, stepping

from schemas.results import Anomaly, SuspiciousTemplate
from streams.attempt_window import AttemptWindow
from streams.detectors.log_novelty import LogNovelty, LogNoveltyConfig
from streams.library.healthy_contrast import HealthyContrast, NovelTemplate


def novel(text: str, second: float = 3, *ranks: int) -> NovelTemplate:
    return NovelTemplate(ids=[text], text=text, first=at(second), ranks=[*ranks] or [2])


def window(start: float, strange: list[NovelTemplate], *absent: str, jobs: int = 2) -> AttemptWindow:
    made = closed([stepping(rank, start, first=int(start) + 1) for rank in range(4)], start)
    missing = [
        SuspiciousTemplate(id=text, text=text, first_seen=at(9), ranks="", axis="cross-job", absent=True)
        for text in absent
    ]
    contrast = HealthyContrast(library="healthy 1 (v)", jobs=jobs, novel=strange, absent=missing)
    return msgspec.structs.replace(made, contrast=contrast)


def findings(*windows: AttemptWindow, config: LogNoveltyConfig | None = None) -> list[list[Anomaly]]:
    return run(LogNovelty(config), new_view(), windows)


def test_without_a_library_there_is_nothing_to_say() -> None:
    assert findings(closed([stepping(0, 0, first=1)])) == [[]]


def test_each_template_is_told_once() -> None:
    first, second = novel("a"), novel("b", 12)
    found = findings(window(0, [first]), window(10, [first, second]), window(20, [first, second]))
    assert [[one.templates for one in window] for window in found] == [[["a"]], [["b"]], []]
    assert [window[0].onset for window in found[:2]] == [at(3), at(12)]


def test_a_finding_supports_and_names_nobody() -> None:
    ((one,),) = findings(window(0, [novel("a"), novel("b", 4, 0, 1)]))
    assert (one.severity, one.axis, one.suspects, one.victims) == ("info", "cross-job", [], [])
    assert one.text == "2 templates that no healthy job prints: 'a' (by rank 2), 'b' (by ranks 0-1)"
    assert (one.peers, one.library) == ("printed by none of 2 healthy jobs", "healthy 1 (v)")


def test_a_template_that_generalises_is_not_told_again() -> None:
    grown = msgspec.structs.replace(novel("a"), ids=["a", "later"], text="a <*>")
    assert [len(found) for found in findings(window(0, [novel("a")]), window(10, [grown]))] == [1, 0]


def test_what_is_absent_is_said_with_care_and_once() -> None:
    found = findings(window(0, [], "a"), window(10, [], "a", "b", jobs=1))
    assert [[one.grounds for one in window] for window in found] == [["absent_templates"]] * 2
    assert found[0][0].text == "not seen so far: 1 template that healthy jobs print: 'a'"
    assert (found[1][0].peers, found[1][0].templates) == ("printed by nearly all ranks of 1 healthy job", ["b"])


def test_quotes_and_state_are_bounded() -> None:
    many = [novel(f"{n:03d} " + "x" * 500) for n in range(50)]
    config = LogNoveltyConfig(shown=2, most_templates=30)
    found = findings(window(0, many), window(10, many), config=config)
    ((one,), again) = found
    assert len(one.text) < 400 and one.text.endswith(" and others")
    assert (len(one.templates), again) == (30, [])
