"""So much a night, a month, in total: of which length of time a figure is said to be, and of which its field is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.words import stem

_PER = re.compile(
    r"(?:\s(?:of\s)?(?!and\b|or\b|is\b|are\b|for\b|in\b|on\b|at\b|from\b|to\b|with\b)[^\W_]{1,16}){0,4}?\s?"
    r"(?:(?:an?|per|each|every|/|once (?:an?|every|per)|for (?:the|an?) (?:whole|entire|full))\s?"
    r"(?P<period>hour|night|day|week|month|quarter|year|annum)\b|(?P<often>hourly|nightly|daily|weekly|monthly|yearly|annually)\b)",
    re.I,
)
_IN_TOTAL = re.compile(r"\s?(?:in (?:total|all)|altogether|overall|for (?:the (?:whole|entire)|all of))\b", re.I)
_TOTAL = re.compile(r"(?:^|_)(?:total|sum)(?:_|$)", re.I)
_PERIODS = {
    stem(period): frozenset(map(stem, words))
    for period, words in {
        "hour": ("hour", "hourly"),
        "night": ("night", "nightly"),
        "day": ("day", "daily"),
        "week": ("week", "weekly"),
        "month": ("month", "monthly"),
        "year": ("year", "yearly", "annual", "annually"),
    }.items()
}


def is_total(field: str) -> bool:
    """Whether a field is what others of its row come to, by its name."""
    return _TOTAL.search(field) is not None


def is_per_another(text: str, claim: Claim, fact: Fact, row: Iterable[Fact]) -> bool:
    """Whether a figure is said to be of another length of time than its field: 2.4 % a month of a yearly rate.

    `row`: the other figures beside the fact. Where one of them is what is said, a field that does not say it is not:
    the `total` of a row with a `price_night` is no price of a night, and that price is none in total.
    """
    if claim.number is None:
        return False
    known = _periods_of(fact)
    match = _PER.match(text, claim.end)
    if match is None:
        whole = known and _IN_TOTAL.match(text, claim.end) is not None
        return bool(whole) and any(is_total(one.place.name) and _is_alike(one, fact) for one in row)
    said = stem(match["period"] or match["often"])
    if known:
        return not _has(known, said)
    return any(_has(_periods_of(one), said) and _is_alike(one, fact) for one in row)


def _periods_of(fact: Fact) -> set[str]:
    return {period for period, words in _PERIODS.items() if words & (fact.own | fact.described)}


def _has(known: Iterable[str], said: str) -> bool:
    return any(said == period or said in _PERIODS[period] for period in known)


def _is_alike(one: Fact, other: Fact) -> bool:
    """Whether both are amounts of one unit, and not the same."""
    return one.number is not None and not one.counted and bool(one.units & other.units) and one.number != other.number
