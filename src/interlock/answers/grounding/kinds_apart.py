"""Things of two kinds side by side: a train and a flight, each by its own kind of name and with the same fields.

An answer calls them by their kind, "the train", and means the one there is. No row has names of both kinds, so a figure
is of the one or of the other, like a figure among things of one kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.rows import STATES, Row

_MOST_KINDS = 12
_MOST_ROWS = 200
_SHORTEST = 3


class KindsApart:
    """The kinds of which there is one thing each, in rows with the same fields."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        fields: dict[str, set[str]] = defaultdict(set)
        names: dict[str, set[str]] = defaultdict(set)
        together: set[frozenset[str]] = set()
        rows: dict[int, Row] = {}
        for fact in facts_of(facts, "number"):
            usable = fact.trusted and not (fact.echo or fact.asked or fact.counted or fact.label or fact.stale)
            if not usable or fact.prose or (id(fact.place.row) not in rows and len(rows) >= _MOST_ROWS):
                continue
            rows[id(fact.place.row)] = fact.place.row
            for kind in fact.place.row.names:
                fields[kind].add(fact.place.name)
        for row in rows.values():
            for kind, same in row.names.items():
                names[kind] |= same
            kinds = sorted({kind for one in row.chain() if not one.of_call for kind in one.names})[:_MOST_KINDS]
            together |= set(map(frozenset, combinations(kinds, 2)))
        alone = [kind for kind, same in names.items() if len(same) == 1 and _is_word(kind)][:_MOST_KINDS]
        self.names: dict[str, frozenset[str]] = {}
        """By kind: what the one thing of it goes by."""
        for one, other in combinations(alone, 2):
            if frozenset((one, other)) not in together and fields[one] & fields[other]:
                self.names |= {kind: frozenset(names[kind]) for kind in (one, other)}

    def topic_of(self, kinds: Mapping[str, object]) -> set[str]:
        """The kinds of a name as they are told apart: of all of these a sentence speaks as of one kind."""
        return {_ONE_OF_THEM if kind in self.names else kind for kind in kinds}


_ONE_OF_THEM = "=kind"


def _is_word(kind: str) -> bool:
    return len(kind) >= _SHORTEST and kind.isalpha() and kind not in STATES
