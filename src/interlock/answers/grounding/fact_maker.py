"""Facts of one source: each with what the source is, and with what the words of its field stand for."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from interlock.answers.grounding.claims import Units
from interlock.answers.grounding.evidence import NO_DATE, Fact, Source
from interlock.answers.grounding.value_path import FieldWords, ValuePath


class FactMaker:
    """Makes them; `words` are those of the field that a value stands in."""

    def __init__(self, source: Source) -> None:
        self._id, self._echo, self._asked, self._trusted = source.id, source.echo, source.asked, source.trusted

    def of_value(
        self,
        place: ValuePath,
        words: FieldWords,
        number: Decimal | None,
        units: Units,
        money: Units,
        share: bool,
        text: str,
    ) -> Fact:
        """A number or a text, of which there are most: by position, which is much cheaper."""
        own, described, around, every = words
        return Fact(
            self._id,
            place,
            number,
            units,
            money,
            share,
            NO_DATE,
            text,
            None,
            self._echo,
            None,
            False,
            False,
            every,
            own,
            around,
            described,
            self._asked,
            self._trusted,
        )

    def of_finding(self, place: ValuePath, words: FieldWords, details: Mapping[str, Any]) -> Fact:
        """Anything else: a truth, a count, what was found within a text."""
        own, described, around, every = words
        return Fact(
            self._id,
            place,
            words=every,
            own=own,
            around=around,
            described=described,
            echo=self._echo,
            asked=self._asked,
            trusted=self._trusted,
            **details,
        )
