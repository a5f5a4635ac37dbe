"""The payloads of a ledger: encrypted on the way in, opened on the way out, under the key that the ledger has noted."""

from __future__ import annotations

from interlock.stores import statements as sql
from interlock.stores.dialect import Connection
from interlock.stores.payload_keys import PayloadKeys


class Payloads:
    """Payloads of one ledger, each in the row of its record."""

    def __init__(self, keys: PayloadKeys) -> None:
        self._keys = keys
        self._agreed = False
        self.agreeing = False
        """Whether the transaction that runs has noted the key; a store sets it back when it begins one."""

    def lock(self, connection: Connection, record: int, payload: bytes) -> bytes:
        """A payload as it is stored with its record, in the transaction that appends this."""
        if not (self._agreed or self.agreeing) and self._keys.is_on:
            self._agree(connection)
        return self._keys.lock(record, payload)

    def read(self, connection: Connection, record: int) -> bytes | None:
        """The payload of a record; None if it has none, or it was deleted."""
        row = connection.one(sql.READ_PAYLOAD, (record,))
        if row is None:
            return None
        whole = isinstance(row[0], bytes | memoryview)  # anything else was put there by somebody else
        return self._keys.open(record, bytes(row[0]) if whole else str(row[0]).encode())

    def on_commit(self) -> None:
        """What was noted in the last transaction stands."""
        self._agreed = self._agreed or self.agreeing

    def _agree(self, connection: Connection) -> None:
        """Note the key in the ledger with the first payload under it, so that nobody goes on with another one."""
        noted = _read_noted(connection)
        current = self._keys.ready(noted)
        if noted is None:
            connection.run(sql.NOTE_PAYLOAD_KEY, (current,))
            noted = _read_noted(connection)  # of several machines that begin at once, the first one's
            self._keys.ready(noted)
        if noted != current:
            connection.run(sql.MOVE_PAYLOAD_KEY, (current,))
        self.agreeing = True


def _read_noted(connection: Connection) -> str | None:
    row = connection.one(sql.READ_PAYLOAD_KEY)
    return None if row is None else str(row[0])
