"""Figures of the user in an answer: repeated as theirs, as what was asked about, never as what was found.

"You said 12", "for the 250 seats", "under $500" and "18 * 240" say whose the figure is. "It weighs 40 kg" does not, and
neither does "a weight of 40 kg" where a result has that field.
"""

from __future__ import annotations

import re

from interlock.answers.grounding.binding import Bound
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.cues import Cues
from interlock.answers.grounding.field_fit import FieldFit
from interlock.answers.grounding.sentences import Sentences

_BEFORE = 28
_IN_QUESTION = re.compile(
    r"\b(?:over|under|above|below|than|at (?:least|most)|up to|within|between|until|till|by|before|after|since|"
    r"exceeds?|reach(?:es)?|beyond|past|for|of|at|with|on|in|from|to|against|(?:between|from) \S{1,10} (?:and|to)|and)"
    r"\s+(?:(?:the|an?|your|all|these|those|any)\s+)?\W?$|\b(?:the|your|all|these|those)\s+$",
    re.I,
)
"""What stands before a figure that the question has set: a bound, or what it is asked for."""
_BECAME = re.compile(
    r"\b(?:went|gone|goes|rose|risen|fell|fallen|dropp?e?d?s?|chang(?:es|ed)|increas(?:es|ed)|decreas(?:es|ed)|rais(?:es|ed)|"
    r"lower(?:s|ed)|mov(?:es|ed)|came|cuts?|reduc(?:es|ed)|climb(?:s|ed)|jump(?:s|ed)|adjust(?:s|ed)|updat(?:es|ed)|grew|"
    r"grown|shrank|up|down|back|now)\s+(?:from\s+\S{1,12}\s+)?(?:to|at|by)\s+\W?$",
    re.I,
)
"""What stands before a figure that something has become: that is a finding, whoever has named it first."""


class UsersWords:
    """Whether a figure that only the user has said may stand in an answer."""

    def __init__(self, sentences: Sentences, cues: Cues, fields: FieldFit) -> None:
        self._sentences, self._cues, self._fields = sentences, cues, fields

    def may_repeat(self, claim: Claim, bound: Bound) -> bool:
        """Whether it is said as theirs, or as what was asked about, and of no field that the results have."""
        if self._cues.has("user", claim) or self._fields.is_computed(claim):
            return True
        if self._fields.contradicts(claim, bound):
            return False
        if self._cues.has("none", claim) or self._fields.is_computed_beside(claim):
            return True
        before = self._sentences.text[max(0, claim.start - _BEFORE) : claim.start]
        return _IN_QUESTION.search(before) is not None and _BECAME.search(before) is None
