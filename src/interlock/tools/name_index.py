"""Which of the known values a text names: exact names first, then whole words, then small misspellings.

The names are read once, however many texts are held against them, and one text costs no more than it and the names are
long: words are looked up, not compared with every word of every name.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_DIGITS = re.compile(r"\d+")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
# "All but Miller" must not become Miller.
_NOT = re.compile(r"\b(?:not|no|except|without|but|other than|none|never|all|any|anything|everything)\b", re.I)
_MINUS = re.compile(r"(?:^|\s)[-−]\d")
_TELLING_MARKS = frozenset("<>#+=!*~^&|%")
_PLAIN = frozenset(
    {"a", "an", "and", "at", "for", "in", "is", "my", "near", "of", "on", "our", "please", "the", "this"}
)
"""Words that may stand beside a name and make no other one of it."""
_MOST_MISSPELLED = 16
"""A name of more words is not looked at for misspellings."""
_COMPARED = 80
"""So much of a text is compared with names to find the nearest."""


class _Name(NamedTuple):
    """One of the names of a value."""

    value: str
    text: str
    bare: str
    words: frozenset[str]


class NameIndex:
    """Values and everything they are called, by their words."""

    def __init__(self, known: Mapping[str, Sequence[str]], kinds: frozenset[str] = frozenset()) -> None:
        """`kinds`: words that say what the values are ("street"); they make no other thing of a name."""
        self._order = {value: place for place, value in enumerate(known)}
        self._plain = _PLAIN | kinds
        self._names: list[_Name] = []
        self._exact: dict[str, list[int]] = defaultdict(list)
        self._joined: dict[str, list[int]] = defaultdict(list)
        self._with_word: dict[str, list[int]] = defaultdict(list)
        for value, names in known.items():
            for text in dict.fromkeys(names):
                self._add(value, text)
        self._by_rarest: dict[str, list[int]] = defaultdict(list)
        """Names by the one of their words that the fewest have: it must have been said, if the whole name was."""
        for place, name in enumerate(self._names):
            if len(name.words) > 1:
                self._by_rarest[min(name.words, key=self._count)].append(place)

    def _add(self, value: str, text: str) -> None:
        place, bare = len(self._names), normalize(text)
        name = _Name(value, text, bare, frozenset(bare.split()))
        self._names.append(name)
        self._exact[bare].append(place)
        self._joined[bare.replace(" ", "")].append(place)
        for word in name.words:
            self._with_word[word].append(place)

    def _count(self, word: str) -> int:
        return len(self._with_word.get(word, ()))

    def match(self, said: str) -> tuple[str, ...]:
        """The values that a text can mean: one, several, or none."""
        wanted = normalize(said)
        if not wanted:
            return ()
        marks = _find_signs(said)
        exact = [self._names[n].value for n in self._exact.get(wanted, ()) if _find_signs(self._names[n].text) == marks]
        # Beyond exact names only plain words are guessed at: "not Mill" and C# are near a name and mean another thing.
        if exact or marks or _NOT.search(said):
            return self._in_order(exact)
        return self._within(wanted) or self._alike(wanted)

    def _in_order(self, values: Sequence[str]) -> tuple[str, ...]:
        return tuple(sorted(dict.fromkeys(values), key=self._order.__getitem__))

    def _has_digits_of(self, wanted: str, name: _Name) -> bool:
        """Other digits are another thing, however alike the words are."""
        return set(_DIGITS.findall(wanted)) <= set(_DIGITS.findall(name.bare))

    def _within(self, wanted: str) -> tuple[str, ...]:
        """Every word that was said belongs to the name, or the whole name was said among words that tell nothing."""
        said = set(wanted.split())
        if not any(len(word) > 2 for word in said):
            return ()
        having = [self._names[place] for place in self._with_word.get(min(said, key=self._count), ())]
        found = [name for name in having if said <= name.words]
        named = [self._names[place] for word in said for place in self._by_rarest.get(word, ())]
        # Any other word makes it another thing: "Old Mill Road" is not the Mill Road.
        whole = [name for name in named if name.words <= said and said - name.words <= self._plain]
        found += [name for name in whole if any(len(word) > 3 for word in name.words)]
        return self._in_order([name.value for name in found if self._has_digits_of(wanted, name)])

    def _alike(self, wanted: str) -> tuple[str, ...]:
        """Small misspellings: each word is one of the name's but for a letter or two; those with the fewest."""
        off = self._count_misspellings(wanted) | dict.fromkeys(self._joined.get(wanted.replace(" ", ""), ()), 0)
        near = {place: count for place, count in off.items() if self._has_digits_of(wanted, self._names[place])}
        fewest = min(near.values(), default=0)
        return self._in_order([self._names[place].value for place, count in near.items() if count == fewest])

    def _count_misspellings(self, wanted: str) -> dict[int, int]:
        """For each name that every word of a text stands for one of, how many letters are wrong in all."""
        words = wanted.split()
        if len(words) > _MOST_MISSPELLED:
            return {}
        total: dict[int, int] | None = None
        for word, times in Counter(words).items():
            best: dict[int, int] = {}
            for other, letters in self._close_words(word).items():
                for place in self._with_word[other]:
                    best[place] = min(letters, best.get(place, letters))
            before = dict.fromkeys(best, 0) if total is None else total
            total = {place: before[place] + times * best[place] for place in before if place in best}
            if not total:
                break
        return total or {}

    def _close_words(self, word: str) -> dict[str, int]:
        """The words of names that a word can be a misspelling of, and how many letters are wrong."""
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        most = 0 if len(word) < 4 else 1 if len(word) < 9 else 2  # short words are one letter from too many others
        if not most:
            return {word: 0} if word in self._with_word else {}
        found = process.extract(word, list(self._with_word), scorer=OSA.distance, score_cutoff=most, limit=None)
        return {other: int(letters) for other, letters, _ in found}

    def nearest(self, said: str, count: int) -> tuple[str, ...]:
        """The values whose names look most like a text, best first."""
        from rapidfuzz import fuzz, process

        bare = [name.bare for name in self._names]
        wanted = normalize(said[:_COMPARED])
        best: dict[str, float] = {}
        for _, score, place in process.extract(wanted, bare, scorer=fuzz.token_set_ratio, limit=None):
            best.setdefault(self._names[place].value, score)
        return tuple(sorted(best, key=lambda value: (-best[value], self._order[value]))[:count])


def kind_words(field: str) -> frozenset[str]:
    """What an argument's name says about its values: `street_id` is about a street, or several streets."""
    words = [word for word in normalize(field).split() if word != "id"]
    return frozenset(form for word in words for form in (word, f"{word}s"))


def _find_signs(text: str) -> frozenset[str]:
    """Marks that make it another thing: C and C#, 5 and -5, x < 5 and x > 5."""
    found = set(text) & _TELLING_MARKS
    return frozenset(found | ({"-"} if _MINUS.search(text) else set()))


def normalize(text: str) -> str:
    """Lower case, no accents, words with single spaces."""
    bare = text.casefold()
    if not bare.isascii():
        bare = "".join(c for c in unicodedata.normalize("NFKD", bare) if not unicodedata.combining(c))
    return " ".join(_BETWEEN_WORDS.sub(" ", bare).split())
