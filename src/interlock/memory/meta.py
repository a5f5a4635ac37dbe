"""What a memory notes about itself: its schema, how often it was changed, and what is still to be wiped."""

from __future__ import annotations

from interlock.errors import StoreTooNew
from interlock.memory import statements as sql
from interlock.memory.holders import fact_key
from interlock.stores.dialect import Connection

SCHEMA = 2
WIPE_OWED = "wipe"
"""The change that has removed something which still lies in a log; empty if none has."""
WORDS_OWED = "words"
"""Whether the index of words has older parts in which something removed still stands."""


def read_meta(connection: Connection, name: str) -> str:
    """A fact about the memory itself; empty if nobody has noted it."""
    row = connection.one(sql.READ_META, (name,))
    return "" if row is None else str(row[0])


def next_revision(connection: Connection) -> int:
    """The number of this change: whoever holds a copy of labels or vectors sees that it is old."""
    revision = int(read_meta(connection, "revision")) + 1
    connection.run(sql.WRITE_META, (str(revision), "revision"))
    return revision


def owe_wipe(connection: Connection, revision: int, *, words: bool) -> None:
    """Note in the transaction that removes something that it is still to be wiped, whoever is killed after it."""
    connection.run(sql.WRITE_META, (str(revision), WIPE_OWED))
    if words:
        connection.run(sql.WRITE_META, ("1", WORDS_OWED))


def bring_up_to_date(connection: Connection) -> None:
    """Give a memory of an older version the tables of this one; refuse one of a newer version."""
    schema = int(read_meta(connection, "schema"))
    if schema > SCHEMA:
        raise StoreTooNew(f"this memory was made by a newer version (schema {schema}, here {SCHEMA}); upgrade")
    if schema < SCHEMA:
        for statement in sql.FROM_SCHEMA_1:
            connection.run(statement)
        for document, subject, predicate in connection.rows(sql.ALL_FACTS):
            key, plain = fact_key(subject, predicate), f"{subject}/{predicate}"
            sources = connection.rows(sql.KEY_SOURCES, (document, plain)) if key != plain else []
            if sources:
                connection.run(sql.DROP_KEY, (document, plain))
                connection.run_many(sql.ADD_KEY, [(document, key, source) for (source,) in sources])
        connection.run(sql.WRITE_META, (str(SCHEMA), "schema"))
        # What was replaced or has expired may stand in the index of words.
        owe_wipe(connection, next_revision(connection), words=True)
