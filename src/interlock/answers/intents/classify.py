"""Which intents a text has, and so which tools its answer needs. Unsure means required."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from interlock.answers.conversation import phrases
from interlock.answers.grounding.patterns import repeats_within_repeat
from interlock.answers.intents.head import IntentHead, train
from interlock.answers.intents.keywords import hits, split_words
from interlock.answers.intents.spelling import Spelling
from interlock.answers.requirements import NOTHING, AllOf, Need, Requirement, all_of, any_of
from interlock.embedding import MiniLm, MissingWeights
from interlock.errors import ConfigError
from interlock.values import Value

_log = logging.getLogger("interlock")
CHAT = "conversation"
"""What stands in place of an intent where a text is conversation (`interlock.answers.conversation`)."""
CLEAR = 0.7
"""How clearly a question must be recognised before a model that only chooses makes a call for it."""
# Probabilities of the head; what they give is measured by `make bench-turns`.
# A second intent holds where it is nearly as likely as the first, and hardly another is; chosen on examples that were
# left out of training, in thirds.
_HOLDS, _NEARLY_AS_LIKELY = 0.45, 0.9
_SURE = 0.3
_CLEARLY = 0.8
# Of a part of a sentence: on examples that were left out of training it finds as many pairs of requests as 0.8 did when
# the head had a class for conversation, which took its share of every fragment.
_CLEAR_PART = 0.9
# A keyword tips the balance between intents that are nearly as likely, and no more.
_A_KEYWORD = 0.1
# Words: "bread and butter" or "up and running" are not two requests.
_A_REQUEST = 3
# Each part is given to the head by itself; a text with more is a text, and no list of requests.
_MOST_REQUESTS = 8
# Examples of an intent: with fewer the head does not know it, and overrules no keyword of it (docs/design/intents.md).
_KNOWN_BY = 10
# Intents with examples: a head with one class would say it of everything.
_TO_CHOOSE_FROM = 2
# Where a keyword says one thing and the head clearly another: too little for a model that can only choose, which asks.
_DISAGREE = 0.5
_MOST_MATCHED = 2_000
"""Characters of a text that patterns are held against."""
_AND = re.compile(r",?\s+(?:and then|and|then|afterwards)\s+", re.I)


class Intent(Value, frozen=True):
    """One thing people ask for: how they say it, and what an answer to it needs."""

    name: str
    requires: Requirement | str | tuple[str, ...]
    keywords: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    weight: float = 1.0
    pattern: str = ""
    """A regular expression for texts that are surely this and nothing else: a command, an address. Case is ignored."""

    def __post_init__(self) -> None:
        for name in ("keywords", "examples"):
            if isinstance(getattr(self, name), str):  # which would be taken letter by letter
                raise ConfigError(f"intent {self.name!r}: {name} are several texts, such as ({getattr(self, name)!r},)")
        if problem := _pattern_problem(self.pattern):
            raise ConfigError(f"intent {self.name!r}: its pattern {self.pattern!r:.80} {problem}")

    @property
    def requirement(self) -> Requirement:
        """What an answer needs."""
        if isinstance(self.requires, str):
            return Need(tool=self.requires)
        return all_of(*self.requires) if isinstance(self.requires, tuple) else self.requires


def _pattern_problem(pattern: str) -> str:
    """Why a pattern is not taken; empty if it is."""
    try:
        re.compile(pattern)
        endless = repeats_within_repeat(pattern)
    except re.error as error:
        return f"is no regular expression: {error}"
    return "repeats something inside of another repetition, which could take for ever" if endless else ""


class Classified(Value, frozen=True):
    """What a text was taken for."""

    requirement: Requirement
    intents: tuple[str, ...] = ()
    by: str = "default"
    """What decided: pattern, keywords, semantic, both, phrases (of conversation), caller; default where nothing did."""
    score: float = 0.0

    @property
    def clear(self) -> bool:
        """Whether it was recognised so clearly that a model which only chooses need not ask what is meant."""
        return self.score >= CLEAR

    @property
    def chat(self) -> bool:
        """Whether it is conversation, and nothing else."""
        return self.intents == (CHAT,)


class Classifier:
    """The intents of one agent: keywords and, where the weights are installed, a head on sentence vectors."""

    def __init__(
        self,
        intents: Sequence[Intent],
        *,
        default: Requirement | str | None = None,
        chat: Sequence[str] = (),
        semantic: bool = True,
    ) -> None:
        names = [intent.name for intent in intents]
        if len(set(names)) != len(names) or CHAT in names:
            raise ConfigError(f"intents need different names, none of them {CHAT!r}: {', '.join(names)}")
        self.intents = tuple(intents)
        self._patterns = [(one.name, re.compile(one.pattern, re.I)) for one in self.intents if one.pattern]
        self._default = self._otherwise(default)
        self._phrases = phrases(tuple(chat))
        self.head = self._head() if semantic else None
        texts = [example for intent in self.intents for example in intent.examples]
        self._spelling = Spelling([word for intent in self.intents for word in intent.keywords], texts)
        self._taught = frozenset(i.name for i in self.intents if len(i.examples) >= _KNOWN_BY)

    def classify(self, text: str) -> Classified:
        """What a text needs; several intents may hold."""
        sure = tuple(name for name, pattern in self._patterns if pattern.search(text[:_MOST_MATCHED]))
        if sure:
            return self._as(sure, "pattern", 1.0)
        talk = self._phrases.recognise(text)
        # First: keywords are whole words, so a misspelled one would not be found.
        text = self._spelling.correct(text)
        words = split_words(text)
        named = {intent.name: len(hits(intent.keywords, words)) * intent.weight for intent in self.intents}
        # A greeting that is also a word of the agent's is a question: where both can be meant, something is required.
        if talk is not None and not any(named.values()):
            return Classified(NOTHING, (CHAT,), "phrases", 1.0)
        if not self.intents:
            return self.unsure()
        if self.head is None:
            return self._by_keywords(named)
        return self._together(text, named)

    def _by_keywords(self, named: dict[str, float]) -> Classified:
        best = max(named.values())
        if best == 0:
            return self.unsure()
        # Of those that tie, all: unsure means required.
        return self._as(tuple(name for name, score in named.items() if score == best), "keywords", best)

    def _together(self, text: str, named: dict[str, float]) -> Classified:
        """The head decides between the intents that it was taught; keywords help it there."""
        assert self.head is not None
        likely = self.head.probabilities(text)
        if any(score for name, score in named.items() if name not in self._taught):
            return self._beside_head(named, likely)
        found = self._by_head(text, named, likely)
        return self._by_keywords(named) if found.by == "default" and any(named.values()) else found

    def _beside_head(self, named: dict[str, float], likely: dict[str, float]) -> Classified:
        """By the keywords of intents that the head does not know; what it is clear about is needed as well."""
        best = max(score for name, score in named.items() if name not in self._taught)
        hold = {name for name, score in named.items() if score >= best}
        clear = {name for name in self._taught if likely.get(name, 0.0) >= _CLEARLY}
        score = best if clear <= hold else _DISAGREE
        return self._as(tuple(name for name in named if name in hold | clear), "both" if clear else "keywords", score)

    def _by_head(self, text: str, named: dict[str, float], likely: dict[str, float]) -> Classified:
        """The likeliest intents, where keywords tip the balance."""
        most = sum(named.values())
        total = {name: likely.get(name, 0.0) * self._weight(name) for name in named}
        for name, score in named.items():
            total[name] += _A_KEYWORD * score / most if most else 0.0
        top = max(total, key=lambda name: total[name])
        if total[top] < _SURE:
            return self.unsure(total[top])
        hold = {top, *(name for name, score in total.items() if score >= max(_HOLDS, _NEARLY_AS_LIKELY * total[top]))}
        # The whole sentence lies between its two requests and may resemble neither; its parts are clear by themselves.
        hold |= self._asked_together(text)
        return self._as(tuple(name for name in total if name in hold), "both" if most else "semantic", total[top])

    def _asked_together(self, text: str) -> set[str]:
        """Two requests in one sentence: each part after an "and" or "then" clearly asks for something of its own."""
        assert self.head is not None
        # Single spaces, so that a run of thousands is not gone over from each of its places.
        parts = [part for part in _AND.split(" ".join(text.split())) if len(part.split()) >= _A_REQUEST]
        parts = list(dict.fromkeys(parts))
        if not 2 <= len(parts) <= _MOST_REQUESTS:
            return set()
        found = set()
        for part in parts:
            likely = self.head.probabilities(part)
            top = max(likely, key=lambda name: likely[name])
            if likely[top] < _CLEAR_PART:  # one part that is unclear: then "and" joins words, not requests
                return set()
            found.add(top)
        return found if len(found) > 1 else set()

    def _weight(self, name: str) -> float:
        return next((intent.weight for intent in self.intents if intent.name == name), 1.0)

    def _as(self, names: tuple[str, ...], by: str, score: float) -> Classified:
        parts = [intent.requirement for intent in self.intents if intent.name in names]
        parts = list(dict.fromkeys(parts))
        requirement = parts[0] if len(parts) == 1 else AllOf(parts=tuple(parts))
        return Classified(requirement, names, by, min(1.0, score))

    def unsure(self, score: float = 0.0) -> Classified:
        """Nothing is recognised, and it is no conversation: the agent's default is needed, or one of its intents."""
        return Classified(NOTHING if self._default is None else self._default, (), "default", score)

    def _otherwise(self, default: Requirement | str | None) -> Requirement | None:
        if default is not None:
            return Need(tool=default) if isinstance(default, str) else default
        parts = tuple(dict.fromkeys(intent.requirement for intent in self.intents))
        return any_of(*parts) if parts else None

    def _head(self) -> IntentHead | None:
        # Of an intent without examples it can say nothing, not even that it is unlikely.
        examples = {intent.name: intent.examples for intent in self.intents if intent.examples}
        if len(examples) < _TO_CHOOSE_FROM:
            return None
        try:
            embedder = MiniLm()
        except MissingWeights as missing:
            _log.warning("intents are recognised by keywords alone: %s", missing)
            return None
        return train(embedder, examples)
