"""Days and times as bare figures: the 3 of a column of dates, 9/16, from 8 to 12; and the end of a span of time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from interlock.answers.grounding.binding import Bound
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.sentences import Sentences

_SLASHED = re.compile(r"(?P<one>\d{1,2})/(?P<other>\d{1,2})")
_BEFORE_A_DAY = re.compile(r"\b(?:on|by|until|till|from|to|since|due|before|after|for)\s+$", re.I)
_DAY_COLUMN = re.compile(r"\b(?:date|day|when|due)\b", re.I)
_BEFORE_AN_HOUR = re.compile(
    r"\b(?:from|at|by|until|till|around|about|before|after|between|(?:from|between)\s\d{1,2}\s(?:to|and|until))\s+$"
    r"|\bfrom\s\d{1,2}[–-]$",
    re.I,
)
_BEFORE_AN_END = re.compile(
    r"\d\s?[–—-]\s?$|\b(?:to|until|till|through)\s+$"
    r"|\b(?:ends?|ending|done|over|finish(?:es|ed|ing)?|free)\s+(?:at|around|about|by)\s+(?:about\s+)?$",
    re.I,
)
_OF_THE_DAY = re.compile(r"\s(?:(?:in|of) the (?:morning|afternoon|evening)|at night)\b", re.I)
_LOOKED_AT = 30
_HALF_A_DAY, _DAY = 720, 1440
_MOST_HOUR, _LAST_DAY = 24, 31
_IN_MINUTES = {"minute": 1, "hour": 60}
_MOST_ROWS = 500


class DayTimes:
    """Reads bare figures of an answer as days and times, where the words around them say that they are."""

    def __init__(self, sentences: Sentences, facts: Sequence[Fact]) -> None:
        self._sentences, self._text = sentences, sentences.text
        self._facts = facts

    def as_day(self, claim: Claim) -> Claim | None:
        """A figure as a day: 9/16 behind an "on", a small figure in a column of dates."""
        if claim.kind == "ratio":
            slashed = _SLASHED.fullmatch(claim.text)
            if slashed is None or not self._follows(_BEFORE_A_DAY, claim):
                return None
            return replace(claim, kind="date", date=(None, int(slashed["one"]), int(slashed["other"])), either=True)
        if not _is_bare(claim, _LAST_DAY):
            return None
        head = self._sentences.all[self._sentences.at(claim.start)].head_of(claim.start)
        if head is None or _DAY_COLUMN.search(self._text, *head) is None:
            return None
        return replace(claim, kind="date", date=(None, None, int(claim.number or 0)))

    def as_hour(self, claim: Claim, bound: Bound) -> Claim | None:
        """A bare figure as an hour: from 8 to 12, until ten."""
        if claim.kind != "number" or not _is_bare(claim, _MOST_HOUR):
            return None
        if bound.noun and _OF_THE_DAY.match(self._text, claim.end) is None:
            return None
        if not self._follows(_BEFORE_AN_HOUR, claim):
            return None
        hour = int(claim.number or 0)
        return replace(claim, kind="time", minutes=hour * 60 % _DAY, either=hour <= _MOST_HOUR // 2)

    def find_end(self, claim: Claim, bound: Bound) -> tuple[str, str] | None:
        """The beginning and the length behind the end of a span: 10:30 to 11:00 of a start and half an hour."""
        hour = claim if claim.kind == "time" else self.as_hour(claim, bound)
        if hour is None or hour.minutes is None or not self._follows(_BEFORE_AN_END, claim):
            return None
        for start, length in self._ends_at(hour):
            if bound.fit(start.place.row) >= 0:
                return start.source, f"{start.place.path} + {length.place.path}"
        return None

    def _ends_at(self, claim: Claim) -> Iterator[tuple[Fact, Fact]]:
        assert claim.minutes is not None
        ends = once(self._facts, _ends_of_spans)
        yield from ends.get(claim.minutes, ())
        if claim.either:
            yield from ends.get((claim.minutes + _HALF_A_DAY) % _DAY, ())

    def _follows(self, pattern: re.Pattern[str], claim: Claim) -> bool:
        return pattern.search(self._text[max(0, claim.start - _LOOKED_AT) : claim.start]) is not None


def _ends_of_spans(facts: Sequence[Fact]) -> dict[int, list[tuple[Fact, Fact]]]:
    """By time: the beginning and the length that come to it."""
    starts: dict[int, list[Fact]] = defaultdict(list)
    lengths: dict[int, list[tuple[Fact, int]]] = defaultdict(list)
    for fact in facts_of(facts, "number", "time") if facts_of(facts, "time") else ():
        if fact.echo or fact.asked or not fact.trusted or fact.stale or fact.prose:
            continue
        row = id(fact.place.row)
        if fact.minutes is not None:
            starts[row].append(fact)
        minutes = _in_minutes(fact)
        if minutes:
            lengths[row].append((fact, minutes))
    found: dict[int, list[tuple[Fact, Fact]]] = defaultdict(list)
    for row in list(lengths)[:_MOST_ROWS]:
        for start in starts.get(row, ()):
            for length, minutes in lengths[row]:
                found[((start.minutes or 0) + minutes) % _DAY].append((start, length))
    return found


def _is_bare(claim: Claim, most: int) -> bool:
    number = claim.number
    return number is not None and not claim.units and number == number.to_integral_value() and 1 <= number <= most


def _in_minutes(fact: Fact) -> int:
    """A length of time in minutes; nothing for anything else."""
    if fact.number is None or fact.counted or fact.label or len(fact.units) != 1:
        return 0
    minutes = fact.number * _IN_MINUTES.get(next(iter(fact.units)), 0)
    return int(minutes) if 0 < minutes < _DAY else 0
