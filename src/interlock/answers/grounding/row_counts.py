"""How many there are: things that a sentence lists, rows with a value that it speaks of, values that differ."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from interlock.answers.grounding.binding import Bound
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.field_names import snake_name
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.rows import Row, plain_name
from interlock.answers.grounding.terms import Calculation, RowGroup
from interlock.answers.grounding.words import Meanings, has_stem

_LIST = re.compile(r"[^.;:(\n]{0,80}(?P<mark>[:(])")
"""What opens a list behind the number of its items: "three people can sign: …", "two by the carrier (…)"."""
_END_OF_LIST = {":": re.compile(r"\n\s*\n|[.!?]\s+[A-Z]"), "(": re.compile(r"\)")}
_DENIED = re.compile(r"[^.;:,(\n]{0,60}\b(?:not|never|un[a-z]{3,})\b|[^.;:,(\n]{0,60}n't\b", re.I)
_OFTEN = re.compile(r"\s?times\b", re.I)
_PART_BREAK = re.compile(r"[,;:(\n]|\.\s")
_NEAR = 120
_MOST_LISTED = 100
_MOST_FIELDS = 200


class KnownCounts:
    """What may be counted in the results."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.current: dict[str, set[str]] = defaultdict(set)
        """By kind: the names of what is there now, not of what a change has done away with."""
        self.different: dict[str, tuple[set[str], Meanings]] = {}
        """By column: the values that it has, and what its name stands for."""
        moved = {id(fact.place.row) for fact in facts_of(facts, "stale") if _is_usable(fact)}
        for fact in facts_of(facts, "text"):
            # A row that a change has touched may be there no more.
            if fact.stale or fact.is_key or not _is_usable(fact) or id(fact.place.row) in moved:
                continue
            known = self.different.get(fact.place.column)
            if known is not None:
                known[0].add(fact.text)
            elif len(self.different) < _MOST_FIELDS:
                self.different[fact.place.column] = ({fact.text}, fact.own)
        rows: dict[int, Row] = {}
        last = None
        for fact in facts:
            row = fact.place.row
            if row is not last and not fact.stale and _is_usable(fact):
                rows[id(row)] = last = row
        having = Counter(kind for row in rows.values() for kind in row.names)
        for row in rows.values():
            for kind, names in row.names.items():
                self.current[kind] |= names
        self.shared = frozenset(kind for kind, count in having.items() if count > len(self.current[kind]))
        """Kinds of names that several rows have in common: doctors, of visits."""
        lists = (fact.around for fact in facts_of(facts, "number") if fact.counted and _is_usable(fact))
        self.listed: Meanings = frozenset[str]().union(*set(lists))
        """What the lists of the results are called."""


class RowCounts:
    """What may be counted in an answer and in the results that it rests on."""

    def __init__(self, text: str, mentions: Sequence[Mention], known: KnownCounts) -> None:
        self._text, self._mentions, self._known = text, mentions, known

    def find(self, claim: Claim, bound: Bound, groups: Iterable[RowGroup]) -> Iterator[Calculation]:
        """The counts that a sentence may speak of with a figure."""
        of_rows = bool(bound.noun & self._known.listed)
        if _OFTEN.match(self._text, claim.end) is None:  # how often is no number of names
            yield from self._count_names(self._mentions, "the {} that are named", of_rows=of_rows)
        yield from self._count_names(self._find_listed(claim), "the {} that are listed")
        for group in groups:
            said = group.named and (not of_rows or self._is_beside(claim, group))
            if said and _is_of_topic(group, bound) and not self._is_denied(claim, group):
                rows = {id(term.row) for term in group.terms}
                if len(rows) > 1:
                    yield Calculation(Decimal(len(rows)), frozenset(), f"rows of {group.what}", group.terms)
        for column, (values, own) in self._known.different.items():
            if len(values) > 1 and has_stem(own & bound.noun):
                yield Calculation(Decimal(len(values)), frozenset(), f"the values of {column}", ())

    def _is_beside(self, claim: Claim, group: RowGroup) -> bool:
        """Whether what rows share is said of the number, and not behind a break: "two tickets, one for an adult"."""
        before = _PART_BREAK.split(self._text[max(0, claim.start - _NEAR) : claim.start])[-1]
        behind = _PART_BREAK.split(self._text[claim.end : claim.end + _NEAR])[0]
        said = plain_name(f"{before} {behind}")
        return any(word in said for word in group.value.split())

    def _is_denied(self, claim: Claim, group: RowGroup) -> bool:
        """Whether rows that share a flag are said not to have it."""
        return group.field == group.value and _DENIED.match(self._text, claim.end) is not None

    def find_periods(self, claim: Claim) -> Iterator[Calculation]:
        """Over the three months: as many as the rows have, where a field of theirs is called so."""
        for column, (values, _own) in self._known.different.items():
            if len(values) > 1 and snake_name(column.rpartition(".")[2]) in claim.units:
                yield Calculation(Decimal(len(values)), claim.units, f"the values of {column}", ())

    def _count_names(self, mentions: Sequence[Mention], what: str, *, of_rows: bool = False) -> Iterator[Calculation]:
        """How many are named; `of_rows`: rows are counted, and names that several rows share count none of those."""
        kinds: dict[str, set[frozenset[str]]] = defaultdict(set)
        for mention in mentions:
            for kind, names in mention.names.items():
                if not (of_rows and kind in self._known.shared) and not names.isdisjoint(
                    self._known.current.get(kind, ())
                ):
                    kinds[kind].add(names)
        for kind, things in kinds.items():
            if len(things) > 1:
                yield Calculation(Decimal(len(things)), frozenset(), what.format(kind), ())

    def _find_listed(self, claim: Claim) -> list[Mention]:
        """The names in the list that a number opens."""
        opened = _LIST.match(self._text, claim.end)
        if opened is None:
            return []
        closed = _END_OF_LIST[opened["mark"]].search(self._text, opened.end())
        end = len(self._text) if closed is None else closed.start()
        inside = [one for one in self._mentions if opened.end() <= one.start < end]
        return inside[:_MOST_LISTED]


def _is_usable(fact: Fact) -> bool:
    return fact.trusted and not fact.label


def _is_of_topic(group: RowGroup, bound: Bound) -> bool:
    """Whether the value that the rows share is what the figure is said of, where one of that kind is named."""
    return all(group.value in topic.get(group.field, (group.value,)) for topic in bound.topics)
