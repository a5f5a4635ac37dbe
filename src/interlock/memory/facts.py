"""Facts with history: subject, predicate, value; what holds now, what held before, and what contradicts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from interlock.memory import statements as sql
from interlock.memory.documents import Document, DocumentKind, FactState, RememberedFact
from interlock.memory.holders import fact_key
from interlock.memory.ingest import LandingTime, NewDocument, land_documents
from interlock.memory.limits import MemoryLimits
from interlock.memory.tables import MemoryTables, StoredDocument, find_document
from interlock.memory.text import normalize_text
from interlock.stores.dialect import Connection
from interlock.values import Trust


class StatedFact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody states; as with documents, who does not say that it may be believed has said that it may not."""

    subject: str
    predicate: str
    value: str
    source: str
    since_us: int | None = None
    """From when on it holds; now, if nobody says."""
    trust: Trust = Trust.UNTRUSTED
    namespace: str = "default"

    @property
    def key(self) -> str:
        """By which everything that was stated about it is forgotten: a `/` in the subject is written `\\/`."""
        return fact_key(self.subject, self.predicate)

    def as_document(self) -> Document:
        """As which it is found."""
        return Document(
            text=f"{self.subject} {self.predicate}: {self.value}",
            source=self.source,
            title="",
            time_us=self.since_us,
            trust=self.trust,
            namespace=self.namespace,
            kind=DocumentKind.FACT,
            key=self.key,
        )

    def check(self, limits: MemoryLimits) -> None:
        """Refuse what is no fact."""
        limits.check_name("subject", self.subject, needed=True)
        limits.check_name("predicate", self.predicate, needed=True)
        limits.check_value(self.value)


class _FactRow(msgspec.Struct, frozen=True):
    fact: RememberedFact
    document: int


def land_fact(
    connection: Connection, tables: MemoryTables, stated: StatedFact, new: NewDocument, landing: LandingTime, name: str
) -> RememberedFact:
    """Store a fact and the document as which it is found; one that is stated again is the same one."""
    (landed,) = land_documents(connection, tables, [new], landing)
    document = find_document(connection, landed.document)
    assert document is not None
    fact = RememberedFact(
        id=name,
        namespace=stated.namespace,
        subject=stated.subject,
        predicate=stated.predicate,
        value=normalize_text(stated.value),
        source=stated.source,
        trust=landed.trust,
        state=FactState.CURRENT,
        since_us=new.time_us,
        vouched_by=document.vouched_by,
    )
    for known in _rows(connection, sql.STANDING_FACTS, (document.number,)):
        if (known.fact.subject, known.fact.predicate) == (fact.subject, fact.predicate):
            return _repeat(connection, fact, known.fact)
    revision = tables.next_revision(connection)
    fact = _place(connection, fact, _current(connection, fact), revision)
    connection.run(
        sql.ADD_FACT,
        (
            *(fact.id, document.number, fact.namespace, fact.subject, fact.predicate, fact.value, fact.source),
            *(fact.trust.value, fact.state.value, fact.since_us, fact.until_us, fact.vouched_by),
        ),
    )
    if fact.state is FactState.REPLACED:
        _end(connection, fact, document.number, revision)
    return fact


def land_vouched(connection: Connection, document: StoredDocument, revision: int) -> None:
    """What was contested holds, once a person has vouched for it."""
    for row in _rows(connection, sql.FACTS_OF, (document.number,)):
        fact = replace(row.fact, trust=Trust.TRUSTED, vouched_by=document.vouched_by)
        if fact.state is FactState.CONTESTED:
            fact = _place(connection, fact, _current(connection, fact), revision)
        _write(connection, fact)
        if fact.state is FactState.REPLACED:
            _end(connection, fact, document.number, revision)


def fact_of_row(row: Sequence[Any]) -> RememberedFact:
    """A fact from its columns."""
    name, namespace, subject, predicate, value, source, trust, state, since_us, until_us, vouched_by = row[:11]
    return RememberedFact(
        id=name,
        namespace=namespace,
        subject=subject,
        predicate=predicate,
        value=value,
        source=source,
        trust=Trust(trust),
        state=FactState(state),
        since_us=since_us,
        until_us=until_us,
        vouched_by=vouched_by,
    )


def _place(connection: Connection, fact: RememberedFact, held: _FactRow | None, revision: int) -> RememberedFact:
    """How a fact stands to the one that holds: first whom one may believe counts, and then which is newer."""
    if held is None or held.fact.id == fact.id:
        return replace(fact, state=FactState.CURRENT, until_us=None)
    other = held.fact
    if fact.trust is Trust.UNTRUSTED and other.trust is Trust.TRUSTED:
        return replace(fact, state=FactState.CONTESTED, until_us=None)  # whatever its date: anybody may write one
    is_older = fact.since_us < other.since_us
    if is_older and fact.trust is other.trust:
        return replace(fact, state=FactState.REPLACED, until_us=other.since_us)
    if is_older:
        _write(connection, replace(other, state=FactState.CONTESTED, until_us=None))
        return replace(fact, state=FactState.CURRENT, until_us=None)
    _write(connection, replace(other, state=FactState.REPLACED, until_us=fact.since_us))
    _end(connection, other, held.document, revision)
    return replace(fact, state=FactState.CURRENT, until_us=None)


def _end(connection: Connection, fact: RememberedFact, document: int, revision: int) -> None:
    """A fact that holds no more is not found by a search, but where somebody has said it as something else too."""
    key = fact_key(fact.subject, fact.predicate)
    connection.run(sql.END_DOCUMENT, (revision, document, key, key))
    connection.run(sql.BE_NO_FACT, (revision, document))


def _repeat(connection: Connection, fact: RememberedFact, known: RememberedFact) -> RememberedFact:
    """A fact that is stated once more; one that may be believed is not less so as an outsider says it too."""
    if known.trust is Trust.TRUSTED and fact.trust is Trust.UNTRUSTED:
        return known
    again = replace(known, source=fact.source, trust=fact.trust, vouched_by=fact.vouched_by)
    _write(connection, again)
    return again


def _current(connection: Connection, fact: RememberedFact) -> _FactRow | None:
    """What holds about the same thing, without the history of it, which may be long."""
    rows = _rows(connection, sql.CURRENT_FACT, (fact.namespace, fact.subject, fact.predicate))
    return rows[0] if rows else None


def _rows(connection: Connection, statement: str, parameters: Sequence[Any]) -> list[_FactRow]:
    return [_FactRow(fact_of_row(row), row[11]) for row in connection.rows(statement, parameters)]


def _write(connection: Connection, fact: RememberedFact) -> None:
    connection.run(
        sql.SET_FACT, (fact.state.value, fact.until_us, fact.source, fact.trust.value, fact.vouched_by, fact.id)
    )
