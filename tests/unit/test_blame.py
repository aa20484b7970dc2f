"""Blame: a decision over anomalies, with its reason. A wrong name is worse than none."""

from __future__ import annotations

import msgspec
import pytest
from blame_table import (
    KILLED,
    RANKS,
    SLOWER,
    TABLE,
    Row,
    apart,
    cascade,
    coded,
    error,
    fault,
    growth,
    kept,
    others,
    outside,
    port_down,
    slow,
    slower_port,
    stall,
    waiting,
)
from detection_support import FIXED, anomaly, at, situation
from hypothesis import given
from hypothesis import strategies as st

from schemas.results import Anomaly, Suspect
from streams.incidents.blame import decide
from streams.incidents.decision import Decision, Reason
from streams.incidents.situation import SECOND, Situation
from streams.rhythm import Rhythm

SUPPORTED_WITHOUT_NAMES = {
    *(Reason.ALL_ALIKE, Reason.WHAT_IF_STAGES, Reason.WHAT_IF_LENGTHS),
    Reason.SLOWER_THAN_ALIKE,
}


def named(decision: Decision) -> list[int]:
    return sorted(suspect.rank for suspect in decision.suspects if suspect.rank is not None)


@pytest.mark.parametrize(("name", "reason", "suspects", "anomalies", "known"), TABLE, ids=[row[0] for row in TABLE])
def test_the_decision_has_its_reason(
    name: str, reason: Reason, suspects: list[int], anomalies: list[Anomaly], known: Situation
) -> None:
    decision = decide(anomalies, known)
    assert (decision.reason, named(decision)) == (reason, suspects)
    silent = "unavailable" if reason is Reason.NOTHING_OBSERVED else "ambiguous"
    assert decision.verdict == ("supported" if suspects or reason in SUPPORTED_WITHOUT_NAMES else silent)
    assert not set(decision.victims) & set(suspects)


def test_a_stack_strikes_out_who_never_came_beside_a_device_that_has_stopped() -> None:
    dumps = kept((2, "blocker"), (5, "stopped_device"))
    assert named(decide([stall(), waiting(), dumps], situation())) == [5]


@pytest.mark.parametrize(("sampled", "suspects"), [((2,), [5]), ((), []), ((2, 5), [])])
def test_of_two_laggards_without_a_stack_either_may_wait(sampled: tuple[int, ...], suspects: list[int]) -> None:
    unseen = {2, 5} - set(sampled)
    stacks = anomaly("all_in_communication", [], others(*unseen), start=10, onset=9, unobserved=sorted(unseen))
    dumps = anomaly("never_enqueued", [2, 5], others(2, 5), start=10, onset=9)
    assert named(decide([stall(), stacks, dumps], situation())) == suspects


LONG = [anomaly("job_shift", start=start, onset=4) for start in range(20, 300, 10)]


def test_every_reason_is_reached() -> None:
    assert {row[1] for row in TABLE} == set(Reason)


@pytest.mark.parametrize(
    ("anomalies", "symptom", "area", "onset"),
    [
        ([stall(), outside(5, area="data")], "hang", "data", 9),
        ([error(6, 12), cascade(*others(6), onset=11)], "crash", "data", 12),
        ([error(4, 12, symptom="memory", area="memory")], "memory", "memory", 12),
        ([slow("slow_against_peers", 3, onset=4)], "slowdown", "compute", 4),
        ([slow("many_slow", onset=4)], "slowdown", "workload", 4),
        ([anomaly("own_shift", [3], onset=2), anomaly("job_shift", onset=4)], "slowdown", "unknown", 4),
        ([anomaly("job_shift", onset=2), slow("slow_against_peers", 3, onset=4)], "slowdown", "compute", 4),
        (
            [slow("slow_and_changed", 3, onset=4), *LONG, slow("slow_and_changed", 5, start=300, onset=290)],
            "slowdown",
            "compute",
            290,
        ),
        (
            [slow("slow_perhaps_with_others", 3, onset=4), slow("slow_and_changed", 3, start=40, onset=30)],
            "slowdown",
            "compute",
            4,
        ),
        ([anomaly("own_series", [5], onset=3)], "numerics", "unknown", 3),
    ],
)
def test_symptom_area_and_onset_follow_from_what_is_blamed(
    anomalies: list[Anomaly], symptom: str, area: str, onset: float
) -> None:
    decision = decide(anomalies, situation())
    assert (decision.symptom, decision.area, decision.onset) == (symptom, area, at(onset))


