"""``/metrics`` and ``/healthz`` over HTTP, from a thread of its own: they answer while the work stands still."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from rankwatch.errors import UsageError

Health = Callable[[], str]
"""What is wrong, or an empty text."""


def parse_address(text: str) -> tuple[str, int]:
    """``HOST:PORT``, ``:PORT`` for all addresses. Raises UsageError."""
    host, mark, port = text.rpartition(":")
    if not mark or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{text!r} is no address; give HOST:PORT")
    return host.strip("[]"), int(port)


@contextmanager
def serving(address: str | None, collectors: list[Collector], health: Health) -> Iterator[str]:
    """Answer at ``address`` while the context lasts; yields the address in use. Raises UsageError, and OSError."""
    if address is None:
        yield ""
        return
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    server = ThreadingHTTPServer(parse_address(address), _handler(registry, health))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="endpoint", daemon=True).start()
    try:
        yield f"{server.server_address[0]!s}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _handler(registry: CollectorRegistry, health: Health) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.split("?")[0] == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(registry))
            elif self.path == "/healthz":
                trouble = health()
                self._answer(503 if trouble else 200, "text/plain; charset=utf-8", (trouble or "ok").encode() + b"\n")
            else:
                self._answer(404, "text/plain; charset=utf-8", b"/metrics or /healthz\n")

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Whoever asks every few seconds is no news."""

    return Handler
