"""What all facts of a turn hold, by number, date, time and word: worked out once, and asked by each claim."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from itertools import product

from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_kinds import places_of

_BARE = re.compile(r"[\W_]+")
# Where a link, a mail address or a reference can begin. Bounded, so that a long word is not gone over twice.
_BEGINNING = re.compile(
    r"https?://|(?<![\w.+-])(?=[\w.+-]{1,64}@)|record (?=\d)|(?<![\w.@-])(?=(?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,24}\b)"
)
_ZERO = Decimal(0)
Date = tuple[int | None, int | None, int | None]


class KnownNumbers:
    """The places of all numbers, by their size without the sign: "fell by 40" may stand for -40."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.of_size: dict[float, list[int]] = defaultdict(list)
        units: set[frozenset[str]] = set()
        for place in places_of(facts, "number"):
            fact = facts[place]
            assert fact.number is not None
            self.of_size[abs(float(fact.number))].append(place)
            units.add(fact.units)
        self.sizes = sorted(self.of_size)
        self.units = frozenset[str]().union(*units)

    def places_of(self, number: str, facts: Sequence[Fact]) -> list[int]:
        """The places of those that are written so: 14.20 is another section than 14.2."""
        try:
            size = abs(float(Decimal(number)))
        except InvalidOperation:
            return []
        return [place for place in self.of_size.get(size, ()) if str(facts[place].number) == number]


def places_of_dates(facts: Sequence[Fact]) -> dict[Date, list[int]]:
    """By date, and by what may be said of it: an answer may say less than the result (August 2022), but not a day that
    it does not have."""
    found: dict[Date, list[int]] = defaultdict(list)
    for place in places_of(facts, "date"):
        year, month, day = ((part, None) if part is not None else (None,) for part in facts[place].date)
        for date in product(year, month, day):
            found[date].append(place)
    return found


def places_of_times(facts: Sequence[Fact]) -> dict[int, list[int]]:
    """By minute of the day."""
    found: dict[int, list[int]] = defaultdict(list)
    for place in places_of(facts, "time"):
        minutes = facts[place].minutes
        assert minutes is not None
        found[minutes].append(place)
    return found


class KnownTexts:
    """The texts of all facts: each is looked through once, however many facts have it and claims ask for it."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._places: dict[str, list[int]] = defaultdict(list)
        for place in places_of(facts, "text"):
            self._places[facts[place].text].append(place)
        self._texts = list(self._places)
        self._of_word: dict[str, list[int]] | None = None
        self._beginnings: list[tuple[int, str, list[int]]] | None = None
        self._digits: tuple[str, list[int], list[int]] | None = None
        self._found: dict[str, list[int]] = {}

    def places_of(self, text: str) -> Sequence[int]:
        """Where a text stands as a whole."""
        return self._places.get(text, ())

    def with_words(self, phrase: str) -> list[int]:
        """Where texts stand that have these words one behind another, whatever the punctuation between them."""
        key = f"words {phrase}"
        if key not in self._found:
            by_word, words = self._words(), phrase.split(" ")
            rarest = min((by_word.get(word, []) for word in words), key=len)
            self._found[key] = self._all(
                rarest if len(words) == 1 else [n for n in rarest if f" {phrase} " in f" {_plain(self._texts[n])} "]
            )
        return self._found[key]

    def with_letters(self, letters: str) -> list[int]:
        """Where texts stand that have a link, an address or a reference letter by letter; not as the beginning of more:
        record 1 is not supported by record 12."""
        key = f"letters {letters}"
        if key not in self._found:
            self._found[key] = self._all(
                [
                    number
                    for number, text, starts in self._all_beginnings()
                    if letters in text
                    and any(
                        text.startswith(letters, start)
                        and not text[start + len(letters) : start + len(letters) + 1].isalnum()
                        for start in starts
                    )
                ]
            )
        return self._found[key]

    def with_digits(self, digits: str) -> list[int]:
        """Where texts stand that have these digits one behind another, whatever stands between them."""
        if self._digits is None:
            self._digits = _join_digits(self._texts)
        joined, starts, numbers = self._digits
        found, at = [], joined.find(digits) if digits else -1
        while at >= 0:
            line = bisect_right(starts, at) - 1
            found.append(numbers[line])
            at = joined.find(digits, starts[line + 1]) if line + 1 < len(starts) else -1
        return self._all(found)

    def _all(self, numbers: Sequence[int]) -> list[int]:
        return sorted(place for number in numbers for place in self._places[self._texts[number]])

    def _words(self) -> dict[str, list[int]]:
        if self._of_word is None:
            found: dict[str, list[int]] = defaultdict(list)
            for number, text in enumerate(self._texts):
                for word in dict.fromkeys(_plain(text).split()):
                    found[word].append(number)
            self._of_word = found
        return self._of_word

    def _all_beginnings(self) -> list[tuple[int, str, list[int]]]:
        if self._beginnings is None:
            lowered = ((number, text.lower()) for number, text in enumerate(self._texts))
            found = (
                (number, text, [match.start() for match in _BEGINNING.finditer(text)])
                for number, text in lowered
                if "." in text or "@" in text or "record " in text or "://" in text
            )
            self._beginnings = [one for one in found if one[2]]
        return self._beginnings


def _plain(text: str) -> str:
    return " ".join(_BARE.sub(" ", text.lower()).split())


def _join_digits(texts: Sequence[str]) -> tuple[str, list[int], list[int]]:
    """The digits of all texts, a line for each that has any; where the lines begin, and whose they are."""
    lines, starts, numbers, at = [], [], [], 0
    for number, text in enumerate(texts):
        digits = "".join(char for char in text if char.isdigit())
        if digits:
            lines.append(digits)
            starts.append(at)
            numbers.append(number)
            at += len(digits) + 1
    return "\n".join(lines), starts, numbers
