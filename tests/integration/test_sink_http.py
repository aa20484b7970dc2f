"""What only a server can do to the sink: lose answers, refuse, restart, and see who asks for what."""

from __future__ import annotations

import pytest
from clickhouse_front import Front

from sinks.clickhouse import open_client
from sinks.errors import SinkError
from sinks.migrate import migrate, migrations


@pytest.mark.parametrize("user", ["reader", "analyst"])
def test_a_user_who_may_only_read_is_told_so_when_migrating(front: Front, database: str, user: str) -> None:
    with (
        open_client(front.dsn(database, user=user)) as client,
        pytest.raises(SinkError, match=r"^cannot tell which migrations were applied: .*\(READONLY\)$"),
    ):
        migrate(client)


def test_a_migration_whose_record_was_lost_runs_again(front: Front, database: str) -> None:
    first, *rest = migrations()
    with open_client(front.dsn(database)) as client:
        front.lose_requests(2)
        with pytest.raises(SinkError, match=rf"^migration {first.name} was applied but cannot be recorded: "):
            migrate(client)
        assert migrate(client) == [first.name, *(migration.name for migration in rest)]
        assert migrate(client) == []
