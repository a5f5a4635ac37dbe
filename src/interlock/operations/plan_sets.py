"""Plan sets: changes that belong together, stored before the first effect; a rerun goes on where the last one ended."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlock.changes import on_versions
from interlock.engine import EngineContext, hold_locks
from interlock.errors import NotAllowed
from interlock.operations.execute import Run, versions_after
from interlock.operations.ledger_writer import LedgerEntry, LedgerWriter, record_with_payload
from interlock.ports import Query
from interlock.values import Call, Json, Mode, Outcome, Status

_MARGIN_S = 5.0
"""For whoever stores a set of the same name, beyond the lease that one who died doing so leaves behind."""


class Change(msgspec.Struct, frozen=True):
    """One change of a set: a tool and its arguments."""

    tool: str
    arguments: dict[str, Json]


class PlannedChange(msgspec.Struct, frozen=True):
    """One change of a set as it was planned: what it was looked at with."""

    tool: str
    arguments: dict[str, Json]
    digest: str
    keys: tuple[str, ...]
    versions: tuple[str, ...]
    diff: str | None = None


def turn_of(name: str) -> str:
    """The turn in which a set is made: its changes are the same changes however often the set is run."""
    return f"set:{name}"


async def plan_set(
    run: Run, ctx: EngineContext, changes: Sequence[Change], *, by: str, actor: str
) -> tuple[list[PlannedChange], Outcome | None]:
    """Every change planned on the world as it is; the first that cannot be planned ends it."""
    planned: list[PlannedChange] = []
    for change in changes:
        outcome = await run(_call(ctx, change, by, actor, turn=None, mode=Mode.DRY_RUN))
        if outcome.status is not Status.PLANNED or outcome.plan is None:
            return planned, outcome
        plan = outcome.plan
        planned.append(PlannedChange(change.tool, change.arguments, plan.digest, plan.keys, plan.versions, plan.diff))
    return planned, None


async def stored_set(ctx: EngineContext, name: str) -> list[PlannedChange] | None:
    """The set of that name as it was stored, or None; `NotAllowed` if there was one that cannot be read any more."""
    ctx.at("plan_set.read")
    for number in [r.id async for r in ctx.store.records(Query(turn=turn_of(name))) if r.kind == "plan_set"]:
        _record, whole = await record_with_payload(ctx.store, number)
        try:
            return msgspec.convert(whole.get("set"), list[PlannedChange])
        except msgspec.ValidationError:  # what lay beside the record was deleted, or is not what was recorded
            raise NotAllowed(
                f"the changes of the set {name!r} (record {number}) were deleted or cannot be read, so nobody can tell"
                f" whether these are the same; see what it made (interlock audit show --turn {turn_of(name)}), and give"
                " what is left another name"
            ) from None
    return None


async def apply_set(
    run: Run, ctx: EngineContext, writer: LedgerWriter, name: str, planned: Sequence[PlannedChange], *, actor: str
) -> list[Outcome]:
    """Make the changes in order, each exactly as planned, until one does not succeed.

    Versions that the set wrote itself have not moved: a later change of the same key is held against what the earlier
    one made of it. The same change twice in a set is one change, unless its tool is repeatable: the second outcome
    `repeats` the first.
    """
    # Two who store a set of one name at once would each take their own for the stored one.
    wait_s = ctx.lease_us / 1e6 + _MARGIN_S
    async with hold_locks(ctx, (f"plan_set/{name}",), call=ctx.ids.new(), wait_s=wait_s):
        planned = await _stored_or_store(ctx, writer, name, planned)
    outcomes: list[Outcome] = []
    versions: dict[str, str] = {}
    for place, item in enumerate(planned):
        expected = tuple(versions.get(key, version) for key, version in zip(item.keys, item.versions, strict=True))
        digest = on_versions(ctx.digest, item.digest, expected)
        call = _call(ctx, Change(item.tool, item.arguments), writer.by, actor, turn=turn_of(name), mode=Mode.APPLY)
        outcome = await run(msgspec.structs.replace(call, plan=digest, call_id=f"{turn_of(name)}.{place}"))
        outcomes.append(outcome)
        if outcome.status is not Status.OK:
            break
        versions.update(zip(item.keys, await versions_after(ctx, outcome), strict=False))
    return outcomes


async def _stored_or_store(
    ctx: EngineContext, writer: LedgerWriter, name: str, planned: Sequence[PlannedChange]
) -> Sequence[PlannedChange]:
    """The set of that name as it was first stored, which is this one if there was none."""
    before = await stored_set(ctx, name)
    if before is None:
        what: dict[str, Json] = {"name": name, "changes": len(planned), "state": "stored"}
        held = {"set": msgspec.to_builtins(list(planned))}
        await writer.commit(LedgerEntry("plan_set", "stored", what, held, turn_of(name)))
        return planned
    if [(item.tool, item.arguments) for item in before] != [(item.tool, item.arguments) for item in planned]:
        raise NotAllowed(f"there is another set called {name!r}; give this one a name of its own")
    return before


def _call(ctx: EngineContext, change: Change, by: str, actor: str, *, turn: str | None, mode: Mode) -> Call:
    return Call(
        call_id=ctx.ids.new(),
        tool=change.tool,
        arguments=change.arguments,
        actor=actor,
        principal=by,
        mode=mode,
        turn=turn,
        run=turn,
    )
