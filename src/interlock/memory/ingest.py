"""The one way in: a document is cut, told from what is there, embedded, and lands whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

import msgspec

from interlock.errors import InvalidInput
from interlock.memory import statements as sql
from interlock.memory.chunking import split_chunks
from interlock.memory.documents import RETENTIONS, Document, DocumentKind, Ingested, Retention
from interlock.memory.holders import add_key, drop_key, has_sources, settle_facts
from interlock.memory.limits import MemoryLimits
from interlock.memory.meta import owe_wipe
from interlock.memory.numbering import chunk_number, document_number
from interlock.memory.removal import indexed_text, remove_document
from interlock.memory.tables import MemoryTables, StoredDocument, find_document, read_document
from interlock.memory.text import content_digest, document_id, normalize_text, tombstone_digest
from interlock.stores.dialect import Connection, fill
from interlock.values import Trust

T = TypeVar("T", int, float)


class NewChunk(msgspec.Struct, frozen=True, gc=False):
    """A part of a document that is about to be stored."""

    start: int
    heading: str
    text: str


class NewDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was cut, and of which nothing is stored yet."""

    document: Document
    id: str
    digest: str
    chunks: tuple[NewChunk, ...]
    time_us: int
    vectors: Any = None
    """One for each chunk; None where nothing embeds, or the document is there already."""

    @property
    def retention(self) -> Retention:
        """How long it is kept."""
        return self.document.retention or RETENTIONS[self.document.kind]


class LandingTime(msgspec.Struct, frozen=True, kw_only=True):
    """When documents land, and where a test may stop that."""

    now_us: int
    at: Callable[[str], object]


def cut_document(document: Document, limits: MemoryLimits, now_us: int) -> NewDocument:
    """A document in chunks, with the ids that its text gives it."""
    text, title = normalize_text(document.text), normalize_text(document.title)
    digest = content_digest(text)
    slices = list(islice(split_chunks(text), limits.chunks + 1))
    if len(slices) > limits.chunks:
        raise InvalidInput(f"the document has more than {limits.chunks:,} chunks: split it")
    if not slices:
        raise InvalidInput("the document has no text that could be found again")
    chunks = tuple(
        NewChunk(part.start, " > ".join(filter(None, (title, part.heading))), text[part.start : part.end])
        for part in slices
    )
    return NewDocument(
        document=document,
        id=document_id(document.namespace, digest),
        digest=digest,
        chunks=chunks,
        time_us=now_us if document.time_us is None else document.time_us,
    )


def land_documents(
    connection: Connection, tables: MemoryTables, documents: Sequence[NewDocument], landing: LandingTime
) -> tuple[Ingested, ...]:
    """Store documents in the transaction that runs; for one that is there its source and time are added."""
    revision = tables.next_revision(connection)
    return tuple(_land(connection, tables, new, landing, revision) for new in documents)


def _land(
    connection: Connection, tables: MemoryTables, new: NewDocument, landing: LandingTime, revision: int
) -> Ingested:
    trust, label = new.document.trust, tombstone_digest(tables.digest_key, "", new.digest)
    if trust is Trust.UNTRUSTED:
        connection.run(sql.ADD_LABEL, (label,))
    elif connection.one(sql.FIND_LABEL, (label,)) is not None:
        trust = Trust.UNTRUSTED  # it came in so before, here or in another namespace, and may be gone since
    there = find_document(connection, new.id)
    if there is None:
        number = _add(connection, tables, new, trust, landing, revision)
    else:
        trust = _join(connection, there, new, landing, revision)
        number = there.number
    source = (number, new.document.source, new.time_us, landing.now_us, new.document.trust.value)
    connection.run(sql.ADD_SOURCE, source)
    if new.document.key:
        add_key(connection, number, new.document.key, new.document.source)
    stone = tombstone_digest(tables.digest_key, new.document.namespace, new.digest)
    forgotten = connection.rows(sql.FIND_TOMBSTONE, (stone,))[0][0]
    chunks = len(new.chunks) if there is None else there.chunks
    return Ingested(
        document=new.id,
        new=there is None,
        chunks=chunks,
        trust=trust,
        namespace=new.document.namespace,
        embedded=_is_embedded(connection, tables, number, chunks),
        replaced=_replace(connection, tables, new, number, revision) if new.document.replaces else 0,
        forgotten_us=forgotten,
    )


def _is_embedded(connection: Connection, tables: MemoryTables, number: int, chunks: int) -> bool:
    """Whether all chunks of a document have vectors that are compared here."""
    if tables.vectors is None:
        return False
    statement = fill(sql.COUNT_VECTORS_OF, {"vectors": tables.vectors.statement})
    return bool(connection.rows(statement, (number,))[0][0] >= chunks)


