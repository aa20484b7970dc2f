"""A worker's words on itself: nothing is lost to an outage, and no failed client is kept."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import sink_support as support

from rankwatch.meta_teller import MOST_UNSAID, Teller
from schemas.codec import decode
from schemas.meta import MetaAlert
from schemas.ports import LogError


class Clients:
    """Makes clients of which all fail while ``away``; counts those that are open."""

    def __init__(self) -> None:
        self.away: Exception | None = None
        self.open = 0
        self.told: list[tuple[str, str]] = []

    def __call__(self) -> Clients:
        self.open += 1
        return self

    def append(self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str], time: int) -> None:
        assert (topic, headers["schema"]) == ("meta", "meta")
        if self.away is None:
            alert: MetaAlert = decode("meta", value)
            self.told.append((alert.id, alert.status))

    def flush(self) -> None:
        if self.away is not None:
            raise self.away

    def close(self) -> None:
        self.open -= 1


def test_what_an_outage_kept_back_is_said_later_each_with_its_last_word() -> None:
    clients = Clients()
    teller = Teller(clients)
    teller.tell([], 1)
    assert clients.open == 0, "nothing to say, nobody to say it"
    clients.away = LogError("away")
    teller.tell([support.meta_alert(id="a")], 2)
    teller.tell([support.meta_alert(id="a", status="resolved"), support.meta_alert(id="b")], 3)
    assert clients.open == 0, "no client that failed is kept"
    clients.away = None
    teller.tell([], 4)
    teller.tell([], 5)
    assert clients.told == [("a", "resolved"), ("b", "firing")]
    assert clients.open == 1


def test_what_is_kept_back_is_bounded_and_counted_and_other_failures_are_the_callers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clients = Clients()
    clients.away = ValueError("else")
    teller = Teller(clients)
    with pytest.raises(ValueError, match="else"):
        teller.tell([support.meta_alert(id=f"{number}") for number in range(MOST_UNSAID + 9)], 1)
    assert clients.open == 0
    clients.away = None
    teller.tell([], 2)
    assert [name for name, _ in clients.told] == [f"{number}" for number in range(9, MOST_UNSAID + 9)]
    teller.tell([support.meta_alert(id="next")], 3)
    said = capsys.readouterr()
    assert (said.out + said.err).count("9 alerts of this process were never told") == 1
