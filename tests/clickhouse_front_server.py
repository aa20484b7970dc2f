"""The process behind clickhouse_front.Front: the embedded engine behind ClickHouse's HTTP interface.

Called with a directory and a port (0 for a free one). It prints its port, then obeys one JSON line a command on its
standard input and answers each with one, and ends when that is closed.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from contextlib import suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from clickhouse_front_engine import Engine
from clickhouse_front_handler import Handler


class Server(ThreadingHTTPServer):
    """Listens, and keeps what was asked and which faults are still to come."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, engine: Engine, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.engine = engine
        self.connections: set[socket.socket] = set()
        self.seen: list[dict[str, str]] = []
        self.faults: list[dict[str, Any]] = []

    def next_fault(self, body: bytes) -> dict[str, Any] | None:
        """The first fault that is due for this statement, once less for the next."""
        sql = body.lstrip().upper()
        for fault in self.faults:
            if fault["times"] > 0 and sql.startswith(fault["statement"].encode()):
                fault["times"] -= 1
                return fault
        return None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may leave; anything else is a fault of this front and is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Refuse new connections and cut the open ones."""
        self.shutdown()
        self.server_close()
        for connection in list(self.connections):
            # The other end may have left already.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def main() -> None:
    """Serve until standard input ends."""
    engine = Engine(Path(sys.argv[1]))
    server = Server(engine, int(sys.argv[2]))
    server.start()
    print(json.dumps({"port": server.server_port}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "fail":
            server.faults.append(command["fault"])
        elif command["do"] == "run":
            engine.execute(command["sql"])
        elif command["do"] == "refuse":
            server.stop()
        elif command["do"] == "listen":
            before, server = server, Server(engine, server.server_port)
            server.faults, server.seen = before.faults, before.seen
            server.start()
        print(json.dumps({"seen": server.seen, "left": [fault["times"] for fault in server.faults]}), flush=True)
        if command["do"] == "forget":
            server.seen.clear()
            server.faults.clear()
    server.stop()
    engine.close()


if __name__ == "__main__":
    main()
