"""Documents in groups: what is embedded and committed together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from interlock.memory.database import Database
from interlock.memory.embedding_thread import EmbeddingThread
from interlock.memory.ingest import LandingTime, NewDocument
from interlock.memory.tables import find_document
from interlock.stores.dialect import Connection

T = TypeVar("T")
_CHUNKS = 256
_DOCUMENTS = 64
"""Enough that a commit costs little beside the embedding."""
_HEADING_CHARS = 120
"""Of title and headings in what is embedded: weights read the beginning, and it is the text that tells chunks apart."""


def make_groups(documents: Iterable[NewDocument]) -> Iterator[list[NewDocument]]:
    """Documents that were cut, as they are embedded and stored."""
    group: list[NewDocument] = []
    for new in documents:
        group.append(new)
        if len(group) >= _DOCUMENTS or sum(len(each.chunks) for each in group) >= _CHUNKS:
            yield group
            group = []
    if group:
        yield group


async def embed_group(
    database: Database, embedding: EmbeddingThread, group: Sequence[NewDocument], now_us: int
) -> list[NewDocument]:
    """The documents of a group with vectors, but for those that are there already and will be when they are stored."""
    if not embedding.is_there:
        return list(group)
    ids = {new.id for new in group}
    there = await database.read(lambda connection: {name for name in ids if _is_there(connection, name, now_us)})
    fresh = {new.id: new for new in group if new.id not in there}
    texts = [embedded_text(chunk.heading, chunk.text) for new in fresh.values() for chunk in new.chunks]
    vectors, start, made = await embedding.embed(texts), 0, {}
    for name, new in fresh.items():
        made[name] = vectors[start : start + len(new.chunks)]
        start += len(new.chunks)
    return [msgspec.structs.replace(new, vectors=made.get(new.id)) for new in group]


def land_group(
    connection: Connection,
    *,
    embedding: EmbeddingThread,
    new: Sequence[NewDocument],
    landing: LandingTime,
    work: Callable[[Connection, Sequence[NewDocument], LandingTime], T],
    at_all: bool,
) -> T | None:
    """Land what was embedded; None, unless it is to land at all, if others have removed what was there meanwhile."""
    if embedding.is_there and not at_all:
        bare = (each.id for each in new if each.vectors is None)
        if not all(_is_there(connection, document, landing.now_us) for document in bare):
            return None
    return work(connection, new, landing)


def embedded_text(heading: str, text: str) -> str:
    """What is embedded of a chunk: of its headings the nearest ones, so that a long title leaves room for the text."""
    return f"{heading[-_HEADING_CHARS:]}\n{text}"


def _is_there(connection: Connection, document: str, now_us: int) -> bool:
    """What has expired is not: it may be removed, with its vectors, before the new one is stored."""
    found = find_document(connection, document)
    return found is not None and (found.expires_us is None or found.expires_us > now_us)
