"""Vectors on a PostgreSQL that has pgvector: half precision, an HNSW index, filters while it is searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.memory import statements as sql
from interlock.memory.matching import conditions
from interlock.memory.selection import Selection
from interlock.stores.dialect import Connection, fill

_ITERATES = (0, 8)
"""From this version on the index goes on until enough rows pass a filter."""


class PgVectors:
    """The index is the server's; nothing is kept here."""

    name = "pgvector"
    statement = "memory_embeddings"

    def __init__(self, version: tuple[int, ...]) -> None:
        self._iterates = version >= _ITERATES
        self._tuned: Connection | None = None

    def add(self, connection: Connection, rows: Sequence[tuple[int, int]], vectors: Any) -> None:
        """Store the vectors of chunks (chunk, document)."""
        connection.run_many(
            sql.ADD_EMBEDDING, [(*row, _text(vector)) for row, vector in zip(rows, vectors, strict=True)]
        )

    def search(self, connection: Connection, vector: Any, which: Selection, most: int) -> list[tuple[int, float]]:
        """The nearest chunks and how alike they are, best first."""
        self._tune(connection)
        where, parameters = conditions(which)
        asked = _text(vector)
        found = connection.rows(fill(sql.NEAR, {"where": where}), (asked, *parameters, asked, most))
        return [(int(chunk), float(likeness)) for chunk, likeness in found]

    def refresh(self, connection: Connection) -> None:
        """Nothing: the server's index is always as its table is."""

    def _tune(self, connection: Connection) -> None:
        if self._tuned is not connection:
            connection.run(sql.LOOK_WIDELY)
            if self._iterates:
                connection.run(sql.SEARCH_THROUGH_FILTERS)
            self._tuned = connection


def pgvector_version(connection: Connection) -> tuple[int, ...] | None:
    """The version that is installed, or could be and now is; None where there is none."""
    if connection.one(sql.HAS_PGVECTOR) != (1,):
        return None
    try:
        connection.run(sql.MAKE_PGVECTOR)
    except Exception as error:
        # It is there, and not for us to install; or somebody else was installing it just then.
        if getattr(error, "sqlstate", None) not in ("42501", "23505", "42710"):
            raise
    row = connection.one(sql.PGVECTOR_VERSION)
    if row is None:
        return None
    return tuple(int(part) for part in str(row[0]).split(".") if part.isdigit())


def _text(vector: Any) -> str:
    return f"[{','.join(f'{number:.5f}' for number in vector.tolist())}]"
