"""What the calls of a turn have brought about, said in other words than those of their tools.

After a meter reading was entered the bill is another one: "it has been corrected" is so where a later read says
something else of the very thing than an earlier one did. And "that's booked" is said of whatever was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.grounding.rows import plain_name
from interlock.answers.statements.deeds import Deed, Doer
from interlock.answers.statements.effect_calls import EffectCall
from interlock.answers.statements.lexicon import Lexicon
from interlock.answers.statements.touched import Objects

_SHORTEST = 4
_ALONE = 4
"""A sentence of so few words names nothing: "That's booked now"."""
_THAT = frozenset({"that", "it", "this"})


class Consequences:
    """What follows from calls, where all that were tried were made."""

    def __init__(self, calls: Sequence[EffectCall], objects: Objects, words: Lexicon) -> None:
        self._made = calls if all(call.is_done for call in calls) else ()
        self._objects, self._words = objects, words
        self._changed: frozenset[str] | None = None  # worked out where it is asked for

    def has(self, deed: Deed) -> bool:
        """Whether a deed that is no tool's own is what a call has brought about."""
        if deed.doer is not Doer.NOBODY or not self._made:
            return False
        if deed.verb in self._words.amendments:
            if self._changed is None:
                self._changed = self._objects.changed_codes([call.effect.record for call in self._made])
            return any(plain_name(word) in self._changed for word in deed.clause)
        return self._is_that(deed)

    def _is_that(self, deed: Deed) -> bool:
        """ "That's booked": a word for anything that is written down, said of what the sentence names of a call."""
        words, subject = deed.sentence.words, deed.subject or deed.sentence.words[:1]  # "that" opens its clause
        if deed.verb not in self._words.entries or len(subject) > 1 or subject[0] not in _THAT:
            return False
        said = {self._words.verbs.stem(word) for word in words if len(word) >= _SHORTEST}
        named = said - {deed.verb} - self._words.plain
        return len(words) <= _ALONE or any(named & call.words for call in self._made)
