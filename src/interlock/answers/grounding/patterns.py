"""Regular expressions from tables and contracts: none may have a repetition without bound inside of another.

Such a pattern (`(a+)+$`) takes time that doubles with every letter of a text that nearly matches, and the texts are
written by models and strangers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from interlock.answers.grounding.trigger_words import beginnings
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


def leading_letters(pattern: str) -> str:
    """The letters that every match of a pattern begins with, in lower case; nothing where that cannot be said."""
    letters = []
    for kind, value in parser.parse(pattern):
        if str(kind) != "LITERAL":
            break
        letters.append(chr(value))
    return "".join(letters).lower()


def one_of(patterns: Sequence[str]) -> str:
    """A pattern for any of several, the first that fits, in which a text is held only against those with its letter.

    A list of alternatives is gone through one by one at each place of a text; tables have hundreds.
    """
    by_letter: dict[str, list[str]] = {}
    for pattern in patterns:
        letter = leading_letters(pattern)[:1]
        if not letter:
            return f"(?:{'|'.join(patterns)})"  # which of them comes first may matter
        by_letter.setdefault(letter, []).append(pattern)
    groups = (f"(?={re.escape(letter)})(?:{'|'.join(some)})" for letter, some in by_letter.items())
    return f"(?={_letters(by_letter)})(?:{'|'.join(groups)})"


def begins_with(patterns: Iterable[str]) -> str:
    """A look at the first letter, before any of the patterns is tried; for patterns that ignore case."""
    letters = {leading_letters(pattern)[:1] for pattern in patterns}
    return "" if "" in letters else f"(?={_letters(letters)})"


def _letters(letters: Iterable[str]) -> str:
    return f"[{''.join(map(re.escape, sorted(letters)))}]"


def _ways_to_begin(pattern: str) -> Iterable[str]:
    """The letters that a match may begin with: one way where they are always the same."""
    letters = leading_letters(pattern)
    return (letters,) if letters else (one.letters for one in beginnings(re.compile(pattern, re.I)))


class Hints:
    """What a text must have, some of it, for one of several patterns to be found in it: most texts have none."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._letters = tuple({letters for pattern in patterns for letters in _ways_to_begin(pattern)})
        self._always = "" in self._letters

    def are_in(self, lower: str) -> bool:
        """Whether a text, which is in lower case, has any of them."""
        return self._always or any(map(lower.__contains__, self._letters))


def _nests(part: Any, *, within: bool) -> bool:
    if isinstance(part, tuple | list | parser.SubPattern):
        items = list(part)
        if len(items) == 2 and str(items[0]) in _REPEATS:
            _least, most, inner = items[1]
            unbounded = most is parser.MAXREPEAT
            return (within and unbounded) or _nests(inner, within=within or unbounded)
        return any(_nests(item, within=within) for item in items)
    return False
