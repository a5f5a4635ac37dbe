"""Who has brought a document: its sources, and the keys under which each of them knows it."""

from __future__ import annotations

from interlock.memory import statements as sql
from interlock.stores.dialect import Connection


def fact_key(subject: str, predicate: str) -> str:
    """The key of what is stated about something; no other subject and predicate have the same."""
    return f"{subject.replace(_ESCAPE, _ESCAPE * 2).replace('/', _ESCAPE + '/')}/{predicate}"


_ESCAPE = "\\"


def add_key(connection: Connection, number: int, key: str, source: str) -> None:
    """Note that a source knows a document under a key; the last one noted is the one that is shown."""
    connection.run(sql.DROP_KEY_OF_SOURCE, (number, key, source))
    connection.run(sql.ADD_KEY, (number, key, source))


def drop_source(connection: Connection, number: int, source: str) -> None:
    """Take a source from a document, with its keys."""
    connection.run(sql.DROP_KEYS_OF_SOURCE, (number, source))
    connection.run(sql.DROP_SOURCE, (number, source))


def drop_key(connection: Connection, number: int, key: str) -> None:
    """Take a key from a document, with the sources that know it under no other."""
    connection.run(sql.DROP_SOURCES_OF_KEY, (number, key, key))
    connection.run(sql.DROP_KEY, (number, key))


def has_sources(connection: Connection, number: int) -> bool:
    """Whether anybody has brought a document who still does."""
    return bool(connection.rows(sql.SOURCES, (number,)))


def last_key(connection: Connection, number: int) -> str:
    """The key of a document that was noted last; empty if it has none."""
    row = connection.one(sql.LAST_KEY, (number,))
    return "" if row is None else str(row[0])


def settle_facts(connection: Connection, number: int, revision: int) -> int:
    """Remove the facts of a document that nobody states any more, and the names of sources that are gone; how many."""
    gone = 0
    for row in connection.rows(sql.FACTS_OF, (number,)):
        name, subject, predicate, source = row[0], row[2], row[3], row[5]
        sources = [found[0] for found in connection.rows(sql.KEY_SOURCES, (number, fact_key(subject, predicate)))]
        if not sources:
            connection.run(sql.DROP_FACT, (name,))
            gone += 1
        elif source not in sources:
            connection.run(sql.MOVE_FACT, (sources[-1], name))
    if gone:
        connection.run(sql.BE_NO_FACT, (revision, number))
    return gone
