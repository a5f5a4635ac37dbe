"""Sentences as clauses: each with the word that leads it, which says whether it states, supposes or asks something."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from interlock.answers.statements.lexicon import Lexicon
from interlock.answers.statements.wording import Sentence


class Lead(StrEnum):
    """How a clause hangs on the one before it."""

    MAIN = "main"
    """It stands by itself, or goes on with `and`, `but` or a comma."""
    SUPPOSED = "supposed"
    """if, unless, whether: nothing is said to be so."""
    TIMED = "timed"
    """once, when, until: it may be still to come."""
    BOUND = "bound"
    """because, that, which, as: it is said to be so."""


class Clause(NamedTuple):
    """A part of a sentence with at most one verb group of its own, as far as words can tell."""

    words: tuple[str, ...]
    lead: Lead
    lead_word: str = ""
    first: bool = False
    """It begins its sentence."""
    end: str = ""
    """The mark that ends it."""


_BEFORE_THAT = frozenset({"by", "on", "at", "for", "from", "with", "of", "under", "to"})
"""Behind these "that" points to something, and opens no clause: "by that number"."""
_LONGEST = 80
"""More words than a clause has that anybody wrote; what is longer is read in pieces, so that the work has a bound."""
# What stands between a subject and its verb and adds nothing ("I have gone ahead and booked it"), and what is one verb.
_FILLERS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("gone", "ahead", "and"), ()),
    (("went", "ahead", "and"), ()),
    (("go", "ahead", "and"), ()),
    (("going", "ahead", "and"), ()),
    (("may", "or", "may", "not"), ("may",)),
    (("might", "or", "might", "not"), ("may",)),
)


def split_clauses(sentence: Sentence, words: Lexicon) -> Iterator[Clause]:
    """The clauses of a sentence, in one pass over its words."""
    tokens = _without_fillers(sentence.words)
    part: list[str] = []
    lead, lead_word, first = Lead.MAIN, "", True
    at = 0
    while at < len(tokens):
        word = tokens[at]
        width, opened = _lead_at(tokens, at, words)
        if word in words.ends or word in words.joins or opened is not None:
            if part:
                yield Clause(tuple(part), lead, lead_word, first, word if word in words.ends else "")
                first = False
                part = []
            # A comma ends what was supposed; "and" goes on with it: "if I cancel it and refund you".
            if opened is not None:
                lead, lead_word = opened, word
            elif word not in words.joins or word in ("but", "nor"):
                lead, lead_word = Lead.MAIN, word
            at += width
            continue
        part.append(word)
        at += 1
        if len(part) == _LONGEST:
            yield Clause(tuple(part), lead, lead_word, first)
            part, first = [], False
    if part:
        yield Clause(tuple(part), lead, lead_word, first)


def _lead_at(tokens: tuple[str, ...], at: int, words: Lexicon) -> tuple[int, Lead | None]:
    if tokens[at] not in words.lead_starts or (tokens[at] == "that" and at and tokens[at - 1] in _BEFORE_THAT):
        return 1, None
    for width in (3, 2, 1):
        phrase = " ".join(tokens[at : at + width])
        if len(tokens) - at < width:
            continue
        if phrase in words.opens:
            return width, Lead.SUPPOSED
        if phrase in words.times:
            return width, Lead.TIMED
    return 1, Lead.BOUND if tokens[at] in words.leads else None


def _without_fillers(tokens: tuple[str, ...]) -> tuple[str, ...]:
    if "ahead" not in tokens and "or" not in tokens:
        return tokens
    found: list[str] = []
    at = 0
    while at < len(tokens):
        filler = next((pair for pair in _FILLERS if tokens[at : at + len(pair[0])] == pair[0]), None)
        found += filler[1] if filler is not None else (tokens[at],)
        at += len(filler[0]) if filler is not None else 1
    return tuple(found)
