"""What stands in a store beside the records: claims, leases, tickets and halts, as they are read back."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

import msgspec

from interlock.principals import normal_name
from interlock.values import Value


class ClaimState(StrEnum):
    """How far a claimed change has come."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    UNDONE = "undone"
    RETURNING = "returning"
    """What took it back is being taken back: until that is over, nobody knows whether it stands."""


LANDED = frozenset((ClaimState.DONE, ClaimState.UNDONE, ClaimState.RETURNING))
"""The states of a change that was made, whatever became of it."""


class TicketState(StrEnum):
    """How far a question to a person has come."""

    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    SPENT = "spent"
    SETTLED = "settled"
    """What it asked was found out, and nobody had to say it."""


class TicketKind(StrEnum):
    """What a ticket asks a person."""

    CHANGE = "change"
    """Whether a call may be made."""
    SETTLE = "settle"
    """Whether an effect landed."""
    ANSWER = "answer"
    """Whether an answer may leave."""


class Claimed(Value, frozen=True):
    """One change that was claimed: who makes it, on which keys, and how it ended."""

    name: str
    request: str
    state: ClaimState
    generation: int
    holder: str
    call: str
    tool: str
    keys: tuple[str, ...] = ()
    tokens: tuple[int, ...] = ()
    expires_us: int = 0
    intent: int | None = None
    record: int | None = None
    turn: str | None = None
    run: str | None = None
    at_us: int = 0

    @property
    def is_lock(self) -> bool:
        """Whether it only holds its key, or the id of a call, and changes nothing."""
        return self.tool == LOCK

    @property
    def is_call_id(self) -> bool:
        """Whether it is the row that stands for a caller's own id, and no lock of a key."""
        return self.is_lock and not self.name.startswith(f"{LOCK}|")

    def is_held_by(self, holder: str) -> bool:
        """Whether somebody is making the change, and it is this holder."""
        return self.state is ClaimState.OPEN and self.holder == holder

    @property
    def is_superseded(self) -> bool:
        """Whether it is an earlier generation, kept beside the claim that took its name."""
        return _GENERATION in self.name

    @property
    def first_name(self) -> str:
        """The name that all generations of the claim go by."""
        return self.name.partition(_GENERATION)[0]

    @property
    def key(self) -> str:
        """What it is called by whatever takes it back."""
        return f"{self.name}.{self.generation}"

    def supersede(self) -> Claimed:
        """The same claim under the name that it keeps when the next generation takes its own."""
        return msgspec.structs.replace(self, name=f"{self.name}{_GENERATION}{self.generation}")


def call_id_row(known: Claimed | None, name: str, claim: str, generation: int, call: str) -> Claimed:
    """The row of a caller's own id, as it comes to stand for a generation of a claim. Its `tokens` are the generations
    that it stood for before, its `intent` is the record that says so, and its `record` the outcome that the call was
    answered from, where it has not made it itself."""
    earlier = () if known is None else known.tokens
    if known is not None and known.generation != generation:
        earlier += (known.generation,)
    return Claimed(name, claim, ClaimState.FAILED, generation, holder="", call=call, tool=LOCK, tokens=earlier)


def may_bind(known: Claimed | None, claim: str, generation: int) -> bool:
    """Whether a caller's own id comes to stand for a generation that it is answered from: it stands for none so far, or
    for one that it was to make itself, and that is no later one."""
    if known is None:
        return True
    return known.request == claim and known.record is None and known.generation <= generation


class ChangeFilter(Value, frozen=True):
    """Which claims: of a turn, of a run, that touched a key, begun since a time, whose outcome is a record."""

    turn: str | None = None
    run: str | None = None
    key: str | None = None
    since_us: int | None = None
    record: int | None = None


def wildcard(key: str) -> str:
    """The key that stands for everything in a key's resource."""
    return f"{key.partition('/')[0]}/*"


def is_wildcard(key: str) -> bool:
    """Whether a key stands for everything in its resource."""
    return key.endswith("/*") and key == wildcard(key)


def overlapping(key: str, others: Collection[str]) -> list[str]:
    """Those of many keys that overlap with one. Only for everything in a resource is it a walk through all of them."""
    if is_wildcard(key):
        return [other for other in others if wildcard(other) == key]
    return [name for name in (key, wildcard(key)) if name in others]


def overlap(key: str, other: str) -> bool:
    """Whether what changes one key may change the other: they are the same, or one stands for everything in the other's
    resource."""
    return key == other or wildcard(key) == other or key == wildcard(other)


LOCK = "interlock.lock"
"""The tool of a claim that only holds its key, or the id of a call, and changes nothing: no tool of a user's can be
called so."""
_GENERATION = "#"


