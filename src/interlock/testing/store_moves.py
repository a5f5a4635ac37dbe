"""What the contract of stores is tried with: batches with one thing in them, and long walks of random moves.

A walk is made on a store and on the in-memory twin alike; whatever the two answer differently is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from msgspec.structs import replace

from interlock.ports import Query, Store
from interlock.records import Content, Record
from interlock.state import ChangeFilter, ClaimState, ReviewTerms, Ticket, TicketKind, TicketState
from interlock.transitions import (
    Append,
    Batch,
    BindCallId,
    CloseClaim,
    DecideTicket,
    DropPayload,
    EscalateTicket,
    Halt,
    Lift,
    MarkReturning,
    MarkStanding,
    MarkUndone,
    OpenClaim,
    OpenTicket,
    Refused,
    RemindTicket,
    RenewClaim,
    RequireClaim,
    RequireNotHalted,
    Reserve,
    ResolveClaim,
    Settle,
    SettleTicket,
    SpendTicket,
    TakeToken,
    Transition,
)
from interlock.values import Budget

T0 = 1_000_000_000_000_000
"""When every trial begins, in microseconds: a store has no clock of its own."""
STEP_US = 2


def entry(n: int = 0, **columns: Any) -> Append:
    """A record to append; its text holds what a careless encoder would spell in two ways."""
    given = {"turn": None, "actor": "a", "tool": "t", "status": "ok", **columns}
    payload = given.pop("payload", None)
    said = 'é \u2028 \x7f "quoted"\n'
    content = Content(principal="p", started_us=T0 + n, duration_us=1, arguments={"n": n}, said=said)
    record = Record(at_us=T0 + n, kind="call", call=f"c{n}", content=content, **given)
    return Append(record=record, payload=payload)


def batch(*transitions: Any, at: int = T0) -> Batch:
    """Transitions that land together."""
    return Batch(now_us=at, transitions=transitions)


def reserve(
    call: str = "c", scope: str = "s", *, calls: int = 1, limit: int | None = 3, expires: int = T0 + 10, **more: Any
) -> Reserve:
    """Calls (and money, and time) set aside under a budget of so many."""
    cost, ms = more.pop("limit_cost", None), more.pop("limit_ms", None)
    budget = Budget(id="b", per="actor", calls=limit, cost_micros=cost, ms=ms)
    return Reserve(call=call, scope=scope, budget=budget, expires_us=expires, calls=calls, **more)


def take(bucket: str = "k", per_s: float = 1.0, burst: int = 2) -> TakeToken:
    """One token of a bucket."""
    return TakeToken(bucket=bucket, rate="r", per_s=per_s, burst=burst)


async def record_ids(store: Store, **query: Any) -> list[int]:
    """The ids of the records that a query finds, in its order."""
    return [record.id async for record in store.records(Query(**query))]


def random_moves(random: Random, count: int) -> Iterator[Transition]:
    """So many moves of every kind, over few names, so that they get into each other's way."""
    for step in range(count):
        yield random.choice(_MOVES)(random, T0 + STEP_US * step)


def _pick(random: Random, kind: str, count: int = 4) -> str:
    return f"{kind}{random.randrange(count)}"


def _open_claim(random: Random, now_us: int) -> Transition:
    keys = random.choice([(), ("r/a",), ("r/a", "r/b"), ("r/*",), ("q/a",)])
    return OpenClaim(
        name=_pick(random, "n"),
        request="request",
        generation=random.randint(1, 3),
        holder=_pick(random, "h", 2),
        call="call",
        tool="tool",
        keys=keys,
        lease_us=random.randint(1, 60),
        turn="turn",
        run="run",
        call_name=random.choice(["", "", "", "i0", "i1"]),
        replays=random.random() < 0.5,
    )


def _bind_call_id(random: Random, _now_us: int) -> Transition:
    claim, record = _pick(random, "n"), random.randrange(1, 300)
    return BindCallId(random.choice(["i0", "i1", "i2"]), claim, random.randint(1, 3), record, "call")


def _open_ticket(random: Random, now_us: int) -> Transition:
    ticket = Ticket(
        id=_pick(random, "t", 12),
        kind=TicketKind.CHANGE,
        state=TicketState.OPEN,
        binding=random.choice("xy"),
        tool="tool",
        actor="ann",
        asked_by="p",
        call="c",
        turn=None,
        why="why",
        created_us=now_us,
        expires_us=now_us + 80,
        escalate_us=now_us + 20,
        terms=ReviewTerms(quorum=random.randint(1, 2)),
        remind_us=15,
    )
    return OpenTicket(ticket)


