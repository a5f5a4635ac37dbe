"""Turns that found nothing: an answer may say that, and not that there is something.

Nothing of a draft can be traced where no result has a value, so a plain "yes, you have some" would pass as small talk.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.requirements import CallSeen
from interlock.answers.statements.deeds import EffectStatement
from interlock.answers.statements.lexicon import Lexicon
from interlock.answers.statements.verb_groups import Stance
from interlock.answers.statements.wording import Sentence
from interlock.values import Status, shorten

_AGREEING = frozenset({"yes", "yep", "yeah", "indeed", "correct", "certainly"})
_SEARCHES = frozenset({"find", "locate", "trace"})
_EMPTY = frozenset({"unable", "empty", "zero", "0", "unknown", "missing", "without", "nowhere", "failed", "else"})


def found_nothing(calls: Sequence[CallSeen]) -> bool:
    """Whether things were looked for, none was found, and nothing else was done or tried."""
    return bool(calls) and all(call.status is Status.NO_DATA and not call.changes for call in calls)


def find_unfounded(sentences: Sequence[Sentence], words: Lexicon) -> EffectStatement | None:
    """The sentence by which a draft says that there is something after all: "yes", or no word of nothing at all."""
    denying = words.negations | words.none | _EMPTY
    agreeing = (one for one in sentences if one.words[0] in _AGREEING and denying.isdisjoint(one.words))
    wrong = next(agreeing, None)
    if wrong is None and all(denying.isdisjoint(one.words) for one in sentences):
        wrong = next((one for one in sentences if not one.asks), None)
    if wrong is None:
        return None
    return EffectStatement(shorten(wrong.text, 300), Stance.DONE, agrees=False, why="nothing was found in this turn")


def find_not_found(sentences: Sequence[Sentence], calls: Sequence[CallSeen], words: Lexicon) -> EffectStatement | None:
    """The sentence by which a draft says of a search that found nothing just that, where it says nothing else."""
    if not any(call.status is Status.NO_DATA and not call.changes for call in calls):
        return None
    denying = words.negations | words.none | _EMPTY
    stated = [one for one in sentences if not one.asks]
    if any(denying.isdisjoint(one.words) or words.contrasts & {*one.words} for one in stated):
        return None
    said = next((one for one in stated if words.ours & {*one.words} and _SEARCHES & {*one.words}), None)
    return None if said is None else EffectStatement(shorten(said.text, 300), Stance.FAILED, agrees=True)
