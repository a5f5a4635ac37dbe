"""A ticket that somebody would rather have otherwise: its call is refused as it is, and made with other values.

Whoever edits a call makes it theirs: they are its principal from then on. Where that call is to be reviewed again,
somebody else decides.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from interlock.canonical import WHATEVER, canonical
from interlock.engine import EngineContext
from interlock.engine.admit import accept
from interlock.engine.context import Ended, Started
from interlock.errors import ConfigError, NotAllowed
from interlock.operations.approvals import find_ticket, record_decision
from interlock.operations.execute import Run, call_of_ticket
from interlock.operations.ledger_writer import LedgerWriter
from interlock.ports import Query
from interlock.review import decision_of, parties_of, voice_of
from interlock.state import Ticket, TicketState, state_of
from interlock.values import Call, Json, Outcome

_EDITED = "made with other values"


async def edit_call(
    run: Run, ctx: EngineContext, writer: LedgerWriter, name: str, changes: Mapping[str, Json], reason: str = ""
) -> Outcome:
    """Refuse what a ticket asks, and make its call with these values in place of its own.

    The refusal is recorded first. Whoever died in between does the same again, and the call is made once.
    """
    if not isinstance(changes, Mapping):
        raise ConfigError(f"what is to be otherwise is a dict of arguments, not {changes!r:.80}")
    ctx.at("edit.read")
    ticket = await find_ticket(ctx.store, name)
    # Their own question people may withdraw, but not answer: what they put there would count as another person's word.
    voice_of(ticket, writer.by, await writer.store_time_us())
    if ticket.terms.quorum > 1:
        raise NotAllowed("where several have to approve, nobody edits alone: deny it, and let it be proposed again")
    call = _with_changes(ctx, await call_of_ticket(ctx, ticket), ticket, changes, writer.by)
    fits = accept(ctx, call, Started(ctx.clock.now_us(), ctx.clock.monotonic()), None)
    if isinstance(fits, Ended):
        said = fits.reading.said
        raise NotAllowed(f"ticket {name!r} stays as it is: with these values {call.tool!r} is refused: {said}")
    digest = ctx.digest(canonical(call.arguments))
    if not await _was_refused_for(ctx, ticket, writer.by, digest):
        what = {"edited": list(call.edited), "made_as": call.call_id, "arguments_digest": digest}
        await record_decision(writer, ticket, TicketState.DENIED, reason or _EDITED, said=what)
    return await run(call)


def _with_changes(ctx: EngineContext, call: Call, ticket: Ticket, changes: Mapping[str, Json], by: str) -> Call:
    if call.undoes is not None:
        raise NotAllowed(f"ticket {ticket.id!r} asks whether something is taken back: there is nothing to edit")
    before = call.arguments if isinstance(call.arguments, dict) else {}
    edited = [field for field, value in changes.items() if field not in before or not _is_same(before[field], value)]
    if not edited:
        raise NotAllowed(f"ticket {ticket.id!r}: these are the values that it has; approve it, or name others")
    # Of a list or an object nobody says which part is theirs: it is traced as before.
    own = {field: by for field in edited if not isinstance(changes[field], dict | list | tuple)}
    kept = {field: who for field, who in call.edited.items() if field not in edited}
    return msgspec.structs.replace(
        call,
        # Nobody who has not decided the ticket can use it up beforehand.
        call_id=ctx.digest(canonical(["edit", ticket.id])),
        id_is_ours=False,
        arguments={**before, **changes},
        edited={**kept, **own},
        parties=tuple(party for party in parties_of(ticket) if party != by),
        principal=by,
        claim=None,
    )


def _is_same(one: Json, other: Json) -> bool:
    return canonical(one, WHATEVER) == canonical(other, WHATEVER)


async def _was_refused_for(ctx: EngineContext, ticket: Ticket, by: str, digest: str) -> bool:
    """Whether somebody has refused a ticket for these very values before, and may have died before the call."""
    if state_of(ticket, await ctx.store.now_us(ctx.clock.now_us())) is not TicketState.DENIED:
        return False
    which = Query(after=ticket.record or 0, turn=ticket.turn, status=TicketState.DENIED.value)
    async for record in ctx.store.records(which):
        what = decision_of(record)
        if what.get("ticket") == ticket.id and record.content().principal == by:
            return what.get("arguments_digest") == digest
    return False
