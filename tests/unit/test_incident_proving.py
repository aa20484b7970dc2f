"""Whether two incidents prove one, with the reason, and which of them goes on."""

from __future__ import annotations

import pytest
from detection_support import S, anomaly
from incident_support import told

from schemas.results import Severity
from streams.incidents.decision import Reason
from streams.incidents.proving import One, Proof, Told, merged, one_of

NEAR = 60 * S
ASSERTION = anomaly("own_error", [2], onset=110, text="rank 2: AssertionError: loss is NaN at step 40")
OTHER_ERROR = anomaly("own_error", [2], onset=110, text="rank 2: ValueError: negative length")
EARLIER = anomaly("own_error", [2], onset=20, text="rank 2: ValueError: negative length")


SLOW = told("slow", "slowdown", [5])
GREW = told("grew", "memory", [1], severity="warning")
GREW_THERE = told("grew", "memory", severity="warning", nodes=["node00"])
NUMBERS = told("nan", "numerics", onset=100, shown=110)
FAULT = told("fault", "standstill", severity="warning", reason=Reason.SURVIVED, nodes=["node01"], area="hardware")


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        # Who was slow until then.
        (SLOW, told("hang", "standstill", [5], onset=110, symptom="hang"), ("slow", "hang", Proof.SLOW_THEN_STANDS)),
        (SLOW, told("crash", "standstill", [5], onset=110), ("slow", "crash", Proof.SLOW_THEN_STANDS)),
        (SLOW, told("hang", "standstill", [9], onset=110), None),
        (SLOW, told("hang", "standstill", [], onset=110), None),
        (SLOW, told("hang", "standstill", [5, 9], onset=110), None),
        (SLOW, told("hang", "standstill", [5], onset=900), None),
        (told("slow", "slowdown", [], reason=Reason.JOB_SLOWER), told("hang", "standstill", [5], onset=110), None),
        (told("slow", "slowdown", [5], onset=200), told("hang", "standstill", [5], onset=110), None),
        # Memory that grew.
        (GREW, told("crash", "standstill", [1], onset=110), ("grew", "crash", Proof.GREW_THEN_FAILED)),
        (GREW, told("crash", "standstill", [6], onset=110), None),
        (GREW, told("crash", "standstill", [], onset=110), None),
        (GREW, told("crash", "standstill", [], onset=110, area="memory"), ("grew", "crash", Proof.GREW_THEN_ENDED)),
        (GREW_THERE, told("crash", "standstill", [1], onset=110), None),
        (
            GREW_THERE,
            told("crash", "standstill", [1], onset=110, area="memory"),
            ("grew", "crash", Proof.GREW_THEN_ENDED),
        ),
        (GREW_THERE, told("crash", "standstill", [6], onset=110, area="memory"), None),
        # Numbers, and the crash that only tells of them.
        (
            NUMBERS,
            told("crash", "standstill", [2], onset=110, anomalies=[ASSERTION]),
            ("crash", "nan", Proof.NUMBERS_THEN_FAILED),
        ),
        (NUMBERS, told("crash", "standstill", [2], onset=110, anomalies=[OTHER_ERROR]), None),
        (NUMBERS, told("crash", "standstill", [2], onset=20, anomalies=[EARLIER, ASSERTION]), None),
        (NUMBERS, told("hang", "standstill", [9], onset=110, symptom="hang"), None),
        (
            told("nan", "numerics", [7], onset=100),
            told("crash", "standstill", [2], onset=110, anomalies=[ASSERTION]),
            None,
        ),
        (
            told("nan", "numerics", onset=400),
            told("crash", "standstill", [2], onset=110, anomalies=[ASSERTION]),
            None,
        ),
        # A fault of hardware that the job lived through.
        (FAULT, told("crash", "standstill", [3], onset=600), ("fault", "crash", Proof.FAULT_THEN_FAILED)),
        (FAULT, told("crash", "standstill", [3], onset=600, area="code"), None),
        (FAULT, told("crash", "standstill", [9], onset=600), None),
        (FAULT, told("crash", "standstill", [3], onset=2000), None),
        (FAULT, told("crash", "standstill", [], onset=600), None),
        (
            told("fault", "standstill", reason=Reason.SURVIVED, nodes=["node01"], area="code"),
            told("crash", "standstill", [3], onset=600),
            None,
        ),
        # Two of one kind.
        (told("a", "slowdown", [3]), told("b", "slowdown", [3], onset=90), ("b", "a", Proof.SAME_RANKS)),
        # No suspect is lost by it.
        (told("a", "slowdown", [3]), told("b", "slowdown", [3, 4], onset=90), ("a", "b", Proof.SAME_RANKS)),
        (told("a", "slowdown", [3, 4]), told("b", "slowdown", [3], onset=90), ("b", "a", Proof.SAME_RANKS)),
        (told("a", "slowdown", [3, 5]), told("b", "slowdown", [3, 4], onset=90), None),
        (told("a", "slowdown", [3]), told("b", "slowdown", [11], onset=90), None),
        (
            told("a", "slowdown", [3], severity="warning"),
            told("b", "slowdown", [3], onset=90),
            ("b", "a", Proof.SAME_RANKS),
        ),
        (
            told("a", "slowdown", reason=Reason.ROTATING),
            told("b", "slowdown", reason=Reason.ROTATING, onset=90),
            ("b", "a", Proof.SAME_REASON),
        ),
        (told("a", "slowdown", reason=Reason.ROTATING), told("b", "slowdown", reason=Reason.MANY_SLOW), None),
        (
            told("a", "standstill", reason=Reason.NODE_FAULT, nodes=["node00"]),
            told("b", "standstill", reason=Reason.NODE_FAULT, nodes=["node01"]),
            None,
        ),
        (told("a", "numerics"), told("b", "slowdown"), None),
    ],
)
def test_which_two_are_one(one: Told, other: Told, found: tuple[str, str, Proof] | None) -> None:
    for pair in ((one, other), (other, one)):
        proof = one_of(*pair, NEAR)
        assert (proof and (proof.merged, proof.stays, proof.why)) == found


