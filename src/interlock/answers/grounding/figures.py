"""Whether the figure of a fact is the figure that is said: units, conversion, magnitude and rounding understood."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

from interlock.answers.grounding.claims import AT_MOST_OFF, Claim
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.time_spans import TIME_UNITS
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import Meanings

_YEARS = (Decimal(1900), Decimal(2100))


_IN_HUNDREDTHS = "cent"
_SMALL = 100
_COUNTS = ("count", "number", "n", "total", "total_count")
"""Names that say only that something was counted."""


class FigureMatcher:
    """Whether a fact stands behind a figure, and how."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._measures = vocabulary.measures
        self._magnitudes = vocabulary.field_magnitudes
        self._units = vocabulary.units
        self._currencies = vocabulary.units.currencies
        self._money_and_time = self._currencies | TIME_UNITS
        self._amounts = vocabulary.words.amounts
        self._measured = vocabulary.measured
        self._in_large = re.compile(rf"_(?P<word>{'|'.join(self._magnitudes)})(?:$|_per_|_usd$|_eur$)")

    def how(self, claim: Claim, fact: Fact) -> str | None:
        """exact, rounded or counted; None if it does not."""
        said = claim.number
        assert said is not None
        if fact.number is None:
            # "In 2022" is supported by the year of a date; a figure with a unit, or beyond these years, is none.
            if claim.ordinal and said == fact.date[2]:
                return "exact"
            is_year = not claim.units and claim.step == 1 and _YEARS[0] <= said <= _YEARS[1]
            return "exact" if is_year and said == fact.date[0] else None
        if fact.label:
            # A figure in a name supports one of its unit or kind ("24-hour" by `restored_24h`), but not "24 acres".
            as_label = not claim.units or claim.units & fact.units or "-" in claim.text
            return "counted" if as_label and abs(said) == fact.number and claim.step == 1 else None
        if fact.counted:
            return "counted" if not claim.units and said == fact.number else None
        values = self._values(claim, fact)
        if said in values:
            return "exact"
        return "rounded" if any(rounds_to(value, claim) for value in values) else None

    def _values(self, claim: Claim, fact: Fact) -> list[Decimal]:
        """What the figure of a fact may be said as; nothing if its unit is another."""
        assert fact.number is not None
        values = [fact.number]
        if (claim.falls or claim.turned) and fact.number < 0:
            values.append(-fact.number)
        if "percent" in claim.units and "percent" not in fact.units:
            if fact.units and not fact.share:  # a field in acres is not a percentage, whatever its figure
                return []
            if not self._can_be_in(claim, fact):
                return []
            # A `share` of 0.4 is 40 %, never 0.4 %; a field that says neither may be kept either way.
            values = [value * 100 for value in values if _is_fraction(value)] + ([] if fact.share else values)
        elif not self._units_agree(claim, fact):
            if fact.money and claim.units & self._currencies and not claim.units & fact.money:
                return []
            return list(self._measures.convert(fact.number, fact.units, claim.units))
        large = self._in_large.search(fact.place.path) if claim.digits is not None else None
        if large is None:
            return values
        return [value.scaleb(self._magnitudes[large["word"]]) for value in values]  # sales_bn: 4.5 is 4.5 billion

    def _units_agree(self, claim: Claim, fact: Fact) -> bool:
        if not claim.units:
            return True
        if fact.echo and not fact.units:
            return False  # "12 scouts" in the question are not 12 miles in the answer
        if fact.money and claim.units & self._currencies:
            # 57440 cents beside "currency": "EUR" are no euros, and turned into them.
            return bool(claim.units & (fact.money | fact.units)) and _IN_HUNDREDTHS not in fact.units
        if fact.units:
            return bool(claim.units & fact.units)
        return not self._is_plain_count(claim, fact) and self._can_be_in(claim, fact)

    def _can_be_in(self, claim: Claim, fact: Fact) -> bool:
        """Whether a value that names no unit can be in this one: most fields do not name theirs, and are called by what
        they measure; a count is not 12 km, whatever its figure."""
        kinds = self._measures.kinds(claim.units)
        if not kinds or fact.share or fact.prose or fact.echo or fact.asked or self._says_unit(claim, fact):
            return True
        if fact.number is not None and "percent" in claim.units and fact.number != fact.number.to_integral_value():
            return True  # 0.35 of whatever it is called
        about = fact.words | fact.around | fact.described
        return any(about & self._measured[kind] for kind in kinds if kind in self._measured)

    def _says_unit(self, claim: Claim, fact: Fact) -> bool:
        """Whether the name of the field has the unit somewhere (`tb_stored`, `kg`), or says nothing at all (`to`)."""
        name = fact.place.name.lower()
        if not fact.own and name not in _COUNTS:
            return True
        return any(self._units.of_field(word) & claim.units for word in name.split("_"))

    def _is_plain_count(self, claim: Claim, fact: Fact) -> bool:
        """Whether a number of things is said as money or as time: 2 loans are no $2."""
        if fact.number is None or fact.prose or fact.asked or not claim.units & self._money_and_time:
            return False
        if not fact.own:
            return fact.place.name.lower() == _COUNTS[0]  # a word that says nothing of a field, but for this
        return is_plain_count(fact.number, fact.own | fact.described, self._amounts)


def is_plain_count(number: Decimal, names: Meanings, amounts: Meanings) -> bool:
    """Whether a figure without a unit is small, whole and of a field whose name says nothing of money or time."""
    return number == number.to_integral_value() and abs(number) < _SMALL and not names & amounts


def is_in_name(fact: Fact) -> bool:
    """Whether a figure is a small one that the name of its thing has; a 225 is said for a 225 tyre."""
    if fact.number is None or not fact.prose or fact.number >= _SMALL:
        return False
    said = f"{fact.number:f}"
    names = (name for same in fact.place.row.names.values() for name in same)
    words = (name.split() for name in names)
    return any(one[-1] == said and len(one) > 1 and all(map(str.isalpha, one[:-1])) for one in words if one)


def _is_fraction(value: Decimal) -> bool:
    # Growth may be above one (1.4 is 140 %); a whole number from two on is a percentage already.
    return abs(value) <= 1 or (abs(value) < 10 and value != value.to_integral_value())


def rounds_to(value: Decimal, claim: Claim) -> bool:
    said = claim.number
    assert said is not None
    step = claim.rounding
    if claim.bound:
        return value != said and _near(value, claim) and abs(value - said) <= claim.reach
    if step >= 1 and value == value.to_integral_value() and step == 1:
        return False  # a whole number is said whole, or with "about"
    scaled = value / step
    # `quantize` raises where its result has more than the 28 digits of the context.
    if abs(scaled) > Decimal(10) ** 20 or not _near(value, claim):
        return False
    wanted = said / step
    return any(scaled.quantize(Decimal(1), rounding=way) == wanted for way in (ROUND_HALF_UP, ROUND_HALF_EVEN))


def _near(value: Decimal, claim: Claim) -> bool:
    """Rounding moves a figure a little, and "over" and "under" say in which direction."""
    said = claim.number
    assert said is not None
    if (claim.bound == ">" and value < said) or (claim.bound == "<" and value > said):
        return False
    # With decimals rounding moves it by half of the last one at most, which needs no further bound.
    return claim.step < 1 or abs(value - said) <= AT_MOST_OFF * abs(said)
