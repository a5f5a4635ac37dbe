"""An answer that could have been written without calling anything: it rests on no result."""

from __future__ import annotations

import re

from interlock.grounding import Grounded
from interlock.turn.trail import Trail
from interlock.values import Json, Status

_WORD = re.compile(r"[^\W\d_]{4,}")
_ENOUGH = 2
_STEM = 5
_LITTLE_WORDS = frozenset(
    word[:_STEM]
    for word in "that this with from have been were they their there than then which about into according facts result"
    " results shows show given based".split()
)


def is_vacuous(draft: str, question: str, grounded: Grounded, trail: Trail) -> bool:
    """Whether neither a figure nor enough words of the draft come from the results, but for those in the question."""
    if grounded.cites or not any(call.status is Status.OK and not call.changes for call in trail.calls):
        return False
    there = {word for source in trail.sources for word in _words(source.value)}
    if not there:
        return False  # the results hold nothing but truths and figures that need no saying
    return len((_text_words(draft) & there) - _text_words(question)) < min(_ENOUGH, len(there))


def only_repeats(draft: str, question: str, trail: Trail) -> bool:
    """Whether a draft says nothing but words of the results, their fields and the question.

    A model that cannot follow instructions may copy figures into sentences that are not true; it may only repeat.
    """
    there = {word[:_STEM] for source in trail.sources for word in _words(source.value) | _fields(source.value)}
    there |= {word[:_STEM] for word in _text_words(question)} | _LITTLE_WORDS
    return all(word[:_STEM] in there for word in _text_words(draft))


def _fields(value: Json) -> set[str]:
    if isinstance(value, dict):
        own = {word for key in value for word in _text_words(str(key))}
        return own.union(*(_fields(item) for item in value.values()))
    return set().union(*(_fields(item) for item in value)) if isinstance(value, list | tuple) else set()


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
