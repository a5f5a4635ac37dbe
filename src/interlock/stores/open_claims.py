"""Claims that are open, as this process has left them: where nobody else has written since, they are not read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.state import Claimed, ClaimState, Lease
from interlock.stores.claims import ClaimTable
from interlock.stores.dialect import Connection, Dialect
from interlock.transitions import OpenClaim

_Left = tuple[Claimed, list[Lease]]
"""A claim, and the leases of its keys, which nothing changes but what changes the claim."""


class OpenClaims:
    """What the last commits of one connection have left open, with the leases of its keys."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._version: int | None = None
        """Of the database, as that connection sees it: another one as soon as anybody else has written."""
        self._left: dict[str, _Left] = {}

    def recall(self, connection: Connection, table: ClaimTable, asks: Sequence[Any]) -> None:
        """Put into the table what need not be read, of claims that are ended or renewed."""
        kept = self._left
        known = [left for ask in asks if type(ask) is not OpenClaim and (left := kept.get(ask.name))] if kept else ()
        if not known and self._version is not None:
            return  # what is kept after this transaction counts if nobody else has written since the last look
        version = self._dialect.version(connection)
        if version is None or version != self._version:
            self.forget()
            self._version = version
            return
        # What one batch ends and another begins again is judged by more than its own leases.
        opened = {ask.name for ask in asks if type(ask) is OpenClaim} if len(known) < len(asks) else ()
        for claim, leases in known:
            if claim.name not in opened:
                table.claims[claim.name] = claim
                for lease in leases:
                    table.leases[lease.key] = lease

    def on_commit(self, table: ClaimTable) -> None:
        """The transaction has landed: what is open after it is kept, and nothing else."""
        if self._version is None:
            return
        for name in table.changed | table.moved:
            claim = table.claims[name]
            if claim.state is ClaimState.OPEN:
                self._left[name] = (claim, [table.leases[key] for key in claim.keys])
            else:
                self._left.pop(name, None)

    def forget(self) -> None:
        """Nobody knows what is in the database: it is read again."""
        self._version = None
        self._left.clear()