NOT_KEPT = -1


class Lease(Value, frozen=True):
    """One key: who holds it, the token of the last grant, and the token of the last change that landed."""

    key: str
    holder: str = ""
    token: int = 0
    changed: int = 0
    expires_us: int = 0
    changed_us: int = 0
    changed_run: str = ""
    """When, and in which run (or turn), the last change that landed was made,"""
    others_us: int = 0
    others_run: str = ""
    """and the last one in another run than that. 0: there is none; `NOT_KEPT`: it is from before that was kept."""


class Delegation(Value, frozen=True):
    """Who may decide in another's place, and until when."""

    of: str
    to: str
    until_us: int


class ReviewTerms(Value, frozen=True):
    """Who may decide a ticket. They are the policy's, and stand in the ticket itself from the moment it is opened: no
    setting of whoever decides can change them."""

    approvers: tuple[str, ...] = ()
    """Empty: everybody but whoever asked."""
    quorum: int = 1
    self_approval: bool = False
    keys: tuple[str, ...] = ()
    """Public keys that may sign tokens of services."""
    vouched: tuple[str, ...] = ()
    """Kinds of names (`user`, `adk`) for which an application's own word is enough."""
    delegations: tuple[Delegation, ...] = ()


class Approval(Value, frozen=True):
    """One who said yes, and for whom."""

    by: str
    voice: str
    at_us: int
    record: int | None = None
    """Of the decision, in the ledger."""


class Ticket(Value, frozen=True):
    """One question to a person, bound to what was asked: arguments, policy and resource versions, turn and actor."""

    id: str
    kind: TicketKind
    state: TicketState
    binding: str
    """What is asked, as one text: there is one open ticket for it, and an approval is good for nothing else."""
    tool: str
    actor: str
    asked_by: str
    """The principal behind the call, perhaps by a program's word: it cannot decide its own ticket."""
    call: str
    turn: str | None
    why: str
    created_us: int
    expires_us: int
    escalate_us: int
    escalated: bool = False
    decided_by: str = ""
    decided_us: int = 0
    reason: str = ""
    record: int | None = None
    """The record that opened it."""
    plan: str = ""
    """For a ticket about a call: the digest of the plan that was looked at,"""
    request: str = ""
    """that of what is asked for, by value, for which a denial holds whatever plan it would have by then,"""
    rule: str = ""
    """and the rule that leaves it to a person."""
    claim: str = ""
    """For a ticket that asks whether an effect landed: the claim that its answer settles,"""
    holder: str = ""
    """and which attempt at it is meant,"""
    intent: int | None = None
    """by the record of its intent."""
    on_behalf_of: str | None = None
    """For whom the call was made: they cannot decide it either."""
    terms: ReviewTerms = ReviewTerms()
    approvals: tuple[Approval, ...] = ()
    """So far; it is approved when there are as many as its terms want."""
    remind_us: int = 0
    """How often whoever has to decide is reminded; 0: never."""
    reminded_us: int = 0
    account: str = ""
    """The account of the operating system that it was asked from, whatever name the program gave: it is a party too."""
    parties: tuple[str, ...] = ()
    """Who had a part in the call before it was edited: they decide it no more than before."""

    def reminder_is_due(self, now_us: int) -> bool:
        """Whether nobody has been reminded for long enough."""
        return bool(self.remind_us) and max(self.created_us, self.reminded_us) + self.remind_us <= now_us


class Halted(Value, frozen=True):
    """Something that may not run: a tool, an actor, a run, or everything."""

    scope: str
    by: str
    reason: str
    at_us: int


EVERYTHING = "all"


def halt_scopes(tool: str, actor: str, run: str | None) -> tuple[str, ...]:
    """The scopes whose halt stops a call."""
    scopes: tuple[str, ...] = (EVERYTHING, f"tool:{tool}", f"actor:{actor}")
    plain = normal_name(actor)  # as a halt has it: a capital letter must not be a way around it
    scopes = scopes if plain == actor else (*scopes, f"actor:{plain}")
    return scopes if run is None else (*scopes, f"run:{run}")


def halt_message(halt: Halted) -> str:
    """The sentence for whoever is stopped."""
    what = "everything" if halt.scope == "all" else halt.scope.replace(":", " ", 1)
    return f"{what} was halted by {halt.by}: {halt.reason or 'no reason given'}"


def state_of(ticket: Ticket, now_us: int) -> TicketState:
    """The state of a ticket now: what is open or approved expires by itself."""
    waits = ticket.state in (TicketState.OPEN, TicketState.APPROVED)
    return TicketState.EXPIRED if waits and ticket.expires_us <= now_us else ticket.state
