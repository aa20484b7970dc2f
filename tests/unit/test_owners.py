"""Whose a device is: what a rank's own lines told counts before what was sampled."""

from __future__ import annotations

import msgspec
import pytest
from detection_support import summary

from schemas.results import Window
from streams.member import Member
from streams.stages.owners import devices_of, users_of
from streams.view import AttemptView

A, B = "0000:0a:00.0", "0000:1b:00.0"


def seen(rank: int, told: list[str], sampled: list[str]) -> Window:
    one = msgspec.structs.replace(summary(rank), devices=told, sampled_devices=sampled)
    return msgspec.structs.replace(one, identity=msgspec.structs.replace(one.identity, node="node00"))


@pytest.mark.parametrize(
    ("name", "by_rank", "users"),
    [
        ("lines alone", {2: ([B], []), 3: ([A], [])}, {A: 3, B: 2}),
        ("samples alone", {2: ([], [B]), 3: ([], [A])}, {A: 3, B: 2}),
        ("who told one gains no other", {2: ([B], [A])}, {B: 2}),
        ("nor takes it from who told it", {2: ([B], [A]), 3: ([A], [])}, {A: 3, B: 2}),
        ("who told nothing takes none that was told", {2: ([], [A]), 3: ([A], [])}, {A: 3}),
        ("nor shares one with who sampled it by mistake", {2: ([B], [A]), 3: ([], [A])}, {A: 3, B: 2}),
        ("two told one", {2: ([A], []), 3: ([A], [])}, {}),
        ("two sampled one", {2: ([], [A]), 3: ([], [A])}, {}),
        ("two told one that a third samples", {2: ([A], []), 3: ([A], []), 1: ([], [A])}, {}),
        ("who samples all of its node", {2: ([], [A, B])}, {}),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_whose_a_device_is(
    name: str, by_rank: dict[int, tuple[list[str], list[str]]], users: dict[str, int], known: bool
) -> None:
    view = AttemptView(job="j", attempt="0", first=0)
    windows = [seen(rank, *claims) for rank, claims in by_rank.items()]
    for one in windows if known else []:
        view.members[one.identity.rank or 0] = member = Member(identity=one.identity, first_seen=0, last_life=0)
        member.take_devices(one)
    found = users_of("0", devices_of({"0": view}, {"0": [] if known else windows}))
    assert found == {("node00", device): rank for device, rank in users.items()}
