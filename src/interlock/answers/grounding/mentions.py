"""Which things an answer speaks of: the names and ids of the results, found in its words."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.grounding.rows import kind_of_argument, plain_name
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.values import Value

_WORD = re.compile(r"[^\W_]+(?:['’]s\b)?")
_LEAST_LETTERS = 3
_MOST_WORDS = 10
_THAN = re.compile(
    r"\b(?:than|versus|vs\.?|compared (?:to|with)|unlike|against|over|from|instead of|rather than)\s+"
    r"(?:the\s+|your\s+)?$",
    re.I,
)


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

    def __init__(
        self, text: str, facts: Sequence[Fact], meanings: Mapping[str, ToolMeaning], words: Vocabulary
    ) -> None:
        self._words = words.words
        self._spoken = {_plain(match[0]) for match in _WORD.finditer(text)}
        self._kinds: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        """Plain name → kind → the names that are the same thing."""
        self._add_rows(facts)
        self._add_known_values(meanings)
        self._dates = _dated_rows(facts)
        self._parts = self._telling_words()
        lengths: dict[str, set[int]] = defaultdict(set)
        for name in [*self._kinds, *self._parts]:
            words_of_name = name.split()
            if words_of_name and len(words_of_name) <= _MOST_WORDS and _is_name(name):
                lengths[words_of_name[0]].add(len(words_of_name))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}
        """By its first word: how many words a name may have, the longest first."""

    def _add_rows(self, facts: Sequence[Fact]) -> None:
        seen: set[int] = set()
        for fact in facts:
            if fact.asked or not fact.trusted:
                continue
            for row in fact.place.row.chain():
                # What a call was made with says what its result is about, and is no name that the results have.
                if id(row) not in seen and not row.of_call:
                    seen.add(id(row))
                    self._add(row.names)

    def _add_known_values(self, meanings: Mapping[str, ToolMeaning]) -> None:
        for meaning in meanings.values():
            for argument, values in meaning.names.items():
                for value, called in values.items():
                    same = frozenset({plain_name(value), *map(plain_name, called)})
                    self._add({kind_of_argument(argument): same})

    def _add(self, names: Mapping[str, frozenset[str]]) -> None:
        for kind, same in names.items():
            for name in same:
                if not self._spoken.isdisjoint(name.split()):
                    self._kinds[name][kind] |= same

    def _telling_words(self) -> dict[str, dict[str, set[str]]]:
        """Words that stand in one name of a kind alone: "Holiday" where one account is called so."""
        by_word: dict[tuple[str, str], list[frozenset[str]]] = defaultdict(list)
        for name, kinds in self._kinds.items():
            for kind, same in kinds.items():
                for word in self._spoken.intersection(name.split()):
                    if len(word) >= _LEAST_LETTERS and not word.isdigit() and self._words.meanings(word):
                        by_word[(kind, word)].append(frozenset(same))
                for one, other in pairwise(name.split()):
                    if one.isdigit() or other.isdigit():  # the 70 Ah of several batteries
                        by_word[(kind, f"{one} {other}")].append(frozenset(same))
        parts: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for (kind, word), groups in by_word.items():
            if len(set(groups)) == 1 and word not in self._kinds:
                parts[word][kind] |= groups[0]
        return parts

    def find(self, sentences: Sentences, skip: list[tuple[int, int]]) -> list[Mention]:
        """The names in a text, the longest at each place; not those inside of figures."""
        text = sentences.text
        tokens = [(_plain(match[0]), match.start(), match.end()) for match in _WORD.finditer(text)]
        found: list[Mention] = []
        at = 0
        while at < len(tokens):
            match = self._longest(tokens, at)
            if match is None:
                at += 1
                continue
            last, names = match
            start, end = tokens[at][1], tokens[last][2]
            if not _lies_in(start, end, skip):
                compared = _THAN.search(text[max(0, start - 24) : start]) is not None
                soft = text[start:end].islower() and not any(char.isdigit() for char in text[start:end])
                found.append(Mention(start, end, names, compared, soft=soft))
            at = last + 1
        return found

    def find_dates(self, said: Iterable[Claim]) -> list[Mention]:
        """Dates in a text that are what tells rows apart: the readings of February and of March."""
        found = []
        for claim in said:
            if claim.kind != "date":
                continue
            names: dict[str, frozenset[str]] = {}
            for kind, rows in self._dates.items():
                fits = frozenset(name for name, known in rows if is_within(claim.date, known))
                if fits and len(fits) < len(rows):
                    names[kind] = fits
            # "April" is the April of a field that keeps months, rather than a day in April of another.
            exact = {kind: fits for kind, fits in names.items() if self._keeps_as_said(kind, claim)}
            names = exact or names
            if names:
                found.append(Mention(claim.start, claim.end, names, is_date=True, soft=True))
        return found

    def _keeps_as_said(self, kind: str, claim: Claim) -> bool:
        given = [part is not None for part in claim.date[1:]]
        return all([part is not None for part in known[1:]] == given for _name, known in self._dates[kind])

    def _longest(self, tokens: list[tuple[str, int, int]], at: int) -> tuple[int, dict[str, frozenset[str]]] | None:
        for length in self._lengths.get(tokens[at][0], ()):
            name = " ".join(token for token, _start, _end in tokens[at : at + length])
            kinds = (self._kinds.get(name) or self._parts.get(name)) if _is_name(name) else None
            if kinds:
                last = min(at + length, len(tokens)) - 1
                return last, {kind: frozenset(same) for kind, same in kinds.items()}
        return None


def _dated_rows(facts: Sequence[Fact]) -> dict[str, list[tuple[str, tuple[int | None, int | None, int | None]]]]:
    """By field: the dates that the rows of a list have there, where they differ."""
    found: dict[str, dict[str, tuple[int | None, int | None, int | None]]] = defaultdict(dict)
    text = {id(fact.place): fact.text for fact in facts if fact.text}
    for fact in facts:
        name = fact.place.name.lower()
        if any(fact.date) and not fact.prose and not fact.echo and not fact.asked and name in fact.place.row.names:
            written = plain_name(text.get(id(fact.place), ""))
            if written in fact.place.row.names[name]:
                found[name][written] = fact.date
    return {kind: list(rows.items()) for kind, rows in found.items() if len(rows) > 1}


def is_within(said: tuple[int | None, ...], known: tuple[int | None, ...]) -> bool:
    return all(part in (None, have) for part, have in zip(said, known, strict=True))


def _plain(word: str) -> str:
    return word.lower().replace("’", "'").removesuffix("'s")


def _is_name(name: str) -> bool:
    return len(name) >= _LEAST_LETTERS and any(char.isalpha() for char in name)


def _lies_in(start: int, end: int, spans: list[tuple[int, int]]) -> bool:
    """Whether one of the spans, which are in order, has all of a place."""
    at = bisect_left(spans, (start + 1, 0)) - 1
    return at >= 0 and spans[at][0] <= start and end <= spans[at][1]
