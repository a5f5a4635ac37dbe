"""Shadow: what was planned and not done, held against what then really happened to the resource."""

from __future__ import annotations

import msgspec

from interlock.changes import Unreadable, diff_of, look
from interlock.engine import World
from interlock.operations.recover import beside
from interlock.ports import Query
from interlock.schema import Tool
from interlock.standing import ClaimState, Which
from interlock.values import Json, Mode, Status, Stored


class Compared(msgspec.Struct, frozen=True):
    """One planned change of a key, and whether the world went the same way."""

    record: int
    actor: str
    tool: str
    key: str
    verdict: str
    """agrees, differs, pending (nothing has happened to the key yet), or unknown (it cannot be told)."""
    with_whom: str
    diff: str | None = None
    turn: str | None = None
    evidence: tuple[str, ...] = ()
    """What the plan rested on."""


async def compare(world: World, *, run: str | None = None, since_us: int | None = None) -> list[Compared]:
    """Every shadow plan against the next recorded change of its key, or else the key as it is now."""
    if world.faults is not None:
        world.faults.at("shadow.read")
    query = Query(status=Status.PLANNED.value, since_us=since_us)
    found = [record async for record in world.store.records(query) if record.kind == "call"]
    shadows = [record for record in found if record.content().mode is Mode.SHADOW]
    compared = []
    for record in shadows:
        content = record.content()
        if run is None or content.run == run:
            more = {"turn": record.turn, "evidence": content.evidence}
            compared += [msgspec.structs.replace(one, **more) for one in await _of(world, record)]
    return compared


async def _of(world: World, record: Stored) -> list[Compared]:
    content, (_record, whole) = record.content(), await beside(world, record.id)
    desk, planned, before = world.desks.get(record.tool), whole.get("planned"), whole.get("before")
    if desk is None or planned is None or before is None:
        why = "the tool offers no simulation, or its images were deleted"
        return [Compared(record.id, record.actor, record.tool, key, "unknown", why) for key in content.keys]
    return [
        await _key(world, desk.tool, record, (key, was, plan))
        for key, was, plan in zip(content.keys, before, planned, strict=True)
    ]


async def _key(world: World, tool: Tool, record: Stored, item: tuple[str, Json, Json]) -> Compared:
    key, was, plan = item
    actual, whom = await _next_change(world, record, key)
    if whom is None:
        try:
            (image,) = await look(tool, (key,), world.sight)
        except Unreadable as error:
            return Compared(record.id, record.actor, record.tool, key, "unknown", str(error))
        actual, whom = image.state, "the resource now"
        if actual == was and plan != was:
            return Compared(record.id, record.actor, record.tool, key, "pending", whom)
    if actual == plan:
        return Compared(record.id, record.actor, record.tool, key, "agrees", whom)
    diff = diff_of(tool, (key,), [plan], [actual])
    return Compared(record.id, record.actor, record.tool, key, "differs", whom, diff)


async def _next_change(world: World, record: Stored, key: str) -> tuple[Json, str | None]:
    """What the first recorded change after the shadow made of the key, and whose it was."""
    for claim in await world.store.claims(Which(key=key)):
        landed = claim.state in (ClaimState.DONE, ClaimState.UNDONE) and claim.record is not None
        if not landed or (claim.intent or 0) < record.id or key not in claim.keys:
            continue
        assert claim.record is not None
        outcome, whole = await beside(world, claim.record)
        after = whole.get("after")
        if outcome is not None and isinstance(after, list) and len(after) == len(claim.keys):
            return after[claim.keys.index(key)], f"{outcome.actor} (record {claim.record})"
    return None, None
