"""An answer that could have been written without calling anything: it rests on no result."""

from __future__ import annotations

import re
from collections.abc import Sequence

from interlock.answers.grounding import Grounded, Source
from interlock.answers.history import History
from interlock.answers.statements import EffectStatement
from interlock.answers.statements.verb_groups import Stance
from interlock.values import Json, Status

_WORD = re.compile(r"[^\W\d_]{4,}")  # four letters and more: shorter words are in any text
_ENOUGH = 2


def is_irrelevant(
    draft: str,
    question: str,
    grounded: Grounded,
    history: History,
    given: Sequence[Source],
    statements: Sequence[EffectStatement],
) -> bool:
    """Whether neither a figure nor enough words of the draft come from the results, but for those in the question.

    What the records agree to was done, or was looked for and not found, is something to rest on, too, and so is the
    name of a flag: whether it is said the right way round is looked at elsewhere. A bare "yes" rests on nothing.
    """
    if grounded.cites:
        return False
    if not (given or any(call.status is Status.OK for call in history.calls)):
        return not history.calls  # nothing was called at all
    changed = any(call.changes for call in history.calls)
    empty = any(call.status is Status.NO_DATA for call in history.calls)
    if any(one.agrees and (changed or (empty and one.stance is Stance.FAILED)) for one in statements):
        return False
    said, values = _text_words(draft), [_proven(source) for source in (*history.sources, *given)]
    if said & {word for value in values for word in _flag_words(value)}:
        return False
    there = {word for value in values for word in _words(value)}
    # Words of the question prove nothing: a model that called no tool has them too.
    return len((said & there) - _text_words(question)) < max(1, min(_ENOUGH, len(there)))


def _proven(source: Source) -> Json:
    """What a source has that is no prose of a model."""
    if not isinstance(source.value, dict):
        return source.value
    return {name: value for name, value in source.value.items() if name not in source.apart}


def _flag_words(value: Json) -> set[str]:
    """The words of the fields that are true or false."""
    if isinstance(value, dict):
        names = {word for name, item in value.items() if isinstance(item, bool) for word in _text_words(name)}
        return names.union(*map(_flag_words, value.values()))
    return set[str]().union(*map(_flag_words, value)) if isinstance(value, list | tuple) else set()


def _words(value: Json) -> set[str]:
    if isinstance(value, str):
        return _text_words(value)
    if isinstance(value, dict):
        return {word for item in value.values() for word in _words(item)}
    if isinstance(value, list | tuple):
        return {word for item in value for word in _words(item)}
    return set()


def _text_words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text.replace("_", " "))}
