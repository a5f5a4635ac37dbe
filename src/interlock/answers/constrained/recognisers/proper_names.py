"""Proper names: which words of a text are written as the name of something, whether or not it is on file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlock.answers.constrained.tables import openings
from interlock.embedding.wordpiece import vocabulary
from interlock.tools import normalize

_MOST_RUNS = 100
"""So many different runs of capitalised words are looked at."""
_RUN = re.compile(r"(?<![\w'’-])[A-Z][\w'’-]*+(?:[ \t]++[A-Z][\w'’-]*+)*+")
_WORD = re.compile(r"[^\W\d_]{4,}")
_BEFORE = re.compile(r"(?<![\w'’-])([A-Z][\w'’-]{0,60})\s{1,8}$")
_AFTER = re.compile(r"\s{1,8}([A-Z][\w'’-]{0,60})")
_LOOK_BACK = 80
_SENTENCE_END = re.compile(r"(?:^|[.?!:;\n])[\s\"'“‘(]*$")
_ENOUGH_WORDS = 4
_NEARLY_ALL = 0.8


def proper_names(text: str, plain: frozenset[str]) -> tuple[str, ...]:
    """Runs of capitalised words that say more than plain words do, each once and as it stands there."""
    return tuple(dict.fromkeys(_find_runs(text, plain)))[:_MOST_RUNS]


def _find_runs(text: str, plain: frozenset[str]) -> Iterator[str]:
    for found in _RUN.finditer(text):
        words = found[0].split()
        if _begins_sentence(text, found.start()) and _is_opening(words, plain):
            words = words[1:]
        if any(is_telling(word, plain) for word in words):
            yield " ".join(words)


def is_telling(word: str, plain: frozenset[str]) -> bool:
    """Whether a word can be what tells one name from another."""
    return any(len(part) > 2 and part not in plain for part in normalize(word).split())


def _is_opening(words: list[str], plain: frozenset[str]) -> bool:
    """Whether the first word of a sentence is one that any sentence can begin with, and not the begin of a name."""
    first = normalize(words[0])
    # An ordinary word that stands alone tells nothing: every sentence begins with a capital.
    return first in plain or first in openings() or (len(words) == 1 and first in vocabulary())


def is_all_capitalised(text: str) -> bool:
    """Whether nearly every word is capitalised, as in a title: then capitals tell nothing about names."""
    words = _WORD.findall(text)
    return len(words) >= _ENOUGH_WORDS and sum(word[0].isupper() for word in words) >= _NEARLY_ALL * len(words)


def stands_alone(text: str, name: str, plain: frozenset[str]) -> bool:
    """Whether a name is said by itself at least once, and not only as a part of a longer name.

    "Old Mill Road" is not about the Mill Road.
    """
    if is_all_capitalised(text):
        return True
    words = r"[\W_]+".join(map(re.escape, name.split()))
    mentions = list(re.finditer(rf"(?<!\w){words}(?!\w)", text, re.I))
    # Written in another way than it is compared, with accents for instance: nothing can be said about its neighbours.
    if not mentions:
        return True
    return any(_is_own(found[0]) or not _has_neighbour(text, *found.span(), plain) for found in mentions)


def _is_own(mention: str) -> bool:
    """Whether a mention is no part of a name: an abbreviation (Miller Street VAT) or a word (Miller Street tills)."""
    return mention.isupper() or (mention.islower() and len(mention.split()) == 1)


def _has_neighbour(text: str, start: int, end: int, plain: frozenset[str]) -> bool:
    after = _AFTER.match(text, end)
    if after is not None and _is_part(after[1], plain):
        return True
    before = _BEFORE.search(text[max(0, start - _LOOK_BACK) : start])
    if before is None or not _is_part(before[1], plain):
        return False
    begin = start - len(before[0])
    return not (_begins_sentence(text, begin) and normalize(before[1]) in openings())


def _is_part(word: str, plain: frozenset[str]) -> bool:
    """Whether a capitalised word may belong to a name: no abbreviation, no code, none of the plain words."""
    return not word.isupper() and not any(c.isdigit() for c in word) and is_telling(word, plain)


def _begins_sentence(text: str, place: int) -> bool:
    return _SENTENCE_END.search(text[max(0, place - 4) : place]) is not None if place else True