def _decide_ticket(random: Random, _now_us: int) -> Transition:
    state = random.choice([TicketState.APPROVED, TicketState.DENIED, TicketState.EXPIRED])
    return DecideTicket(_pick(random, "t", 12), state, random.choice(["boss", "lead", "Boss"]), "so")


def _reserve(random: Random, now_us: int) -> Transition:
    expires = now_us + random.randint(1, 60)
    return reserve(_pick(random, "c"), calls=random.randint(1, 3), limit=1000, expires=expires)


def _end_state(random: Random) -> ClaimState:
    return random.choice([ClaimState.DONE, ClaimState.FAILED, ClaimState.UNKNOWN])


def _keys(random: Random) -> tuple[str, ...]:
    """Keys that a change left as they were."""
    return random.choice([(), ("r/a",)])


_SCOPES = ("all", "tool:t")
_MOVES: tuple[Callable[[Random, int], Transition], ...] = (
    lambda random, _now_us: entry(random.randrange(9)),
    lambda random, _now_us: entry(random.randrange(9), payload=random.randbytes(random.randrange(1, 40))),
    lambda random, _now_us: DropPayload(random.randrange(1, 300)),
    _reserve,
    lambda random, _now_us: Settle(call=_pick(random, "c"), scope="s", calls=random.randrange(4)),
    lambda random, _now_us: take(_pick(random, "k", 2), per_s=200_000.0),
    _open_claim,
    _open_claim,
    _bind_call_id,
    lambda random, now_us: RenewClaim(_pick(random, "n"), _pick(random, "h", 2), 60),
    lambda random, _now_us: CloseClaim(_pick(random, "n"), _pick(random, "h", 2), _end_state(random), _keys(random)),
    lambda random, _now_us: ResolveClaim(_pick(random, "n"), _pick(random, "h", 2), _end_state(random), _keys(random)),
    lambda random, _now_us: RequireClaim(_pick(random, "n"), _pick(random, "h", 2), _end_state(random)),
    lambda random, _now_us: MarkUndone(_pick(random, "n"), random.randint(1, 2)),
    lambda random, _now_us: MarkReturning(_pick(random, "n"), random.randint(1, 2)),
    lambda random, _now_us: MarkStanding(_pick(random, "n"), random.randint(1, 2)),
    _open_ticket,
    _decide_ticket,
    lambda random, _now_us: SettleTicket(random.choice("xy"), "seen"),
    lambda random, _now_us: EscalateTicket(_pick(random, "t", 12)),
    lambda random, _now_us: RemindTicket(_pick(random, "t", 12)),
    lambda random, _now_us: SpendTicket(_pick(random, "t", 12), random.choice("xy")),
    lambda random, _now_us: Halt(random.choice(_SCOPES), "boss", "why"),
    lambda random, _now_us: Lift(random.choice(_SCOPES)),
    lambda _random, _now_us: RequireNotHalted(_SCOPES),
)


async def walk(store: Store, moves: list[Transition], *, first: int = 0) -> list[Any]:
    """Every receipt, with what the budget of the walk has spent after it."""
    seen: list[Any] = []
    for step, move in enumerate(moves, first):
        now_us = T0 + STEP_US * step
        transitions = (move,) if isinstance(move, Append) else (entry(step), move)
        seen.append((step, move, await store.commit(batch(*transitions, at=now_us)), await store.spent("s", now_us)))
    return seen


def without_words(seen: Any) -> Any:
    """What was seen, with refusals as programs tell them: their sentences are each store's own."""
    if isinstance(seen, list | tuple):
        return [without_words(item) for item in seen]
    return replace(seen, message="") if isinstance(seen, Refused) else seen


async def read_everything(store: Store) -> dict[str, Any]:
    """All that a store holds after a walk, in an order of its own."""
    leases = [lease for lease in await store.leases(("r/a", "r/*", "q/a")) if lease.token]
    return {
        "records": [(record.id, record.body) async for record in store.records(Query())],
        "claims": sorted(await store.claims(ChangeFilter(run="run")), key=lambda claim: claim.name),
        "claims of a key": sorted(await store.claims(ChangeFilter(key="r/a")), key=lambda claim: claim.name),
        "one claim": await store.claim("n1"),
        "ids of callers": [await store.claim(name) for name in ("i0", "i1", "i2")],
        "unsettled": sorted(await store.unsettled_claims(T0 + 50), key=lambda claim: claim.name),
        "leases": sorted(leases, key=lambda lease: lease.key),
        "tickets": sorted(await store.tickets(), key=lambda ticket: ticket.id),
        "one ticket": await store.ticket("t1"),
        "halts": await store.halts(),
        "buckets": await store.buckets(),
        "payloads": [(number, await store.payload(number)) async for number in store.payload_ids()],
    }
