"""What a question asks for: the kind of value, and the words that say what it is about."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from itertools import islice

import msgspec

from interlock.embedding import vocabulary
from interlock_argo.answering.days import MONTHS, Day, find_days

_LONGEST = 2_000
_MOST_TERMS = 24
_MISSPELLED = 0.85
_YEAR = 4
_WORD = re.compile(r"[^\W_](?:(?:[^\W_]|[’'.,-](?=[^\W_]))*[^\W_])?|[€$£°](?:[CF]\b)?")
_DAY_WORDS = "{day} {month} {year}"
_INNER = re.compile(r"[-.,]")
_ENDINGS = ("ings", "ing", "edly", "ied", "ies", "ed", "es", "s")
_SHORTEST_STEM = 3
_ABOUT_ME = re.compile(
    r"\b(?:know|remember|remembered|noted|stored|saved|told you|have on file|on file) (?:all |everything )?"
    r"(?:about|of) me\b"
    r"|\bwhat (?:do|did|have) (?:you|i) (?:know|remember|told?|say|tell you|noted?)(?: you)?"
    r" (?:so far|about me|about myself)\b",
    re.I,
)
_COMPARES = re.compile(
    r"\b(?:or|than|versus|vs\.?|both|difference|compare|compared|which (?:one )?(?:of|is|was|has)|each|respectively)\b",
    re.I,
)


_LATEST = re.compile(
    r"\b(?:now|nowadays|currently|current|today|latest|newest|by now|these days|at the moment|still)\b", re.I
)


class AskedKind(msgspec.Struct, frozen=True):
    """A kind of value that questions ask for."""

    name: str
    asks: re.Pattern[str]
    says: re.Pattern[str]
    drops: tuple[str, ...] = ()
    """Words of a question that only ask for it, and say nothing of what it is about."""


class Term(msgspec.Struct, frozen=True):
    """A word that says what a question is about, with those that are used for it."""

    word: str
    alike: frozenset[str]
    """Stems."""
    is_name: bool = False
    """It has a capital or a figure, or is no common word: nothing else is meant by it."""
    share: float = 1.0
    """How much it counts: less where it was said in an earlier question."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """A question, as far as it is understood without a model."""

    text: str
    kinds: tuple[AskedKind, ...]
    terms: tuple[Term, ...]
    about_me: bool = False
    """It asks for all that its author has said of themselves."""
    compares: bool = False
    """It is about more than one thing."""
    latest: bool = False
    """It asks for how it is now."""

    def is_said_by(self, statement: str) -> bool:
        """Whether a statement has a value of a kind that is asked for; of no kind every statement has one."""
        return not self.kinds or any(kind.says.search(statement) for kind in self.kinds)


class _Words(msgspec.Struct, frozen=True):
    stop: frozenset[str]
    kinds: tuple[AskedKind, ...]
    alike: dict[str, frozenset[str]]


@cache
def _words() -> _Words:
    table = tomllib.loads((files("interlock_argo.answering") / "kinds.toml").read_text(encoding="utf-8"))
    kinds = (
        # What says a name has a capital; of everything else the case is no matter.
        AskedKind(
            one["name"],
            re.compile(one["asks"], re.I),
            re.compile(one["says"], 0 if one["name"] == "person" else re.I),
            tuple(one.get("drops", "").split()),
        )
        for one in table["kind"]
    )
    return _Words(frozenset(table["stop"].split()), tuple(kinds), _groups(table["same"]))


def _groups(same: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """For each stem all that is said for it."""
    found: dict[str, frozenset[str]] = {}
    for line in same.values():
        group = frozenset(map(stem, line.split()))
        for one in group:
            found[one] = found.get(one, frozenset()) | group
    return found


def stem(word: str) -> str:
    """A word without its ending: near enough for a question and a statement to meet."""
    plain = word.casefold().removesuffix("'s").removesuffix("’s").replace("’", "'")
    if any(map(str.isdigit, plain)):
        return plain
    for ending in _ENDINGS:
        rest = plain.removesuffix(ending)
        if rest != plain and len(rest) >= _SHORTEST_STEM and not plain.endswith("ss"):
            return (rest[:-1] if len(rest) > _SHORTEST_STEM and rest[-1:] == rest[-2:-1] else rest).removesuffix("e")
    return plain.removesuffix("e") if len(plain) > _SHORTEST_STEM + 1 else plain


def stems(text: str) -> frozenset[str]:
    """The stems of all words of a text; of a word with a hyphen also those of its parts."""
    found = set(map(_as_word, find_days(text)))
    for word in _WORD.findall(text):
        found.add(stem(word))
        if parts := _INNER.split(word)[1:]:
            found.update(map(stem, (word, *parts, _INNER.split(word)[0])))
    return frozenset(found)


def read_question(question: str) -> Asking:
    """A question as it is understood."""
    text, words = question[:_LONGEST], _words()
    kinds = tuple(kind for kind in words.kinds if kind.asks.search(text))[:1]
    return Asking(
        text=text,
        kinds=kinds,
        terms=tuple(islice(_terms(text, words, kinds), _MOST_TERMS)),
        about_me=_ABOUT_ME.search(text) is not None,
        compares=_COMPARES.search(text) is not None,
        latest=_LATEST.search(text) is not None,
    )


def _as_word(day: Day) -> str:
    """A day as one word, which no other day shares."""
    return "-".join(f"{part:02}" for part in day)


def _is_telling(word: str) -> bool:
    """Whether a word is no common one: a name, a year, an id. A short figure may be only how much something is."""
    plain = word.casefold()
    figures = sum(map(str.isdigit, plain))
    if figures:
        return figures >= _YEAR or figures < len(plain) - sum(mark in ".,-" for mark in plain)
    return not any(form in vocabulary() for form in (plain, stem(plain), *_INNER.split(plain)))


def _terms(text: str, words: _Words, kinds: Iterable[AskedKind]) -> Iterable[Term]:
    seen, first = set[str](), True
    dropped = {stem(word) for kind in kinds for word in kind.drops}
    for day in find_days(text):  # as one word: it is on no other day of that month, nor of that year
        dropped |= stems(_DAY_WORDS.format(day=day[2], year=day[0], month=MONTHS[day[1] - 1])) - {_as_word(day)}
        yield Term(_as_word(day), frozenset({_as_word(day)}), is_name=True)
    for found in _WORD.finditer(text):
        word, at_begin = found[0], first or text[: found.start()].rstrip().endswith((".", "?", "!"))
        first = False
        root = stem(word)
        if (
            word.casefold().replace("’", "'") in words.stop
            or root in dropped
            or root in seen
            or (len(word) == 1 and not word.isdigit())
        ):
            continue
        seen.add(root)
        known = words.alike.get(root)
        is_name = known is None and ((word[0].isupper() and not at_begin) or _is_telling(word))
        if is_name and get_close_matches(word.casefold(), words.stop, n=1, cutoff=_MISSPELLED):
            continue
        yield Term(word, known or frozenset({root}), is_name)
