"""Regular expressions from tables and contracts: none may have a repetition without bound inside of another.

Such a pattern (`(a+)+$`) takes time that doubles with every letter of a text that nearly matches, and the texts are
written by models and strangers.
"""

from __future__ import annotations

import re
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from interlock.errors import ConfigError
from interlock.values import shorten

_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
"""Possessive ones never go back, and are safe inside of another."""


def compile_table(pattern: str, where: str) -> re.Pattern[str]:
    """A pattern that stands in a table; a sentence for one that is none, or that could take for ever."""
    try:
        if repeats_within_repeat(pattern):
            raise ConfigError(
                f"{where}: {shorten(pattern)!r} repeats something without a bound inside of another repetition, which"
                " can take for ever; give one of them a bound, such as {0,40} in place of *"
            )
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{where}: {shorten(pattern)!r} is no regular expression: {error}") from None


def repeats_within_repeat(pattern: str) -> bool:
    """Whether a pattern has a repetition without bound inside of another."""
    return _nests(parser.parse(pattern), within=False)


def _nests(part: Any, *, within: bool) -> bool:
    if isinstance(part, tuple | list | parser.SubPattern):
        items = list(part)
        if len(items) == 2 and str(items[0]) in _REPEATS:
            _least, most, inner = items[1]
            unbounded = most is parser.MAXREPEAT
            return (within and unbounded) or _nests(inner, within=within or unbounded)
        return any(_nests(item, within=within) for item in items)
    return False
