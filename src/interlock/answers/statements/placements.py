"""Where a thing is said to be by now, or to have been taken from: that is a deed of ours."""

from __future__ import annotations

from itertools import takewhile

from interlock.answers.statements.deeds import Deed
from interlock.answers.statements.lexicon import Lexicon
from interlock.answers.statements.reports import Reported

_IN = frozenset({"on", "in"})
_THE = frozenset({"the", "our", "your", "a", "his", "her", "their"})
_LONGEST = 4


def is_put_nowhere(deed: Deed, reported: Reported, words: Lexicon) -> bool:
    """Whether something is said to be on or in what no result has: "he is on the waiting list now"."""
    said = deed.clause[len(deed.subject) + 1 :]
    if not (_IN & {*said[:1]} and _THE & {*said[1:2]}):
        return False
    where = takewhile(lambda word: word not in words.prepositions, said[2 : 2 + _LONGEST])
    return not reported.names(words.verbs.stem(word) for word in where)
