"""`Claim`: one checkable thing in a text, as a recogniser found it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Protocol

from interlock.values import Value

Units = frozenset[str]
"""The units that a spelling can stand for; two figures agree if the sets meet."""
NO_UNIT: Units = frozenset()
# Without it "about 100" would stand for 60, which rounds to one hundred if the noughts are not meant.
AT_MOST_OFF = Decimal("0.1")


# "Over 30" is said of 31, not of 40: whoever knows better would say so.
ON_ONE_SIDE = Decimal("0.09")


class Claim(Value, frozen=True):
    """One checkable thing in a text."""

    kind: str
    """number, ratio, ordinal, date, weekday, time, identifier, citation, url, mail, phone, reference, roman, unread"""
    text: str
    start: int
    end: int
    number: Decimal | None = None
    digits: Decimal | None = None
    """The number as it is written, before "million"."""
    step: Decimal = Decimal(1)
    """How finely the number is said: 0.1 for 41.5, 1000 for 12 thousand."""
    units: Units = NO_UNIT
    date: tuple[int | None, int | None, int | None] = (None, None, None)
    either: bool = False
    """Day and month of the date may have changed places."""
    minutes: int | None = None
    weekday: int | None = None
    """Monday is 0."""
    about: bool = False
    bound: str = ""
    """More (>) or less (<) than the figure, where the words before it say so."""
    ordinal: bool = False
    """Written as a place in an order, or a day of a month: 5th."""
    turned: bool = False
    """A direction follows (9.87° W), so that the figure may be kept with a sign."""
    falls: bool = False
    """The words before it speak of a decrease, so that a negative figure may be said without its sign."""

    @property
    def rounding(self) -> Decimal:
        """To what the figure may be rounded: its last digit; after "about" the noughts at its end are not meant."""
        if self.number is None or self.number == 0 or not self.about or self.step < 1:
            return self.step
        digits = str(abs(self.number).to_integral_value())
        return max(self.step, Decimal(1).scaleb(len(digits) - len(digits.rstrip("0"))))

    @property
    def reach(self) -> Decimal:
        """How far from the figure a value can be that it is rounded from."""
        half = self.rounding / 2
        if self.bound and self.number is not None:
            return max(half, ON_ONE_SIDE * abs(self.number))
        # With decimals rounding moves it by half of the last one at most, which needs no further bound.
        return half if self.step < 1 or self.number is None else min(half, AT_MOST_OFF * abs(self.number))


class Recogniser(Protocol):
    """Finds the claims of one kind."""

    def find(self, text: str) -> Iterator[Claim]:
        """The claims of this kind in a text."""
        ...
