"""Of which length of time a sum is: 268 a night is neither 268 a week nor 268 for the whole stay."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.words import stem

_WORDS_BETWEEN = (
    r"(?:\s(?:of\s)?(?!and\b|or\b|is\b|are\b|for\b|in\b|on\b|at\b|from\b|to\b|with\b)[^\W_]{1,16}){0,4}?\s?"
)
_PER = re.compile(
    _WORDS_BETWEEN + r"(?:(?:an?|per|each|every|/|once (?:an?|every|per)|for (?:the|an?) (?:whole|entire|full))\s?"
    r"(?P<period>hour|night|day|week|month|quarter|year|annum)\b|(?P<often>hourly|nightly|daily|weekly|monthly|yearly|annually)\b)",
    re.I,
)
_FOR_ALL = re.compile(
    _WORDS_BETWEEN
    + r"(?:for (?:the|her|his|their|your|its|our) (?:whole|entire|full|complete)|in (?:all|total)\b|altogether\b)",
    re.I,
)
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
_IN_PATH = re.compile(
    r"per_?(hour|night|day|week|month|year)|(hourly|nightly|daily|weekly|monthly|yearly|annual)", re.I
)
_TOTAL = re.compile(r"(?:^|_)(?:total|sum)(?:_|$)", re.I)
_SAYS_PERIOD = frozenset({"per", "period", "interval", "basis", "frequency", "cycle"})
"""Fields that say beside a sum for how long it is: `"value": 24, "per": "night"`."""


def is_total(field: str) -> bool:
    """Whether a field is what others of its row come to, by its name."""
    return _TOTAL.search(field) is not None


def is_per_another(text: str, claim: Claim, fact: Fact, facts: Sequence[Fact], row: Iterable[Fact]) -> bool:
    """Whether a figure is said to be of another length of time than its field: 2.4 % a month of a yearly rate.

    `row`: the other figures beside the fact. Where one of them is what is said, a field that does not say it is not:
    the `total` of a row with a `price_night` is no price of a night.
    """
    if claim.number is None:
        return False
    match, known = _PER.match(text, claim.end), _periods_of(fact, facts)
    if match is None:
        return _FOR_ALL.match(text, claim.end) is not None and bool(known)
    said = stem(match["period"] or match["often"])
    if known:
        return not _has(known, said)
    if is_total(fact.place.column.replace(".", "_")):
        return True
    return any(_has(_periods_of(one, facts), said) and _is_alike(one, fact) for one in row)


def _has(known: Iterable[str], said: str) -> bool:
    return any(said == period or said in _PERIODS[period] for period in known)


def _is_alike(one: Fact, other: Fact) -> bool:
    """Whether both are amounts of one unit, and not the same."""
    return one.number is not None and not one.counted and bool(one.units & other.units) and one.number != other.number


def _periods_of(fact: Fact, facts: Sequence[Fact]) -> set[str]:
    """The lengths of time that a field names itself, or that stand beside it."""
    named = fact.own | fact.described
    named |= {stem(one or other) for one, other in _IN_PATH.findall(fact.place.column)}
    named |= once(facts, _periods_beside).get(_object_of(fact), frozenset())
    return {period for period, words in _PERIODS.items() if words & named}


def _object_of(fact: Fact) -> tuple[int, str]:
    """The object that a value stands in: a row may hold several."""
    return id(fact.place.row), fact.place.column.rpartition(".")[0]


def _periods_beside(facts: Sequence[Fact]) -> dict[tuple[int, str], frozenset[str]]:
    found: dict[tuple[int, str], frozenset[str]] = defaultdict(frozenset)
    for fact in facts_of(facts, "text"):
        if fact.place.name.lower() in _SAYS_PERIOD and fact.text != fact.place.name:
            found[_object_of(fact)] |= {stem(fact.text)}
    return found
