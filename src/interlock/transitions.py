"""The only ways in which a store changes: a closed set of transitions, landed together as a batch or not at all."""

from __future__ import annotations

from interlock.reasons import RefusalKind
from interlock.records import Checkpoint, Record
from interlock.state import ClaimState, Ticket, TicketState
from interlock.values import Budget, Value


class Append(Value, frozen=True):
    """Add a record to the ledger, with its full payload where the record holds less."""

    record: Record
    payload: bytes | None = None


class DropPayload(Value, frozen=True):
    """Delete what lies beside a record, if it is still there. The record, and its digests, stay."""

    record: int


class Reserve(Value, frozen=True):
    """Set something aside in one budget; refused if it does not fit."""

    call: str
    scope: str
    budget: Budget
    expires_us: int
    calls: int = 1
    cost_micros: int = 0
    ms: int = 0


class Settle(Value, frozen=True):
    """Replace a reservation by what was really spent (nothing, if it is released)."""

    call: str
    scope: str
    calls: int = 0
    cost_micros: int = 0
    ms: int = 0


class TakeToken(Value, frozen=True):
    """Take one token from a bucket; refused if it is empty."""

    bucket: str
    rate: str
    per_s: float
    burst: int


class Seal(Value, frozen=True):
    """Add a signed checkpoint; refused if another one was added meanwhile."""

    checkpoint: Checkpoint


class OpenClaim(Value, frozen=True):
    """Claim a change and lease its keys; refused if it is made, being made or in doubt, or a key is held.

    The batch's first record is its intent.
    """

    name: str
    request: str
    generation: int
    holder: str
    call: str
    tool: str
    keys: tuple[str, ...]
    lease_us: int
    """How long its holder is taken for alive without another sign, by the store's clock."""
    turn: str | None = None
    run: str | None = None
    call_name: str = ""
    """The name that stands for the caller's own id of the call: it is refused if that was used for another claim, or
    answered from this one. Empty where the caller gave none, and where the claim itself goes by it."""
    replays: bool = False
    """It is to be made again, whatever its id stood for: from now on that stands for this generation."""
    landings: int | None = None
    """Of a change that stands, and after which its caller found another one: what had landed on its keys by then. It is
    refused if more has: that may be what took it back and what made it again. None: what stands is not made again."""


class BindCallId(Value, frozen=True):
    """The caller's own id of a call stands, from now on, for the generation of a claim that it is answered from. The
    batch's first record says so.

    Never refused: where the id stands for something else by now, that stays.
    """

    name: str
    """That of the row that stands for the id."""
    claim: str
    generation: int
    record: int
    """The outcome of that generation."""
    call: str


class RenewClaim(Value, frozen=True):
    """Hold the keys of an open claim longer; refused if it is not ours any more.

    `restated`: the batch's first record is its intent from now on.
    """

    name: str
    holder: str
    lease_us: int
    restated: bool = False


class CloseClaim(Value, frozen=True):
    """Say how a claimed change ended; refused if it is not ours any more. The batch's first record is its outcome.

    Its keys are given back, unless nobody knows whether it landed.
    """

    name: str
    holder: str
    state: ClaimState
    untouched: tuple[str, ...] = ()
    """Keys that were held and are still what they were."""


class ResolveClaim(Value, frozen=True):
    """Settle a claim that its holder left in doubt; refused while the holder may be alive, or if it is another's."""

    name: str
    holder: str
    state: ClaimState
    untouched: tuple[str, ...] = ()
    """Keys that were held, and do not rest anew."""


class RequireClaim(Value, frozen=True):
    """What else is in the batch happens while this claim stands so; refused if it is another's, or in another state."""

    name: str
    holder: str
    state: ClaimState = ClaimState.OPEN


class MarkUndone(Value, frozen=True):
    """A change that was made has been taken back, or did not return; refused unless it stands, or was to return."""

    name: str
    generation: int


class MarkReturning(Value, frozen=True):
    """What took a change back is being taken back; refused unless it was taken back, and not made again since."""

    name: str
    generation: int


class MarkStanding(Value, frozen=True):
    """What took a change back has been taken back: it stands again; refused unless it was to return."""

    name: str
    generation: int


class OpenTicket(Value, frozen=True):
    """Open a ticket; refused if one is open for the same plan, whose id is then the `limit` of the refusal."""

    ticket: Ticket


class DecideTicket(Value, frozen=True):
    """A decision about an open ticket; refused if it is not open, or the same voice has approved it before.

    Denied and expired close it; approved does when as many have said so as its terms want.
    """

    ticket: str
    state: TicketState
    by: str
    reason: str
    voice: str = ""
    """For whom, if in somebody's place."""


class SettleTicket(Value, frozen=True):
    """What the open ticket of a binding asks was found out, whoever had said what so far; never refused, as there need
    not be one."""

    binding: str
    reason: str


class RemindTicket(Value, frozen=True):
    """Whoever has to decide is reminded; refused if it is not open, or not due."""

    ticket: str


class EscalateTicket(Value, frozen=True):
    """A ticket has waited too long; refused if it is not open, or was escalated already."""

    ticket: str


class SpendTicket(Value, frozen=True):
    """Use an approval; refused unless it is approved, in time, for this plan and unspent."""

    ticket: str
    binding: str


class Halt(Value, frozen=True):
    """Stop a scope."""

    scope: str
    by: str
    reason: str


class Lift(Value, frozen=True):
    """Let a scope run again."""

    scope: str


class RequireNotHalted(Value, frozen=True):
    """Change nothing; refused if any of the scopes is halted."""

    scopes: tuple[str, ...]


Transition = (
    Append
    | DropPayload
    | Reserve
    | Settle
    | TakeToken
    | Seal
    | OpenClaim
    | BindCallId
    | RenewClaim
    | CloseClaim
    | ResolveClaim
    | RequireClaim
    | MarkUndone
    | MarkReturning
    | MarkStanding
    | OpenTicket
    | DecideTicket
    | SettleTicket
    | EscalateTicket
    | RemindTicket
    | SpendTicket
    | Halt
    | Lift
    | RequireNotHalted
)


class Batch(Value, frozen=True):
    """Transitions that land together, at one time."""

    now_us: int
    transitions: tuple[Transition, ...]
    wait_s: float | None = None
    """How long its caller waits for an answer (`StoreSilent` after that); what was taken lands all the same."""


class Committed(Value, frozen=True):
    """The batch is durable; the ids of its records, in order, and the tokens of the keys it leased."""

    ids: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()
    """For each of those keys the token of the last change that landed, on it alone or on its whole resource."""


class Refused(Value, frozen=True):
    """The batch was refused whole, and why."""

    kind: RefusalKind
    limit: str
    message: str
    retry_after_s: float | None = None


Receipt = Committed | Refused
