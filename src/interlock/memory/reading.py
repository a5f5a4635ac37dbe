"""Documents read as a whole, newest first: what is remembered under an id, a key or a source."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from interlock.memory import statements as sql
from interlock.memory.documents import KeptDocument
from interlock.memory.holders import last_key
from interlock.memory.matching import marks
from interlock.memory.numbering import number_range
from interlock.memory.searching import join_parts
from interlock.memory.tables import MemoryTables, StoredDocument, document_of_row
from interlock.stores.dialect import Connection, fill


class DocumentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which documents are meant; an empty text stands for all."""

    now_us: int
    most: int
    document: str = ""
    key: str = ""
    source: str = ""
    namespaces: Collection[str] | None = None


def read_documents(connection: Connection, asked: DocumentRequest) -> tuple[KeptDocument, ...]:
    """Whole documents, the last one first."""
    names = None if asked.namespaces is None else sorted(asked.namespaces)
    where = "TRUE" if names is None else f"d.namespace IN ({marks(len(names))})"
    named = [text for one in (asked.document, asked.key, asked.source) for text in (one, one)]
    parameters = (asked.now_us, *named, *(names or ()), asked.most)
    rows = connection.rows(fill(sql.KEPT_DOCUMENTS, {"where": where}), parameters)
    return tuple(_whole(connection, document_of_row(row)) for row in rows)


def count_all(connection: Connection, tables: MemoryTables) -> tuple[int, int, int]:
    """How many documents, chunks and vectors there are."""
    vectors = fill(sql.COUNT_VECTORS, {"vectors": tables.vectors_table(connection)})
    documents, chunks, embedded = (
        int(connection.rows(statement)[0][0]) for statement in (sql.COUNT_DOCUMENTS, sql.COUNT_CHUNKS, vectors)
    )
    return documents, chunks, embedded


def _whole(connection: Connection, found: StoredDocument) -> KeptDocument:
    rows = connection.rows(sql.CHUNKS_BETWEEN, number_range(found.number))
    return KeptDocument(
        id=found.id,
        text=join_parts((row[1], row[3]) for row in rows),
        sources=tuple(row[0] for row in connection.rows(sql.SOURCES, (found.number,))),
        title=found.title,
        time_us=found.time_us,
        trust=found.trust,
        kind=found.kind,
        namespace=found.namespace,
        key=last_key(connection, found.number),
        metadata=found.metadata,
        chunks=found.chunks,
        vouched_by=found.vouched_by,
    )
