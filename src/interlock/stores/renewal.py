"""Renewing claims on a connection of its own, from whatever thread: a heartbeat must not wait behind other work."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from interlock.errors import StoreError
from interlock.stores import rows
from interlock.stores.dialect import Connection, Dialect
from interlock.stores.state import PendingWrites, State
from interlock.transitions import Batch, Refused, RenewClaim


class Renewals:
    """The connection of the heart; opened when it is first needed."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._closed = False

    def renew(self, claims: Sequence[RenewClaim], here_us: int) -> tuple[str, ...]:
        """Renew claims in one transaction; the names of those that are not their holder's any more."""
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed")
            try:
                if self._connection is None:
                    self._connection = self._dialect.connect()
                return self._transact(self._connection, claims, here_us)
            except self._dialect.errors as error:
                self._let_go()
                raise self._dialect.explain(error) from None

    def _transact(self, connection: Connection, claims: Sequence[RenewClaim], here_us: int) -> tuple[str, ...]:
        batches = [Batch(here_us, (claim,)) for claim in claims]
        self._dialect.begin(connection)
        changes = PendingWrites()
        state = rows.load(connection, State(changes), rows.by_table(batches))
        clock_us = self._dialect.now_us(connection)
        landed = [(claim.name, state.land(batch, clock_us)) for claim, batch in zip(claims, batches, strict=True)]
        rows.save(connection, state, changes)
        self._dialect.check_place()
        connection.run("COMMIT")
        return tuple(name for name, found in landed if isinstance(found, Refused))

    def _let_go(self) -> None:
        """Whatever went wrong on it, the next beat begins on a new one."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.close()
        except self._dialect.errors:
            pass  # it was gone already

    def close(self) -> None:
        """Let go."""
        with self._lock:
            self._closed = True
            self._let_go()
