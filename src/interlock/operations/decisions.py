"""What people decide: tickets and halts. Each decision is a transition and a record in one commit."""

from __future__ import annotations

from interlock.errors import ConfigError, NotAllowed
from interlock.ports import Clock, Faults, Ids, Store
from interlock.review import Terms
from interlock.standing import ClaimState, Ticket, TicketState
from interlock.transitions import Append, Batch, Committed, Decide, Escalate, Halt, Lift, Refused, Resolve, Transition
from interlock.values import Content, Json, Record

PEOPLE = "interlock"


class Desk:
    """Where decisions are committed: the store, the time, and who is asking."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, faults: Faults | None = None) -> None:
        self.store = store
        self.clock = clock
        self.ids = ids
        self.faults = faults

    async def commit(self, kind: str, by: str, what: Json, *transitions: Transition, turn: str | None = None) -> int:
        """One decision with its record; raises `NotAllowed` with the reason if the store refuses it."""
        now_us = self.clock.now_us()
        status = str(what.get("state", kind))
        content = Content(principal=by, started_us=now_us, duration_us=0, arguments=what)
        record = Record(now_us, kind, self.ids.new(), turn, by, PEOPLE, status, content)
        if self.faults is not None:
            self.faults.at(f"decide.{kind}")
        receipt = await self.store.commit(Batch(now_us, (Append(record), *transitions)))
        if self.faults is not None:
            self.faults.at(f"decided.{kind}")
        if isinstance(receipt, Refused):
            raise NotAllowed(receipt.message, instead=receipt.limit if receipt.kind == "asked" else "")
        assert isinstance(receipt, Committed)
        return receipt.ids[0]


async def decide_ticket(desk: Desk, terms: Terms, name: str, state: TicketState, *, by: str, reason: str) -> int:
    """Approve or deny a ticket; the id of the decision's record."""
    if desk.faults is not None:
        desk.faults.at("decide.read")
    ticket = await desk.store.ticket(name)
    if ticket is None:
        raise NotAllowed(f"there is no ticket {name!r}; see interlock review list")
    if by == ticket.asked_by and not terms.self_approval and state is TicketState.APPROVED:
        raise NotAllowed(
            f"{by} asked for this, so somebody else decides (on a machine with one user: self_approval = true)"
        )
    what = {"ticket": name, "state": state.value, "tool": ticket.tool, "binding": ticket.binding, "reason": reason}
    transitions: list[Transition] = [Decide(name, state, by, reason)]
    if ticket.kind == "settle":  # "did it land?": approved means yes, denied means no
        landed = ClaimState.DONE if state is TicketState.APPROVED else ClaimState.FAILED
        transitions.append(Resolve(ticket.claim, landed))
    return await desk.commit("ticket", by, what, *transitions, turn=ticket.turn)


async def sweep(desk: Desk, by: str) -> tuple[Ticket, ...]:
    """Expire and escalate what is due; the tickets that were touched."""
    touched = []
    now_us = desk.clock.now_us()
    if desk.faults is not None:
        desk.faults.at("sweep.read")
    for ticket in await desk.store.tickets(TicketState.OPEN):
        change: Transition | None = None
        if ticket.expires_us <= now_us:
            change, state = Decide(ticket.id, TicketState.EXPIRED, by, "nobody decided in time"), "expired"
        elif ticket.escalate_us <= now_us and not ticket.escalated:
            change, state = Escalate(ticket.id), "escalated"
        if change is None:
            continue
        try:
            what = {"ticket": ticket.id, "state": state, "tool": ticket.tool}
            await desk.commit("ticket", by, what, change, turn=ticket.turn)
        except NotAllowed:
            continue  # somebody decided meanwhile
        touched.append(ticket)
    return tuple(touched)


async def halt(desk: Desk, scope: str, *, by: str, reason: str) -> int:
    """Stop a tool, an actor, a run or everything, in every process within a second."""
    _refuse_odd_scope(scope)
    return await desk.commit("halt", by, {"scope": scope, "state": "halted", "reason": reason}, Halt(scope, by, reason))


async def lift(desk: Desk, scope: str, *, by: str) -> int:
    """Let it run again."""
    _refuse_odd_scope(scope)
    return await desk.commit("halt", by, {"scope": scope, "state": "lifted"}, Lift(scope))


def _refuse_odd_scope(scope: str) -> None:
    kind, _, name = scope.partition(":")
    if scope != "all" and (kind not in ("tool", "actor", "run") or not name):
        raise ConfigError(f"{scope!r} cannot be halted: say all, tool:NAME, actor:NAME or run:NAME")
