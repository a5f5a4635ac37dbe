"""Counts with their nouns, for people."""

from __future__ import annotations


def format_count(count: int, one: str, many: str = "") -> str:
    """1 family, 2 families; the plural is with an s, unless it is given."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
