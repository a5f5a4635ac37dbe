"""Conversation, as a closed kind: a text that is made of greetings, thanks and their like, and of nothing else.

Every word has to be used up by a phrase of the table (`tables/conversation.toml`). What is left over, whatever it is,
makes the text a question: nothing is guessed, and what cannot be read is a question too.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from typing import Any

from interlock.answers.grounding.normal_text import normalise
from interlock.errors import ConfigError
from interlock.values import Value, shorten

_MOST_CHARS = 300
_MOST_WORDS = 60
"""Whoever says more than this says something."""
_ASKS = "?"
_PUNCTUATION = frozenset('.,!;:…-–—~"“”„«»()*_¡¿。，！、·')
_DROPPED = ("So", "Sk", "Cf", "Mn", "Mc", "Me")
"""Emoji, the modifiers of their colour, invisible joints, accents."""
_FACES = re.compile(r"[:;=]-?[)(dpo3](?!\w)|<3|\^_?\^")
_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")
"""The same letter three times and more: nobody spells so, and everybody types so."""
_PLAIN = re.compile(r"[a-z ]*")
_EITHER = re.compile(r"\(([^()]*)\)")


class TalkKind(StrEnum):
    """What is said in conversation."""

    GREETING = "greeting"
    WELLBEING = "wellbeing"
    THANKS = "thanks"
    FAREWELL = "farewell"
    ABOUT = "about"
    """Who are you, what can you do."""
    REACTION = "reaction"


_MAY_ASK = (TalkKind.GREETING, TalkKind.WELLBEING, TalkKind.ABOUT)
"""With a question mark the others refer back to something: "ok?", "perfect?"."""
_OPENING, _AFTER_ANY, _AFTER_THANKS = "opening", "after_any", "after_thanks"


class SmallTalk(Value, frozen=True):
    """A text that was recognised as conversation."""

    kinds: tuple[TalkKind, ...]
    """What it says, in order, each kind once."""
    language: str


class _Phrase(Value, frozen=True):
    role: str
    """A kind, or what may stand beside one."""
    language: str


class ChatPhrases:
    """The phrases of conversation by their words: those of the table, and more of an application's own."""

    def __init__(self, more: Sequence[str] = ()) -> None:
        self._root: dict[str, Any] = {}
        self._alike: dict[str, set[str]] = defaultdict(set)
        """Words by what is left of them if no letter is written twice in a row."""
        for language, given in read_table().items():
            for kind, phrases in given["phrases"].items():
                self._add(phrases, _Phrase(TalkKind(kind).value, language))
            for role in (_OPENING, _AFTER_ANY, _AFTER_THANKS):
                self._add(given[role], _Phrase(role, language))
        self._add(more, _Phrase(TalkKind.REACTION.value, next(iter(read_table()))))

    def _add(self, phrases: Sequence[str], meaning: _Phrase) -> None:
        for phrase in (each for text in phrases for each in _expand(text)):
            words = talk_words(phrase)
            # An empty one would stand anywhere, so that whatever may follow a phrase could stand alone.
            if not words or _ASKS in words:
                raise ConfigError(f"{shorten(phrase)!r} is no phrase of conversation: it is made of words alone")
            node = self._root
            for word in words:
                self._alike[_squeeze(word)].add(word)
                node = node.setdefault(word, {})
            node.setdefault("", []).append(meaning)

    def recognise(self, text: str) -> SmallTalk | None:
        """What a text says, if it is conversation and nothing else."""
        words = talk_words(text)
        if not words or len(words) > _MOST_WORDS:
            return None
        # From each place with what was said last; whichever way a place was reached first stands for all.
        start: tuple[int, str] = (0, "")
        came: dict[tuple[int, str], tuple[tuple[int, str], _Phrase | None]] = {}
        waiting = [start]
        while waiting:
            place = waiting.pop()
            if place[0] == len(words) and place[1]:
                return _retrace(came, place)
            for following, phrase in self._steps(words, place):
                if following not in came:
                    came[following] = place, phrase
                    waiting.append(following)
        return None

    def _steps(self, words: Sequence[str], place: tuple[int, str]) -> Iterator[tuple[tuple[int, str], _Phrase | None]]:
        at, last = place
        if at < len(words) and words[at] == _ASKS:
            if last in _MAY_ASK:
                yield (at + 1, last), None
            return
        for end, phrase in self._matches(words, at):
            if phrase.role == _OPENING:
                yield (end, last), None
            elif phrase.role == _AFTER_ANY:
                if last:
                    yield (end, last), None
            elif phrase.role == _AFTER_THANKS:
                if last == TalkKind.THANKS:
                    yield (end, last), None
            else:
                yield (end, phrase.role), phrase

    def _matches(self, words: Sequence[str], at: int) -> Iterator[tuple[int, _Phrase]]:
        """Every phrase that begins at a place, with where it ends."""
        reached = [(at, self._root)]
        while reached:
            end, node = reached.pop()
            yield from ((end, phrase) for phrase in node.get("", ()))
            if end < len(words):
                reached += [(end + 1, node[word]) for word in self._spellings(words[end]) if word in node]

    def _spellings(self, word: str) -> Iterator[str]:
        yield word
        if _STRETCHED.search(word):
            yield from self._alike.get(_squeeze(word), set()) - {word}


@lru_cache(maxsize=32)
def phrases(more: tuple[str, ...] = ()) -> ChatPhrases:
    """The phrases of the table, and more of an application's own: read once."""
    return ChatPhrases(more)


def _retrace(came: dict[tuple[int, str], tuple[tuple[int, str], _Phrase | None]], place: tuple[int, str]) -> SmallTalk:
    said: list[_Phrase] = []
    while place in came:
        place, phrase = came[place]
        if phrase is not None:
            said.append(phrase)
    said.reverse()
    return SmallTalk(tuple(dict.fromkeys(TalkKind(phrase.role) for phrase in said)), said[0].language)


@cache
def read_table() -> dict[str, Any]:
    """The table as it is written, by language."""
    text = (files("interlock.answers") / "tables" / "conversation.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def talk_words(text: str) -> tuple[str, ...] | None:
    """The words of a text without case, accents, punctuation and emoji; None if there is anything else in it."""
    if len(text) > _MOST_CHARS:
        return None
    if _PLAIN.fullmatch(text):  # most of the table, which is read at the first question
        return tuple(text.split())
    plain = _FACES.sub(" ", unicodedata.normalize("NFKC", normalise(text).text).casefold())
    plain = unicodedata.normalize("NFKD", plain.replace("’", "'").replace("'", ""))
    kept = []
    for letter in plain:
        if letter in _PUNCTUATION or letter.isspace():
            kept.append(" ")
        elif letter == _ASKS:
            kept.append(f" {_ASKS} ")
        elif unicodedata.category(letter)[0] == "L":
            kept.append(letter)
        elif unicodedata.category(letter) not in _DROPPED:
            return None  # a figure, an address, a sum: somebody means something by it
    return tuple("".join(kept).split())


def _squeeze(word: str) -> str:
    return "".join(letter for letter, before in zip(word, " " + word, strict=False) if letter != before)


def _expand(text: str) -> Iterator[str]:
    """A phrase in each of its wordings."""
    parts = [part.split("|") if n % 2 else [part] for n, part in enumerate(_EITHER.split(text))]
    for chosen in product(*parts):
        phrase = "".join(chosen)
        if "(" in phrase or ")" in phrase:
            raise ConfigError(
                f"{shorten(text)!r} is no phrase of conversation: of its brackets one is open or within another"
            )
        yield phrase
