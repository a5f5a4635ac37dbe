"""Names in an answer that stand nowhere in what it may rest on: "placed by Brightwell Garage"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from interlock.answers.grounding.evidence import Fact, once
from interlock.answers.grounding.fact_kinds import facts_of
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.grounding.words import WordTable

_NAME = re.compile(r"(?<![\w.])[A-Z][^\W\d_]{1,40}(?:[ -](?:[A-Z]\.|[A-Z][^\W\d_]{1,40})){1,5}(?![\w])")
_WORD = re.compile(r"[^\W\d_]+")


def find_unknown_names(
    text: str, facts: Sequence[Fact], meanings: Mapping[str, ToolMeaning], table: WordTable, known: frozenset[str]
) -> Iterator[tuple[int, int]]:
    """Where two or more words with capitals stand together of which no result, question or tool has any.

    `known`: words that are written with a capital and are no name, such as months.
    """
    found = [(match, words) for match in _NAME.finditer(text) if len(words := _words(match[0], table, known)) > 1]
    if not found:
        return
    wanted = {word for _match, words in found for word in words}
    seen = set(wanted & once(facts, words_of_texts))
    for meaning in meanings.values():
        texts = [meaning.description, *(name for values in meaning.names.values() for name in values)]
        texts += [name for values in meaning.names.values() for names in values.values() for name in names]
        seen.update(wanted.intersection(_all_words(" ".join(texts))))
    for match, words in found:
        if not seen.intersection(words):
            yield match.span()


def _words(name: str, table: WordTable, known: frozenset[str]) -> list[str]:
    """The words of a name, without those that any sentence has: "In February", "Your Basic"."""
    return [word for word in _all_words(name) if word not in known and table.meanings(word)]


def words_of_texts(facts: Sequence[Fact]) -> set[str]:
    """All words of the results and of the question, in lower case."""
    found: set[str] = set()
    for text in {fact.place.name if fact.is_key else fact.text for fact in facts_of(facts, "text")}:
        found.update(_all_words(text))
    return found


def _all_words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