@pytest.mark.parametrize(
    ("anomalies", "severity"),
    [
        ([error(6, 12), growth(start=10), growth(start=60)], "warning"),
        ([slow("slow_and_changed", 3), *LONG], "warning"),
        ([slow("slow_and_changed", 3), slow("slow_and_changed", 3, start=20, severity="warning")], "critical"),
        ([anomaly("job_shift", severity="warning"), slow("busy_alone", 3, severity="info")], "warning"),
    ],
)
def test_how_bad_it_is_follows_from_what_is_decided_on(anomalies: list[Anomaly], severity: str) -> None:
    assert decide(anomalies, situation(iterated=at(100))).severity == severity


@pytest.mark.parametrize(
    ("anomalies", "severity", "places"),
    [
        ([fault(5)], "warning", ["node02"]),
        ([fault(5, area="code")], None, []),
        (
            [
                msgspec.structs.replace(
                    fault(None, area="network"), suspects=[Suspect(rank=None, node="node01", score=0.5, why="w")]
                )
            ],
            None,
            ["node01"],
        ),
    ],
)
def test_broken_hardware_that_the_job_lives_through_warns_of_its_place(
    anomalies: list[Anomaly], severity: str | None, places: list[str]
) -> None:
    decision = decide(anomalies, situation(iterated=at(60)))
    assert (decision.reason, decision.severity, named(decision)) == (Reason.SURVIVED, severity, [])
    assert [one.node for one in decision.places] == places
    assert all(one.rank is None for one in decision.places)


@pytest.mark.parametrize(("works_at", "severity"), [({}, "warning"), ({("gpu3", "mlx5_2:1"): at(20)}, None)])
def test_a_port_that_the_job_lives_without_warns_until_it_works_again(
    works_at: dict[tuple[str, str], int], severity: str | None
) -> None:
    decision = decide([port_down()], situation(iterated=at(60), working=works_at))
    assert (decision.reason, decision.severity) == (Reason.SURVIVED, severity)
    assert [one.device for one in decision.places] == ["mlx5_2:1"]


@pytest.mark.parametrize(
    ("known", "severity"),
    [
        (situation(iterated=at(9)), None),
        (situation(iterated=at(9), superseded=at(30)), "info"),
        (situation(superseded=at(30)), None),
        (situation(now=900, iterated=at(9), superseded=at(600)), None),
    ],
    ids=["it ends", "it trained and begins anew", "it never trained", "it begins anew much later"],
)
def test_a_job_that_trained_and_is_begun_anew_has_lived_through_exit_codes(
    known: Situation, severity: str | None
) -> None:
    decision = decide([coded()], known)
    assert (decision.reason, decision.severity) == (Reason.EXIT_CODE, severity)


@pytest.mark.parametrize(("printed_until", "suspects"), [(30, [5]), (299, [])])
def test_who_prints_on_for_minutes_after_a_fault_is_not_known_to_have_failed_first(
    printed_until: float, suspects: list[int]
) -> None:
    lost = cascade(*others(2, 5), start=310)
    seen = situation(now=400, spoke={5: Rhythm(at(printed_until))}, repeated={5: at(printed_until)})
    assert named(decide([fault(5), fault(2, 300), lost], seen)) == suspects
    assert named(decide([fault(5), lost], seen)) == suspects
    # Where no iteration came since, what else it prints may be a heartbeat.
    assert named(decide([fault(5), lost], msgspec.structs.replace(seen, iterated=at(9)))) == [5]


@pytest.mark.parametrize(("port", "places"), [(10, ["mlx5_2:1"]), (40, [])])
def test_a_port_that_was_slower_before_the_job_is_where_to_look(port: float, places: list[str]) -> None:
    decision = decide([anomaly("job_shift", start=20, onset=20), slower_port(port)], situation())
    assert (decision.reason, decision.suspects) == (Reason.JOB_SLOWER, [])
    assert [one.device for one in decision.places] == places


def test_one_traced_rank_stands_for_those_that_it_shares_tensors_with() -> None:
    decision = decide([slow("slow_and_changed", 2, 3), slow("what_if_workers", 2)], situation())
    assert (named(decision), decision.reason) == ([2], Reason.WHAT_IF_WORKERS)


