"""Facts by what a claim can ask for: what is looked at for one claim has a bound, however much was returned."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from decimal import Decimal
from math import isfinite

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.known_values import KnownNumbers, KnownTexts, places_of_dates, places_of_times
from interlock.answers.grounding.measures import Measures

_MOST_ALIKE = 64
"""So many facts are held against one claim for each way of finding them. Those that differ in no more than their path
were read once, so a table of thousands of rows has few; of those that are left the nearest in value are taken."""
_MOST_NAMED = 512
"""And so many of things that the answer names."""
_MOST_WORDS = 16
"""A longer identifier or citation is looked for nowhere, and so is unsupported."""
_YEARS = (1900, 2100)
_LAST_DAY = 31
_BARE = re.compile(r"[\W_]+")
_NAMED_PART = re.compile(r"(?P<word>[A-Za-z]+)\.?\s+(?P<number>\S+)")
_ZERO = Decimal(0)
_LETTER_BY_LETTER = ("url", "mail", "reference")


class FactIndex:
    """Facts, found by the claims of one answer. What is the same for every answer is kept with the facts."""

    def __init__(
        self,
        known: Sequence[Fact],
        magnitudes: Iterable[int],
        measures: Measures,
        named: Container[tuple[str, str]] = (),
    ) -> None:
        self._facts, self._named = known, named
        """`named`: the things that the answer speaks of, by kind and name. Their values are hidden by no others."""
        self._measures = measures
        self._numbers = once(known, KnownNumbers)
        self._powers = tuple(sorted({power for power in magnitudes if power > 0}))
        self._of_size: dict[float, list[int]] = {}

    def _is_named(self, fact: Fact) -> bool:
        names = fact.place.row.names.items()
        return any((kind, name) in self._named for kind, same in names for name in same)

    def _some(self, places: Sequence[int]) -> list[Fact]:
        """The first of them, and of things that the answer names some more."""
        found = [self._facts[place] for place in places[:_MOST_ALIKE]]
        for place in places[_MOST_ALIKE:]:
            if len(found) >= _MOST_NAMED:
                break
            if self._is_named(self._facts[place]):
                found.append(self._facts[place])
        return found

    def _numbers_of(self, size: float) -> list[int]:
        """The places of the numbers of a size. Of each unit some: the same figure in acres a hundred times must not
        hide the one in miles."""
        found = self._of_size.get(size)
        if found is None:
            found = self._numbers.of_size.get(size, [])
            if len(found) > _MOST_ALIKE // 4:
                found = self._drop_alike(found)
            self._of_size[size] = found
        return found

    def _drop_alike(self, places: Sequence[int]) -> list[int]:
        alike: Counter[object] = Counter()
        found = []
        for place in places:
            fact = self._facts[place]
            assert fact.number is not None
            kind = (abs(fact.number), fact.units, fact.money, fact.label, fact.counted, fact.echo, fact.place.name)
            alike[kind] += 1
            if alike[kind] <= _MOST_ALIKE // 4 or self._is_named(fact):
                found.append(place)
        return found

    def near_number(self, claim: Claim) -> list[Fact]:
        """The facts that may stand behind a figure: equal to it, or within what rounding moves it by."""
        assert claim.number is not None
        said = abs(claim.number)
        # The value as it is, a share said in percent, fields in thousands, millions and billions.
        powers = (0, *((2,) if "percent" in claim.units else ()), *(self._powers if claim.digits is not None else ()))
        found: dict[int, Fact] = {}
        for power in powers:
            middle = said.scaleb(-power)
            found |= {id(fact): fact for fact in self._equal(middle)}
            found |= {id(fact): fact for fact in self._within(middle, claim.reach.scaleb(-power))}
        for unit in self._numbers.units - claim.units if claim.units else ():
            for middle in self._measures.convert(claim.number, claim.units, frozenset({unit})):
                [far] = list(self._measures.convert(claim.number + claim.reach, claim.units, frozenset({unit})))[:1]
                found |= {id(fact): fact for fact in self._within(abs(middle), abs(far - middle))}
        if claim.ordinal and said <= _LAST_DAY:
            found |= {id(fact): fact for fact in self._with_date((None, None, int(said)))}
        if _YEARS[0] <= said <= _YEARS[1] and said == int(said):
            found |= {id(fact): fact for fact in self._with_date((int(said), None, None))}
        return list(found.values())

    def between(self, low: Decimal, high: Decimal) -> list[Fact]:
        """Facts whose figure lies between two others; of many, those around the middle."""
        return list(self._within((low + high) / 2, (high - low) / 2))

    def _equal(self, said: Decimal) -> list[Fact]:
        places = self._numbers_of(float(said))
        return self._some([place for place in places if abs(self._facts[place].number or _ZERO) == said])

    def _within(self, middle: Decimal, reach: Decimal) -> Iterator[Fact]:
        size, wide = float(middle), float(reach) + float(middle) * 1e-9
        if not isfinite(size) or not isfinite(wide):
            return
        sizes = self._numbers.sizes
        at = bisect_left(sizes, size)
        below: list[int] = []
        for n in range(at - 1, -1, -1):
            if sizes[n] < size - wide or len(below) >= _MOST_ALIKE // 2:
                break
            below = [*self._numbers_of(sizes[n]), *below]
        above: list[int] = []
        for n in range(at, len(sizes)):
            if sizes[n] > size + wide or len(above) >= _MOST_ALIKE // 2:
                break
            above += self._numbers_of(sizes[n])
        # In the order in which they were read, as the first of those that are equally good is named.
        for place in sorted([*below[-(_MOST_ALIKE // 2) :], *above[: _MOST_ALIKE // 2]]):
            yield self._facts[place]

    def _with_date(self, date: tuple[int | None, int | None, int | None]) -> list[Fact]:
        return self._some(once(self._facts, places_of_dates).get(date, []))

    def _with_time(self, minutes: int) -> list[Fact]:
        return self._some(once(self._facts, places_of_times).get(minutes, []))

    def exact(self, claim: Claim) -> list[Fact]:
        """The facts that stand behind a claim that is no figure."""
        if claim.kind == "time":
            assert claim.minutes is not None
            # "3:20" and "half past nine" are said of the morning and of the afternoon.
            later = self._with_time(claim.minutes + 720) if claim.either else []
            return [*self._with_time(claim.minutes), *later]
        if claim.kind == "date":
            year, month, day = claim.date
            turned = self._with_date((year, day, month)) if claim.either else []
            return [*self._with_date(claim.date), *turned]
        texts = once(self._facts, KnownTexts)
        if claim.kind == "phone":
            return self._some(texts.with_digits(_only_digits(claim.text)))
        found: list[Fact] = []
        word, number = _part_of(claim)
        if number:  # Section 14.2, where a field `section` says 14.2
            parts = self._some(sorted([*self._numbers.places_of(number, self._facts), *texts.places_of(number)]))
            found += [fact for fact in parts if word[:4] in fact.place.name]
        for kind, said in _keys(claim):
            found += self._some(texts.with_letters(said) if kind == "letters" else texts.with_words(said))
        return found


def _keys(claim: Claim) -> tuple[tuple[str, str], ...]:
    """What a text has to hold for a claim: letter by letter, or as words, whatever the punctuation between them."""
    if claim.kind in _LETTER_BY_LETTER:
        return (("letters", claim.text.lower()),)
    words = _BARE.sub(" ", claim.text.lower()).split()  # "CASE-2024-17" is what the result calls CASE_2024_17
    if not words or len(words) > _MOST_WORDS:
        return ()
    return tuple(("words", said) for said in dict.fromkeys((" ".join(words), "".join(words))))


def _only_digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())


def _part_of(claim: Claim) -> tuple[str, str]:
    """The kind of a part of a document, and its number: section, 14.2."""
    match = _NAMED_PART.fullmatch(claim.text) if claim.kind == "citation" else None
    return ("", "") if match is None else (match["word"].lower(), match["number"])
