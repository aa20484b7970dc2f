"""Deterministic ids: the same content has the same id, whoever computes it, whenever."""

from __future__ import annotations

import hashlib


def stable_id(*parts: str | int | None) -> str:
    """A 16-digit hexadecimal id of the parts, told apart by position and type."""
    whole = "".join([_named(part) for part in parts])
    return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _named(part: str | int | None) -> str:
    text = "" if part is None else str(part)
    return f"{type(part).__name__}:{len(text)}:{text};"


def notification_key(job: str, attempt: str) -> str:
    """The key of an attempt's alert: notices and incidents share it, so that staff see one alert that gains a name."""
    return stable_id("notification", job, attempt)


def attempt_name(job: str, attempt: str) -> str:
    """One text for both, which no other job and attempt have.

    >>> attempt_name("run-7", "0")
    '5:run-7|0'
    """
    return f"{len(job)}:{job}|{attempt}"
