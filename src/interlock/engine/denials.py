"""A person's no: a call that they have denied hears it again, and is not put to them a second time."""

from __future__ import annotations

import msgspec

from interlock.engine.admit import deny
from interlock.engine.context import Ended, EngineContext, refuse
from interlock.errors import StoreError
from interlock.reasons import Reason
from interlock.review import denial_message, stamp
from interlock.state import Ticket, TicketState
from interlock.values import Call, Status


async def hear_denial(ctx: EngineContext, parked: Ended) -> Ended:
    """The end of a call that would wait for a person; or their denial, where they have denied this very call before.

    The world and the policy may have moved since: whoever denied it has not said that it may be asked then.
    """
    asks = parked.asks
    assert asks is not None
    try:
        ctx.at("prepare.denied")
        denied = await ctx.store.tickets(TicketState.DENIED, request=asks.request)
        now_us = await ctx.store.now_us(ctx.clock.now_us())
    except StoreError as error:
        reading = refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, str(error))
        return msgspec.structs.replace(parked, reading=reading, asks=None, ticket=None)
    same = [ticket for ticket in denied if _asks_the_same(ticket, asks, parked.call)]
    if not same:
        return msgspec.structs.replace(parked, asks=stamp(asks, now_us))
    message = f"{denial_message(same[-1])}; {_way_on(parked.call)}"
    version = "" if parked.verdict is None else parked.verdict.policy_version
    return msgspec.structs.replace(
        parked,
        reading=refuse(Status.DENIED, Reason.NOT_APPROVED, message),
        verdict=deny("review", message, version),
        asks=None,
        ticket=None,
    )


async def denied_elsewhere(ctx: EngineContext, call: Call, ticket: Ticket) -> str | None:
    """Why an approval buys nothing: the same call was asked for twice, and somebody has denied the other.

    `StoreError` if that cannot be told.
    """
    ctx.at("prepare.denied")
    denied = await ctx.store.tickets(TicketState.DENIED, request=ticket.request)
    same = [other for other in denied if _asks_the_same(other, ticket, call)]
    if not same:
        return None
    return f"ticket {ticket.id!r} was approved, but the same call was denied elsewhere: {denial_message(same[-1])}"


def _asks_the_same(ticket: Ticket, asks: Ticket, call: Call) -> bool:
    """Whether both are about the same call, compared by value: in a turn, elsewhere under the caller's id, and where
    there is only a run, in that. Also of a repeatable tool: whoever has said no has not said that once is enough."""
    if _asker(ticket) != _asker(asks) or ticket.request != asks.request:
        return False
    if asks.turn is None and call.id_is_ours:
        return call.run is not None
    return asks.turn is not None or ticket.call == asks.call


def _asker(ticket: Ticket) -> tuple[str | None, ...]:
    return (ticket.kind, ticket.tool, ticket.actor, ticket.asked_by, ticket.on_behalf_of, ticket.turn)


def _way_on(call: Call) -> str:
    if call.turn is not None:
        return "the same call is not asked for again in this turn"
    return "to have it asked again, propose it under another call id"
