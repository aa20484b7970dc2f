"""Templates of a job: canonical ids, aliases, and which of them stand out."""

from __future__ import annotations

import msgspec
import pytest
from detection_support import FIXED, at, closed, new_view, printed, stepping, summary
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.ids import stable_id
from schemas.results import Axis, SuspiciousTemplate, Window
from streams.templates import Healthy, TemplateBook, TemplateState, template_id
from streams.view import AttemptView

LINES = [
    "loading shard 3 from /data/a.bin",
    "loading shard 4 from /data/b.bin",
    "step 37 timers (ms): data 11.5",
    "gradient accumulation finished early, no update this step",
    "worker started role=actor rank=1",
    "worker started role=critic rank=2",
    "connected to store on host alpha now",
    "connected to store on host beta now",
    "GPU 3 throttled",
]


def book(limit: int = 100, state: TemplateState | None = None) -> TemplateBook:
    return TemplateBook(state or TemplateState(), "job1", limit)


def prints(rank: int, lines: list[str], start: float = 0) -> Window:
    found = {printed(line, start + 1).signature: printed(line, start + 1) for line in lines}
    return summary(rank, start, signatures=[found[key] for key in sorted(found)])


def test_an_id_is_a_hash_of_the_text_where_none_is_predefined() -> None:
    for template in book().learn([prints(0, LINES)]):
        assert template.id == template_id(template.text) == stable_id("template", template.text)


@settings(FIXED, max_examples=30)
@given(st.permutations(LINES), st.permutations(range(4)), st.randoms(use_true_random=False))
def test_the_order_of_summaries_does_not_matter(lines: list[str], ranks: list[int], random: object) -> None:
    split = [prints(rank, lines[rank * 2 : rank * 2 + 3]) for rank in range(4)]
    assert book().learn([split[rank] for rank in ranks]) == book().learn(split)


def test_what_differs_only_in_variables_is_one_template() -> None:
    (template,) = book().learn([prints(0, LINES[:2])])
    assert len(template.signatures) == 1
    assert template.first_seen == at(1)


