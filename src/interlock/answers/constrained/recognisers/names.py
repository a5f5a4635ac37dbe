"""Known values by their names: which of a tool's places, customers or files a question speaks of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from interlock.answers.constrained.grammar import spans
from interlock.answers.constrained.recognisers.choices import is_negated
from interlock.answers.constrained.recognisers.proper_names import is_all_capitalised, is_telling, stands_alone
from interlock.answers.constrained.tables import common_words, openings
from interlock.embedding.wordpiece import vocabulary
from interlock.tools import match_values, normalize
from interlock.tools.name_index import NameIndex

_MOST_WORDS = 5
_MOST_RUNS = 100
"""So many different runs of capitalised words are held against the known values."""
_MOST_FITS = 200
_NAMES = re.compile(r"(?<![.?!]\s)(?<!^)\b[A-Z][\w'’-]*+(?:\s++[A-Z][\w'’-]*+)*+")
"""Runs of capitalised words, but for the first of a sentence."""
_FIRST = re.compile(r"\W*([A-Z]\w{5,})")  # the first word is always capitalised: it counts only if it is long
# NW-9 or 12-ABC, but no part of an address, a path or a longer code.
_CODE = re.compile(r"(?<![\w/.-])(?:[A-Za-z]{1,5}-\d{1,4}|\d{1,4}-[A-Z]{3,})(?![\w/-])")
_KIND = r"((?:[A-Z0-9][\w'’-]{0,60}\s{1,8}){1,6})"
"""A name in front of what it is the name of: "Old Mill shop"; bounded, or a long question would take its square."""
_SMALL = r"((?:[a-z][\w'’-]{0,60}\s{1,8}){2,4})"
Known = Mapping[str, Sequence[str]]
"""Values, and everything that each is called."""


def find_names(text: str, known: Known, kinds: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The known values that a text speaks of; where its words fit several, those words, so that somebody is asked.

    `kinds`: words that say what a thing is ("street"), and not which one.
    """
    spelled = {value: [p for name in names if (p := normalize(name))] for value, names in known.items()}
    common, index = common_words() | _generic(spelled) | kinds, NameIndex(known, kinds)
    whole = _find_whole(text, spelled, common)
    if whole:
        return whole
    text = _without_denied(text, spelled)
    capitalised, unknown = _find_capitalised(text, index, common)
    if capitalised:
        return capitalised
    # A word of a name that is none of them names nothing by itself: "Snake River" is not the only river on file.
    rest = text.replace(unknown, "…") if unknown and not is_all_capitalised(text) else text
    telling, unsure = _find_by_words(rest, index, spelled, common)
    if telling:
        return telling
    if unknown:
        return (unknown,)  # a name that is none of them is said as it is, and found to be nothing on file
    return (unsure,) if unsure else ()


def _find_whole(text: str, spelled: Mapping[str, Sequence[str]], common: frozenset[str]) -> tuple[str, ...]:
    """Values whose name stands in the text as it is, and in no longer name."""
    words = f" {normalize(text)} "
    named = {
        value: max((n for n in names if f" {n} " in words and not is_negated(words, n)), key=len, default="")
        for value, names in spelled.items()
    }
    plain = common | {word for name in named.values() for word in name.split()}
    said = {value: name for value, name in named.items() if name and stands_alone(text, name, plain)}
    together = "|".join(f" {name} " for name in dict.fromkeys(said.values()))
    whole = tuple(value for value, name in said.items() if together.count(f" {name} ") == 1)
    shared = Counter(said[value] for value in whole)
    same = next((name for name, count in shared.items() if count > 1), "")
    return (same,) if same else whole  # one name for two things: somebody has to say which


def _without_denied(text: str, spelled: Mapping[str, Sequence[str]]) -> str:
    """A text without the names that it says are not meant: they name nothing by a part of them either."""
    words = f" {normalize(text)} "
    denied = {name for names in spelled.values() for name in names if f" {name} " in words and is_negated(words, name)}
    for name in sorted(denied, key=len, reverse=True)[:_MOST_RUNS]:
        said = r"[\W_]+".join(map(re.escape, name.split()))
        text = re.sub(rf"\b{said}\b", "…", text, flags=re.I)
    return text


