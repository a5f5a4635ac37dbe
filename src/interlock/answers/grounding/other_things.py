"""Figures of a thing with another kind of name than the one that is spoken of: the fare of a train, and of a flight.

Whether a fact is of what is named is said by names of the same kind. A train has no number of a flight, and could be
anything: it is another thing all the same where the flight has that very field itself, and they share no name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from interlock.answers.grounding.binding import Bound
from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.rows import Row

_MOST_COMPARED = 200


def is_of_another(fact: Fact, bound: Bound, facts: Sequence[Fact]) -> bool:
    """Whether what is named has the field of a fact itself, and is another thing than the fact is of."""
    if not bound.topics or fact.number is None or fact.counted or fact.asked or fact.echo or fact.prose:
        return False
    mine = _names(fact.place.row)
    same = once(facts, _by_field).get(fact.place.name, ()) if mine else ()
    return any(
        bound.fit(other.place.row) > 0 and (names := _names(other.place.row)) and mine.isdisjoint(names)
        for other in same
    )


def _by_field(facts: Sequence[Fact]) -> Mapping[str, Sequence[Fact]]:
    """By the name of a field: the figures that it has now, of each row one."""
    found: dict[str, dict[int, Fact]] = defaultdict(dict)
    for fact in facts_of(facts, "number"):
        usable = fact.trusted and not (fact.echo or fact.asked or fact.counted or fact.label or fact.prose)
        rows = found[fact.place.name]
        if usable and not fact.stale and len(rows) < _MOST_COMPARED:
            rows.setdefault(id(fact.place.row), fact)
    return {name: list(rows.values()) for name, rows in found.items()}


def _names(row: Row) -> frozenset[str]:
    """All that a row and those around it go by, but for what its call was made with."""
    return frozenset(name for one in row.chain() if not one.of_call for names in one.names.values() for name in names)
