"""Which things an answer speaks of: the names and ids of the results, found in its words."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.kinds_apart import KindsApart
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.grounding.name_table import NameTable, dated_rows
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.values import Value

_WORD = re.compile(r"[^\W_]+(?:['’]s\b)?")
_THAN = re.compile(
    r"\b(?:than|versus|vs\.?|compared (?:to|with)|unlike|against|over|from|instead of|rather than)\s+"
    r"(?:the\s+|your\s+)?$",
    re.I,
)
_THE = re.compile(r"\b(?:the|this|that|your|our|by)\s+$", re.I)
_SHORT_LEAD = 8

_BESIDE_A_DAY = 12
"""So near to a day stands the time of it."""
_TIME_OF_DAY = slice(11, 16)
"""Where a name that is a day and a time has the time: 2025 07 18t16 00."""


class Mention(Value, frozen=True):
    """A name in the text: what it may stand for, by kind."""

    start: int
    end: int
    names: Mapping[str, frozenset[str]]
    """By kind of name: the plain names that are meant."""
    compared: bool = False
    """It is what something else is compared with."""
    is_date: bool = False
    soft: bool = False
    """A plain word that is also a value ("video", "open"): it says what is beside it, and nothing further off."""


class Names:
    """Everything that the results have a name for, as far as a text has a word of it."""

    def __init__(self, facts: Sequence[Fact], meanings: Mapping[str, ToolMeaning], words: Vocabulary) -> None:
        self._known = once(facts, NameTable, meanings, words.words)
        self._states, self._words, self._figures = words.states.kinds, words.words, words.number_words
        self._dates = once(facts, dated_rows)
        self._apart = once(facts, KindsApart).names

    def find(self, sentences: Sentences, skip: list[tuple[int, int]]) -> list[Mention]:
        """The names in a text, the longest at each place; not those inside of figures."""
        text = sentences.text
        tokens = [(_plain(match[0]), match.start(), match.end()) for match in _WORD.finditer(text)]
        found: list[Mention] = []
        at = 0
        while at < len(tokens):
            match = self._longest(tokens, at)
            if match is None:
                kind, start, end = tokens[at]
                if kind in self._apart and _THE.search(text, max(0, start - _SHORT_LEAD), start) is not None:
                    found.append(Mention(start, end, {kind: self._apart[kind]}, soft=True))
                at += 1
                continue
            last, names = match
            if last == at and not self._known.is_known(tokens[at][0]):
                # "4 vials" are counted, and "faults" are what several have: neither is the name of one of them.
                counted = at > 0 and tokens[at - 1][0].isdigit()
                names = {} if counted else {kind: same for kind, same in names.items() if kind not in self._states}
            start, end = tokens[at][1], tokens[last][2]
            if last == at and self._figures.in_name(text[start:end]) and text[start:end].islower():
                names = {}  # the nine of "thirty-nine seats" is no Studio Nine
            if names and not _lies_in(start, end, skip):
                compared = _THAN.search(text[max(0, start - 24) : start]) is not None
                soft = text[start:end].islower() and not any(char.isdigit() for char in text[start:end])
                first = start == sentences.all[sentences.at(start)].start
                if last > at or not self._is_plain_word(tokens[at][0], soft=soft, first=first):
                    found.append(Mention(start, end, names, compared, soft=soft))
            at = last + 1
        return found

    def _is_plain_word(self, word: str, *, soft: bool, first: bool) -> bool:
        """Whether a word is no name where it stands, though there is one with it.

        "The tenancy ends" means none that is called Every Tenancy, where it is the word of a field, and "All set" means
        no thing that is looked up by the name of "all".
        """
        return (soft and self._known.is_field_word(word)) or (first and not self._words.meanings(word))

    def find_dates(self, said: Iterable[Claim]) -> list[Mention]:
        """Dates in a text that are what tells rows apart: the readings of February and of March."""
        found = []
        claims = list(said)
        for number, claim in enumerate(claims):
            if claim.kind != "date":
                continue
            names: dict[str, frozenset[str]] = {}
            times = [one for one in claims[max(0, number - 2) : number + 3] if one.kind == "time"]
            for kind, rows in self._dates.items():
                fits = _at_time(rows.fits(claim.date), times, claim)
                if fits and len(fits) < rows.count:
                    names[kind] = fits
            # "April" is the April of a field that keeps months, rather than a day in April of another.
            exact = {kind: fits for kind, fits in names.items() if self._dates[kind].keeps_as_said(claim.date)}
            names = exact or names
            if names:
                found.append(Mention(claim.start, claim.end, names, is_date=True, soft=True))
        return found

    def _longest(self, tokens: list[tuple[str, int, int]], at: int) -> tuple[int, dict[str, frozenset[str]]] | None:
        for length in self._known.lengths(tokens[at][0]):
            kinds = self._known.find(" ".join(token for token, _start, _end in tokens[at : at + length]))
            if kinds:
                return min(at + length, len(tokens)) - 1, dict(kinds)
        return None


def is_within(said: tuple[int | None, ...], known: tuple[int | None, ...]) -> bool:
    return all(part in (None, have) for part, have in zip(said, known, strict=True))


def _at_time(names: frozenset[str], times: Sequence[Claim], day: Claim) -> frozenset[str]:
    """Of the rows of a day those at the time that stands beside it, where they are kept with one: 18 July at 16:00."""
    if len(times) != 1 or times[0].minutes is None:
        return names
    said, apart = times[0].minutes, max(times[0].start - day.end, day.start - times[0].end)
    written = f"{said // 60:02d} {said % 60:02d}"
    fits = frozenset(name for name in names if name[_TIME_OF_DAY] == written)
    return fits if fits and apart <= _BESIDE_A_DAY else names


def _plain(word: str) -> str:
    lower = word.lower()
    return lower if lower.isalnum() else lower.replace("’", "'").removesuffix("'s")


def _lies_in(start: int, end: int, spans: list[tuple[int, int]]) -> bool:
    """Whether one of the spans, which are in order, has all of a place."""
    at = bisect_left(spans, (start + 1, 0)) - 1
    return at >= 0 and spans[at][0] <= start and end <= spans[at][1]
