"""What a search finds: words and meaning fused by rank, what decays less the older it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from interlock.memory import statements as sql
from interlock.memory.documents import Chunk, ChunkMiss, MissReason, SearchHit
from interlock.memory.holders import last_key
from interlock.memory.matching import marks, match_words
from interlock.memory.numbering import document_number, number_range, position_of
from interlock.memory.selection import Selection
from interlock.memory.tables import MemoryTables, StoredDocument, document_of_row, find_document
from interlock.memory.text import chunk_id, make_snippet, split_chunk_id
from interlock.memory.twins import Word
from interlock.stores.dialect import Connection, fill

_FROM_EACH = 100
"""Chunks that are taken from words and from vectors each."""
_RANK = 60.0
"""Of reciprocal rank fusion, as in the paper that it is from (Cormack, Clarke and Büttcher, 2009): how slowly the first
places lose against the later ones."""
_LEAST_ALIKE = 0.2
"""Unrelated sentences are that much alike for the weights of MiniLM: what is less so was not found."""
_PAGES = (10, 50, 200)
"""How many rows are read by one statement: few different numbers, as each is another statement to prepare."""


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One search, with everything about it that was looked at."""

    words: tuple[Word, ...]
    vector: Any
    which: Selection
    top_k: int


def find_hits(connection: Connection, tables: MemoryTables, asked: SearchRequest) -> tuple[SearchHit, ...]:
    """The best chunks of both lists."""
    found: dict[str, list[int]] = {"words": match_words(connection, tables.twin, asked.words, asked.which, _FROM_EACH)}
    if tables.vectors is not None and asked.vector is not None:
        near = tables.vectors.search(connection, asked.vector, asked.which, _FROM_EACH)
        found["vectors"] = [chunk for chunk, likeness in near if likeness >= _LEAST_ALIKE]
    scores, now_us = fuse(found), asked.which.now_us
    documents = _documents(connection, scores)
    ranked = sorted(
        (
            (score * decay(documents[document_number(chunk)], now_us), chunk)
            for chunk, score in scores.items()
            if document_number(chunk) in documents
        ),
        key=lambda scored: (-scored[0], scored[1]),
    )
    best = _distinct(ranked, documents, asked.top_k)
    sources = _last_sources(connection, {document_number(chunk) for _score, chunk in best})
    texts = _texts(connection, [chunk for _score, chunk in best])
    return tuple(
        _hit(documents[document_number(chunk)], position_of(chunk), texts[chunk], asked)(
            score=round(score, 4),
            source=sources.get(document_number(chunk), ""),
            by=tuple(name for name, chunks in found.items() if chunk in chunks),
        )
        for score, chunk in best
        if chunk in texts
    )


def _hit(
    document: StoredDocument, position: int, text: tuple[str, str], asked: SearchRequest
) -> Callable[..., SearchHit]:
    """A hit, but for what a search knows of it."""
    return partial(
        SearchHit,
        chunk=chunk_id(document.id, position),
        document=document.id,
        snippet=make_snippet(text[1], tuple(chain.from_iterable(asked.words))),
        title=document.title,
        heading=text[0],
        time_us=document.time_us,
        age_s=age_s(document, asked.which.now_us),
        trust=document.trust,
        kind=document.kind,
        namespace=document.namespace,
    )


def fuse(lists: Mapping[str, Sequence[int]]) -> dict[int, float]:
    """Reciprocal rank fusion: what stands high in several lists comes first; 1 is the first of them all."""
    scores: dict[int, float] = {}
    for chunks in lists.values():
        for rank, chunk in enumerate(chunks):
            scores[chunk] = scores.get(chunk, 0.0) + (_RANK + 1) / (_RANK + 1 + rank) / len(lists)
    return scores


def decay(document: StoredDocument, now_us: int) -> float:
    """What is left of its rank: half of it after each half-life."""
    if document.half_life_s is None:
        return 1.0
    return float(0.5 ** (age_s(document, now_us) / document.half_life_s))


def age_s(document: StoredDocument, now_us: int) -> float:
    """Seconds since it was written or fetched; none for what is dated later than now."""
    return max(0.0, (now_us - document.time_us) / 1e6)


