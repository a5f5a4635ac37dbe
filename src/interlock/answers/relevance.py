"""An answer that could have been written without calling anything: it rests on no result."""

from __future__ import annotations

import re

from interlock.answers.grounding import Grounded
from interlock.answers.history import History
from interlock.values import Json, Status

_WORD = re.compile(r"[^\W\d_]{4,}")  # four letters and more: shorter words are in any text
_ENOUGH = 2


def is_irrelevant(draft: str, question: str, grounded: Grounded, history: History) -> bool:
    """Whether neither a figure nor enough words of the draft come from the results, but for those in the question."""
    # That a change was made is the answer; there is nothing more in it to rest on.
    changed = any(call.changes for call in history.calls)
    if grounded.cites or changed or not any(call.status is Status.OK for call in history.calls):
        return False
    there = {word for source in history.sources for word in _words(source.value)}
    if not there:
        return False  # the results hold nothing but truths and figures that need no saying
    # Words of the question prove nothing: a model that called no tool has them too.
    return len((_text_words(draft) & there) - _text_words(question)) < min(_ENOUGH, len(there))


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
