"""All grounds that blame knows: those on which it decides, in the tables of their kinds, and what it only tells."""

from __future__ import annotations

from streams.incidents import blame, counterfactual, hang, hardware_beside, profiled, slowness, standstill

DECIDED_ON = (
    hang.GROUNDS
    | standstill.GROUNDS
    | slowness.GROUNDS.keys()
    | slowness.OF_TIME
    | frozenset(slowness.CROSS_JOB)
    | counterfactual.GROUNDS.keys()
    | profiled.GROUNDS
    | blame.GROWTH
    | blame.NUMERICS
    | {blame.SLOWER_PORT}
)
ONLY_TOLD = hardware_beside.GROUNDS | {
    "unobserved",
    "other_steps",
    "what_if_between",
    "not_played",
    "overflow",
    "loss_goes_on",
    "finite_again",
    "never_finite",
    "spike",
}
"""Grounds of evidence that stands with an incident of its kind and changes nothing of what is decided."""
