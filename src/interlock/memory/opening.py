"""What is agreed on when a memory is opened: namespaces, what compares vectors, and whose vectors they are."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.errors import ConfigError, InvalidInput
from interlock.memory import statements as sql
from interlock.memory.database import Database
from interlock.memory.embedding_thread import EmbeddingThread
from interlock.memory.limits import check_namespace_name
from interlock.memory.meta import read_meta
from interlock.memory.tables import MemoryTables, VectorIndex
from interlock.memory.vectors import PackedVectors
from interlock.stores.dialect import Connection, fill

DEFAULT_NAMESPACE = "default"


def open_tables(database: Database, embedding: EmbeddingThread) -> MemoryTables:
    """The tables of a memory; its vectors are compared by what has compared them from the start."""
    vectors: VectorIndex | None = None
    noted = database.at_once(lambda connection: read_meta(connection, "vectors"))
    if embedding.is_there:
        vectors = _open_vectors(database, embedding, noted)
    return MemoryTables(
        twin=database.twin,
        digest_key=database.digest_key,
        vectors=vectors,
    )


def make_namespaces(database: Database, namespaces: Iterable[str] | None, now_us: int) -> frozenset[str] | None:
    """Make the namespaces that a program names: it sees no others. None: all that there are."""
    if isinstance(namespaces, str):
        raise ConfigError(f"namespaces= are several names, such as ({namespaces!r},)")
    names = [DEFAULT_NAMESPACE] if namespaces is None else [check_namespace_name(name) for name in namespaces]
    if not names:
        raise ConfigError("namespaces= is empty: a memory without a namespace can hold nothing")

    def work(connection: Connection) -> None:
        for name in names:
            connection.run(sql.ADD_NAMESPACE, (name, now_us))

    database.at_once(work)
    return None if namespaces is None else frozenset(names)


def add_namespace(connection: Connection, made: tuple[str, int], scope: frozenset[str] | None) -> None:
    """Make a namespace; what others have made is not opened to a memory that sees its own alone."""
    is_new = connection.run(sql.ADD_NAMESPACE, made) == 1
    if not is_new and scope is not None and made[0] not in scope:
        raise InvalidInput(
            f"the namespace {made[0]!r} is there already, and this memory was opened without it: name it in"
            " Memory.open(namespaces=…)"
        )


def _open_vectors(database: Database, embedding: EmbeddingThread, noted: str) -> VectorIndex:
    server = None
    if database.dialect.locks_rows and noted != PackedVectors.name:
        from interlock.memory.pgvector import PgVectors, pgvector_version

        version = database.outside(pgvector_version)
        server = None if version is None else PgVectors(version)

    def work(connection: Connection) -> None:
        if server is not None:
            for statement in sql.PGVECTOR_SCHEMA:
                tokens = {"dimensions": str(embedding.dimensions)}
                connection.run(database.twin.spell(fill(statement, tokens)))
        connection.run(sql.NOTE_META, ("vectors", PackedVectors.name if server is None else server.name))
        connection.run(sql.NOTE_META, ("embedder", embedding.name))
        made_with = read_meta(connection, "embedder")
        if made_with != embedding.name:
            raise ConfigError(
                f"the vectors of this memory were made by {made_with!r}, and cannot be compared with those of"
                f" {embedding.name!r}: open it with that embedder, or with embedder=None to search by words"
            )

    database.at_once(work)
    return PackedVectors(embedding.dimensions) if server is None else server
