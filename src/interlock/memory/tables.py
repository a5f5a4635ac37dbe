"""The tables of one memory: which twin they are of, what compares vectors, and rows as values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from interlock.memory import statements as sql
from interlock.memory.documents import DocumentKind
from interlock.memory.meta import next_revision, read_meta
from interlock.memory.selection import Selection
from interlock.memory.twins import Twin
from interlock.stores.dialect import Connection
from interlock.values import Trust


class VectorIndex(Protocol):
    """Where vectors are compared: in this process, or by the server."""

    @property
    def name(self) -> str:
        """What compares them."""
        ...

    @property
    def statement(self) -> str:
        """The table that has them."""
        ...

    def add(self, connection: Connection, rows: Sequence[tuple[int, int]], vectors: Any) -> None:
        """Store the vectors of chunks (chunk, document)."""
        ...

    def search(self, connection: Connection, vector: Any, which: Selection, most: int) -> list[tuple[int, float]]:
        """The nearest chunks and how alike they are, best first."""
        ...

    def refresh(self, connection: Connection) -> None:
        """Read what has changed, so that nothing is held that was removed."""
        ...


class MemoryTables(msgspec.Struct, frozen=True, kw_only=True):
    """What every change of a memory needs to know about it."""

    twin: Twin
    digest_key: bytes
    vectors: VectorIndex | None = None

    def next_revision(self, connection: Connection) -> int:
        """The number of a change."""
        return next_revision(connection)

    def vectors_table(self, connection: Connection) -> str:
        """The table that has the vectors: of ours, or of whoever has embedded here since this memory was opened."""
        if self.vectors is not None:
            return self.vectors.statement
        return "memory_embeddings" if read_meta(connection, "vectors") == "pgvector" else "memory_vectors"


class StoredDocument(msgspec.Struct, frozen=True):
    """A row of the table of documents."""

    number: int
    id: str
    namespace: str
    kind: DocumentKind
    trust: Trust
    time_us: int
    expires_us: int | None
    half_life_s: float | None
    chunks: int
    title: str
    metadata: dict[str, str | int | float | bool]
    digest: str
    vouched_by: str


def document_of_row(row: Sequence[Any]) -> StoredDocument:
    """A document from its columns."""
    values = list(row)
    values[3], values[4] = DocumentKind(row[3]), Trust(row[4])
    values[10] = msgspec.json.decode(row[10])
    return StoredDocument(*values)


def find_document(connection: Connection, document: str) -> StoredDocument | None:
    """A document by its id."""
    row = connection.one(sql.FIND_DOCUMENT, (document,))
    return None if row is None else document_of_row(row)


def read_document(connection: Connection, number: int) -> StoredDocument | None:
    """A document by its number."""
    row = connection.one(sql.READ_DOCUMENT, (number,))
    return None if row is None else document_of_row(row)