def fetch_chunk(
    connection: Connection, chunk: str, neighbours: int, scope: frozenset[str] | None, now_us: int
) -> Chunk | ChunkMiss:
    """A chunk by its id, with the text around it."""
    known = split_chunk_id(chunk)
    document = None if known is None else find_document(connection, known[0])
    if known is None or document is None or (scope is not None and document.namespace not in scope):
        return _miss(chunk)
    if document.expires_us is not None and document.expires_us <= now_us:
        why = f"what {chunk} was part of has expired; fetch its source again"
        return ChunkMiss(id=chunk, reason=MissReason.EXPIRED, message=why)
    at = known[1]
    rows = connection.rows(sql.CHUNKS_BETWEEN, number_range(document.number, at - neighbours, at + neighbours))
    texts = {position_of(row[0]): (row[1], row[3]) for row in rows}
    if at not in texts:
        return _miss(chunk)
    (heading,) = [row[2] for row in rows if position_of(row[0]) == at]
    start, text = texts[at]
    return Chunk(
        id=chunk,
        document=document.id,
        position=at,
        of=document.chunks,
        heading=heading,
        text=text,
        before=join_parts([texts[place] for place in sorted(texts) if place < at], until=start),
        after=join_parts([texts[place] for place in sorted(texts) if place > at], after=start + len(text)),
        sources=tuple(row[0] for row in connection.rows(sql.SOURCES, (document.number,))),
        title=document.title,
        time_us=document.time_us,
        age_s=age_s(document, now_us),
        trust=document.trust,
        kind=document.kind,
        namespace=document.namespace,
        key=last_key(connection, document.number),
        metadata=document.metadata,
        vouched_by=document.vouched_by,
    )


def _miss(chunk: str) -> ChunkMiss:
    why = f"there is no chunk {chunk}; take an id that a search has given, or search again"
    return ChunkMiss(id=chunk, reason=MissReason.UNKNOWN, message=why)


def join_parts(parts: Iterable[tuple[int, str]], *, after: int = 0, until: int | None = None) -> str:
    """Parts of a text one behind the other, what two of them share once, and nothing of the chunk itself."""
    joined: list[str] = []
    for start, text in parts:
        fresh = text[max(0, after - start) :]
        if until is not None:
            fresh = fresh[: max(0, until - max(start, after))]
        if fresh:
            joined.append(fresh)
        after = max(after, start + len(text))
    return "\n\n".join(part.strip("\n") for part in joined)


def _documents(connection: Connection, chunks: Iterable[int]) -> dict[int, StoredDocument]:
    """The documents of chunks, by their numbers."""
    numbers = sorted({document_number(chunk) for chunk in chunks})
    return {row[0]: document_of_row(row) for row in _read_many(connection, sql.READ_DOCUMENTS, numbers)}


def _texts(connection: Connection, chunks: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Heading and text of chunks, by their numbers."""
    return {row[0]: (row[1], row[2]) for row in _read_many(connection, sql.READ_TEXTS, chunks)}


def _read_many(connection: Connection, statement: str, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
    rows = []
    for start in range(0, len(numbers), _PAGES[-1]):
        some = list(numbers[start : start + _PAGES[-1]])
        size = next(size for size in _PAGES if size >= len(some))
        rows += connection.rows(fill(statement, {"marks": marks(size)}), [*some, *[some[-1]] * (size - len(some))])
    return rows


def _distinct(
    ranked: Sequence[tuple[float, int]], documents: Mapping[int, StoredDocument], most: int
) -> list[tuple[float, int]]:
    """The best, without what stands in several namespaces a second time."""
    seen: set[tuple[str, int]] = set()
    best = []
    for score, chunk in ranked:
        same = (documents[document_number(chunk)].digest, position_of(chunk))
        if same not in seen:
            seen.add(same)
            best.append((score, chunk))
        if len(best) == most:
            break
    return best


def _last_sources(connection: Connection, documents: set[int]) -> dict[int, str]:
    numbers = sorted(documents)
    if not numbers:
        return {}
    rows = connection.rows(fill(sql.LAST_SOURCES, {"marks": marks(len(numbers))}), numbers)
    return dict(rows)
