"""Documents that go: their text, words, vectors, sources and facts; and what stays instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from interlock.errors import InvalidInput
from interlock.memory import statements as sql
from interlock.memory.documents import Tombstone
from interlock.memory.holders import drop_key, drop_source, has_sources, settle_facts
from interlock.memory.meta import WORDS_OWED, owe_wipe, read_meta
from interlock.memory.numbering import number_range
from interlock.memory.selection import source_range
from interlock.memory.tables import MemoryTables, StoredDocument, read_document
from interlock.memory.text import tombstone_digest
from interlock.stores.dialect import Connection, fill

_TARGETS = ("document", "source", "key", "older_than_us")


class ForgetTarget(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be forgotten: one of these, in one namespace or in all; or a whole namespace."""

    document: str | None = None
    source: str | None = None
    key: str | None = None
    older_than_us: int | None = None
    namespace: str | None = None

    def check(self) -> None:
        """Refuse a target that is none, or several: too much would go."""
        given = [name for name in _TARGETS if getattr(self, name) is not None]
        if len(given) > 1 or (not given and self.namespace is None):
            raise InvalidInput(
                "forget what? name one of document=, source=, key= and older_than=, with namespace= or without;"
                " or namespace= alone"
            )
        if "" in (self.document, self.source, self.key, self.namespace) or self.source == "*":
            raise InvalidInput("forget what? an empty name means nothing, and not everything")

    @property
    def what(self) -> str:
        """What it goes by."""
        return next((name for name in _TARGETS if getattr(self, name) is not None), "namespace")

    @property
    def name(self) -> str:
        """The name of what goes, as it was given."""
        return str(getattr(self, self.what))


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """What has gone in one transaction."""

    documents: int = 0
    chunks: int = 0
    facts: int = 0
    kept: int = 0
    tombstones: tuple[Tombstone, ...] = ()


class Farewell(msgspec.Struct, frozen=True, kw_only=True):
    """Who has documents forgotten, when and why, and the ids of what is left of them."""

    by: str
    reason: str
    at_us: int
    new_id: Any
    """Makes an id."""


def forget_documents(
    connection: Connection, tables: MemoryTables, target: ForgetTarget, scope: frozenset[str] | None, farewell: Farewell
) -> Removed:
    """Remove what a target names, within the namespaces of a scope, and leave a tombstone for each document."""
    revision = tables.next_revision(connection)
    stones: list[Tombstone] = []
    chunks = facts = kept = 0
    for number, sources in _find_targets(connection, target):
        document = read_document(connection, number)
        if document is None or (scope is not None and document.namespace not in scope):
            continue
        if _is_held_by_others(connection, target, number, sources):
            kept += 1
            facts += settle_facts(connection, number, revision)
            owe_wipe(connection, revision, words=False)
            continue
        facts += connection.rows(sql.COUNT_FACTS, (number,))[0][0]
        chunks += document.chunks
        remove_document(connection, tables, document, revision)
        stones.append(_add_tombstone(connection, tables, document, farewell))
    merge_words(connection, tables)
    return Removed(documents=len(stones), chunks=chunks, facts=facts, kept=kept, tombstones=tuple(stones))


def _is_held_by_others(connection: Connection, target: ForgetTarget, number: int, sources: Iterable[str]) -> bool:
    """Take from a document the key or the sources that are meant; whether others have brought it too."""
    if target.key is None and target.source is None:
        return False
    if target.key is not None:
        drop_key(connection, number, target.key)
    for source in sources:
        drop_source(connection, number, source)
    return has_sources(connection, number)


def _add_tombstone(
    connection: Connection, tables: MemoryTables, document: StoredDocument, farewell: Farewell
) -> Tombstone:
    stone = Tombstone(
        id=farewell.new_id(),
        digest=tombstone_digest(tables.digest_key, document.namespace, document.digest),
        namespace=document.namespace,
        at_us=farewell.at_us,
        by=farewell.by,
        reason=farewell.reason,
    )
    connection.run(sql.ADD_TOMBSTONE, msgspec.structs.astuple(stone))
    return stone


def remove_document(connection: Connection, tables: MemoryTables, document: StoredDocument, revision: int) -> None:
    """Remove a document with everything that was made of it."""
    number = document.number
    if tables.twin.keeps_words:
        chunks = connection.rows(sql.CHUNKS_BETWEEN, number_range(number))
        connection.run_many(sql.DROP_WORDS, [(row[0], indexed_text(row[2], row[3])) for row in chunks])
    connection.run(sql.DROP_CHUNKS, number_range(number))
    connection.run(fill(sql.DROP_VECTORS, {"vectors": tables.vectors_table(connection)}), (number,))
    for statement in (sql.DROP_SOURCES, sql.DROP_KEYS, sql.DROP_FACTS, sql.DROP_DOCUMENT):
        connection.run(statement, (number,))
    connection.run(sql.ADD_REMOVAL, (revision, number))
    owe_wipe(connection, revision, words=tables.twin.keeps_words)


def remove_expired(connection: Connection, tables: MemoryTables, now_us: int, most: int) -> int:
    """Remove documents whose time is over; how many."""
    numbers = [row[0] for row in connection.rows(sql.EXPIRED, (now_us, most))]
    if numbers:
        revision = tables.next_revision(connection)
        for number in numbers:
            document = read_document(connection, number)
            if document is not None:
                remove_document(connection, tables, document, revision)
    return len(numbers)


def merge_words(connection: Connection, tables: MemoryTables) -> None:
    """Rid the index of words of what was deleted from it."""
    if read_meta(connection, WORDS_OWED):
        if tables.twin.keeps_words:
            connection.run(sql.MERGE_WORDS)
        connection.run(sql.WRITE_META, ("", WORDS_OWED))


def indexed_text(heading: str, text: str) -> str:
    """What is looked through for words of a chunk; the index is told the same when it goes."""
    return f"{heading}\n{text}"


def _find_targets(connection: Connection, target: ForgetTarget) -> Iterable[tuple[int, Sequence[str]]]:
    """The documents that are meant, each with the sources of it that are."""
    namespace = target.namespace or ""
    if target.source is not None:
        rows = connection.rows(sql.BY_SOURCE, (*source_range(target.source), namespace, namespace))
        return [(number, [row[1] for row in some]) for number, some in groupby(rows, key=itemgetter(0))]
    if target.document is not None:
        rows = connection.rows(sql.BY_ID, (target.document, namespace, namespace))
    elif target.key is not None:
        rows = connection.rows(sql.BY_KEY, (target.key, namespace, namespace))
    elif target.older_than_us is not None:
        rows = connection.rows(sql.BY_AGE, (target.older_than_us, namespace, namespace))
    else:
        rows = connection.rows(sql.BY_NAMESPACE, (namespace,))
    return [(row[0], ()) for row in rows]
