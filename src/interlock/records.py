"""What stands in the ledger: records with their content, where a lane ends, and signed checkpoints over that."""

from __future__ import annotations

import msgspec

from interlock.state import ReviewTerms
from interlock.values import Attempt, Budget, Effect, Json, Mode, Problem, Trust, Value, Verdict, one_line


class Charge(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one budget was charged: its scope (which budget, whose, in which window), calls, micro-dollars and time."""

    scope: str
    calls: int
    cost_micros: int
    ms: int


class Changed(Value, frozen=True):
    """What a record says beside the call if it is about a change: its claim, its keys' tokens and versions."""

    claim: str
    generation: int
    intent: int | None = None
    tokens: tuple[int, ...] = ()
    versions: tuple[str, ...] = ()
    """Of the keys: before the effect in an intent, after it in an outcome."""
    risk: str | None = None
    undoes: str | None = None
    replays: bool = False
    id_is_ours: bool = False
    """The call id was made for the call, and says nothing about which change it is."""
    under: dict[str, int] = {}
    """The fencing tokens of the leases that it was made under, by key."""
    deviates: tuple[str, ...] = ()
    """Keys that became something else than was planned."""
    untouched: tuple[int, ...] = ()
    """The places of keys that it left as they were."""
    beyond: bool = False
    """Nobody knows whether it landed, and it may have changed something besides its resource."""
    closed: str = ""
    """The state in which its claim was closed with this record."""
    told_by: int | None = None
    """Of a whole resource: the record by which it tells what was there before."""
    charged: tuple[str, ...] = ()
    """In records from before `Content.charged`: the scopes of the budgets that it was charged to."""
    opened: str = ""
    """Of an intent: the digest of its claim as it was opened,"""
    account: str = ""
    """the account of the operating system that the call was made from,"""
    review: ReviewTerms = ReviewTerms()
    """and who may say whether it landed, should nobody know."""


class Content(Value, frozen=True):
    """The part of a record that is stored as one JSON text, under the chain's hash."""

    principal: str
    started_us: int
    duration_us: int
    effect: Effect | None = None
    arguments: Json = None
    verdict: Verdict | None = None
    value: Json = None
    said: str = ""
    attempts: tuple[Attempt, ...] = ()
    charged: tuple[Charge, ...] = ()
    """What lands in the accounts of budgets with this record; none where none covers the call, or nothing was done."""
    # So far what every call has; from here on what only some have.
    mode: Mode = Mode.APPLY
    on_behalf_of: str | None = None
    run: str | None = None
    parent: str | None = None
    root_turn: str | None = None
    budgets: tuple[Budget, ...] = ()
    """Of its turn's own, where the call may be made again: in an intent, and where it waits for a person."""
    arguments_digest: str | None = None
    evidence: tuple[str, ...] = ()
    confidence: float | None = None
    ticket: str | None = None
    plan: str | None = None
    keys: tuple[str, ...] = ()
    value_digest: str | None = None
    snippets: tuple[str, ...] = ()
    metadata: dict[str, Json] = {}
    problem: Problem | None = None
    sources: tuple[str, ...] = ()
    result_confidence: float | None = None
    trust: Trust = Trust.TRUSTED
    cost_micros: int = 0
    repeats: int | None = None
    payload: bool = False
    asked_digest: str | None = None
    change: Changed | None = None
    ticket_digest: str | None = None
    """Of the ticket that the call opened."""
    same_as: str | None = None
    """The idempotency key of the change that the caller's own id stands for, as the call was answered from it."""
    payload_digest: str | None = None
    """Of everything that lies beside the record of a change, images included."""

    @property
    def deviates(self) -> tuple[str, ...]:
        """Keys that became something else than was planned, as they are written here."""
        return () if self.change is None else self.change.deviates

    @property
    def summary(self) -> str:
        """One line, as an outcome gives it."""
        return self.said or one_line(self.value)


class Record(Value, frozen=True):
    """One line of the ledger before it has a place: the columns that are searched, and the content."""

    at_us: int
    kind: str
    call: str
    turn: str | None
    actor: str
    tool: str
    status: str
    content: Content


class Stored(Value, frozen=True):
    """One line of the ledger as it lies there: its place in a lane's hash chain, columns, and the exact text."""

    id: int
    lane: int
    hash: str
    at_us: int
    kind: str
    call: str
    turn: str | None
    actor: str
    tool: str
    status: str
    body: str

    def content(self) -> Content:
        """The typed content of the stored text."""
        return msgspec.json.decode(self.body, type=Content)


class LaneHead(Value, frozen=True):
    """Where a lane of the ledger ends."""

    lane: int
    id: int
    count: int
    hash: str


class Checkpoint(Value, frozen=True):
    """A signed statement of where every lane ended at one moment."""

    n: int
    body: str
    signature: str
    public_key: str
