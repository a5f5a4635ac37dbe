"""Texts that a change of the turn has replaced: "it is on the Basic tariff" after the change to another one.

Figures from before a change are known by their field. A text is a name or a state, and may be said of many things: it
is held only where the same field of the same thing says something else by now, or where only the old row has both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.rows import Row, plain_name

_WORD = re.compile(r"[^\W_]+")
_DATED = re.compile(r"^\d{4} \d\d")
_LEFT = re.compile(r"(?:^|_)(?:from|old|previous|source|before|origin|former)(?:_|$)", re.I)
_LONGEST, _MOST_WORDS, _MOST_OLD = 60, 6, 500
# What was: the words beside the text, or anywhere in the part of the sentence.
_BESIDE = re.compile(r"\b(?:from|instead of|rather than|off|not|than|left|to)\s+(?:\w+\s+){0,2}$", re.I)
_ANYWHERE = re.compile(
    r"\b(?:was|were|had|before|previous(?:ly)?|no longer|old|earlier|former(?:ly)?|used to|until|originally|prior|"
    r"replac\w+|ended|was|instead of)\b",
    re.I,
)
_FOLLOWING = re.compile(r"\s*(?:→|->|=>|\bto\b)")
_PERFECT = re.compile(
    r"(?:\b(?:have|has|had)|'ve)\s+(?:just\s+|now\s+|already\s+)?(?:been\s+)?\w+(?:ed|en|wn|nt|pt|ade|one|ut)\b"
    r"|\b(?:I|we)\s+\w+(?:ed|nt|pt|ade|ave|ook|ut)\b",
    re.I,
)
_ATTRIBUTE = re.compile(r"(?:\b(?:the|your|his|her|their|its|our|this|that|a|an)|'s)\s+$", re.I)


class Superseded:
    """What fields of things said before a change, where the results say something else of the same field since."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._old: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        """By its first word: the words of what was so before."""
        stale = [fact for fact in facts_of(facts, "stale") if _is_value(fact)][:_MOST_OLD]
        if not stale:
            return
        # The name of a field is a fact, too, and no value of it.
        fresh = [fact for fact in facts if not fact.stale and not fact.echo and not fact.is_key]
        # Where something was moved from is in the results of the change, too.
        known = {
            plain_name(fact.text)
            for fact in fresh
            if len(fact.text) <= _LONGEST and not fact.asked and not _LEFT.search(fact.place.name)
        }
        said: dict[tuple[str, str], set[str]] = defaultdict(set)
        """By field and name of the thing: what is said of it now."""
        for fact in fresh:
            for name in _ids(fact.place.row) if fact.text else ():
                said[(fact.place.name, name)].add(plain_name(fact.text))
        for fact in stale:
            text = plain_name(fact.text)
            now = set[str]().union(*(said.get((fact.place.name, name), ()) for name in _ids(fact.place.row)))
            if now - {text} and text not in known:
                self._old[text.partition(" ")[0]].add(tuple(text.split()))

    def __bool__(self) -> bool:
        return bool(self._old)

    def find(self, text: str, start: int) -> Iterator[tuple[int, int]]:
        """Where a part of a sentence says as true now what was so before a change."""
        if not self._old:
            return
        words = [(match[0].lower(), match.start(), match.end()) for match in _WORD.finditer(text)]
        for at in range(len(words)):
            for old in self._old.get(words[at][0], ()):
                if tuple(word for word, _s, _e in words[at : at + len(old)]) == old:
                    left, right = words[at][1], words[at + len(old) - 1][2]
                    if not is_past(text, left, right):
                        yield start + left, start + right


def is_past(text: str, left: int, right: int) -> bool:
    """Whether what stands at a place of a part of a sentence is said as what was."""
    before, after = text[max(0, left - 40) : left], text[right : right + 12]
    if _BESIDE.search(before) or _FOLLOWING.match(after) or _ANYWHERE.search(text):
        return True
    # "I've cancelled the tentative appointment": what it was is said of the thing that the deed was done to.
    return bool(_ATTRIBUTE.search(before) and _PERFECT.search(text[:left]))


def _is_value(fact: Fact) -> bool:
    """Whether a fact is a short text that a field has: not a sentence, a date or a code that many have."""
    text = fact.text
    if not text or not fact.trusted or fact.echo or fact.asked or fact.prose or len(text) > _LONGEST:
        return False
    return any(char.isalpha() for char in text) and text.count(" ") < _MOST_WORDS and text[:4].isdigit() is False


def _ids(row: Row) -> Iterable[str]:
    """The codes of the innermost row that has any: what it is inside of has other rows, too."""
    for one in row.chain():
        names = {name for same in one.names.values() for name in same}
        found = {name for name in names if is_code(name)}
        if found:
            return found
    return ()


def is_code(name: str) -> bool:
    """Whether a plain name is one that a single thing has: it has a digit, and is no date."""
    return any(map(str.isdigit, name)) and not _DATED.match(name)
