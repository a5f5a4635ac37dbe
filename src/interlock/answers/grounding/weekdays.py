"""Days of the week in an answer: which dates of the results, or of the question, fall on them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.known_rows import first_dated
from interlock.answers.grounding.mentions import is_within
from interlock.answers.grounding.sentences import Sentences

_MOST_DATED = 2_000
_BESIDE = 12


class DaysOfWeek:
    """Finds what stands behind a day of the week."""

    def __init__(self, sentences: Sentences, said: Sequence[Claim], facts: Sequence[Fact]) -> None:
        self._sentences, self._said, self._facts = sentences, said, facts
        self._dated = once(facts, first_dated, _MOST_DATED)
        self._written: dict[str, Fact | None] = {}

    def find(self, claim: Claim) -> list[Fact]:
        """The dates that fall on it: those that the same sentence says, if it says any."""
        sentence = self._sentences.all[self._sentences.at(claim.start)]
        said = [
            one.date
            for one in self._said
            if one.kind == "date"
            and sentence.start <= one.start < sentence.end
            and -_BESIDE < one.start - claim.end < _BESIDE
        ]
        written = self._in_text(claim.text.lower())
        if written is not None:
            return [written]
        fits = [fact for fact in self._dated if _weekday(*fact.date) == claim.weekday]
        spoken = [fact for fact in fits if not said or any(is_within(one, fact.date) for one in said)]
        return spoken or [fact for fact in self._facts if fact.echo and claim.text.lower() in fact.text.lower()][:1]

    def _in_text(self, day: str) -> Fact | None:
        if day not in self._written:
            self._written[day] = next(
                (fact for fact in self._facts if not fact.echo and day in fact.text.lower()), None
            )
        return self._written[day]


def _weekday(year: int | None, month: int | None, day: int | None) -> int:
    try:
        return date(year or 0, month or 0, day or 0).weekday()
    except ValueError:
        return -1
