"""Deterministic ids: the same content has the same id, whoever computes it, whenever."""

from __future__ import annotations

import hashlib


def stable_id(*parts: str | int | None) -> str:
    """A 16-digit hexadecimal id of the parts, told apart by position and type."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        text = "" if part is None else str(part)
        digest.update(f"{type(part).__name__}:{len(text)}:{text};".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def notification_key(job: str, attempt: str) -> str:
    """The key of an attempt's alert: notices and incidents share it, so that staff see one alert that gains a name."""
    return stable_id("notification", job, attempt)
