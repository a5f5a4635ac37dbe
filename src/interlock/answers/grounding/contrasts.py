"""Two things held against each other: 58 kg against 5, dearer by €40, and in which direction."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterator, Sequence
from itertools import pairwise

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.rows import Row
from interlock.answers.grounding.terms import Calculation

_AGAINST = re.compile(
    r"(?:\s[^\W\d_]{1,20}){0,4},?\s(?:against|versus|vs\.?|rather than|compared (?:to|with)|as opposed to|to)\s"
    r"(?:(?:only|just|the|about|roughly)\s)?",
    re.I,
)
Names = Container[tuple[str, str]]
"""By kind and name."""
_OF_WHAT = 24
"""So near behind the second figure stands what it is of: 58 kg against 5 for the cat."""
_MORE = "more|dearer|longer|higher|bigger|larger|heavier|wider|taller|older"
_LESS = "less|fewer|cheaper|shorter|lower|smaller|lighter|narrower|younger"
_THAN = re.compile(rf"\b(?:(?P<more>{_MORE})|(?P<less>{_LESS}))\b[^.;:,()\n]{{0,24}}\b(?:than|by)\b", re.I)
_AROUND = 80


def find_contrasted(text: str, said: Sequence[Claim]) -> Iterator[int]:
    """The first of each two figures that are held against each other."""
    for place, (one, other) in enumerate(pairwise(said)):
        if one.kind == other.kind and _AGAINST.fullmatch(text, one.end, other.start):
            yield place


def are_contrasted(one: Fact, other: Fact, mentions: Sequence[Mention], spoken: Names, behind: int) -> bool:
    """Whether two facts are the same of two things, of which the second is named, too.

    `spoken`: what the answer names. `behind`: where the second figure ends; a thing that is named right behind it is
    the one that it is of.
    """
    mine, its = one.place.row, other.place.row
    if one.place.name != other.place.name or mine is its:
        return False
    for mention in _between(mentions, behind, behind + _OF_WHAT)[:1]:
        if (_knows(its, mention) or _knows(mine, mention)) and not _is_of(its, mention):
            return False
    return any(
        (kind, name) in spoken and name not in mine.names_of_kind(kind)
        for row in its.chain()
        for kind, names in row.names.items()
        for name in names
    )


def is_turned(text: str, claim: Claim, made: Calculation, mentions: Sequence[Mention]) -> bool:
    """Whether a difference is said the other way round: A is cheaper than B by what it is dearer."""
    if len(made.terms) != 2 or " - " not in made.what:
        return False
    start = max(0, claim.start - _AROUND)
    said = [match for match in _THAN.finditer(text, start, claim.end + _AROUND) if _is_beside(text, match, claim)]
    if len(said) != 1:
        return False
    before = _between(mentions, start, said[0].start())
    one, other = made.terms
    for mention in reversed(before):
        first, second = _is_of(one.row, mention), _is_of(other.row, mention)
        if first != second:
            more = one.number > other.number if first else other.number > one.number
            return more != bool(said[0]["more"])
    return False


def _between(mentions: Sequence[Mention], start: int, end: int) -> Sequence[Mention]:
    """The names that begin in a part of the text."""
    first = bisect_left(mentions, start, key=lambda mention: mention.start)
    return mentions[first : bisect_left(mentions, end, key=lambda mention: mention.start)]


def _is_beside(text: str, match: re.Match[str], claim: Claim) -> bool:
    """Whether a comparison is that of a figure: no sentence ends between them."""
    between = text[match.end() : claim.start] if match.end() <= claim.start else text[claim.end : match.start()]
    return not any(mark in between for mark in (". ", "; ", "\n", ": "))


def _knows(row: Row, mention: Mention) -> bool:
    """Whether a row has a name of the kind of a mention."""
    return any(row.names_of_kind(kind) for kind in mention.names)


def _is_of(row: Row, mention: Mention) -> bool:
    return any(row.names_of_kind(kind) & names for kind, names in mention.names.items())