def test_of_a_chain_each_says_which_one_goes_on() -> None:
    crash = told("crash", "standstill", [5], onset=110, anomalies=[ASSERTION])
    proofs = merged([SLOW, NUMBERS, crash], NEAR)
    assert {name: proof.stays for name, proof in proofs.items()} == {"slow": "nan", "crash": "nan"}


def test_proofs_never_go_round() -> None:
    alike = [told(name, "slowdown", [3, 5], onset=number) for number, name in enumerate("abcdef")]
    proofs = merged([*alike, told("hang", "standstill", [5], onset=110)], NEAR)
    assert {proof.stays for proof in proofs.values()} == {"hang"}
    assert set(proofs) == set("abcdef")
    assert isinstance(next(iter(proofs.values())), One)


@pytest.mark.parametrize("severities", [("warning", "critical"), ("critical", "warning"), ("critical", "critical")])
def test_which_of_two_stays_does_not_hang_on_how_grave_they_are_at_the_moment(
    severities: tuple[Severity, Severity],
) -> None:
    one, other = (
        told(name, "standstill", [1], severity=severity) for name, severity in zip("xy", severities, strict=True)
    )
    assert {name: proof.stays for name, proof in merged([other, one], NEAR).items()} == {"y": "x"}


def test_what_was_part_of_another_stays_it_and_goes_with_it() -> None:
    one, other = told("x", "slowdown", [5]), told("y", "slowdown", [5], onset=50)
    kept = {"x": One("x", "y", Proof.SAME_RANKS)}
    assert {name: proof.stays for name, proof in merged([one, other], NEAR, kept).items()} == {"x": "y"}
    hang = told("hang", "standstill", [5], onset=110)
    assert {name: proof.stays for name, proof in merged([one, other, hang], NEAR, kept).items()} == {
        "x": "hang",
        "y": "hang",
    }