HOSTS = [f"connected to store on {host} again" for host in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")]


def test_a_template_that_generalises_keeps_its_old_ids_as_aliases() -> None:
    templates = book()
    before = [templates.learn([prints(0, [line], start)])[0] for start, line in enumerate(HOSTS[:-1])]
    (after,) = templates.learn([prints(0, HOSTS[-1:], 10)])
    assert after.text == "connected to store on <*> again"
    assert {one.id for one in before}.isdisjoint([after.id])
    assert [one.aliases for one in before] == [[]] * len(before)
    assert after.aliases == sorted(one.id for one in before)
    assert after.first_seen == before[0].first_seen
    assert set(after.signatures) > {signature for one in before for signature in one.signatures}


def test_aliases_go_on_to_what_their_template_becomes() -> None:
    # One word more varies with each step: first the host, then the verb too.
    templates = book()
    templates.learn([prints(0, HOSTS)])
    verbs = [line.replace("connected", verb) for verb in ("bound", "moved", "sent", "tied", "led") for line in HOSTS]
    (both,) = [one for one in templates.learn([prints(0, verbs)]) if "<*>" in one.text]
    assert both.text == "<*> to store on <*> again"
    assert template_id("connected to store on <*> again") in both.aliases
    assert len(both.aliases) == 1


def test_a_line_that_is_known_changes_nothing() -> None:
    templates = book()
    templates.learn([prints(0, LINES)])
    assert templates.learn([prints(1, LINES, 10)]) == []


@pytest.mark.parametrize("cut", range(1, len(LINES + HOSTS)))
def test_a_restored_book_answers_alike(cut: int) -> None:
    lines = HOSTS + LINES
    whole = book()
    whole.learn([prints(0, lines[:cut])])
    raw = msgspec.json.encode(whole.state)
    again = book(state=msgspec.json.decode(raw, type=TemplateState))
    assert again.learn([prints(0, lines, 10)]) == whole.learn([prints(0, lines, 10)])
    assert again.state == whole.state


def test_beyond_the_limit_nothing_is_fed_and_that_is_counted() -> None:
    templates = book(limit=3)
    templates.learn([prints(0, LINES)])
    assert len(templates.state.mined) == 3
    assert templates.state.overflow > 0


XID = "NVRM: Xid (PCI:0000:{}:00): {}, pid=2503421, name=python3, Ch 00000008"
CLOSED = "[pair.cc:{}] Connection closed by peer [127.0.0.1]:11662, {}"


def test_lines_that_the_field_knows_have_their_own_id_in_every_job() -> None:
    lines = [XID.format("0f", 94), XID.format("9b", 94), XID.format("0f", 43), *LINES]
    templates = {one.id: one for one in book().learn([prints(0, lines)])}
    assert len(templates["xid.94"].signatures) == 2
    assert (templates["xid.94"].aliases, templates["xid.43"].aliases) == ([], [])
    assert "94" in templates["xid.94"].text
    (other,) = book().learn([prints(3, [XID.format("ab", 94)])])
    assert other.id == "xid.94"


def test_a_predefined_template_takes_no_other_line_in_and_leaves_the_others_as_they_were() -> None:
    without = book().learn([prints(0, LINES)])
    beside = book().learn([prints(0, [*LINES, CLOSED.format(1, "a b c"), CLOSED.format(2, "d")])])
    known = [one for one in beside if one.id == "gloo.connection_closed"]
    assert [one for one in beside if one not in known] == without
    assert len(known) == 1 and len(known[0].signatures) == 2


def test_a_flood_of_other_lines_does_not_keep_a_predefined_template_out() -> None:
    templates = book(limit=3)
    templates.learn([prints(0, LINES)])
    assert templates.state.overflow > 0
    assert [one.id for one in templates.learn([prints(0, [XID.format("0f", 79)], 10)])] == ["xid.79"]
    flood = [CLOSED.format(1, "x" * (index + 1)) for index in range(20)]
    templates.learn([prints(0, flood, 20)])
    assert len(templates.state.predefined) == 3


def test_a_restored_book_knows_its_predefined_templates() -> None:
    templates = book()
    templates.learn([prints(0, [XID.format("0f", 94), LINES[0]])])
    again = book(state=msgspec.json.decode(msgspec.json.encode(templates.state), type=TemplateState))
    more = prints(0, [XID.format("9b", 94), XID.format("0f", 94)], 10)
    assert again.learn([more]) == templates.learn([more])
    assert again.template_of(printed(XID.format("0f", 94), 1).signature) == "xid.94"


RANKS = 8
ONSET = 40


def suspicious(
    prints_: dict[str, dict[int, float]],
    suspects: list[int],
    ranks: int = RANKS,
    backed: dict[str, Axis] | None = None,
    healthy: Healthy | None = None,
) -> list[SuspiciousTemplate]:
    """``prints_``: line to rank to second; training begins at second 0, the fault at ``ONSET``."""
    view: AttemptView = new_view()
    templates = book()
    summaries = []
    for rank in range(ranks):
        signatures = [printed(line, who[rank]) for line, who in prints_.items() if rank in who]
        summaries.append(stepping(rank, 0, first=1, signatures=sorted(signatures, key=lambda one: one.signature)))
    window = closed(summaries)
    templates.learn(window.summaries)
    view.update(window)
    templates.note("0", templates.printed("0", window.summaries, []))
    novel = None
    if healthy is not None:
        novel = {one.id for one in templates.novel(view.attempt, templates.templates(view.attempt), healthy)}
    return templates.suspicious(view, at(ONSET), suspects, backed, novel)


def everybody(second: float, *apart: int) -> dict[int, float]:
    return {rank: second for rank in range(RANKS) if rank not in apart}


@pytest.mark.parametrize(
    ("name", "who", "suspects", "ranks", "axis"),
    [
        ("a suspect's own line", {5: ONSET}, [5], "5", "space"),
        ("a suspect's line from before", {5: ONSET - 20}, [5], "5", "space"),
        ("a suspect's and one other's", {5: ONSET, 6: ONSET}, [5], "5-6", "space"),
        ("everybody's at the onset", everybody(ONSET), [5], "0-7", "time"),
        ("nobody is named, few print it", {5: ONSET}, [], "5", "space"),
        ("nobody is named, all print it", everybody(ONSET), [], "0-7", "time"),
    ],
)
def test_what_stands_out(name: str, who: dict[int, float], suspects: list[int], ranks: str, axis: str) -> None:
    (one,) = suspicious({"disk is nearly full": who}, suspects)
    assert (one.ranks, one.axis, one.text, one.id) == (ranks, axis, "disk is nearly full", template_id(one.text)), name


@pytest.mark.parametrize(
    ("name", "who", "suspects"),
    [
        ("an innocent's line", {2: ONSET}, [5]),
        ("rank 0's chatter", {0: ONSET}, []),
        ("too early", {5: ONSET - 31}, [5]),
        ("everybody's, long before", everybody(ONSET - 20), [5]),
        ("everybody's, long after", everybody(ONSET + 20), [5]),
        ("from before training", {5: -1}, [5]),
        ("half of the ranks", dict.fromkeys(range(4), ONSET), [5]),
    ],
)
def test_what_does_not(name: str, who: dict[int, float], suspects: list[int]) -> None:
    assert suspicious({"disk is nearly full": who}, suspects) == [], name


@pytest.mark.parametrize(
    ("name", "who", "suspects", "axis"),
    [
        ("a suspect's own line", {5: ONSET}, [5], "cross-job"),
        ("an innocent's line", {2: ONSET}, [5], "cross-job"),
        ("rank 0's chatter", {0: ONSET}, [], "cross-job"),
        ("half of the ranks", dict.fromkeys(range(4), ONSET + 20), [5], "cross-job"),
        ("too early", {2: ONSET - 31}, [5], None),
        ("too late", {2: ONSET + 31}, [5], None),
        ("a suspect's later line", {5: ONSET + 31}, [5], "space"),
    ],
)
def test_what_no_healthy_job_prints_stands_out_whoever_prints_it(
    name: str, who: dict[int, float], suspects: list[int], axis: str | None
) -> None:
    found = suspicious({"disk is nearly full": who}, suspects, healthy=lambda printed_: False)
    assert [one.axis for one in found] == [axis] * (axis is not None), name
    assert suspicious({"disk is nearly full": who}, suspects, healthy=lambda printed_: True) == [], name


def test_predefined_templates_stand_out_whatever_healthy_jobs_print() -> None:
    line = CLOSED.format(1, "a")
    (one,) = suspicious({line: everybody(ONSET), "all is well": everybody(ONSET)}, [5], healthy=lambda printed_: True)
    assert (one.id, one.axis) == ("gloo.connection_closed", "time")


def test_what_an_attempt_prints_is_told_in_order_of_its_first_lines() -> None:
    templates = book()
    early = [prints(0, HOSTS[:-1], 10), prints(0, [LINES[2]], 5), prints(1, [LINES[2], XID.format("0f", 94)], 20)]
    for window in (closed(early), closed([prints(0, HOSTS[-1:], 30)], 30)):
        templates.learn(window.summaries)
        templates.note("0", templates.printed("0", window.summaries, []))
    printed_ = templates.templates("0")
    assert (len(printed_), templates.templates("1")) == (3, [])
    assert sorted((len(one.ids), len(one.forms)) for one in printed_) == [(1, 1), (1, 1), (6, 6)]
    found = templates.novel("0", printed_, lambda one: False)
    assert [(one.first, one.ranks) for one in found] == [(at(6), [0, 1]), (at(11), [0]), (at(21), [1])]
    assert (found[2].id, found[1].text) == ("xid.94", "connected to store on <*> again")
    assert len(found[1].ids) == 6
    assert templates.novel("0", printed_, lambda one: one.id != "xid.94") == [found[2]]


def test_a_template_that_a_finding_points_at_is_shown_whoever_printed_it_and_when() -> None:
    line = "disk is nearly full"
    pointed_at: dict[str, Axis] = {printed(line, 1).signature: "cross-job", "never printed": "space"}
    for who in ({2: -1.0}, everybody(ONSET - 20), dict.fromkeys(range(4), float(ONSET))):
        (one,) = suspicious({line: who}, [5], backed=pointed_at)
        assert (one.text, one.axis) == (line, "cross-job")
    of_suspect = suspicious({line: {2: -1.0}, "shard server is slow": {5: ONSET}}, [5], backed=pointed_at)
    assert [one.axis for one in of_suspect] == ["space", "cross-job"]


@pytest.mark.parametrize(
    "line",
    ["4%|▌   | 12/300 [00:12<01:20, 3.2it/s]", 'INFO: 10.0.0.7:80 - "GET /health HTTP/1.1" 200 OK'],
)
def test_bars_and_access_lines_stand_aside_unless_a_finding_points_at_them(line: str) -> None:
    who: dict[int, float] = {5: ONSET}
    assert suspicious({line: who}, [5]) == suspicious({line: who}, []) == []
    (one,) = suspicious({line: who}, [5], backed={printed(line, 1).signature: "space"})
    assert one.ranks == "5"


def test_what_is_said_of_a_checkpoint_may_be_the_fault() -> None:
    assert suspicious({"writing checkpoint metadata to /ckpt/3": {5: ONSET}}, [5])


def test_lines_that_all_print_do_not_crowd_out_what_only_the_suspect_printed() -> None:
    words = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
    lines: dict[str, dict[int, float]] = {" ".join([word] * (3 + len(word))): everybody(ONSET) for word in words}
    found = suspicious(lines | {"disk is nearly full": {5: ONSET + 1}}, [5])
    assert 1 < len(found) <= 5
    assert found[0].ranks == "5"


def test_what_an_attempt_printed_is_forgotten_with_it() -> None:
    templates = book()
    window = closed([prints(0, LINES)])
    templates.learn(window.summaries)
    templates.note("0", templates.printed("0", window.summaries, []))
    templates.forget("1")
    assert templates.state.uses
    templates.forget("0")
    assert templates.state.uses == {}
