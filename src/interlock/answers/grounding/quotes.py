"""Sentences of an answer that a result has word for word: what a tool says of its own figures is not read again."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.sentences import Sentences, split_sentences

_SHORTEST = 20
"""A shorter text is a value, and is read as one."""
_SHORTEST_SENTENCE = 8


class Quotes:
    """The sentences of an answer that stand in a text of a result as they are."""

    def __init__(self, sentences: Sentences, facts: Sequence[Fact]) -> None:
        wanted: dict[str, list[int]] = {}
        for number, one in enumerate(sentences.all):
            said = _plain(sentences.text[one.start : one.end])
            if len(said) >= _SHORTEST_SENTENCE:
                wanted.setdefault(said, []).append(number)
        self._found: dict[int, Fact] = {}
        known = once(facts, _first_with_sentence) if wanted else {}
        for said, numbers in wanted.items():
            if said in known:
                self._found |= dict.fromkeys(numbers, known[said])

    def find(self, sentence: int) -> Fact | None:
        """The text that has a sentence, by its number."""
        return self._found.get(sentence)


def _first_with_sentence(facts: Sequence[Fact]) -> dict[str, Fact]:
    """By sentence: the first text that has it."""
    found: dict[str, Fact] = {}
    read: set[str] = set()
    for fact in facts_of(facts, "text"):
        text = fact.text
        if len(text) < _SHORTEST or text in read or fact.echo or fact.asked or fact.stale:
            continue
        read.add(text)
        for one in split_sentences(text):
            found.setdefault(_plain(text[one.start : one.end]), fact)
    return found


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(" .!?;-*•")
