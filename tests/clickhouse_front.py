"""A ClickHouse server for tests: the embedded engine in a process of its own, behind ClickHouse's HTTP interface.

What it shows is what clickhouse-connect sends and how the engine takes it. What it cannot show: a server's own
HTTP code, its users and quotas, sessions, replication, TLS.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

PASSWORD = "s3cret/?#x"
"""Of all its users; it has characters that an address must escape."""

_SERVER = Path(__file__).with_name("clickhouse_front_server.py")
_STOP_S = 20.0


class Front:
    """A running front over ``path``; users are ``writer``, ``reader`` (readonly 1) and ``analyst`` (readonly 2)."""

    def __init__(self, path: Path, *, zone: str = "UTC") -> None:
        self._path = path
        self._zone = zone
        self._databases = 0
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start the process; after a stop it has the same port and the same data."""
        self._process = subprocess.Popen(
            [sys.executable, str(_SERVER), str(self._path), str(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TZ": self._zone},
            text=True,
        )
        self.port = self._answer()["port"]

    def stop(self) -> None:
        """End the process in good order."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_S)
        finally:
            self.kill()

    def kill(self) -> None:
        """End the process as a crash would."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def dsn(self, database: str = "default", *, user: str = "writer", password: str = PASSWORD) -> str:
        """The address under which Rankwatch opens a database of this front."""
        return f"http://{user}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """The name of a new, empty database, which is dropped on leaving; so is what was seen and the faults left."""
        self._databases += 1
        name = f"test_{self._databases}"
        self._tell("run", sql=f"CREATE DATABASE {name}")
        yield name
        self._tell("run", sql=f"DROP DATABASE {name} SYNC")
        self._tell("forget")

    def refuse_connections(self) -> None:
        """Close the port and all connections; the engine goes on."""
        self._tell("refuse")

    def listen_again(self) -> None:
        """Open the same port."""
        self._tell("listen")

    def lose_answers(self, times: int = 1, statement: str = "INSERT") -> None:
        """Run the next statements that begin so, and hang up instead of answering."""
        self._fail(kind="lose_answer", times=times, statement=statement)

    def lose_requests(self, times: int = 1, statement: str = "INSERT") -> None:
        """Hang up on the next statements that begin so, and do not run them."""
        self._fail(kind="lose_request", times=times, statement=statement)

    def refuse_statements(self, code: int, text: str, status: int, times: int = 1, statement: str = "INSERT") -> None:
        """Answer the next statements that begin so with an exception."""
        self._fail(kind="refuse", code=code, text=text, status=status, times=times, statement=statement)

    def seen(self, statement: str = "") -> list[dict[str, str]]:
        """Parameters, ``method`` and ``sql`` of the requests so far that passed the login and begin so."""
        requests: list[dict[str, str]] = self._tell("look")["seen"]
        return [request for request in requests if request["sql"].lstrip().upper().startswith(statement)]

    def faults_left(self) -> int:
        """How many faults are still to come."""
        return sum(self._tell("look")["left"])

    def _fail(self, **fault: Any) -> None:
        self._tell("fail", fault=fault)

    def _tell(self, do: str, **more: Any) -> dict[str, Any]:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"do": do, **more}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, f"the front ended with {self._process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer
