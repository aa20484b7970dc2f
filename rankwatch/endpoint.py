"""``/metrics`` and ``/healthz`` over HTTP, from a thread of its own: they answer while the work stands still."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from rankwatch.errors import UsageError

Health = Callable[[], str]
"""What is wrong, or an empty text."""


def parse_address(text: str) -> tuple[str, int]:
    """``HOST:PORT``, ``:PORT`` for all addresses. Raises UsageError."""
    host, mark, port = text.rpartition(":")
    if not mark or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen {text!r} is no address; give HOST:PORT, or :PORT for all")
    return host.strip("[]"), int(port)


def check_address(text: str | None) -> None:
    """Raise UsageError for what is no address; null is none and may be."""
    if text is not None:
        parse_address(text)


@contextmanager
def serving(address: str | None, collectors: list[Collector], health: Health) -> Iterator[str]:
    """Answer at ``address`` while the context lasts; yields the address in use. Raises UsageError."""
    if address is None:
        yield ""
        return
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    server = _listening(address, _handler(registry, health))
    threading.Thread(target=server.serve_forever, name="endpoint", daemon=True).start()
    try:
        host, port = str(server.server_address[0]), server.server_address[1]
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # HTTPServer would ask the name service for the host's name here, which may take long and is used by nobody.
        TCPServer.server_bind(self)

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asks and goes away before the answer is no news."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _listening(address: str, handler: type[BaseHTTPRequestHandler]) -> _Server:
    place = parse_address(address)
    try:
        return (_Server6 if ":" in place[0] else _Server)(place, handler)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "no such host"
        raise UsageError(f"cannot listen at {address}: {reason.lower()}") from None


def _handler(registry: CollectorRegistry, health: Health) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                try:
                    found = generate_latest(registry)
                except Exception as error:  # what is measured changed while it was read, or is just being closed
                    self._answer(503, "text/plain; charset=utf-8", f"no metrics now: {error}\n".encode())
                else:
                    self._answer(200, CONTENT_TYPE_LATEST, found)
            elif path == "/healthz":
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
