"""Shadow: what was planned and not done, held against what then really happened to the resource."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

import msgspec

from interlock.changes import Unreadable, diff_of, read_snapshots, states_by_key, touched_keys
from interlock.engine import EngineContext
from interlock.operations.recover import read_record
from interlock.ports import Query
from interlock.records import Stored
from interlock.state import LANDED, ChangeFilter, is_wildcard
from interlock.tools import Tool
from interlock.values import Json, Mode, Status

_NOW = "the resource now"
_AT_ONCE = 200


class ShadowComparison(msgspec.Struct, frozen=True):
    """One planned change of a key, and whether the world went the same way."""

    record: int
    actor: str
    tool: str
    key: str
    verdict: str
    """agrees, differs, pending (nothing has happened yet to what was to be changed), or unknown (it cannot be told)."""
    compared_with: str
    """A sentence's part: whose change, or the resource now; or why it cannot be told."""
    by: str = ""
    """The actor of the change that it was compared with."""
    diff: str | None = None
    turn: str | None = None
    evidence: tuple[str, ...] = ()
    """What the plan rested on."""


class _Planned(msgspec.Struct, frozen=True):
    """A key as it was, and as it was to be."""

    record: Stored
    tool: Tool
    key: str
    was: Json
    plan: Json


async def compare(ctx: EngineContext, *, run: str | None = None, since_us: int | None = None) -> list[ShadowComparison]:
    """Every shadow plan against the first recorded change of what it was to change, or else the resource as it is."""
    ctx.at("shadow.read")
    query = Query(status=Status.PLANNED.value, since_us=since_us)
    found = [record async for record in ctx.store.records(query) if record.kind == "call"]
    compared: list[ShadowComparison | None] = []
    open_ones: dict[int, _Planned] = {}
    for record in found:
        content = record.content()
        if content.mode is not Mode.SHADOW or (run is not None and content.run != run):
            continue
        async for item in _plans(ctx, record):
            verdict = item if isinstance(item, ShadowComparison) else await _compare_with_record(ctx, item)
            if verdict is None:
                assert isinstance(item, _Planned)
                open_ones[len(compared)] = item
            compared.append(verdict)
    for place, verdict in zip(open_ones, await _compare_with_resource(ctx, list(open_ones.values())), strict=True):
        compared[place] = verdict
    return [item for item in compared if item is not None]


async def _plans(ctx: EngineContext, record: Stored) -> AsyncIterator[_Planned | ShadowComparison]:
    content, (_record, whole) = record.content(), await read_record(ctx, record.id)
    binding, planned, before = ctx.bindings.get(record.tool), whole.get("planned"), whole.get("before")
    if binding is None or planned is None or before is None:
        for key in content.keys:
            yield _comparison(record, key, "unknown", "the tool offers no simulation, or its snapshots were deleted")
        return
    keys = content.keys
    if keys and is_wildcard(keys[0]):  # one plan for each key that it was to change: others change them one by one
        keys = touched_keys(content.keys, before, planned)
        if not keys:
            yield _comparison(record, content.keys[0], "agrees", "nothing, which is what it was to change")
    was, plan = states_by_key(content.keys, before), states_by_key(content.keys, planned)
    for key in keys:
        yield _Planned(record, binding.tool, key, was.get(key), plan.get(key))


async def _compare_with_record(ctx: EngineContext, item: _Planned) -> ShadowComparison | None:
    """Against the first recorded change after the shadow that went to what it was to change; None if there is none."""
    for claim in await ctx.store.claims(ChangeFilter(key=item.key)):
        landed = claim.state in LANDED and claim.record is not None
        if not landed or (claim.intent or 0) < item.record.id:
            continue
        assert claim.record is not None
        outcome, whole = await read_record(ctx, claim.record)
        after = whole.get("after")
        if outcome is None or not isinstance(after, list) or len(after) != len(claim.keys):
            continue
        actual = states_by_key(claim.keys, after).get(item.key)
        if _verdict(item, actual) != "pending":
            return _compare(item, actual, f"{outcome.actor} (record {claim.record})", outcome.actor)
    return None


async def _compare_with_resource(ctx: EngineContext, items: Sequence[_Planned]) -> list[ShadowComparison]:
    """Against the resources as they are, each asked for many keys at once where it can be."""
    states: dict[tuple[str, str], Json] = {}
    failed: dict[tuple[str, str], str] = {}
    for tool in {item.tool.name: item.tool for item in items}.values():
        keys = list(dict.fromkeys(item.key for item in items if item.tool is tool))
        size = _AT_ONCE if hasattr(tool.resource, "read_states") else 1
        for start in range(0, len(keys), size):
            some = tuple(keys[start : start + size])
            try:
                snapshots = await read_snapshots(tool, some, ctx.snapshot_reader)
            except Unreadable as error:
                failed.update({(tool.name, key): str(error) for key in some})
                continue
            states.update({(tool.name, key): snapshot.state for key, snapshot in zip(some, snapshots, strict=True)})
    found = []
    for item in items:
        place = (item.tool.name, item.key)
        if place in failed:
            found.append(_comparison(item.record, item.key, "unknown", failed[place]))
        else:
            found.append(_compare(item, states[place], _NOW))
    return found


def _compare(item: _Planned, actual: Json, compared_with: str, by: str = "") -> ShadowComparison:
    verdict = _verdict(item, actual)
    diff = diff_of(item.tool, (item.key,), [item.plan], [actual]) if verdict == "differs" else None
    made = _comparison(item.record, item.key, verdict, compared_with)
    return msgspec.structs.replace(made, by=by, diff=diff)


def _comparison(record: Stored, key: str, verdict: str, compared_with: str) -> ShadowComparison:
    return ShadowComparison(
        record=record.id,
        actor=record.actor,
        tool=record.tool,
        key=key,
        verdict=verdict,
        compared_with=compared_with,
        turn=record.turn,
        evidence=record.content().evidence,
    )


def _verdict(item: _Planned, actual: Json) -> str:
    """By what was to be changed alone: what somebody did elsewhere in the same state says nothing about the plan."""
    if actual == item.plan:
        return "agrees"
    if actual == item.was:
        return "pending"
    parts = list(_changed_parts(item.was, item.plan, actual))
    if all(now == plan for _was, plan, now in parts):
        return "agrees"
    return "pending" if all(now == was for was, _plan, now in parts) else "differs"


def _changed_parts(was: Json, plan: Json, actual: Json) -> Iterator[tuple[Json, Json, Json]]:
    """The parts that the plan changes: as they were, as planned, as they are."""
    if not (isinstance(was, dict) and isinstance(plan, dict) and isinstance(actual, dict)):
        yield was, plan, actual
        return
    for name in {**was, **plan}:
        if was.get(name, _ABSENT) != plan.get(name, _ABSENT):
            yield from _changed_parts(was.get(name, _ABSENT), plan.get(name, _ABSENT), actual.get(name, _ABSENT))


_ABSENT = object()
