"""Words without which a pattern fits nowhere: a text is looked through for those of all patterns at once.

An answer has thousands of parts, and is asked of each whether any of dozens of patterns is in it; most have none. Where
each match of a pattern begins with certain letters, one look at the words of a part says which patterns it may have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_WORD = re.compile(r"\w+")
_FEW, _MOST, _LONGEST = 4, 4_000, 12
_MOST_KEPT = 20_000
_LONGEST_KEPT = 24
_IS_WORD = [(parser.IN, [(parser.CATEGORY, parser.CATEGORY_WORD)])]
_IS_NONE = [(parser.IN, [(parser.CATEGORY, parser.CATEGORY_NOT_WORD)])]
_LOOKS = (parser.ASSERT, parser.ASSERT_NOT)
_REPEATS = (parser.MAX_REPEAT, parser.MIN_REPEAT)
_Item = tuple[Any, Any]
ANY = -1
"""The bits of a text that was not looked through: it may have a match of every pattern."""


class Beginning(NamedTuple):
    """The letters that a match begins with, in lower case."""

    letters: str = ""
    at_word: bool = False
    """They begin a word."""
    is_whole: bool = False
    """And that word ends with them."""


class TriggerWords:
    """Which of some patterns a text may have a match of, as the bits of a number."""

    def __init__(self, *, short: int = 0) -> None:
        """`short`: a word of no more letters that others follow is looked for with those, as "a handful" is."""
        self._count, self._short = 0, short
        self._always = 0
        self._whole: dict[str, int] = {}
        self._prefixes: dict[str, int] = {}
        self._lengths: tuple[int, ...] = ()
        self._marks: dict[str, int] = {}
        self._known: dict[str, int] = {}

    def add(self, *patterns: re.Pattern[str] | None) -> int:
        """The bit of some patterns: of a text without it none of them is anywhere in it."""
        bit = 1 << self._count
        self._count += 1
        for pattern in patterns:
            for one in () if pattern is None else beginnings(pattern, self._short):
                self._note(one, bit)
        self._lengths = tuple(sorted({len(prefix) for prefix in self._prefixes}))
        self._known.clear()
        return bit

    def _note(self, one: Beginning, bit: int) -> None:
        if not one.letters:
            self._always |= bit
        elif not one.at_word:
            self._marks[one.letters] = self._marks.get(one.letters, 0) | bit
        else:
            into = self._whole if one.is_whole else self._prefixes
            into[one.letters] = into.get(one.letters, 0) | bit

    def find(self, text: str) -> int:
        """The bits of all patterns that may be in a text."""
        found, known = self._always, self._known
        for word in _WORD.findall(text):
            bits = known.get(word)
            found |= self._bits(word) if bits is None else bits
        lower = text.lower()
        for mark, bits in self._marks.items():
            if mark in lower:
                found |= bits
        return found

    def may_be_in(self, text: str) -> bool:
        """Whether a text, which may be long, can have a match of any of the patterns."""
        if self._always:
            return True
        known = self._known
        for word in set(_WORD.findall(text)):
            bits = known.get(word)
            if self._bits(word) if bits is None else bits:
                return True
        lower = text.lower()
        return any(mark in lower for mark in self._marks)

    def _bits(self, word: str) -> int:
        lower = word.lower()
        if word.isascii():
            found = self._whole.get(lower, 0)
            for length in self._lengths:
                found |= self._prefixes.get(lower[:length], 0)
        else:
            found = (1 << self._count) - 1  # other letters may be the same to a pattern that ignores case
        if len(self._known) < _MOST_KEPT and len(word) <= _LONGEST_KEPT:
            self._known[word] = found  # an answer says the same words again and again
        return found


def beginnings(pattern: re.Pattern[str], short: int = 0) -> Sequence[Beginning]:
    """What each match of a pattern begins with; one without letters where that cannot be said."""
    found: list[Beginning] = []
    for one in _begin(list(parser.parse(pattern.pattern, pattern.flags)), Beginning()):
        found.append(_as_word(one, short))
        if not one.letters or len(found) > _MOST:
            return [Beginning()]
    return found


def _as_word(one: Beginning, short: int) -> Beginning:
    """With no more letters than the word has that they begin."""
    word = _WORD.match(one.letters)
    if not one.at_word or word is None or len(word[0]) <= short < len(one.letters) - len(word[0]) - 1:
        return Beginning(one.letters)
    return Beginning(word[0], at_word=True, is_whole=one.is_whole or len(word[0]) < len(one.letters))


def _begin(items: Sequence[_Item], one: Beginning) -> Iterator[Beginning]:
    """How a match may begin that goes on with these items."""
    if not items or one.is_whole or len(one.letters) >= _LONGEST:
        yield one
        return
    (kind, value), rest = items[0], items[1:]
    if kind is parser.AT or kind in _LOOKS:
        yield from _begin(rest, _at_place(kind, value, one))
    elif kind is parser.LITERAL:
        yield from _begin(rest, one._replace(letters=one.letters + chr(value).lower()))
    elif kind is parser.IN and len(value) <= _FEW and all(each is parser.LITERAL for each, _char in value):
        for _each, char in value:
            yield from _begin(rest, one._replace(letters=one.letters + chr(char).lower()))
    elif kind is parser.SUBPATTERN:
        yield from _begin([*value[3], *rest], one)
    elif kind is parser.BRANCH:
        for some in value[1]:
            yield from _begin([*some, *rest], one)
    elif kind in _REPEATS:
        yield from _repeat(value, rest, one)
    else:
        yield one


def _at_place(kind: Any, value: Any, one: Beginning) -> Beginning:
    """The same behind a look at what stands around a place: whether a word begins or ends there."""
    if kind is parser.AT:
        behind, ahead = value in (parser.AT_BOUNDARY, parser.AT_BEGINNING), value is parser.AT_BOUNDARY
    else:
        no_word = kind is parser.ASSERT_NOT and list(value[1]) == _IS_WORD
        behind, ahead = no_word and value[0] < 0, no_word and value[0] > 0
    if not one.letters:
        return one._replace(at_word=one.at_word or behind)
    return one._replace(is_whole=one.at_word and ahead and (one.letters[-1].isalnum() or one.letters[-1] == "_"))


def _repeat(value: Any, rest: Sequence[_Item], one: Beginning) -> Iterator[Beginning]:
    least, _most, some = value
    if not one.letters and list(some) == _IS_NONE and (one.at_word or least):
        yield from _begin(rest, one._replace(at_word=True))
        return
    if not least:
        yield from _begin(rest, one)
    # What follows the first time may be a second.
    yield from _begin([*some, (parser.ANY, None)], one)
