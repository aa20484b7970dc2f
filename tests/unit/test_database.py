"""The database that a command works with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rankwatch import database
from sinks.errors import OtherBuildError, SinkError


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        ("chdb:///var/lib/rankwatch", "move the folder /var/lib/rankwatch away"),
        ("http://me:secret@gpu1:8123/rankwatch", "it is http://me:***@gpu1:8123/rankwatch"),
    ],
)
def test_of_a_database_that_another_build_made_is_said_where_it_is_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, dsn: str, said: str
) -> None:
    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[None]:
        yield None

    monkeypatch.setattr(database, "open_client", opened)
    with pytest.raises(SinkError) as raised, database.database(dsn, "demo"):
        raise OtherBuildError("migration 0001_create_logs was applied with another text")
    assert said in str(raised.value)
    assert "--clickhouse" in str(raised.value) and "secret" not in str(raised.value)