def _add(
    connection: Connection, tables: MemoryTables, new: NewDocument, trust: Trust, landing: LandingTime, revision: int
) -> int:
    document, retention = new.document, new.retention
    ends_us = _ends_us(new, landing)
    metadata = msgspec.json.encode(document.metadata).decode()
    what = (new.id, document.namespace, document.kind.value, trust.value, new.time_us, ends_us, retention.half_life_s)
    more = (revision, len(new.chunks), normalize_text(document.title), metadata, new.digest)
    number = int(connection.rows(sql.ADD_DOCUMENT, (*what, *more, landing.now_us))[0][0])
    landing.at("memory.document")
    numbers = [chunk_number(number, position) for position in range(len(new.chunks))]
    rows = [(place, chunk.start, chunk.heading, chunk.text) for place, chunk in zip(numbers, new.chunks, strict=True)]
    connection.run_many(sql.ADD_CHUNK, rows)
    landing.at("memory.chunks")
    if tables.twin.keeps_words:
        words = [
            (place, indexed_text(chunk.heading, chunk.text)) for place, chunk in zip(numbers, new.chunks, strict=True)
        ]
        connection.run_many(sql.ADD_WORDS, words)
    landing.at("memory.words")
    if tables.vectors is not None and new.vectors is not None:
        tables.vectors.add(connection, [(place, number) for place in numbers], new.vectors)
    landing.at("memory.vectors")
    return number


def _join(
    connection: Connection, there: StoredDocument, new: NewDocument, landing: LandingTime, revision: int
) -> Trust:
    """Add to a document that is there what is new about it; its label, which is the lower of the two.

    A person who has vouched for it has vouched for this text, wherever it comes from.
    """
    document = new.document
    lower = Trust.UNTRUSTED if Trust.UNTRUSTED in (there.trust, document.trust) else Trust.TRUSTED
    trust = there.trust if there.vouched_by else lower
    is_current = there.expires_us is None or there.expires_us > landing.now_us
    # A fact that holds again is no fact of the past; a page that says what one of the past has said is a page.
    stays = is_current and there.expires_us is None
    is_page = document.kind is DocumentKind.WEB and (is_current or there.kind is not DocumentKind.FACT)
    ends_us, half_life_s = _ends_us(new, landing), new.retention.half_life_s
    if is_current:  # what is kept for longer stays for longer, whoever brings a copy that is not
        ends_us, half_life_s = _longer(there.expires_us, ends_us), _longer(there.half_life_s, half_life_s)
    connection.run(
        sql.SET_DOCUMENT,
        (
            (there.kind if stays or is_page else document.kind).value,
            trust.value,
            max(there.time_us, new.time_us),
            ends_us,
            half_life_s,
            revision,
            there.number,
        ),
    )
    return trust


def _ends_us(new: NewDocument, landing: LandingTime) -> int | None:
    """When it expires; None if it never does."""
    keep_s = new.retention.keep_s
    return None if keep_s is None else landing.now_us + round(keep_s * 1e6)


def _longer(one: T | None, other: T | None) -> T | None:
    """The longer of two times, of which None is for ever."""
    return None if one is None or other is None else max(one, other)


def _replace(connection: Connection, tables: MemoryTables, new: NewDocument, number: int, revision: int) -> int:
    """Take its key from the other documents, and remove those that nobody else has brought; how many."""
    namespace, key, gone = new.document.namespace, new.document.key, 0
    others = [row[0] for row in connection.rows(sql.BY_KEY, (key, namespace, namespace)) if row[0] != number]
    for other in others:
        document = read_document(connection, other)
        drop_key(connection, other, key)
        if document is not None and not has_sources(connection, other):
            remove_document(connection, tables, document, revision)
            gone += 1
        else:
            settle_facts(connection, other, revision)
            owe_wipe(connection, revision, words=False)
    return gone


def add_vectors(connection: Connection, tables: MemoryTables, rows: Sequence[Sequence[Any]], vectors: Any) -> int:
    """Store vectors of chunks that had none (chunk, …), as far as these are still there."""
    there = [place for place, row in enumerate(rows) if connection.one(sql.CHUNK_IS_THERE, (row[0],)) is not None]
    if there and tables.vectors is not None:
        tables.next_revision(connection)
        tables.vectors.add(
            connection, [(rows[place][0], document_number(rows[place][0])) for place in there], vectors[there]
        )
    return len(there)
