"""Where the sink writes to in tests: the embedded engine, and the same engine behind ClickHouse's HTTP interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_front import Front


@pytest.fixture(scope="session")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """One server for all tests of a worker: it takes a second to start."""
    running = Front(tmp_path_factory.mktemp("front") / "db")
    yield running
    running.stop()


@pytest.fixture
def database(front: Front) -> Iterator[str]:
    """A database of the front, empty at first."""
    with front.database() as name:
        yield name


@pytest.fixture(params=["chdb", "http"])
def dsn(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, in this process and behind HTTP."""
    if request.param == "chdb":
        return f"chdb://{tmp_path / 'db'}"
    running: Front = request.getfixturevalue("front")
    return running.dsn(request.getfixturevalue("database"))


@pytest.fixture(scope="module", params=["chdb", "http"])
def shared_dsn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same for tests that only read: one database for all of a module, which must not open another beside it."""
    if request.param == "chdb":
        yield f"chdb://{tmp_path_factory.mktemp('shared') / 'db'}"
        return
    running: Front = request.getfixturevalue("front")
    with running.database() as name:
        yield running.dsn(name)
