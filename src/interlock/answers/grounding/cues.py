"""Words of a sentence that say how its figures are meant: as a total, as what was, as what others say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.sentences import Sentences
from interlock.answers.grounding.words import Meanings, WordTable


def cue_patterns(table: Mapping[str, Sequence[str]]) -> dict[str, re.Pattern[str]]:
    """By name of a table: what finds one of its words."""
    return {
        name: re.compile(rf"(?<!\w)(?:{'|'.join(sorted(map(re.escape, words), key=len, reverse=True))})(?!\w)", re.I)
        for name, words in table.items()
    }


class Cues:
    """Words of a sentence that say how its figures are meant."""

    def __init__(self, patterns: Mapping[str, re.Pattern[str]], sentences: Sentences, words: WordTable) -> None:
        self._patterns, self._sentences, self._words = patterns, sentences, words
        self._meanings: dict[int, Meanings] = {}
        self._found: dict[tuple[str, int], bool] = {}

    def has(self, name: str, claim: Claim) -> bool:
        """Whether the sentence of a claim has one of the words of a table."""
        number = self._sentences.at(claim.start)
        key = (name, number)
        if key not in self._found:
            sentence = self._sentences.all[number]
            self._found[key] = (
                self._patterns[name].search(self._sentences.text, sentence.start, sentence.end) is not None
            )
        return self._found[key]

    def has_beside(self, name: str, claim: Claim, field: Meanings) -> bool:
        """The same, where the words of a field's own name are none: a "visitor limit" is no limit that was met."""
        one = self._sentences.all[self._sentences.at(claim.start)]
        found = self._patterns[name].finditer(self._sentences.text, one.start, one.end)
        return any(not self._words.in_name(match[0]) & field for match in found)

    def pattern(self, name: str) -> re.Pattern[str]:
        """The words of a table, to be looked for elsewhere than beside a claim."""
        return self._patterns[name]

    def number(self, claim: Claim) -> int:
        """Which sentence a claim stands in."""
        return self._sentences.at(claim.start)

    def words(self, claim: Claim) -> Meanings:
        """What the words of the sentence that a claim stands in stand for."""
        number = self._sentences.at(claim.start)
        if number not in self._meanings:
            one = self._sentences.all[number]
            self._meanings[number] = self._words.in_name(self._sentences.text[one.start : one.end])
        return self._meanings[number]
