"""Claims that are open, as this process has left them: where nobody else has written since, they are not read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.state import Claimed, ClaimState, Lease
from interlock.stores.claims import ClaimTable
from interlock.stores.dialect import Connection, Dialect
from interlock.transitions import OpenClaim


class OpenClaims:
    """What the last commits of one connection have left open, with the leases of its keys."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._version: int | None = None
        """Of the database, as that connection sees it: another one as soon as anybody else has written."""
        self._claims: dict[str, Claimed] = {}
        self._leases: dict[str, Lease] = {}

    def recall(self, connection: Connection, table: ClaimTable, asks: Sequence[Any]) -> None:
        """Put into the table what need not be read, of claims that are ended or renewed."""
        # What one batch ends and another begins again is judged by more than its own leases.
        opened = {name for ask in asks if type(ask) is OpenClaim for name in (ask.name, ask.call_name)}
        known = [self._claims[name] for name in {ask.name for ask in asks} - opened if name in self._claims]
        if self._version is not None and not known:
            return  # what is kept after this transaction counts if nobody else has written since the last look
        version = self._dialect.version(connection)
        if version is None or version != self._version:
            self.forget()
            self._version = version
            return
        for claim in known:
            table.claims[claim.name] = claim
            table.leases.update({key: self._leases[key] for key in claim.keys})

    def on_commit(self, table: ClaimTable) -> None:
        """The transaction has landed: what is open after it is kept, and nothing else."""
        if self._version is None:
            return
        for name in table.changed | table.moved:
            claim = table.claims[name]
            if claim.state is ClaimState.OPEN:
                self._claims[name] = claim
                self._leases.update({key: table.leases[key] for key in claim.keys})
            elif self._claims.pop(name, None) is not None:
                for key in claim.keys:
                    self._leases.pop(key, None)

    def forget(self) -> None:
        """Nobody knows what is in the database: it is read again."""
        self._version = None
        self._claims.clear()
        self._leases.clear()
