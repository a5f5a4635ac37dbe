"""Facts by what a claim can ask for: what is looked at for one claim has a bound, however much was returned."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import product
from math import isfinite

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact
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
# Where a link, a mail address or a reference can begin. Bounded, so that a long word is not gone over twice.
_BEGINNING = re.compile(
    r"https?://|(?<![\w.+-])(?=[\w.+-]{1,64}@)|record (?=\d)|(?<![\w.@-])(?=(?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,24}\b)"
)
_LETTER_BY_LETTER = ("url", "mail", "reference")


class FactIndex:
    """Facts, found by the claims of one answer.

    Texts are gone over once, for all claims together; numbers are sorted, dates and times kept by their value.
    """

    def __init__(
        self,
        said: Sequence[Claim],
        known: Iterable[Fact],
        magnitudes: Iterable[int],
        measures: Measures,
        named: Container[tuple[str, str]] = (),
    ) -> None:
        self._wanted, self._named = _Wanted(said), named
        """`named`: the things that the answer speaks of, by kind and name. Their values are hidden by no others."""
        self._measures = measures
        self._units: set[str] = set()
        self._powers = tuple(sorted({power for power in magnitudes if power > 0}))
        self._by: dict[object, list[Fact]] = defaultdict(list)
        self._alike: Counter[object] = Counter()
        self._numbers: list[Fact] = []
        for fact in known:
            self._add(fact)
        # Without the sign: "fell by 40" may stand for -40.
        sized = sorted((abs(float(fact.number or 0)), place) for place, fact in enumerate(self._numbers))
        self._sizes, self._places = [size for size, _ in sized], [place for _, place in sized]

    def _add(self, fact: Fact) -> None:
        if fact.number is not None:
            self._units |= fact.units
            # Of each unit some: the same figure in acres a hundred times must not hide the one in miles.
            kind = (abs(fact.number), fact.units, fact.money, fact.label, fact.counted, fact.echo, fact.place.name)
            self._alike[kind] += 1
            if self._alike[kind] <= _MOST_ALIKE // 4 or self._is_named(fact):
                self._numbers.append(fact)
                self._keep(("number", abs(fact.number)), fact)
            if (written := str(fact.number)) in self._wanted.parts:
                self._keep(("part", written), fact)
        elif fact.minutes is not None:
            self._keep(("time", fact.minutes), fact)
        elif any(part is not None for part in fact.date):
            # One-sided: an answer may say less than the result (August 2022), but not a day that it does not have.
            for date in product(*((part, None) if part is not None else (None,) for part in fact.date)):
                self._keep(("date", date), fact)
        else:
            for key in self._wanted.find_keys(fact.text):
                self._keep(key, fact)

    def _keep(self, key: object, fact: Fact) -> None:
        kept = self._by[key]
        if len(kept) < _MOST_ALIKE or (len(kept) < _MOST_NAMED and self._is_named(fact)):
            kept.append(fact)

    def _is_named(self, fact: Fact) -> bool:
        names = fact.place.row.names.items()
        return any((kind, name) in self._named for kind, same in names for name in same)

    def near_number(self, claim: Claim) -> list[Fact]:
        """The facts that may stand behind a figure: equal to it, or within what rounding moves it by."""
        assert claim.number is not None
        said = abs(claim.number)
        # The value as it is, a share said in percent, fields in thousands, millions and billions.
        powers = (0, *((2,) if "percent" in claim.units else ()), *(self._powers if claim.digits is not None else ()))
        found: dict[int, Fact] = {}
        for power in powers:
            middle = said.scaleb(-power)
            found |= {id(fact): fact for fact in self._by.get(("number", middle), ())}
            found |= {id(fact): fact for fact in self._within(middle, claim.reach.scaleb(-power))}
        for unit in self._units - claim.units:
            for middle in self._measures.convert(claim.number, claim.units, frozenset({unit})):
                [far] = list(self._measures.convert(claim.number + claim.reach, claim.units, frozenset({unit})))[:1]
                found |= {id(fact): fact for fact in self._within(abs(middle), abs(far - middle))}
        if claim.ordinal and said <= _LAST_DAY:
            found |= {id(fact): fact for fact in self._by.get(("date", (None, None, int(said))), ())}
        if _YEARS[0] <= said <= _YEARS[1] and said == int(said):
            found |= {id(fact): fact for fact in self._by.get(("date", (int(said), None, None)), ())}
        return list(found.values())

    def between(self, low: Decimal, high: Decimal) -> list[Fact]:
        """Facts whose figure lies between two others; of many, those around the middle."""
        return list(self._within((low + high) / 2, (high - low) / 2))

    def _within(self, middle: Decimal, reach: Decimal) -> Iterator[Fact]:
        size, wide = float(middle), float(reach) + float(middle) * 1e-9
        if not isfinite(size) or not isfinite(wide):
            return
        at = bisect_left(self._sizes, size)
        first = max(bisect_left(self._sizes, size - wide), at - _MOST_ALIKE // 2)
        last = min(bisect_right(self._sizes, size + wide), at + _MOST_ALIKE // 2)
        # In the order in which they were read, as the first of those that are equally good is named.
        for place in sorted(self._places[first:last]):
            yield self._numbers[place]

    def exact(self, claim: Claim) -> list[Fact]:
        """The facts that stand behind a claim that is no figure."""
        if claim.kind == "time":
            assert claim.minutes is not None
            # "3:20" and "half past nine" are said of the morning and of the afternoon.
            later = self._by.get(("time", claim.minutes + 720), []) if claim.either else []
            return [*self._by.get(("time", claim.minutes), ()), *later]
        if claim.kind == "date":
            year, month, day = claim.date
            turned = self._by.get(("date", (year, day, month)), []) if claim.either else []
            return [*self._by.get(("date", claim.date), ()), *turned]
        if claim.kind == "phone":
            return self._by.get(("digits", _only_digits(claim.text)), [])
        word, number = _part_of(claim)
        # Section 14.2, where a field `section` says 14.2.
        parts = [fact for fact in self._by.get(("part", number), ()) if word[:4] in fact.place.name.lower()]
        return [*parts, *(fact for key in _keys(claim) for fact in self._by.get(key, ()))]


class _Wanted:
    """What the claims of an answer ask texts for."""

    def __init__(self, said: Sequence[Claim]) -> None:
        texts = [claim for claim in said if claim.number is None and claim.kind not in ("date", "time", "weekday")]
        keys = {key for claim in texts for key in _keys(claim)}
        self.parts = {number for claim in texts if (number := _part_of(claim)[1])}
        self._phones = {_only_digits(claim.text) for claim in texts if claim.kind == "phone"}
        self._phrases = {words for kind, words in keys if kind == "words"}
        self._first_words = {words.partition(" ")[0] for words in self._phrases}
        self._lengths = sorted({words.count(" ") + 1 for words in self._phrases})
        self._letters = {letters for kind, letters in keys if kind == "letters"}
        self._letter_counts = sorted({len(letters) for letters in self._letters})

    def find_keys(self, text: str) -> Iterator[tuple[str, str]]:
        """The keys of what stands in a text. Each word is looked at once for each length that a phrase has."""
        if text in self.parts:
            yield ("part", text)
        if self._phones and any(char.isdigit() for char in text):
            digits = _only_digits(text)
            yield from (("digits", phone) for phone in self._phones if phone in digits)
        if self._phrases:
            yield from (("words", phrase) for phrase in dict.fromkeys(self._find_phrases(text)))
        if self._letters:
            yield from (("letters", letters) for letters in dict.fromkeys(self._find_letters(text.lower())))

    def _find_phrases(self, text: str) -> Iterator[str]:
        words = _BARE.sub(" ", text.lower()).split()
        for start, word in enumerate(words):
            if word in self._first_words:
                for length in self._lengths:
                    phrase = " ".join(words[start : start + length])
                    if phrase in self._phrases:
                        yield phrase

    def _find_letters(self, text: str) -> Iterator[str]:
        for match in _BEGINNING.finditer(text):
            start = match.start()
            for count in self._letter_counts:
                # Not as the beginning of more: record 1 is not supported by record 12.
                letters, following = text[start : start + count], text[start + count : start + count + 1]
                if letters in self._letters and not following.isalnum():
                    yield letters


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
