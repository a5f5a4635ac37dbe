"""What only somebody else's text says, said as if it were so: "the debt was handed to an agency".

Figures of untrusted results are traced, and may be repeated as theirs. A sentence without a figure is held by its
words: those that stand in untrusted texts, and neither in a trusted result nor in the question, nor in what the tools
are for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.state_words import StateTable
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.answers.grounding.words import stem, words_in
from interlock.values import Value

# Where a text turns to whoever answers, and says what to say: that is no report of anything.
_TOLD = re.compile(
    r"\b(?:assistant|chatbot|bot|ai|system|agent|model|llm)\b[^.:\n]{0,30}[:,]"
    r"|\b(?:tell|inform|notify|state|report|say|mention|confirm)\b[^.\n]{0,24}\bthat\b",
    re.I,
)
_BELIEVED = re.compile(
    r"\bas\b[^.\n]{1,50}\b(?:writes?|wrote|says?|said|states?|reports?|mentions?|puts?|explains?)\b", re.I
)
_DOUBTED = re.compile(
    r"\b(?:claim\w*|alleg\w*|disput\w*|otherwise|something else|confirm|verify|match|ignore|careful|rely|asks?|asking|"
    r"instruct\w*|records|question|whether|if)\b|\?",
    re.I,
)
_BREAK = re.compile(r"[,;:–—]\s")
_SHORTEST, _LEAST = 4, 2
_TELLING = 5
"""The stem of a word that is said by chance is shorter: call, time, site."""


class HearsaySpan(Value, frozen=True):
    """A sentence that rests on somebody else's words."""

    start: int
    end: int


class Hearsay:
    """The words that only untrusted texts have, and those with which one of them tells what to say."""

    def __init__(
        self, facts: Sequence[Fact], meanings: Mapping[str, ToolMeaning], table: StateTable, words: Vocabulary
    ) -> None:
        self._table, self._words = table, words
        theirs, told = set[str](), set[str]()
        texts = facts_of(facts, "text")
        for fact in texts:
            if not fact.trusted and not fact.echo and not fact.asked:
                theirs |= self._stems(fact.text)
                match = _TOLD.search(fact.text)
                told |= self._stems(fact.text[match.end() :]) if match is not None else set()
        known = set[str]()
        for fact in texts if theirs else ():
            if fact.trusted or fact.echo:
                known |= self._stems((fact.place.name if fact.is_key else fact.text).replace("_", " "))
        for meaning in meanings.values() if theirs else ():
            known |= self._stems(meaning.description)
        self._theirs, self._told = theirs - known, told - known

    def _stems(self, text: str) -> set[str]:
        """The words that say something of a thing: no units, no months, nothing that figures count."""
        words, found = self._words, set[str]()
        for word, place in words_in(text):
            if len(word) < _SHORTEST or not words.words.meanings(word) or text[max(0, place - 2) : place - 1].isdigit():
                continue
            if word.lower() not in words.calendar and not words.units.of(word.lower()):
                found.add(stem(word))
        return found

    def find(
        self, sentences: Sentences, attributed: re.Pattern[str], is_theirs: Callable[[int], bool]
    ) -> Iterator[HearsaySpan]:
        """The sentences that say as true what only somebody else has written.

        `is_theirs` says of a place whether its whole line is said to be somebody else's.
        """
        for one in sentences.all if self._theirs else ():
            text = whole = sentences.text[one.start : one.end]
            if _DOUBTED.search(text):
                continue
            if self._table.has_denial(text):  # what is not denied in it is still said: ", the singer has fallen ill"
                parts = (part for part in _BREAK.split(text) if not self._table.has_denial(part))
                text = " , ".join(part for part in parts if len(self._stems(part) & self._theirs) >= _LEAST)
            spoken = self._stems(text)
            believed = _BELIEVED.search(whole) is not None
            if (attributed.search(whole) is not None or is_theirs(one.start)) and not believed:
                continue
            told = spoken & self._told
            telling = len(told) >= _LEAST or any(len(word) >= _TELLING for word in told)
            if telling or (len(spoken & self._theirs) >= _LEAST and not believed):
                yield HearsaySpan(one.start, one.end)