def _find_capitalised(text: str, index: NameIndex, common: frozenset[str]) -> tuple[tuple[str, ...], str]:
    """The value that a capitalised run of words means; beside it, the first run that means none."""
    unknown = ""
    for run in tuple(dict.fromkeys(_NAMES.findall(text)))[:_MOST_RUNS]:
        telling = [word for word in run.split() if is_telling(word, common)]
        if telling:
            # What it is need not be part of what it is called: "Old Mill Road" may be on file as Old Mill.
            fits = index.match(run) or index.match(" ".join(telling))
            if len(fits) == 1:
                return fits, unknown
            unknown = unknown or run
    first = _FIRST.match(text)
    fits = index.match(first[1]) if first and normalize(first[1]) not in common else ()
    return (fits if len(fits) == 1 else ()), unknown


def _find_by_words(
    text: str, index: NameIndex, spelled: Mapping[str, Sequence[str]], common: frozenset[str]
) -> tuple[tuple[str, ...], str]:
    """The value that some words in a row mean, longest first; beside it, words that fit several."""
    unsure = ""
    known_words = {word for names in spelled.values() for name in names for word in name.split()}
    # Longest first: "Old Mill North" is one thing, "Old Mill" may be several.
    for span in sorted(spans(text), key=lambda item: -len(item.split())):
        telling = [word for word in normalize(span).split() if len(word) > 3 and word not in common]
        if not telling or len(span.split()) > _MOST_WORDS:
            continue
        if len(telling) == 1 and telling[0] not in known_words and telling[0] in vocabulary():
            continue  # an ordinary word is not a misspelled name
        fits = index.match(" ".join(telling))
        # What fits very many names none of them, whichever word it begins with.
        headed = tuple(v for v in fits if _heads(telling, spelled[v])) if len(fits) <= _MOST_FITS else ()
        if len(headed) == 1:
            return headed, unsure
        unsure = unsure or (" ".join(telling) if len(fits) > 1 else "")
    return (), unsure


def named_as(name: str, text: str, known: Known) -> tuple[str, ...]:
    """What a text names by the argument's own word ("sector NW-9"), or by a code of the same shape as the known ones.

    It is none of the known values, and will be found to be nothing on file.
    """
    kind = re.escape(normalize(name).split()[0])
    said = re.search(rf"(?i:\b{kind})\s+([A-Z0-9][\w-]*)", text) or re.search(rf"{_KIND}(?i:{kind})\b", text)
    if said is not None and said[1].strip("… "):
        return (said[1].strip(),)
    # Without capitals it takes an article, the kind, and words between them that all tell something.
    plain = re.search(rf"(?i:\bthe)\s{{1,8}}{_SMALL}{kind}\b", text)
    if plain is not None and all(is_telling(word, common_words() | openings()) for word in plain[1].split()):
        return (plain[1].strip(),)
    shapes = {_shape(value) for value in known}
    like = next((word for word in _CODE.findall(text) if _shape(word) in shapes), "")
    return (like,) if like else ()


def names_in(text: str, known: Known) -> frozenset[str]:
    """The names of known values that stand in a text as they are."""
    words = f" {normalize(text)} "
    return frozenset(p for names in known.values() for name in names if (p := normalize(name)) and f" {p} " in words)


def _shape(value: str) -> str:
    """What a code looks like: B-04 and SE-4 are letters, a hyphen, digits."""
    return re.sub(r"[A-Za-z]+", "A", re.sub(r"\d+", "9", value))


def _generic(spelled: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Words that nearly all values have in common ("street"): they name none of them."""
    counts = Counter(word for names in spelled.values() for word in {w for name in names for w in name.split()})
    # Nine in ten, and at least two: the words of the only value on file still name it.
    return frozenset(word for word, count in counts.items() if count > 1 and 10 * count > 9 * len(spelled))


def _heads(words: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the first word of a name is meant: "mountain" alone names no mountain."""
    return any(match_values(word, {"": (name.split()[0],)}) for word in words for name in names)
