"""Words of a query, and the chunks that have them."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any
from unicodedata import normalize

from interlock.memory import statements as sql
from interlock.memory.selection import Selection
from interlock.memory.text import fold_text, show_text
from interlock.memory.twins import Twin, Word
from interlock.stores.dialect import Connection, fill

_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 16
_LONGEST_WORD = 500
_COMMON = 2_000
"""Chunks that have a word: with more of them it tells little, and to rank them all takes longer than the rest."""
_RANKED = 6_000
"""Chunks that are ranked at most, with the rarest words first."""


def query_words(query: str) -> tuple[Word, ...]:
    """The words of a query that are looked for: each once, without those that every text has."""
    found: dict[str, Word] = {}
    for word in _WORD.findall(normalize("NFC", show_text(query))):
        folded = " ".join(_WORD.findall(fold_text(word)))[:_LONGEST_WORD]
        # An index folds less than that: what has an ß or a small 2 stands in it as it was written.
        found[folded] = (folded,) if folded == word.lower() else (folded, word[:_LONGEST_WORD])
    telling = [forms for folded, forms in found.items() if folded not in _stop_words()]
    return tuple((telling or list(found.values()))[:_MOST_WORDS])


def match_words(connection: Connection, twin: Twin, words: tuple[Word, ...], which: Selection, most: int) -> list[int]:
    """The chunks that have these words, those that tell most first."""
    if not words:
        return []
    where, parameters = conditions(which)
    ranked, newest = fill(twin.match, {"where": where}), fill(twin.newest, {"where": where})
    everything = twin.words_query(words)
    queries = [everything]
    if _count(connection, twin, everything) > _COMMON:
        queries = _rare_first(connection, twin, words)
    for query in queries:
        rows = connection.rows(ranked, (query, *parameters, most))
        if rows:
            return [int(row[0]) for row in rows]
    if queries == [everything]:
        return []
    return [int(row[0]) for row in connection.rows(newest, (everything, *parameters, most))]


def conditions(which: Selection) -> tuple[str, tuple[Any, ...]]:
    """A filter as conditions on the document, with their parameters."""
    parts: list[str] = [sql.LIVE]
    parameters: list[Any] = [which.now_us]
    for statement, values in ((sql.IN_NAMESPACES, which.namespaces), (sql.IN_KINDS, which.kinds)):
        if values is not None:
            parts.append(fill(statement, {"marks": marks(len(values))}))
            parameters += [str(value) for value in values]
    if which.trust is not None:
        parts.append(sql.IN_TRUST)
        parameters.append(which.trust.value)
    if which.source is not None:
        parts.append(sql.FROM_SOURCE)
        parameters += which.source
    return " AND ".join(parts), tuple(parameters)


def marks(count: int) -> str:
    """So many parameters, at least one: what is in nothing is in `(NULL)`."""
    return ", ".join("?" * count) or "NULL"


def _rare_first(connection: Connection, twin: Twin, words: tuple[Word, ...]) -> list[str]:
    """What is searched for, one after the other until something is found, where it would be too much all at once."""
    counts = {word: _count(connection, twin, twin.words_query([word])) for word in words}
    chosen: list[Word] = []
    total = 0
    for word in sorted((word for word in words if 0 < counts[word] <= _COMMON), key=counts.__getitem__):
        total += counts[word]
        if chosen and total > _RANKED:
            break
        chosen.append(word)
    together = twin.words_query([word for word in words if counts[word]], together=True)
    queries = [twin.words_query(chosen)] if chosen else []
    return [*queries, together] if 0 < _count(connection, twin, together) <= _COMMON else queries


def _count(connection: Connection, twin: Twin, query: str) -> int:
    """How many chunks it finds; beyond what is common nobody counts."""
    row = connection.one(twin.count, (query, _COMMON + 1))
    return 0 if row is None else int(row[0])


@cache
def _stop_words() -> frozenset[str]:
    """Words that every text has."""
    return frozenset((files("interlock.memory") / "stop_words.txt").read_text(encoding="utf-8").split())
