"""Lists of words as sets."""

from __future__ import annotations


def words_of(text: str) -> frozenset[str]:
    """The words of a text, which stands more readable than each word in quotes."""
    return frozenset(text.split())
