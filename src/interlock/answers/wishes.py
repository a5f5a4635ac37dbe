"""What a user wishes a turn not to do: phrases by which that is said, and the tools that are withheld then.

A wish is recognised by its words alone and where it is said, not meant; it can only take tools away.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from interlock.errors import ConfigError
from interlock.values import Value
from interlock.wrong_values import check_fields

_TOKEN = re.compile(r"[^\W_]+|[.,;:!?()\[\]{}\"“”„«»\n–—]|\s-+\s")
_QUOTED = re.compile(r"[\"“„«][^\"“”„«»\n]{1,80}[\"”“»]|(?<!\w)['‘][^'’\n]{1,80}['’](?!\w)")
"""Words that are spoken of, and not said."""
_NOT = re.compile(r"n['’´`]t\b", re.I)
_REACH = 4
"""A denial counts for so many words after it."""
_GAP = 3
_LONGEST = 20_000
"""Characters of a text that are looked through at each end; a wish in the middle of a book is not one."""


class Withheld(Value, frozen=True):
    """Tools that may not be called in a turn, and why."""

    tools: tuple[str, ...]
    reason: str

    def __post_init__(self) -> None:
        check_fields(self, "withheld=")


class Wish(Value, frozen=True):
    """Something that users ask a turn not to do."""

    name: str
    """What is wished, as a reason says it: "no internet"."""
    tools: tuple[str, ...]
    """What is withheld then; also tools that only other agents have."""
    phrases: tuple[str, ...] = ()
    """How it is said: words, with `*` for up to three of any, and `a|b` for one of the two."""
    alone: tuple[str, ...] = ()
    """Phrases that say it only where nothing else stands in their clause."""

    def __post_init__(self) -> None:
        check_fields(self, f"wish {self.name!r:.80}")
        empty = [phrase for phrase in (*self.phrases, *self.alone) if not _split(phrase.replace("*", " "))]
        if empty or not (self.phrases or self.alone):
            raise ConfigError(f"wish {self.name!r}: {'an empty phrase' if empty else 'no phrase'}; say how it is said")


def no_internet(*tools: str, phrases: Iterable[str] = ()) -> Wish:
    """The wish that nothing is fetched from the internet ("offline", "don't search the web"); `tools` do."""
    if not tools:
        raise ConfigError("no_internet() of no tools withholds nothing; name those that go to the internet")
    table = _table()["no_internet"]
    return Wish("no internet", tuple(tools), (*table["phrases"], *phrases), tuple(table["alone"]))


def find_wishes(wishes: Sequence[Wish], text: str) -> tuple[Withheld, ...]:
    """What a user's words withhold."""
    if not wishes:
        return ()
    cut = text if len(text) <= 2 * _LONGEST else f"{text[:_LONGEST]}\n{text[-_LONGEST:]}"
    clauses = [words for words in _clauses(cut) if words]
    found = []
    for wish in wishes:
        said = next((phrase for words in clauses if (phrase := _find_phrase(wish, words))), "")
        if said:
            found.append(Withheld(wish.tools, f"{wish.name} is wished ({said!r})"))
    return tuple(found)


def withheld_tools(withheld: Iterable[Withheld]) -> dict[str, str]:
    """Each tool that is withheld, with why."""
    return {tool: one.reason for one in reversed(tuple(withheld)) for tool in one.tools}


@cache
def _clause_words() -> tuple[frozenset[str], frozenset[str]]:
    """Words with which another clause begins, and words that deny what follows."""
    words = _table()["clauses"]
    return frozenset(words["breaks"].split()), frozenset(words["denies"].split())


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(files("interlock.answers.tables").joinpath("wishes.toml").read_text(encoding="utf-8"))


def _split(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = _QUOTED.sub(" . ", plain)
    # "don't" is "do not", and "cannot" is "can not": a phrase is written with "not" alone.
    plain = _NOT.sub(" not", plain).replace("cannot", "can not").replace("dont", "do not")
    return _TOKEN.findall(plain)


def _clauses(text: str) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for token in _split(text):
        if token[0].isalnum():
            found[-1].append(token)
        else:
            found.append([])
    return found


def _find_phrase(wish: Wish, words: Sequence[str]) -> str:
    """The words by which it is wished in a clause; empty if it is not."""
    line = " ".join(words)
    for pattern in _patterns(wish):
        for match in pattern.finditer(line):
            if not _is_denied(line[: match.start()].split()):
                return match[0]
    return line if any(pattern.fullmatch(line) for pattern in _alone(wish)) else ""


@lru_cache(maxsize=64)
def _patterns(wish: Wish) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(rf"(?<!\w){_pattern(phrase)}(?!\w)") for phrase in wish.phrases)


@lru_cache(maxsize=64)
def _alone(wish: Wish) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_pattern(phrase)) for phrase in wish.alone)


def _pattern(phrase: str) -> str:
    """A phrase over the words of a clause. A gap ends where another clause begins."""
    gap = rf"(?:(?!(?:{'|'.join(sorted(_clause_words()[0]))}) )\w+ ){{0,{_GAP}}}?"
    words = [gap if word == "*" else f"(?:{_choices(word)}) " for word in phrase.split()]
    return "".join(words).removesuffix(" ")


def _choices(word: str) -> str:
    return "|".join(re.escape(" ".join(_split(one))) for one in word.split("|"))


def _is_denied(before: Sequence[str]) -> bool:
    """Whether what follows is denied: "you need not work offline"."""
    breaks, denies = _clause_words()
    for word in reversed(before[-_REACH:]):
        if word in breaks or word in denies:
            return word in denies
    return False