def test_timers_of_many_steps_outweigh_one_profile() -> None:
    decision = decide([slow("slow_against_peers", 3), slow("slow_function", 5, start=20)], situation())
    assert (named(decision), decision.reason) == ([3], Reason.SLOW_KNOWN_LAYOUT)


def test_a_shift_that_turns_out_to_be_everybodys_supports_nobody() -> None:
    # Space cancels time: the slow rank's shift was only the first of all to be verified.
    shifts = [anomaly("own_shift", [3], start=10), anomaly("shared_shift", start=20, victims=others(3))]
    decision = decide([slow("slow_against_peers", 3), *shifts], situation(knows_layout=False))
    assert named(decision) == []


def test_who_is_found_slow_since_takes_the_place_of_one_that_told_nothing_more() -> None:
    found = [slow("slow_and_changed", 3), *SLOWER, slow("slow_and_changed", 5, start=600)]
    assert named(decide(found, situation(told={3: at(20), 5: at(600)}))) == [5]


def test_a_slow_rank_that_stacks_show_loading_is_a_matter_of_data() -> None:
    found = [slow("slow_and_changed", 3), anomaly("busy_alone", [3], start=10, area="data", severity="info")]
    assert decide(found, situation()).area == "data"


def test_an_own_series_that_the_peers_share_a_window_later_supports_nobody() -> None:
    decision = decide([anomaly("own_series", [5], start=0), anomaly("after_reduction", start=10)], situation())
    assert named(decision) == []


def test_what_comes_after_the_owner_of_an_error_has_failed_is_not_blamed() -> None:
    late = [error(rank, 25, "b") for rank in (1, 2)]
    assert named(decide([error(6, 12), *late], situation())) == [6]


@pytest.mark.parametrize(
    ("area", "onset", "precision_s", "named_ranks"),
    [
        # A traceback is dated inexactly: a GPU lost within that time may be the cause, a fault of a program need not.
        ("hardware", 14, 6, [5]),
        ("hardware", 18, 6, []),
        ("code", 14, 6, []),
        ("code", 11, 6, []),
        ("code", 4, 6, [5]),
        ("hardware", 11, 0, [5]),
        ("hardware", 12, 0, []),
    ],
)
def test_a_nodes_word_counts_only_where_it_came_before_the_peers_were_lost(
    area: str, onset: float, precision_s: int, named_ranks: list[int]
) -> None:
    lost = cascade(*others(5), onset=11, precision_ns=precision_s * 10**9)
    assert named(decide([lost, fault(5, onset, area=area)], situation())) == named_ranks


def test_a_foreign_kill_within_a_hang_makes_no_victim_of_it() -> None:
    killed = anomaly("own_death", [2], start=60, onset=65, subject="killed")
    hung = decide([stall(), outside(5), killed, cascade(*others(2, 5), start=60)], situation())
    assert (named(hung), hung.victims) == ([5], others(2, 5))


SCENES = [row for row in TABLE if row[1] is not Reason.PENDING_PEERS]
# While memory only grows nothing has failed: a lost peer makes it a crash, of which growth does not tell who began.
GROWS = (Reason.MEMORY_GROWS, Reason.MEMORY_OF_ALL_GROWS)
# Whether what was caught is why peers are lost is decided by when they are.
DATED = (*GROWS, Reason.CAUGHT)
# Somebody's silence decides, or is a reason to doubt: who is silent may be who is lost, and no victim.
OF_SILENCE = (Reason.SILENT_ONE, Reason.SILENT_BEFORE, Reason.LOST_AS_WELL, Reason.VANISHED)
CRASHES = [row for row in SCENES if row[3][0].symptom in ("hang", "crash", "memory") and row[1] not in DATED]


@FIXED
@given(st.sampled_from(CRASHES), st.sets(st.integers(0, RANKS - 1), min_size=1), st.integers(1, 5), st.data())
def test_a_victims_cascade_never_changes_the_suspects(
    row: Row, victims: set[int], window: int, data: st.DataObject
) -> None:
    name, reason, suspects, anomalies, known = row
    heard = {rank for one in anomalies for rank in (*one.victims, *(suspect.rank for suspect in one.suspects))}
    victims = victims & heard if reason in OF_SILENCE or "silent" in name else victims
    # What stacks show once peers are lost does not count, so these are lost after a second look at the standstill.
    looks = [one.end for one in anomalies if one.detector == "stack_minority" and one.end > anomalies[0].end]
    since = (max([min(one.onset for one in anomalies), *looks]) - at(0)) // SECOND
    more = cascade(*sorted(victims - set(suspects)), start=max(window * 10, since), text="another")
    # The first anomaly opens the incident; a cascade of the same windows may come before or after it.
    place = data.draw(st.integers(1, len(anomalies)))
    found = named(decide([*anomalies[:place], more, *anomalies[place:]], known))
    # Where not all were heard an early loss may be of one of those: a reason to doubt, and none to name another.
    assert found == suspects or (not found and known.members.keys() - heard)


