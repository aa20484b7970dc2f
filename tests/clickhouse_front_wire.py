"""What ClickHouse's HTTP interface looks like on the wire: bodies, compression, forms, status codes."""

from __future__ import annotations

import gzip
import zlib
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from email import message_from_bytes
from email.message import Message
from email.policy import HTTP
from io import BufferedIOBase, BytesIO
from typing import Any

import lz4.frame
from backports import zstd

PREFERRED = ("zstd", "lz4", "gzip")
"""Encodings of answers, those that a server likes best first."""

_STATUSES = {
    **dict.fromkeys((36, 6, 25, 26, 27, 38, 41, 53, 62, 72, 117, 321), 400),
    **dict.fromkeys((192, 193, 497, 516), 403),
    **dict.fromkeys((46, 47, 50, 56, 60, 73, 81, 115, 511), 404),
    48: 501,
    159: 408,
    203: 503,
    439: 503,
}


class BodyError(Exception):
    """A body that ended before its end, or is not what its headers say."""


def status_of(code: int) -> int:
    """The HTTP status under which a server answers an exception of this code."""
    return _STATUSES.get(code, 500)


def read_body(source: BufferedIOBase, headers: Message) -> bytes:
    """The decompressed body of a request. Raises BodyError."""
    if (headers.get("Transfer-Encoding") or "").lower() == "chunked":
        body = _read_chunks(source)
    else:
        body = _read_exactly(source, int(headers.get("Content-Length") or 0))
    return _decompressed(body, headers.get("Content-Encoding") or "")


def _read_chunks(source: BufferedIOBase) -> bytes:
    chunks = []
    while size := _chunk_size(source.readline(64)):
        chunks.append(_read_exactly(source, size))
        _read_exactly(source, 2)
    _read_exactly(source, 2)
    return b"".join(chunks)


def _chunk_size(line: bytes) -> int:
    try:
        return int(line.partition(b";")[0], 16)
    except ValueError:
        raise BodyError("a chunk has no length") from None


def _read_exactly(source: BufferedIOBase, size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise BodyError("the body ends early")
    return data


def _decompressed(body: bytes, encoding: str) -> bytes:
    decoders: dict[str, Callable[[bytes], bytes]] = {
        "": bytes,
        # The client sends one frame a block, so a body may hold several.
        "lz4": lambda data: lz4.frame.open(BytesIO(data)).read(),
        "zstd": zstd.decompress,
        "gzip": gzip.decompress,
    }
    if encoding not in decoders:
        raise BodyError(f"unknown compression {encoding}")
    try:
        return decoders[encoding](body)
    except (RuntimeError, EOFError, OSError, zlib.error, zstd.ZstdError) as error:
        raise BodyError(f"cannot decompress {encoding}: {error}") from None


class Encoder:
    """Compresses an answer piece by piece; ``name`` is empty for none."""

    def __init__(self, accepted: str) -> None:
        known = {part.partition(";")[0].strip() for part in accepted.split(",")}
        self.name = next((name for name in PREFERRED if name in known), "")
        self._feed, self._end = _compressor(self.name)

    def feed(self, data: bytes) -> bytes:
        """What can be sent so far; may be empty."""
        return self._feed(data)

    def end(self) -> bytes:
        """The rest."""
        return self._end()


def _compressor(name: str) -> tuple[Callable[[bytes], bytes], Callable[[], bytes]]:
    if name == "zstd":
        frame = zstd.ZstdCompressor()
        return lambda data: frame.compress(data, frame.FLUSH_BLOCK), frame.flush
    if name == "lz4":
        lz4_frame: Any = lz4.frame.LZ4FrameCompressor(auto_flush=True)
        begun = [lz4_frame.begin()]
        return lambda data: (begun.pop() if begun else b"") + lz4_frame.compress(data), lz4_frame.flush
    if name:
        packed = zlib.compressobj(wbits=31)
        return lambda data: packed.compress(data) + packed.flush(zlib.Z_SYNC_FLUSH), packed.flush
    return bytes, bytes


def form_fields(body: bytes, content_type: str) -> dict[str, str]:
    """Fields of a multipart form. Raises BodyError for files: tables sent along are not served."""
    form = message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body, policy=HTTP)
    fields = {}
    for part in form.iter_parts():
        if part.get_filename():
            raise BodyError("external tables are not served by this front")
        name = part.get_param("name", header="Content-Disposition")
        value: Any = part.get_payload(decode=True)
        fields[str(name)] = value.decode()
    return fields


def credentials(headers: Message, parameters: Mapping[str, str]) -> tuple[str, str]:
    """User and password: of basic authentication, else of ClickHouse's own headers, else of the address."""
    scheme, _, encoded = (headers.get("Authorization") or "").partition(" ")
    if scheme.lower() == "basic":
        try:
            user, _, password = b64decode(encoded).decode().partition(":")
        except (NotBase64, UnicodeDecodeError):
            return "", ""
        return user, password
    user = headers.get("X-ClickHouse-User") or parameters.get("user", "default")
    return user, headers.get("X-ClickHouse-Key") or parameters.get("password", "")
