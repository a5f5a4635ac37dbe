"""The words by which people go on from what was said before, from a table."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _table() -> dict[str, Any]:
    text = (files("interlock.answers.sessions") / "tables" / "references.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def openings() -> tuple[tuple[str, ...], ...]:
    """What a question begins with that goes on from another, the longest first."""
    return tuple(sorted((tuple(text.split()) for text in _table()["openings"]), key=len, reverse=True))


@cache
def words_of(kind: str) -> frozenset[str]:
    """The words of one kind, by the name of its list in the table."""
    return frozenset(_table()[kind])


@cache
def ordinals() -> dict[str, int]:
    """Words for a place in a list, counted from its beginning, or from its end if negative."""
    return dict(_table()["ordinals"])
