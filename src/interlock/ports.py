"""What Interlock needs from the outside: a clock, ids, fault points, and a store that commits batches.

A store changes only by `commit(Batch)`: a batch is a tuple of transitions from a closed set, and it lands whole or not
at all. Everything else a store offers is a named read.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import random
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

import msgspec

from interlock.records import Checkpoint, LaneHead, Stored
from interlock.state import ChangeFilter, Claimed, Halted, Lease, Ticket, TicketState
from interlock.transitions import Batch, Receipt, RenewClaim, Settle
from interlock.values import Json, Value


class Clock(Protocol):
    """Time, as an argument."""

    def now_us(self) -> int:
        """Microseconds since the epoch; may step back."""
        ...

    def monotonic(self) -> float:
        """Seconds that never step back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Ids(Protocol):
    """Names and dice, as an argument."""

    def new(self) -> str:
        """An id that nobody else has."""
        ...

    def uniform(self, high: float) -> float:
        """A random number in [0, high)."""
        ...


class Faults(Protocol):
    """Named points where a test may stop the world."""

    def at(self, point: str) -> None:
        """Reached `point`."""
        ...


NOWHERE = frozenset[str]().__contains__
"""In place of `Faults.at` where no test listens. Ten times in a call, so it is no function of Python."""


class SystemClock:
    """The machine's clock."""

    monotonic = staticmethod(time.monotonic)

    def now_us(self) -> int:
        """Microseconds since the epoch."""
        return int(time.time() * 1_000_000)  # exact to the microsecond until the year 2255, at a third of time_ns

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class SystemIds:
    """Ids: when this process began and 56 random bits (25 hex digits), a dot, and a counter."""

    def __init__(self) -> None:
        self._fresh()
        os.register_at_fork(after_in_child=self._fresh)

    def _fresh(self) -> None:
        self._random = random.Random(os.urandom(16))
        self._next = itertools.count(1).__next__
        self._own = f"{time.time_ns() >> 20:011x}{self._random.getrandbits(56):014x}."

    def new(self) -> str:
        """A new id."""
        return f"{self._own}{self._next()}"

    def uniform(self, high: float) -> float:
        """A random number in [0, high)."""
        return self._random.random() * high


class LedgerIdentity(Value, frozen=True):
    """Which ledger this is, and the key of its argument digests."""

    ledger: str
    digest_key: bytes
    schema: int


class Query(Value, frozen=True):
    """Which records to read, in order of their ids."""

    after: int = 0
    until: int | None = None
    lane: int | None = None
    call: str | None = None
    turn: str | None = None
    actor: str | None = None
    tool: str | None = None
    status: str | None = None
    since_us: int | None = None
    before_us: int | None = None
    newest: int | None = None


class Spent(Value, frozen=True):
    """What one budget scope has used, and what is set aside in it."""

    calls: int = 0
    cost_micros: int = 0
    ms: int = 0
    reserved_calls: int = 0
    reserved_cost_micros: int = 0
    reserved_ms: int = 0


class Ledger(Protocol):
    """The records, their chain, and what was signed over it."""

    @property
    def identity(self) -> LedgerIdentity:
        """Which ledger this is."""
        ...

    @property
    def missing(self) -> tuple[LaneHead, ...]:
        """Records that were seen of it before it was opened and are not in it: it was put back to an earlier state."""
        ...

    async def commit(self, batch: Batch) -> Receipt:
        """Land a batch whole, durably, or say why not."""
        ...

    def records(self, query: Query) -> AsyncIterator[Stored]:
        """Stream records."""
        ...

    async def payload(self, record: int) -> bytes | None:
        """The full arguments and result of a record that holds less, unless they were deleted."""
        ...

    def payload_ids(self) -> AsyncIterator[int]:
        """The records whose payloads are still there, in order of their ids."""
        ...

    async def wipe(self) -> bool:
        """Let go of copies of deleted payloads in files of the store's own; False where others read there now."""
        ...

    async def heads(self) -> tuple[LaneHead, ...]:
        """Where every lane ends."""
        ...

    async def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Every signed checkpoint, oldest first."""
        ...

    async def close(self) -> None:
        """Finish what was accepted, then let go."""
        ...


class Accounts(Protocol):
    """What was spent and what is set aside."""

    async def spent(self, scope: str, now_us: int) -> Spent:
        """The state of one budget scope."""
        ...

    async def reservations(self, call: str) -> tuple[Settle, ...]:
        """What a call has set aside, as settlements that spend it."""
        ...

    async def all_spent(self) -> dict[str, Spent]:
        """What every budget scope that was ever used has spent, in order of names; not what is set aside in it."""
        ...

    async def buckets(self) -> dict[str, float]:
        """How full every bucket was when it was last touched."""
        ...


class Resource(Protocol):
    """Keyed state that tools change: how to read it, and how to put it back."""

    @property
    def name(self) -> str:
        """What its keys are qualified with."""
        ...

    async def read_state(self, key: str) -> Json:
        """The state of a key (or a `Versioned` state), None if it does not exist."""
        ...

    async def restore(self, key: str, state: Json) -> None:
        """Put a state back; None: remove the key. A second parameter `context` is given the fencing tokens."""
        ...


class ClaimStore(Protocol):
    """What was claimed, and which keys are held."""

    async def claim(self, name: str) -> Claimed | None:
        """One claim."""
        ...

    async def claims(self, which: ChangeFilter) -> tuple[Claimed, ...]:
        """Claims, in the order of their intents."""
        ...

    async def unsettled_claims(self, now_us: int) -> tuple[Claimed, ...]:
        """Claims in doubt: unknown, or open while their holder has not been heard of in time."""
        ...

    async def now_us(self, here_us: int) -> int:
        """The time by which leases run; `here_us` is the caller's, for a store without a clock of its own."""
        ...

    def renew(self, claims: Sequence[RenewClaim], here_us: int) -> tuple[str, ...]:
        """Renew claims at once, in whatever thread asks; the names of those that are not their holder's any more."""
        ...

    async def leases(self, keys: tuple[str, ...]) -> tuple[Lease, ...]:
        """Keys that were ever held, with what stands for their whole resource; for that, every key in it."""
        ...


