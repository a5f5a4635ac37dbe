"""Opening a durable store: its schema is brought forward, and what was seen of its ledger is looked for in it."""

from __future__ import annotations

import os

from interlock.errors import StoreCorrupt, StoreTooNew
from interlock.ports import LedgerIdentity, genesis, ledger_name
from interlock.records import LaneHead
from interlock.stores import statements as sql
from interlock.stores.dialect import Connection, Dialect
from interlock.stores.witness import accepted_heads


def migrate(connection: Connection, dialect: Dialect) -> LedgerIdentity:
    """Bring the schema forward under the write lock; refuse one that is newer than this version."""
    newest = len(sql.MIGRATIONS)
    try:
        found = {str(name): str(value) for name, value in connection.rows(sql.READ_META)}
    except dialect.errors as error:
        if type(dialect.explain(error)) is StoreCorrupt:
            raise
        found = {}
    if int(found.get("schema", 0)) != newest:
        dialect.begin(connection, migrating=True)
        connection.run(sql.META_TABLE)
        found = {str(name): str(value) for name, value in connection.rows(sql.READ_META)}
        have = int(found.get("schema", 0))
        if have > newest:
            connection.run("ROLLBACK")
            raise StoreTooNew(
                f"the store has schema {have}, and this version of Interlock knows up to {newest}; upgrade Interlock"
            )
        for step in sql.MIGRATIONS[have:]:
            for statement in step:
                connection.run(statement)
        if have == 0:
            # How many lanes there are is part of the name, on which every chain is built: none can be added unseen.
            key = os.urandom(32)
            found |= {"ledger": ledger_name(key, dialect.lanes), "digest_key": key.hex()}
            connection.run_many(sql.ADD_LANE, [(n, genesis(found["ledger"], n)) for n in range(dialect.lanes)])
        found["schema"] = str(newest)
        connection.run_many(sql.WRITE_META, list(found.items()))
        connection.run("COMMIT")
    if found["ledger"] != ledger_name(bytes.fromhex(found["digest_key"]), dialect.lanes):
        raise StoreCorrupt("the key of the ledger's digests is not the one it was begun with; restore a copy")
    return LedgerIdentity(ledger=found["ledger"], digest_key=bytes.fromhex(found["digest_key"]), schema=newest)


def missing_heads(connection: Connection, seen: tuple[LaneHead, ...]) -> tuple[LaneHead, ...]:
    """Records that were seen and are not there any more, unless somebody has said that this history stands."""
    gone = [head for head in seen if connection.one(sql.PLACE_OF, (head.id,)) != (head.lane, head.hash)]
    if not gone:
        return ()
    accepted = {tuple(item) for row in connection.rows(sql.ACCEPTED_HISTORIES) for item in accepted_heads(str(row[0]))}
    return tuple(head for head in gone if (head.lane, head.id, head.hash) not in accepted)
