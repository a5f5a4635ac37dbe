"""Sentences of an answer that a result has word for word: what a tool says of its own figures is not read again."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.sentences import Sentences

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
        for fact in facts if wanted else ():
            if len(fact.text) < _SHORTEST or fact.echo or fact.asked or fact.stale:
                continue
            written = Sentences(fact.text)
            for one in written.all:
                for number in wanted.get(_plain(fact.text[one.start : one.end]), ()):
                    self._found.setdefault(number, fact)

    def find(self, sentence: int) -> Fact | None:
        """The text that has a sentence, by its number."""
        return self._found.get(sentence)


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(" .!?;-*•")
