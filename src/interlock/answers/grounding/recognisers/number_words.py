"""Figures in words: one hundred and twenty thousand, half a million, three dozen, twenty twenty-four, minus forty."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.patterns import Hints, begins_with, compile_table, one_of
from interlock.answers.grounding.recognisers.markers import blank
from interlock.answers.grounding.recognisers.numbers import Numbers, spoken_units
from interlock.answers.grounding.recognisers.unread import UNREAD
from interlock.answers.grounding.trigger_words import TriggerWords
from interlock.answers.grounding.units import UnitTable

_SPLIT = re.compile(r"[\s-]+")
_NAME_SPLIT = re.compile(r"[_\W]+")
_ARTICLE = re.compile(r"an?\s(?P<next>[a-z]+)", re.I)
_AND = re.compile(r"\s+and\s+", re.I)
_PLUS = re.compile(r"\splus\s", re.I)
_HUNDRED, _TEN = 100, 10
_CENTURIES = (18, 19, 20)
_FINE_HALF = Decimal("0.1")
_LEAST = 2
"""From two on: "one" is more often a pronoun."""


_SINGLE = (
    "minute|hour|day|week|month|year|mile|kilometre|kilometer|dollar|euro|pound|hectare|acre|ton|tonne|litre|liter"
    "|gallon"
)


_PARTS_OF_UNITS = ("quarter", "third")
_PARTED = {"hour": (60, "minutes"), "year": (12, "months")}
_ODD = ("few ", "several ", "some ", "many ", "score", "every ", "grand", "tenner", "fiver")
_SHORT_LEAD, _SHORT = 40, 2
_ONE_OF_A_UNIT = re.compile(
    r"(?:\b(?P<near>nearly|almost|about|over|around|roughly|under|within|than|another)\s"
    r"|\b(?P<lead>for|in|after|takes?|took|lasts?|lasted|needs?|is|was|be|runs?)\s)?"
    rf"\b(?P<said>(?:an?|one)\s(?:(?:(?P<whole>full|whole|entire)|good|further|single)\s)?(?P<unit>{_SINGLE}))\b"
    r"(?:(?P<off>\s(?:late|later|earlier|early|ahead|behind|ago|overdue|longer|shorter|more|less|old|away|after|before|"
    r"from now|in advance|apart|too)\b)|(?P<end>\s?(?:[.,;:!?)]|$)|\s(?:and|but|or|from|to|on|at|until)\b))?",
    re.I,
)
_A_UNIT = re.compile(rf"\s{one_of(_SINGLE.split('|'))}\b", re.I)
_A_RATE = re.compile(
    r"(?:\x00|\d|\b(?:times|once|twice|euros|dollars|pounds))\W?\s?(?:(?!is|was|are|runs|will)[a-z]+\s)?$", re.I
)
"""What stands before "a month" where it says how often or how much: 39 euros a month, twice in a week."""


def _unclear_quantities(patterns: Sequence[str]) -> tuple[re.Pattern[str], TriggerWords]:
    """What says how many, and is no number: a few dozen, half six; and the words without which there is none."""
    for pattern in patterns:
        compile_table(pattern, "numbers.unclear")
    unclear, triggers = re.compile(rf"\b(?:{'|'.join(patterns)})(?!\w)", re.I), TriggerWords(short=_SHORT)
    triggers.add(unclear)
    return unclear, triggers


def _mixed_numbers(words: Iterable[str], unit: str) -> re.Pattern[str]:
    """Three and three quarter hours: a whole number, and parts of the same unit."""
    return re.compile(
        rf"\b(?P<count>{'|'.join(words)})\s+and\s+(?P<n>an?|one|two|three)[\s-](?P<part>quarters?|thirds?)\b"
        rf"(?:[\s-](?P<unit>{unit})\b)?",
        re.I,
    )


class NumberWords:
    """Numbers in words; parts and multiples of something else are a `ratio`, and places in an order an `ordinal`."""

    def __init__(self, table: Mapping[str, Any], units: UnitTable, numbers: Numbers) -> None:
        self._words: dict[str, int] = table["words"]
        self._large: dict[str, int] = table["large"]
        self._parts: dict[str, int] = table["parts"]
        self._multiples: dict[str, int] = table["multiples"]
        self._groups: dict[str, int] = table["groups"]
        self._ordinals = ordinal_words(table)
        self.small = (*self._words, "hundred")
        """The words that a figure below a thousand is made of."""
        self._units, self._numbers = units, numbers
        word = one_of([*self._words, *self._large])
        several = {*self._words, *self._large, *self._parts, *self._multiples, *self._ordinals, *self._groups, "half"}
        self._any = Hints([*several, "third", "quarter", "single", *_ODD, *_SINGLE.split("|")])
        self._hints = Hints([*self._words, *self._large])
        self._grouped = Hints(self._groups)
        self._unclear, self._unsure = _unclear_quantities(table["unclear"]["patterns"])
        self._shared = Hints([*self._parts, *self._multiples])
        self._ordered = Hints({name.rpartition("-")[2] for name in self._ordinals})
        unit = spoken_units(units)
        self._halves = re.compile(
            rf"\b(?:(?P<count>an?(?P<good>\s+good)?|{'|'.join(self._words)})\s+(?:(?P<first>{unit})\s+)?)?(?P<and>and\s+)?(?:a\s+|an\s+)?half(?!way)(?:\s+an?\b)?"
            rf"(?:[\s-](?P<unit>{unit}|dozen|million|billion|thousand|hundred)\b)?",
            re.I,
        )
        self._pattern = re.compile(
            rf"{begins_with(['minus', 'negative', 'a', *self._words, *self._large])}"
            rf"\b(?P<sign>minus\s|negative\s)?(?P<word>(?:an?\s)?(?:{word})(?:(?:[\s-]{{1,4}}(?:and\s{{1,4}}|plus\s{{1,4}})?)(?:{word}))*)"
            rf"(?:\spoint(?P<places>(?:\s(?:{'|'.join(self._words)})){{1,8}}))?\b(?:[\s-](?P<unit>{unit})\b)?",
            re.I,
        )
        parts = "|".join(self._parts)
        self._large_parts = re.compile(
            r"\b(?:(?P<n>a|one|two|three)\s)?(?P<part>quarters?|thirds?) of an? "
            rf"(?P<whole>thousand|million|billion|{_SINGLE})\b",
            re.I,
        )
        self._mixed = _mixed_numbers(self._words, unit)
        self._shares = re.compile(
            rf"\b(?:(?P<n>an?|{'|'.join(self._words)})[\s-])(?P<part>{parts})\b(?!-)(?!\s(?:of\s(?:19|20)\d\d|year))"
            rf"|\b(?P<multiple>{'|'.join(self._multiples)})\b",
            re.I,
        )
        self._group = re.compile(
            rf"\ban?\s(?P<group>{'|'.join(self._groups)})(?!\s(?:is|who|with|has)\b)(?:\sof)?\b(?:\s(?P<unit>{unit})\b)?",
            re.I,
        )
        self._order = re.compile(
            rf"\b(?=[otyhimaef])(?:(?:on|the|your|his|her|its|our|their|my|a|an|this|that|every|for)\s(?P<n>{'|'.join(self._ordinals)}))\b(?![\s-](?:party|hand|class|person)\b|(?<=first)\stime\b)",
            re.I,
        )

    def find(self, text: str) -> Iterator[Claim]:
        if not self._any.are_in(text.lower()):
            return
        written, all_found = text, list[Claim]()
        for find in (
            self._find_unclear,
            self._find_groups,
            self._find_mixed,
            self._find_halves,
            self._find_large_parts,
            self._find_shares,
            self._find_order,
            self._find_numbers,
            self._find_single,
        ):
            found = list(find(text))
            all_found += found
            text = blank(text, [(claim.start, claim.end) for claim in found])
        for claim in sorted(all_found, key=lambda claim: claim.start):
            context = self._numbers.context(written, claim.start)
            step = self._step_about(claim) if context.about else claim.step
            yield replace(claim, about=context.about, bound=context.bound, falls=context.falls, step=step)

    def _step_about(self, claim: Claim) -> Decimal:
        """How finely a figure is said behind "about": two and a half to the half, three quarters to the quarter."""
        part = next((one for one in _PARTS_OF_UNITS if one in claim.text.lower()), None)
        whole = next((one for one in _PARTED if one in claim.text.lower()), None)
        if part is not None and whole is not None:
            return Decimal(_PARTED[whole][0]) / self._parts[part]
        return claim.step * 5 if claim.step == _FINE_HALF else claim.step

    def _find_mixed(self, text: str) -> Iterator[Claim]:
        """Three and three quarter hours, two and a third miles."""
        for match in self._mixed.finditer(text) if self._shared.are_in(text.lower()) else ():
            part = self._parts[match["part"].lower()]
            number = self._words[match["count"].lower()] + Decimal(self._words.get(match["n"].lower(), 1)) / part
            unit = (match["unit"] or "").lower()
            size, unit = _PARTED.get(unit.removesuffix("s"), (1, unit))
            step = Decimal("0.01") if size == 1 else Decimal(1)
            units = self._units.of(unit)
            yield Claim("number", match[0], match.start(), match.end(), number=number * size, step=step, units=units)

    def _find_halves(self, text: str) -> Iterator[Claim]:
        """Two and a half hours, half an hour, half a dozen, half of them."""
        for match in self._halves.finditer(text) if "half" in text.lower() else ():
            said = (match["count"] or "").lower()
            count = 1 if said not in self._words and said and match["and"] else self._words.get(said, 0)
            if count and not match["and"]:
                continue  # "one half": a share
            unit = (match["unit"] or match["first"] or "").lower()
            scale = 12 if unit == "dozen" else self._large.get(unit, 1)
            half = Decimal("0.5") * scale if not count else (count + Decimal("0.5")) * scale
            units = self._units.of(unit) if scale == 1 else self._units.of("")
            # "A good" before it says that it is more.
            start = match.end("good") + 1 if match["good"] and count else match.start()
            said_as = text[start : match.end()]
            if text[match.end() :].lstrip().lower().startswith(("past", "-past")):
                yield Claim(UNREAD, said_as, start, match.end())
                continue
            whole = bool(units) or scale > 1
            step = Decimal("0.5") * scale
            kind = "number" if whole or count else "ratio"
            yield Claim(kind, said_as, start, match.end(), number=half, step=step / 5, units=units)

    def _find_large_parts(self, text: str) -> Iterator[Claim]:
        """Three quarters of a million, a quarter of an hour."""
        lower = text.lower()
        for match in self._large_parts.finditer(text) if "quarter" in lower or "third" in lower else ():
            count, whole = self._words.get((match["n"] or "").lower(), 1), match["whole"].lower()
            size, unit = _PARTED.get(whole) or (self._large.get(whole, 1), whole)
            number = Decimal(count * size) / self._parts[match["part"].lower()]
            step = Decimal("0.01") if size == 1 else Decimal(1)
            units = self._units.of(unit)
            yield Claim("number", match[0], match.start(), match.end(), number=number, step=step, units=units)

    def _find_shares(self, text: str) -> Iterator[Claim]:
        for match in self._shares.finditer(text) if self._shared.are_in(text.lower()) else ():
            if match["multiple"]:
                number = Decimal(self._multiples[match["multiple"].lower()])
            else:
                count = 1 if match["n"].lower() in ("a", "an") else self._words[match["n"].lower()]
                part = self._parts[match["part"].lower()]
                if match["part"].lower().endswith("quarter") and match["n"].lower() == "one":
                    continue
                number = Decimal(count) / part
            yield Claim("ratio", match[0], match.start(), match.end(), number=number, step=Decimal("0.01"))

    def _find_unclear(self, text: str) -> Iterator[Claim]:
        """A few dozen, every other week: like a number, and none that could be held against a result."""
        for match in self._unclear.finditer(text) if self._unsure.may_be_in(text) else ():
            yield Claim(UNREAD, match[0], match.start(), match.end())

    def _find_groups(self, text: str) -> Iterator[Claim]:
        """A pair of shoes, a couple of hours."""
        for match in self._group.finditer(text) if self._grouped.are_in(text.lower()) else ():
            number, units = Decimal(self._groups[match["group"].lower()]), self._units.of(match["unit"] or "")
            yield Claim("number", match[0], match.start(), match.end(), number=number, units=units)

    def _find_single(self, text: str) -> Iterator[Claim]:
        """Nearly a month, an hour late, for a year: one of a unit, where it is no rate (39 euros a month)."""
        for match in _ONE_OF_A_UNIT.finditer(text) if _A_UNIT.search(text) is not None else ():
            said = match["near"] or match["off"] or (match["lead"] and match["end"])
            before = text[max(0, match.start() - _SHORT_LEAD) : match.start()]
            counts = match["lead"] not in (None, "in", "for") or _A_RATE.search(before) is None
            if match["whole"] or (said and counts):  # "a full week" is never a rate
                units, place = self._units.of(match["unit"]), match.span("said")
                yield Claim("number", match["said"], *place, number=Decimal(1), units=units)

    def _find_order(self, text: str) -> Iterator[Claim]:
        for match in self._order.finditer(text) if self._ordered.are_in(text.lower()) else ():
            start = match.start("n")
            yield Claim("ordinal", match["n"], start, match.end(), number=Decimal(self._ordinals[match["n"].lower()]))

    def _find_numbers(self, text: str) -> Iterator[Claim]:
        for match in self._pattern.finditer(text) if self._hints.are_in(text.lower()) else ():
            value = self._sum_of(match["word"])
            if value is None:
                yield from self._find_two(text, match)
                continue
            number, step = Decimal(value), Decimal(1)
            if match["places"]:
                digits = [self._words[word] for word in match["places"].lower().split()]
                number += Decimal("0." + "".join(map(str, digits)))
                step = Decimal(1).scaleb(-len(digits))
            units = self._units.of(match["unit"] or "")
            sign = -1 if match["sign"] else 1
            said = number >= _LEAST or match["word"].lower() == "zero" or step < 1 or match["sign"]
            if said or (units and match["word"].lower() == "one"):
                lead = _ARTICLE.match(match[0])
                # "A two-rate meter" has a two in it; "a hundred" is one number.
                start = match.start() + (lead.end() if lead and lead["next"].lower() in self._words else 0)
                said_as = text[start : match.end()]
                yield Claim("number", said_as, start, match.end(), number=number * sign, step=step, units=units)

    def _find_two(self, text: str, match: re.Match[str]) -> Iterator[Claim]:
        """Sixty and thirty-five dollars: two figures of one unit, where they make no single one."""
        parts = _AND.split(match["word"])
        values = [self.value(part) for part in parts]
        if len(parts) != 2 or None in values or match["sign"] or match["places"]:
            yield Claim(UNREAD, match[0], match.start(), match.end())
            return
        units = self._units.of(match["unit"] or "")
        middle = match.start("word") + len(parts[0])
        behind = match.end("word") - len(parts[1])
        for start, end, value in ((match.start(), middle, values[0]), (behind, match.end(), values[1])):
            yield Claim("number", text[start:end], start, end, number=Decimal(value or 0), units=units)

    def _sum_of(self, text: str) -> int | None:
        """Two dozen plus ten oil filters: one number of them."""
        values = [self.value(part) for part in _PLUS.split(text)]
        return None if None in values else sum(one for one in values if one is not None)

    def value(self, text: str) -> int | None:
        """The number that words say: one hundred and twenty thousand; None where they say none: four one five."""
        words = [word for word in _SPLIT.split(text.lower()) if word in self._words or word in self._large]
        total = group = 0
        last = _HUNDRED
        for before, word in pairwise(["", *words]):
            if word in self._words:
                number = self._words[word]
                if before in self._words and not (last >= 20 and last % _TEN == 0 and number < _TEN and number):
                    return _year([self._words.get(one) for one in words])
                group, last = group + number, number
            elif word == "hundred":
                group = max(1, group) * _HUNDRED
            else:
                total += max(1, group) * self._large[word]
                group = 0
        return total + group

    def in_name(self, name: str) -> list[int]:
        """The numbers from two on that stand as words in a name: `seven_day_max`."""
        return [self._words[word] for word in _NAME_SPLIT.split(name.lower()) if self._words.get(word, 0) >= _LEAST]


def ordinal_words(table: Mapping[str, Any]) -> dict[str, int]:
    """Second, twenty-third: the words for places in an order, and for days of a month."""
    plain: dict[str, int] = table["ordinals"]
    tens = {word: n for word, n in table["words"].items() if n >= 2 * _TEN}
    units = {"first": 1} | {word: n for word, n in plain.items() if n < _TEN}
    return plain | {f"{ten}-{unit}": n + m for ten, n in tens.items() for unit, m in units.items()}


def _year(numbers: list[int | None]) -> int | None:
    """Twenty twenty-four: a century and what follows it."""
    if not numbers or numbers[0] not in _CENTURIES or None in numbers or len(numbers) > 3:
        return None
    rest = [one for one in numbers[1:] if one is not None]
    tens_first = len(rest) == 1 or (rest[0] >= 20 and rest[0] % _TEN == 0 and rest[1] < _TEN)
    return numbers[0] * _HUNDRED + sum(rest) if tens_first and rest[0] >= _TEN else None
