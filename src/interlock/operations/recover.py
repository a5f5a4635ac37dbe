"""Settling what a dead process left behind: ask the tool's probe, compare the resource, or ask a person."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from interlock.changes import Unreadable, landed_by_images, local, look
from interlock.engine import World, freed, probe
from interlock.errors import NotAllowed, StoreError
from interlock.operations.decisions import PEOPLE, Desk, beside_of, settle
from interlock.standing import HOLD, Claimed, ClaimState, Ticket, TicketState
from interlock.transitions import Ask, Resolve
from interlock.values import Context, Json, Plan, Stored

WAITING = "its resource looks untouched; if it still does when its lease has expired, it did not land"


class Recovered(msgspec.Struct, frozen=True):
    """One claim that was in doubt, and what became of it."""

    claim: str
    tool: str
    call: str
    keys: tuple[str, ...]
    state: str
    """done, failed, asked (a person has to say), or waiting (too early to say)."""
    how: str
    ticket: str | None = None


async def recover(world: World, desk: Desk) -> tuple[Recovered, ...]:
    """Settle every claim in doubt as far as the world shows; each is one commit with its record."""
    if world.faults is not None:
        world.faults.at("recover.read")
    found = []
    for claim in await world.store.unsettled(world.clock.now_us()):
        if claim.name.startswith(f"{HOLD}|"):
            await freed(world, claim.name)  # it changed nothing
            continue
        try:
            one = await _settle(world, desk, claim)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a resource or probe is somebody else's; the others must be settled
            how = f"it cannot be settled: {type(error).__name__}: {error}"
            one = Recovered(claim.name, claim.tool, claim.call, claim.keys, "asked", how)
        if one is not None:
            found.append(one)
    return tuple(found)


async def _settle(world: World, desk: Desk, claim: Claimed) -> Recovered | None:
    record, payload = await intent_of(world, claim)
    landed, how = await _look(world, claim, record, payload)
    if how is WAITING:
        return Recovered(claim.name, claim.tool, claim.call, claim.keys, "waiting", how)
    if landed is None:
        return await _ask(world, desk, claim, record, how)
    state = (ClaimState.DONE if landed else ClaimState.FAILED).value
    what = {"claim": claim.name, "state": state, "tool": claim.tool, "call": claim.call, "how": how}
    try:
        await settle(desk, claim, record, landed=landed, what=what)
    except NotAllowed:
        return None  # its holder lives, or somebody else settled it meanwhile
    return Recovered(claim.name, claim.tool, claim.call, claim.keys, state, how)


async def intent_of(world: World, claim: Claimed) -> tuple[Stored | None, Mapping[str, Json]]:
    """The intent of a claim, and what lies beside it."""
    return (None, {}) if claim.intent is None else await beside(world, claim.intent)


async def beside(world: World, number: int) -> tuple[Stored | None, Mapping[str, Json]]:
    """A record, and what lies beside it; nothing if that was deleted or cannot be read."""
    if world.faults is not None:
        world.faults.at("operations.record")
    return await beside_of(world.store, number)


async def _look(
    world: World, claim: Claimed, record: Stored | None, beside: Mapping[str, Json]
) -> tuple[bool | None, str]:
    desk = world.desks.get(claim.tool)
    if desk is None or record is None or "arguments" not in beside:
        return None, "there is no such tool any more, or its intent is gone"
    tool, said = desk.tool, None
    if tool.probe is not None:
        context = Context(
            call_id=claim.call,
            actor=record.actor,
            attempt=1,
            turn=record.turn,
            idempotency_key=f"{claim.name}.{claim.generation}",
            tokens={local(key): token for key, token in zip(claim.keys, claim.tokens, strict=True)},
        )
        said = await probe(world, tool, beside["arguments"], context)
        if said is not None:
            return said, "its probe says so"
    try:
        images = await look(tool, claim.keys, world.sight)
    except Unreadable as error:
        return None, str(error)
    content = record.content()
    plan = Plan(
        digest=content.plan or "",
        keys=claim.keys,
        before=beside.get("before"),
        after=beside.get("planned"),
        versions=() if content.change is None else content.change.versions,
    )
    said = landed_by_images(plan, images)
    if said is False and claim.expires_us > world.clock.now_us():
        return None, WAITING
    return said, "the resource shows it" if said is not None else "neither a probe nor the resource can say"


async def _ask(world: World, desk: Desk, claim: Claimed, record: Stored | None, how: str) -> Recovered | None:
    now_us, terms = world.clock.now_us(), world.review
    ticket = Ticket(
        id=world.ids.new(),
        kind="settle",
        state=TicketState.OPEN,
        binding=f"settle|{claim.name}|{claim.holder}",
        tool=claim.tool,
        actor=PEOPLE if record is None else record.actor,
        asked_by=PEOPLE if record is None else record.content().principal,
        call=claim.call,
        turn=None if record is None else record.turn,
        why=f"did call {claim.call!r} land? {how}: approve if it did, deny if it did not",
        created_us=now_us,
        expires_us=now_us + _A_LONG_TIME_US,
        escalate_us=now_us + terms.escalate_us,
        record=claim.intent,
        claim=claim.name,
    )
    what = {"claim": claim.name, "state": "asked", "tool": claim.tool, "call": claim.call, "ticket": ticket.id}
    doubt = (Resolve(claim.name, claim.holder, ClaimState.UNKNOWN),) if claim.state is ClaimState.OPEN else ()
    try:
        await desk.commit("settle", what, Ask(ticket), *doubt, turn=ticket.turn)
    except NotAllowed as error:
        if not error.instead:
            return None
        return Recovered(claim.name, claim.tool, claim.call, claim.keys, "asked", how, error.instead)
    return Recovered(claim.name, claim.tool, claim.call, claim.keys, "asked", how, ticket.id)


_A_LONG_TIME_US = 10 * 365 * 86_400 * 1_000_000
