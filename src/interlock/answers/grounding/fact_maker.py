"""Facts of one source: each with what the source is, and with what the words of its field stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from interlock.answers.grounding.claims import Units
from interlock.answers.grounding.evidence import Fact, Source
from interlock.answers.grounding.value_path import FieldWords, ValuePath


class FactMaker:
    """Makes them; `words` are those of the field that a value stands in."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def of_texts(self, places: Sequence[ValuePath], words: FieldWords, texts: Sequence[str]) -> list[Fact | None]:
        """Texts of one field; None for an empty one."""
        own, described, around, every = words
        name, echo = self._source.id, self._source.echo
        asked, trusted = self._source.asked, self._source.trusted
        return [
            Fact(
                name,
                place,
                text=text,
                words=every,
                own=own,
                around=around,
                described=described,
                echo=echo,
                asked=asked,
                trusted=trusted,
            )
            if text
            else None
            for place, text in zip(places, texts, strict=True)
        ]

    def of_numbers(
        self,
        places: Sequence[ValuePath],
        words: FieldWords,
        numbers: Sequence[Decimal | None],
        kind: tuple[Units, Units, bool],
    ) -> list[Fact | None]:
        """Numbers of one field: their unit, the currency beside them, and whether they are shares."""
        own, described, around, every = words
        units, money, share = kind
        name, echo = self._source.id, self._source.echo
        asked, trusted = self._source.asked, self._source.trusted
        return [
            Fact(
                name,
                place,
                number=number,
                units=units,
                money=money,
                share=share,
                words=every,
                own=own,
                around=around,
                described=described,
                echo=echo,
                asked=asked,
                trusted=trusted,
            )
            if number is not None
            else None
            for place, number in zip(places, numbers, strict=True)
        ]

    def of_finding(self, place: ValuePath, words: FieldWords, details: Mapping[str, Any]) -> Fact:
        """Anything: a truth, a count, what was found within a text."""
        own, described, around, every = words
        source = self._source
        return Fact(
            source.id,
            place,
            words=every,
            own=own,
            around=around,
            described=described,
            echo=source.echo,
            asked=source.asked,
            trusted=source.trusted,
            **details,
        )
