"""Which rows a count is of: two visits with one doctor are not two of each patient who has one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.rows import Row
from interlock.answers.grounding.sentences import Sentences

_MOST_ROWS = 500
_MOST_WORDS = 4
"""So many words may stand between who has something and how many: "Elena still has only two"."""
_Shared = tuple[str, str, str]
"""A list by its column, a field of its rows, and the value that they share; both empty for the whole list."""


class CountedRows:
    """The rows behind the counts of the results, held against whose they are said to be."""

    def __init__(self, sentences: Sentences, mentions: Sequence[Mention], facts: Sequence[Fact]) -> None:
        self._sentences, self._mentions, self._facts = sentences, mentions, facts

    def are_of_others(self, fact: Fact, claim: Claim) -> bool:
        """Whether a count has rows in it of another thing than the one that is said to have so many."""
        shared = _shared_by(fact)
        rows = once(self._facts, _rows_alike).get(shared, ())
        for owner in self._mentions if rows else ():
            if self._stands_beside(owner, claim):
                fits = {_fit(owner, row) for row in rows}
                # A list without a row of its own has others in it than are named: it says what there is for all.
                if -1 in fits and 1 in fits:
                    return True
        return False

    def _stands_beside(self, mention: Mention, claim: Claim) -> bool:
        if mention.soft or mention.is_date or mention.compared or mention.start <= claim.start < mention.end:
            return False
        first, last = min(mention.end, claim.end), max(mention.start, claim.start)
        same = self._sentences.at(mention.start) == self._sentences.at(claim.start)
        near = self._sentences.text.count(" ", first, last) <= _MOST_WORDS
        return same and near and not self._sentences.breaks(first, last)


def _fit(mention: Mention, row: Row) -> int:
    """1: the row is of what is named; -1: it goes by another name of that kind; 0: it says nothing of it."""
    have = [(row.names_of_kind(kind), wanted) for kind, wanted in mention.names.items()]
    return 1 if any(names & wanted for names, wanted in have) else -1 if any(names for names, _w in have) else 0


def _shared_by(count: Fact) -> _Shared:
    """What counted rows have in common, as the path of their count has it: `visits[doctor=Hale].length`."""
    column = count.place.column
    if column.endswith(".length"):
        return column.removesuffix(".length"), "", ""
    _before, _mark, shared = count.place.path.removesuffix("].length").rpartition("[")
    key, _equal, value = shared.partition("=")
    return column.removesuffix("[]"), key, value


def _rows_alike(facts: Sequence[Fact]) -> dict[_Shared, list[Row]]:
    found: dict[_Shared, list[Row]] = defaultdict(list)
    for fact in facts_of(facts, "text", "truth"):
        column, _mark, key = fact.place.column.rpartition("[].")
        for shared in ((column, key, fact.text or str(fact.truth)), (column, "", "")):
            if column and len(found[shared]) < _MOST_ROWS:
                found[shared].append(fact.place.row)
    return found
