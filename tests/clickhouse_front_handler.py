"""How the front takes a request and answers it, as a ClickHouse server would."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from clickhouse_front import PASSWORD
from clickhouse_front_engine import Answer, EngineError, Statement
from clickhouse_front_wire import BodyError, Encoder, credentials, form_fields, read_body, status_of

if TYPE_CHECKING:
    from clickhouse_front_server import Server

USERS: dict[str, dict[str, str]] = {"writer": {}, "reader": {"readonly": "1"}, "analyst": {"readonly": "2"}}
"""Users and the settings that bind them; all have the same password."""

HELD_BYTES = 1 << 20
"""What a server collects of an answer before it sends the first byte of it; until then an error has a status."""

_TRANSPORT = {
    *("query", "database", "default_format", "user", "password", "quota_key", "query_id", "stacktrace"),
    *("wait_end_of_query", "buffer_size", "client_protocol_version"),
}
"""Parameters of a request that are no settings."""

_REFUSED = ("session_id", "compress", "decompress", "role")
"""Parameters that a server knows and this front does not."""

_TYPES = {"Native": "application/octet-stream", "JSON": "application/json; charset=UTF-8"}
_SUMMARY = ("read_rows", "read_bytes", "written_rows", "written_bytes", "total_rows_to_read", "result_rows")
_NUMBERS = count(1)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    # Head and body in one packet: two would each wait for the other end's acknowledgement.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        try:
            body = read_body(self.rfile, self.headers)
            path, parameters = self._parameters(body)
        except BodyError as error:
            # A client that broke off has no use for an answer; nothing of its insert may be stored.
            self.close_connection = True
            self._refuse(1000, str(error))
            return
        if path == "/ping":
            self._send(200, {}, b"Ok.\n")
        elif path != "/":
            self._send(404, {}, f"There is no handle {path}\n".encode())
        elif user := self._user(parameters):
            self._serve(user, parameters, b"" if self._form() else body)

    do_POST = do_GET  # noqa: N815

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def log_message(self, *_: object) -> None:
        """Be quiet."""

    def _form(self) -> str:
        kind = self.headers.get("Content-Type") or ""
        return kind if kind.startswith("multipart/form-data") else ""

    def _parameters(self, body: bytes) -> tuple[str, dict[str, str]]:
        address = urlsplit(self.path)
        parameters = dict(parse_qsl(address.query, keep_blank_values=True))
        return address.path, parameters | (form_fields(body, kind) if (kind := self._form()) else {})

    def _user(self, parameters: dict[str, str]) -> str:
        user, password = credentials(self.headers, parameters)
        if user in USERS and password == PASSWORD:
            return user
        text = "Authentication failed: password is incorrect, or there is no user with such name."
        self._refuse(516, f"{user}: {text} (AUTHENTICATION_FAILED)")
        return ""

    def _serve(self, user: str, parameters: dict[str, str], body: bytes) -> None:
        query = parameters.get("query", "").encode()
        body = query + b"\n" + body if query and body else query or body
        self.server.seen.append({**parameters, "method": self.command, "sql": body[:200].decode(errors="replace")})
        fault = self.server.next_fault(body)
        if fault and fault["kind"] == "refuse":
            self._refuse(fault["code"], fault["text"], fault["status"])
        elif fault and fault["kind"] == "lose_request":
            self._hang_up()
        elif unknown := next((name for name in _REFUSED if name in parameters), None):
            self._refuse(48, f"{unknown} is not served by this front. (NOT_IMPLEMENTED)")
        else:
            self._run(self._statement(user, parameters, body), parameters, lose=fault is not None)

    def _statement(self, user: str, parameters: dict[str, str], body: bytes) -> Statement:
        bound = {name[6:]: value for name, value in parameters.items() if name.startswith("param_")}
        return Statement(
            body,
            database=parameters.get("database") or self.headers.get("X-ClickHouse-Database") or "default",
            profile=USERS[user],
            settings={n: v for n, v in parameters.items() if n not in _TRANSPORT and not n.startswith("param_")},
            parameters=bound,
            reads_only=self.command != "POST",
            revision=int(parameters.get("client_protocol_version") or 0),
            default_format=parameters.get("default_format") or self.headers.get("X-ClickHouse-Format") or "",
        )

    def _run(self, statement: Statement, parameters: dict[str, str], *, lose: bool) -> None:
        hold = None if parameters.get("wait_end_of_query") == "1" else HELD_BYTES
        compress = parameters.get("enable_http_compression") == "1"
        encoder = Encoder(self.headers.get("Accept-Encoding") or "" if compress else "")
        try:
            with self.server.engine.run(statement) as answer:
                held, more = _hold(answer.chunks, hold)
                if lose:
                    self._hang_up()
                elif more:
                    self._stream(answer, held, encoder, parameters)
                else:
                    data = encoder.feed(held) + encoder.end() if held else b""
                    self._send(200, self._headers(answer, parameters, encoder.name if held else ""), data)
        except EngineError as error:
            self._refuse(error.code, str(error).removeprefix(f"Code: {error.code}. DB::Exception: "))

    def _headers(self, answer: Answer, parameters: dict[str, str], encoding: str) -> dict[str, str]:
        summary = {name: str(answer.summary.get(name, 0)) for name in _SUMMARY}
        headers = {
            "Content-Type": _TYPES.get(answer.format or "", "text/tab-separated-values; charset=UTF-8"),
            "X-ClickHouse-Query-Id": parameters.get("query_id") or f"query-{next(_NUMBERS)}",
            "X-ClickHouse-Timezone": self.server.engine.timezone.decode(),
            "X-ClickHouse-Exception-Tag": f"{next(_NUMBERS):016x}",
            "X-ClickHouse-Summary": json.dumps(summary),
        }
        if answer.format:
            headers["X-ClickHouse-Format"] = answer.format
        return headers | ({"Content-Encoding": encoding} if encoding else {})

    def _stream(self, answer: Answer, held: bytes, encoder: Encoder, parameters: dict[str, str]) -> None:
        """In chunks. An error in the middle is told within the answer, which then has no end, as a server does it."""
        headers = self._headers(answer, parameters, encoder.name) | {"Transfer-Encoding": "chunked"}
        self._send_head(200, headers)
        self._chunk(encoder.feed(held))
        try:
            for data in answer.chunks:
                self._chunk(encoder.feed(data))
        except EngineError as error:
            tag, text = headers["X-ClickHouse-Exception-Tag"], f"{error}\n"
            told = f"\r\n__exception__\r\n{tag}\r\n{text}{len(text.encode())} {tag}\r\n__exception__\r\n"
            self._chunk(encoder.feed(told.encode()))
            self._hang_up()
            return
        self._chunk(encoder.end())
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        if data:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _refuse(self, code: int, text: str, status: int = 0) -> None:
        version = "" if "(version " in text else f" (version {self.server.engine.version})"
        body = f"Code: {code}. DB::Exception: {text}{version}\n".encode()
        headers = {"X-ClickHouse-Exception-Code": str(code), "Content-Type": "text/plain; charset=UTF-8"}
        self._send(status or status_of(code), headers, body)

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self._send_head(status, {**headers, "Content-Length": str(len(body))})
        self.wfile.write(body)

    def _send_head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)


def _hold(chunks: Iterator[bytes], most: int | None) -> tuple[bytes, bool]:
    """What comes first, up to ``most`` bytes, and whether there may be more."""
    held = bytearray()
    for data in chunks:
        held += data
        if most is not None and len(held) >= most:
            return bytes(held), True
    return bytes(held), False
