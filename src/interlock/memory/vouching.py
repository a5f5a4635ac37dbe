"""A person says that a document may be believed: the one way in which a label is raised."""

from __future__ import annotations

from interlock.errors import InvalidInput
from interlock.memory import statements as sql
from interlock.memory.facts import land_vouched
from interlock.memory.tables import MemoryTables, StoredDocument, find_document
from interlock.stores.dialect import Connection


def require_document(connection: Connection, document: str, scope: frozenset[str] | None) -> StoredDocument:
    """A document by its id, or a sentence that there is none."""
    there = find_document(connection, document)
    if there is None or (scope is not None and there.namespace not in scope):
        raise InvalidInput(f"there is no document {document}; take an id that a search has given")
    return there


def vouch_document(
    connection: Connection, tables: MemoryTables, document: str, scope: frozenset[str] | None, by: str, now_us: int
) -> StoredDocument:
    """Note who has vouched for a document, when, and that it is trusted from now on."""
    there = require_document(connection, document, scope)
    revision = tables.next_revision(connection)
    connection.run(sql.VOUCH_DOCUMENT, (by, now_us, revision, there.number))
    vouched = find_document(connection, document)
    assert vouched is not None
    land_vouched(connection, vouched, revision)
    return vouched