class TicketStore(Protocol):
    """What people are asked, and what they have stopped."""

    async def ticket(self, ticket: str) -> Ticket | None:
        """One ticket."""
        ...

    async def tickets(self, state: TicketState | None = None, *, request: str | None = None) -> tuple[Ticket, ...]:
        """Tickets, oldest first; only those about one request, by its digest, if it is given."""
        ...

    async def halts(self) -> tuple[Halted, ...]:
        """Everything that is halted."""
        ...


class Store(Ledger, Accounts, ClaimStore, TicketStore, Protocol):
    """Everything that Interlock remembers."""


def rolled_back_message(missing: tuple[LaneHead, ...]) -> str:
    """The sentence for whoever wants to change something on a ledger that has forgotten what it did."""
    last = max(head.id for head in missing)
    return (
        f"record {last} of this ledger was seen and is not in it any more: an older copy was put back, which has"
        " forgotten what was done since, so that it could be done again. Nothing is changed until somebody says that"
        " this history stands (interlock audit accept), or the newer one is put in its place"
    )


GIVEN_UP_S = 1.0
"""How long a store that does not answer holds whoever has given up: a commit on a busy disk lands within that, so that
it is mostly known what landed, and nobody waits much longer than they said. What was taken stays in line."""


def note_receipt(interrupt: asyncio.CancelledError, answer: object) -> None:
    """Tell whoever is cancelled while its batch lands how that ended.

    On the exception itself: `asyncio.timeout` takes only a plain CancelledError for its own.
    """
    interrupt.interlock_receipt = answer  # type: ignore[attr-defined]


def noted_receipt(interrupt: asyncio.CancelledError) -> object:
    """What `note_receipt` noted, or None."""
    return getattr(interrupt, "interlock_receipt", None)


def keyed_digest(key: bytes) -> Any:
    """The starting point of every digest of one ledger: copy it, update it, take its hexdigest."""
    # Keyed: whoever sees the ledger cannot guess a short argument by hashing candidates.
    return hashlib.blake2b(key=key, digest_size=16)


def digest_of(keyed: Any, text: bytes) -> str:
    """The keyed digest of a text: equal texts can be seen to be equal, short ones cannot be guessed."""
    digest = keyed.copy()
    digest.update(text)
    return str(digest.hexdigest())


def ledger_name(digest_key: bytes, lanes: int) -> str:
    """The name of a ledger: made from the key of its digests, so that neither can be exchanged, and its lanes."""
    return f"{hashlib.blake2b(digest_key, digest_size=8).hexdigest()}-{lanes}"


def lanes_of(ledger: str) -> int | None:
    """How many lanes a ledger has by its name."""
    count = ledger.rpartition("-")[2]
    return int(count) if count.isdecimal() and "-" in ledger else None


def genesis(ledger: str, lane: int) -> str:
    """The hash before the first record of a lane: no other ledger or lane starts from it."""
    return hashlib.sha256(f"interlock ledger {ledger} lane {lane}".encode()).hexdigest()


def link(previous: str, columns: tuple[object, ...], body: bytes) -> str:
    """The hash of a record: over the previous hash, its columns as a JSON array, and its stored text."""
    return link_text(previous, columns, body)[1]


def link_text(previous: str, columns: tuple[object, ...], body: bytes) -> tuple[bytes, str]:
    """What is hashed of a record, in three lines, and its hash."""
    text = b"\n".join((previous.encode(), _columns(columns), body))
    return text, _sha256(text).hexdigest()


_columns = msgspec.json.Encoder().encode
_sha256 = hashlib.sha256