LATER_ERRORS = (
    "the first of two errors",
    "errors after the stall are its consequence",
    "of two GPUs one is lost first for certain",
    "a GPU is lost, and its rank is silent when another fails",
)


@pytest.mark.parametrize("row", [row for row in SCENES if row[0] not in LATER_ERRORS], ids=lambda row: row[0])
def test_without_any_one_anomaly_no_innocent_rank_becomes_the_suspect(row: Row) -> None:
    _, _, suspects, anomalies, known = row
    guilty = set(suspects) or {suspect.rank for one in anomalies for suspect in one.suspects}
    for gone in range(len(anomalies)):
        left = anomalies[:gone] + anomalies[gone + 1 :]
        if any(one.severity != "info" for one in left):
            left.sort(key=lambda one: one.severity == "info")
            assert set(named(decide(left, known))) <= guilty


def test_what_an_incident_took_up_from_before_it_is_not_the_latest() -> None:
    earlier = msgspec.structs.replace(outside(2), severity="info")
    assert named(decide([stall(30), outside(5, start=30), earlier], situation())) == [5]


def test_who_waited_while_another_stood_outside_is_not_named_beside_it_later() -> None:
    assert named(decide([stall(), outside(5), apart(2, 5, start=20)], situation())) == [5]
    assert named(decide([stall(), apart(2, 5), outside(5, start=20)], situation())) == [5]


def test_who_may_only_have_had_long_work_to_do_contradicts_nothing() -> None:
    assert named(decide([stall(), outside(5, severity="info"), outside(2, start=20)], situation())) == [2]


def test_who_stood_outside_in_an_earlier_standstill_contradicts_nothing() -> None:
    later = msgspec.structs.replace(outside(2, start=50), onset=at(45))
    assert named(decide([stall(), outside(5), later], situation(iterated=at(45)))) == [2]


def test_what_was_found_before_the_iteration_that_a_standstill_began_with_is_of_an_earlier_one() -> None:
    earlier = msgspec.structs.replace(outside(2, start=-10), severity="info", onset=at(-12))
    decision = decide([stall(30), earlier], situation())
    assert (named(decision), decision.reason) == ([], Reason.NOTHING_OBSERVED)


def test_a_rank_that_has_lost_its_peer_before_is_not_named_for_an_error_of_its_own() -> None:
    # The first failure's log is lost; a victim's clean-up raises something else two windows later.
    decision = decide([cascade(*others(6), onset=11), error(1, 35, "b"), cascade(2, start=40)], situation())
    assert 1 not in named(decision)


def renamed(one: Anomaly, to: list[int]) -> Anomaly:
    suspects = [
        msgspec.structs.replace(suspect, rank=to[suspect.rank], node=f"node{to[suspect.rank] // 2:02d}")
        for suspect in one.suspects
        if suspect.rank is not None
    ]
    victims, unobserved = (sorted(to[rank] for rank in ranks) for ranks in (one.victims, one.unobserved))
    return msgspec.structs.replace(one, suspects=suspects, victims=victims, unobserved=unobserved)


@FIXED
@given(st.sampled_from([row for row in TABLE if len(row[4].members) == RANKS]), st.permutations(range(RANKS)))
def test_renaming_ranks_renames_the_suspects(row: Row, to: list[int]) -> None:
    _, reason, suspects, anomalies, known = row
    members = {to[rank]: node for rank, node in known.members.items()}
    renewed = msgspec.structs.replace(
        known,
        members=members,
        living=[to[rank] for rank in known.living],
        unobserved=[to[rank] for rank in known.unobserved],
        exited={to[rank]: end for rank, end in known.exited.items()},
        spoke={to[rank]: time for rank, time in known.spoke.items()},
        repeated={to[rank]: time for rank, time in known.repeated.items()},
        seen={to[rank]: time for rank, time in known.seen.items()},
        lapsed=[to[rank] for rank in known.lapsed],
        watched={to[rank]: time for rank, time in known.watched.items()},
        told={to[rank]: time for rank, time in known.told.items()},
        named=frozenset(to[rank] for rank in known.named),
    )
    decision = decide([renamed(one, to) for one in anomalies], renewed)
    assert (decision.reason, named(decision)) == (reason, sorted(to[rank] for rank in suspects))


