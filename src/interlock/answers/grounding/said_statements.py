"""What an answer says without a figure: states, names, strangers' words, other languages, texts told the wrong way."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.figure_states import FigureStates
from interlock.answers.grounding.hearsay import Hearsay
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.grounding.mentions import Mention
from interlock.answers.grounding.quotes import Quotes
from interlock.answers.grounding.said_parts import SaidParts
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.states import States
from interlock.answers.grounding.support import Support
from interlock.answers.grounding.turned_texts import find_turned, find_unplanned
from interlock.answers.grounding.unknown_names import find_unknown_names, words_of_texts
from interlock.answers.grounding.unread_things import find_unread
from interlock.answers.grounding.vocabulary import Vocabulary

_TRACED = ("exact", "rounded", "counted", "derived")
_SHOWN = 80


class SaidStatements:
    """Holds them against one body of evidence; what it finds is unsupported."""

    def __init__(
        self,
        sentences: Sentences,
        mentions: Sequence[Mention],
        facts: Sequence[Fact],
        words: Vocabulary,
        meanings: Mapping[str, ToolMeaning],
        quotes: Quotes,
    ) -> None:
        self._text, self._sentences, self._mentions = sentences.text, sentences, mentions
        self._facts, self._words, self._meanings, self._quotes = facts, words, meanings, quotes

    def find(
        self, found: Sequence[Support], attributed: re.Pattern[str], is_theirs: Callable[[int], bool]
    ) -> list[Support]:
        """All that nothing supports; `found` are the claims of the answer, traced."""
        return [
            *self._mismatches(),
            *self._hearsay(attributed, is_theirs),
            *self._foreign(found),
            *self._unknown(),
            *self._find_turned(),
        ]

    def _foreign(self, found: Sequence[Support]) -> list[Support]:
        """Sentences in another language in which nothing is traced to a result: what they claim cannot be read."""
        traced = {self._sentences.at(one.start) for one in found if one.how in _TRACED}
        return [
            self._say(one.start, one.end, "it is not English", kind="language")
            for number, one in enumerate(self._sentences.all)
            if number not in traced and self._is_foreign(self._text[one.start : one.end])
        ]

    def _is_foreign(self, sentence: str) -> bool:
        foreign = self._words.foreign
        return foreign.is_foreign(sentence) or foreign.has_foreign_word(sentence, self._is_in_results)

    def _is_in_results(self, word: str) -> bool:
        return word in once(self._facts, words_of_texts)

    def _unknown(self) -> list[Support]:
        table, calendar = self._words.words, self._words.calendar
        places = find_unknown_names(self._text, self._facts, self._meanings, table, calendar)
        return [Support(self._text[start:end], "name", start, end, why="no result has it") for start, end in places]

    def _mismatches(self) -> list[Support]:
        """States that the results tell otherwise, and what is said of a figure without one: full, on time."""
        states = once(self._facts, States, self._words.states, self._words.words)
        figures = once(self._facts, FigureStates, self._words)
        parts = SaidParts(self._sentences, self._words.states)
        return [
            Support(one.text, "statement", one.start, one.end, why=one.why)
            for one in states.find(parts, self._mentions)
            if (quoted := self._quotes.find(self._sentences.at(one.start))) is None or not quoted.trusted
        ] + [self._say(start, end, why) for start, end, why in figures.find(parts, self._mentions)]

    def _find_turned(self) -> list[Support]:
        """What is told the wrong way round, and what is said of things that nothing was read about."""
        turned = find_turned(self._text, self._facts)
        places = [(start, end, "a result says it the other way round") for start, end in turned]
        unplanned = find_unplanned(self._sentences, self._mentions, self._facts)
        places += [(one.start, one.end, "the preview does not have it") for one in unplanned]
        unread = find_unread(self._sentences, self._mentions, self._facts, self._words.states)
        places += [(start, end, "nothing was read about it") for start, end in unread]
        return [Support(self._text[start:end], "statement", start, end, why=why) for start, end, why in places]

    def _hearsay(self, attributed: re.Pattern[str], is_theirs: Callable[[int], bool]) -> list[Support]:
        """Sentences that say as true what only an untrusted text has."""
        hearsay = once(self._facts, Hearsay, self._meanings, self._words.states, self._words)
        found = hearsay.find(self._sentences, attributed, is_theirs)
        return [self._say(one.start, one.end, "a stranger says so") for one in found]

    def _say(self, start: int, end: int, why: str, *, kind: str = "statement") -> Support:
        return Support(self._text[start:end].strip()[:_SHOWN], kind, start, end, why=why)
