"""Prices of a length of time: what a night costs is not what the whole stay costs, nor the other way round."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.words import stem

_SINGLE = "hour|night|day|week|month|quarter|year|annum"
_RATE = re.compile(
    rf"(?:^|_)(?:per|a|each|every)_(?P<one>{_SINGLE})(?:_|$)|(?:^|_)(?P<often>hourly|nightly|daily|weekly|monthly|yearly|annual)(?:_|$)"
)
_OFTEN = {"hourly": "hour", "nightly": "night", "daily": "day", "weekly": "week", "monthly": "month"}
_PER = re.compile(rf"(?:per[\s_]|an?[\s_]|each[\s_])?({_SINGLE})s?", re.I)
_WHOLE = re.compile(
    r"[^.;,:()\d\n]{0,40}?\s(?:in total|in all|altogether|all told"
    r"|(?:for|over|across) (?:the|his|her|their|your) (?:whole|entire|full|complete) "
    rf"(?!(?:{_SINGLE})\b)[a-z]+"
    r"|for (?:the |all )?(?:two|three|four|five|six|seven|eight|nine|ten|\d{1,3}) "
    rf"(?P<several>{_SINGLE})s)\b",
    re.I,
)
_TOTALS = frozenset(map(stem, ("total", "sum", "subtotal")))
_NAMES = 2
"""Its own name, and that of the object that it is in: `rate_per_night: {"value": 268}`."""


def period_of(fact: Fact, facts: Sequence[Fact]) -> str:
    """The length of time that a price is of, by the names it stands under or a field beside it; nothing if none."""
    for name in islice(fact.place.field.names(), _NAMES):
        match = _RATE.search(name)
        if match is not None:
            return match["one"] or _OFTEN.get(match["often"], "year")
    return once(facts, _said_beside).get((fact.source, _object_of(fact)), "")


def is_of_whole(text: str, end: int, period: str) -> bool:
    """Whether the words behind a price of one length of time say that it is of all of them together."""
    match = _WHOLE.match(text, end)
    return match is not None and (match["several"] is None or match["several"].lower() == period)


def is_total(fact: Fact) -> bool:
    """Whether a field holds what all of them cost together."""
    return any(stem(part) in _TOTALS for name in islice(fact.place.field.names(), _NAMES) for part in name.split("_"))


def _said_beside(facts: Sequence[Fact]) -> dict[tuple[str, str], str]:
    """By source and object: what its figures are per, where a field of it says so: `"per": "NIGHT"`."""
    found: dict[tuple[str, str], str] = {}
    for fact in facts_of(facts, "text"):
        match = _PER.fullmatch(fact.text) if fact.place.name == "per" else None
        if match is not None:
            found[(fact.source, _object_of(fact))] = match[1].lower()
    return found


def _object_of(fact: Fact) -> str:
    return fact.place.path.rpartition(".")[0]
