"""A change that another call has begun and not ended: what is said of it, and the way out."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from interlock.engine.context import EngineContext, refuse
from interlock.errors import StoreError
from interlock.reasons import Reason
from interlock.resilience import Expired
from interlock.state import Claimed, ClaimState, TicketKind, TicketState
from interlock.tools import Reading
from interlock.values import Status

_LONGEST_LOOK_S = 0.25
T = TypeVar("T")


async def read_unsettled(ctx: EngineContext, claim: Claimed) -> Reading:
    """The reading of a call whose change was begun by another one that nobody has heard the end of."""
    here_us = ctx.clock.now_us()
    now_us = await _look(ctx, "claim.clock", ctx.store.now_us(here_us), here_us)
    if claim.state is ClaimState.OPEN and claim.expires_us > now_us:
        message = f"call {claim.call!r} is still making this very change; ask again later"
        return refuse(Status.UNKNOWN, Reason.IN_PROGRESS, message)
    if claim.state is ClaimState.RETURNING:
        message = (
            f"call {claim.call!r} made this very change, it was undone, and nobody knows yet whether that is undone"
        )
        hint = "interlock recover"
        return refuse(Status.UNKNOWN, Reason.IN_DOUBT, f"{message}; ask again later, or run {hint}", hints=(hint,))
    message = f"call {claim.call!r} may have made this very change, and nobody knows: it is not repeated until settled."
    ticket = await _find_question(ctx, claim)
    if ticket is None:
        message += " `interlock recover` settles it, or asks a person"
        return refuse(Status.UNKNOWN, Reason.IN_DOUBT, message, hints=("interlock recover",))
    message += f" Ticket {ticket} asks a person whether it landed"
    return refuse(Status.UNKNOWN, Reason.IN_DOUBT, message, hints=(f"interlock review show {ticket}",))


async def _find_question(ctx: EngineContext, claim: Claimed) -> str | None:
    """The ticket that asks whether this attempt landed, if one is open."""
    for ticket in await _look(ctx, "claim.question", ctx.store.tickets(TicketState.OPEN), ()):
        if ticket.kind is TicketKind.SETTLE and (ticket.claim, ticket.holder) == (claim.name, claim.holder):
            return ticket.id
    return None


async def read_blocked(ctx: EngineContext, key: str, message: str) -> Reading:
    """The reading of a call that wants a key on which another change is in doubt; it names what settles that."""
    leases = await _look(ctx, "claim.holders", ctx.store.leases((key,)), ())
    holders = {lease.holder for lease in leases if lease.holder}
    tickets = await _look(ctx, "claim.question", ctx.store.tickets(TicketState.OPEN), ())
    asked = [ticket.id for ticket in tickets if ticket.kind is TicketKind.SETTLE and ticket.holder in holders]
    way_out = f"interlock review show {asked[0]}" if asked else "interlock recover"
    tail = f"ticket {asked[0]} asks a person ({way_out})" if asked else f"run {way_out}"
    message = f"{message}, and nobody knows whether that landed: {tail}"
    return refuse(Status.FAILED, Reason.BLOCKED, message, hints=(way_out,))


async def _look(ctx: EngineContext, point: str, asked: Coroutine[Any, Any, T], otherwise: T) -> T:
    """What the store says in a moment, or something else: it only words what nobody knows."""
    try:
        ctx.at(point)
        return await ctx.deadlines.within(_LONGEST_LOOK_S, asked)
    except (Expired, StoreError):
        return otherwise