@FIXED
@given(st.sampled_from(TABLE), st.randoms(use_true_random=False))
def test_the_order_of_a_windows_anomalies_does_not_matter(row: Row, random: object) -> None:
    _, _, _, anomalies, known = row
    shuffled = list(anomalies)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    shuffled.sort(key=lambda one: one.end)
    one, two = decide(anomalies, known), decide(shuffled, known)
    assert (one.reason, named(one), one.victims) == (two.reason, named(two), two.victims)
    assert (one.symptom, one.verdict, one.onset) == (two.symptom, two.verdict, two.onset)


def test_two_timers_of_one_window_give_one_onset_in_either_order() -> None:
    both = [
        slow("slow_against_peers", 3, onset=2, subject="compute"),
        slow("slow_against_peers", 3, onset=5, subject="data"),
    ]
    one, two = decide(both, situation()), decide(both[::-1], situation())
    assert (one.onset, one.area, named(one)) == (two.onset, two.area, named(two))


@FIXED
@given(st.lists(st.sampled_from([one for row in TABLE for one in row[3]]), min_size=1, max_size=8), st.booleans())
def test_only_who_some_anomaly_suspects_is_ever_named(anomalies: list[Anomaly], knows: bool) -> None:
    family = {"hang": "standstill", "crash": "standstill", "memory": "standstill"}
    kind = family.get(anomalies[0].symptom, anomalies[0].symptom)
    joined = sorted((one for one in anomalies if family.get(one.symptom, one.symptom) == kind), key=lambda one: one.end)
    opening = [one for one in joined if one.severity != "info"]
    if not opening:
        return
    decision = decide([opening[0], *(one for one in joined if one is not opening[0])], situation(knows_layout=knows))
    assert set(named(decision)) <= {suspect.rank for one in joined for suspect in one.suspects}
    assert (decision.verdict == "supported") >= bool(named(decision))


def test_two_of_a_node_that_fail_differently_are_said_to_be_of_that_node() -> None:
    assert decide([KILLED, error(5, 12), cascade(*others(4, 5))], situation()).among == [4, 5]


def test_an_error_that_certainly_came_before_a_standstill_is_why_others_stand_apart() -> None:
    apart = anomaly("outside_communication", [5], others(2, 5), start=10, onset=9)
    assert named(decide([error(2, 8), stall(), apart], situation())) == [2]
    # So has one that had ended by then, though it was still alive when the last iteration was reported.
    late = [error(2), stall(), apart, cascade(*others(2, 5), start=60)]
    assert named(decide(late, situation(exited={2: at(14)}))) == [2]
    assert named(decide(late, situation(exited={2: at(90)}))) == []


def place(node: str) -> Suspect:
    return Suspect(rank=None, node=node, score=0.5, why="")


def test_where_to_look_is_said_of_faults_whose_time_is_known() -> None:
    unknown = msgspec.structs.replace(fault(None, severity="info"), suspects=[place("node09")])
    known = msgspec.structs.replace(fault(None), suspects=[place("node01")])
    assert [place.node for place in decide([known, unknown], situation()).places] == ["node01"]


def test_each_suspect_stands_once_with_its_best_score() -> None:
    weak = anomaly("vanished", [6], start=10, onset=12, score=0.7, subject="missing")
    decision = decide([weak, error(6, 12), cascade(*others(6))], situation())
    assert [(suspect.rank, suspect.score) for suspect in decision.suspects] == [(6, 0.9)]


SLOWDOWNS = [
    (name, found, where)
    for name, _, _, found, where in TABLE
    if found[0].symptom == "slowdown"
    and any(one.severity != "info" for one in found)
    and not any(one.axis == "cross-job" for one in found)
]


@pytest.mark.parametrize(("name", "anomalies_", "where"), SLOWDOWNS)
def test_faster_healthy_jobs_change_no_decision(name: str, anomalies_: list[Anomaly], where: Situation) -> None:
    faster = [anomaly("slower_than_alike", start=start) for start in (0, 10, 40)]
    merged = sorted([*anomalies_, *faster], key=lambda one: one.end)
    assert decide(merged, where) == decide(anomalies_, where), name
