"""Writing into the ledger beside calls: decisions, halts, plan sets and turns, each a record with its transitions."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.changes import expand_states
from interlock.errors import NotAllowed
from interlock.ports import NOWHERE, Clock, Faults, Ids, Query, Store, digest_of, keyed_digest
from interlock.reasons import RefusalKind
from interlock.records import Charge, Content, Record, Stored
from interlock.transitions import Append, Batch, Committed, Refused, Transition
from interlock.values import Json, Value

PEOPLE = "interlock"
"""What stands in the tool column of what people decide."""


class LedgerEntry(Value, frozen=True):
    """What is written down beside calls."""

    kind: str
    status: str
    what: dict[str, Json]
    payload: Json = None
    """What lies beside the record, and can be deleted without touching the chain."""
    turn: str | None = None
    charged: tuple[Charge, ...] = ()
    """What it adds to the accounts of budgets."""


class LedgerWriter:
    """Writes into the ledger in the name of one person, service or agent."""

    def __init__(self, by: str, store: Store, clock: Clock, ids: Ids, faults: Faults | None = None) -> None:
        self.by = by
        self.proof: Json = None
        """What shows that a decision is theirs: the token of a service."""
        self.actor = by
        self.about = PEOPLE
        self.store = store
        self.clock = clock
        self.ids = ids
        self.faults = faults

    def at(self, point: str) -> None:
        """Name a fault point, at which tests stop a process."""
        if self.faults is not None:
            self.faults.at(point)

    async def store_time_us(self) -> int:
        """The time by the clock of the store, by which tickets expire and delegations end."""
        return await self.store.now_us(self.clock.now_us())

    async def commit(self, entry: LedgerEntry, *transitions: Transition) -> int:
        """One record with its transitions; raises `NotAllowed` with the reason if the store refuses them."""
        now_us, payload = self.clock.now_us(), None if entry.payload is None else msgspec.json.encode(entry.payload)
        content = Content(
            principal=self.by,
            started_us=now_us,
            duration_us=0,
            arguments=entry.what,
            charged=entry.charged,
            payload=payload is not None,
            payload_digest=None if payload is None else store_digest(self.store, payload),
        )
        record = Record(
            at_us=now_us,
            kind=entry.kind,
            call=self.ids.new(),
            turn=entry.turn,
            actor=self.actor,
            tool=self.about,
            status=entry.status,
            content=content,
        )
        self.at(f"decide.{entry.kind}")
        receipt = await self.store.commit(Batch(now_us, (Append(record, payload), *transitions)))
        self.at(f"decided.{entry.kind}")
        if isinstance(receipt, Refused):
            raise NotAllowed(receipt.message, instead=receipt.limit if receipt.kind is RefusalKind.ASKED else "")
        assert isinstance(receipt, Committed)
        return receipt.ids[0]


async def record_with_payload(store: Store, number: int) -> tuple[Stored | None, dict[str, Json]]:
    """A record, and what lies beside it; nothing if that was deleted, cannot be read, or is not what was recorded."""
    found = [record async for record in store.records(Query(after=number - 1, until=number))]
    return (found[0], await payload_of(store, number, found[0].content())) if found else (None, {})


async def payload_of(store: Store, number: int, content: Content) -> dict[str, Json]:
    """What lies beside a record whose content is known."""
    payload = await store.payload(number)
    held = {} if content.payload else {"arguments": content.arguments, "value": content.value}
    digest = content.payload_digest
    if payload is None or not (content.payload or digest):  # of one that the record does not name nothing is believed
        return held
    try:
        whole: Any = msgspec.json.decode(payload)
    except msgspec.DecodeError:
        whole = None
    genuine = isinstance(whole, dict) and (digest is None or digest == store_digest(store, payload))
    if not genuine:
        return held

    async def before_of(record: int) -> Json:
        return (await record_with_payload(store, record))[1].get("before")

    return {**held, **await expand_states(whole, before_of, NOWHERE)}


def store_digest(store: Store, text: bytes) -> str:
    """The keyed digest of a text in a store's ledger."""
    return digest_of(keyed_digest(store.identity.digest_key), text)
