"""Taking changes back: from snapshot befores, in reverse order, as calls on the one path."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from interlock.canonical import Refusal
from interlock.changes import Snapshot, Unreadable, keys_of, local_key, read_snapshots, show_difference, states_by_key
from interlock.engine import EngineContext, chain_fault, links_of, made_already, made_by
from interlock.errors import Conflict, ContractError, InDoubt, StoreError, ToolError
from interlock.operations.meant_changes import changes_meant
from interlock.operations.recover import intent_of, read_record
from interlock.operations.standing import LaterChanges, recorded_versions, takes_back
from interlock.ports import Resource
from interlock.records import Stored
from interlock.state import ChangeFilter, Claimed, ClaimState, is_wildcard
from interlock.tools import Parsed, Tool, Unclear, resolve, tool
from interlock.tools.inputs import ModelInput
from interlock.tools.registry import list_tools
from interlock.values import Context, Effect, Json, Versioned

UNDO = "undo."
IN_DOUBT = "it is on its way or in doubt, so nobody knows whether it was made; run interlock recover"


class UndoStep(msgspec.Struct, frozen=True):
    """One change and how it can be taken back: by a call, or not at all and why not."""

    claim: Claimed
    record: int
    tool: str
    """The tool of the call that takes it back; empty if there is none."""
    arguments: dict[str, Json]
    keys: tuple[str, ...]
    diff: str | None = None
    obstacle: str = ""
    """Why nothing is done about it; with a tool: why that is not called, though it could be."""
    holds_back: bool = False
    """Whether a send on the far side of it has to wait for it, which has an obstacle."""
    locks: tuple[str, ...] = ()
    """The keys that were locked for it, and are locked when it is taken back or made again."""
    versions: dict[str, str] = {}
    """The versions at which keys were looked at; those that an earlier step puts back first have none yet."""
    of: Json = None
    """The arguments of the change as its record has them, redacted: what people see of a send, which has no key."""
    nothing: bool = False
    """It left everything as it was, so there is nothing to take back."""


class _SoFar(msgspec.Struct):
    """What planning an undo knows while it goes on."""

    later: LaterChanges
    force: bool
    becomes: dict[str, Json] = {}
    """What keys will be once the steps before have been taken."""


class _Payloads(msgspec.Struct, frozen=True):
    """What lies beside the two records of a change."""

    intent: Mapping[str, Json]
    outcome: Mapping[str, Json]
    unseen: bool = False
    """Whether it was settled without anybody having seen what it left."""
    beside: tuple[str, ...] = ()
    """What it wrote beside its keys, as its record shows it: what that was before nobody has kept."""


def with_undo(tools: Iterable[Tool]) -> list[Tool]:
    """The tools, and one more for each resource that they change: it puts states back.

    It needs what they need, and hides what they hide.
    """
    given = list_tools(tools)
    names, by_resource = {item.name for item in given}, dict[str, list[Tool]]()
    for item in given:
        if item.name.startswith(UNDO) and not item.operator:
            raise ContractError(
                f"{item.name!r}: what begins with {UNDO!r} takes changes back; give the tool another name"
            )
        if item.resource is not None and not item.operator:
            by_resource.setdefault(item.resource.name, []).append(item)
    for name, changers in by_resource.items():
        if any(item.resource is not changers[0].resource for item in changers):
            raise ContractError(f"there are two resources called {name!r}; give each a name of its own")
    return [*given, *(_undo_tool(made) for name, made in by_resource.items() if f"{UNDO}{name}" not in names)]


def _undo_tool(changers: list[Tool]) -> Tool:
    resource = changers[0].resource
    assert resource is not None
    takes_context = len(inspect.signature(resource.restore).parameters) > 2
    together = getattr(resource, "restore_all", None)

    @tool(
        effect=Effect.WRITE,
        name=f"{UNDO}{resource.name}",
        key=lambda arguments: tuple(arguments["states"]),
        resource=resource,
        simulate=lambda _state, arguments, key: arguments["states"][key],
        redact=frozenset({"states", "expected"}).union(*(item.redact for item in changers)),
        capabilities=frozenset().union(*(item.capabilities for item in changers)),
        retention=_longest_retention(changers),
        review_when="args.force",
        operator=True,
    )
    async def restore(
        record: int, states: dict[str, Any], expected: dict[str, Any], force: bool, context: Context
    ) -> dict[str, Any]:
        """Put back what the keys were before a change, if they are still what it made them, and read them back."""
        now = {key: _plain(await resource.read_state(key)) for key in sorted(states)}
        moved = [key for key in now if now[key] != states[key] and now[key] != expected.get(key)]
        if moved and not force:
            raise Conflict(f"{', '.join(moved)} has changed since; undo what came after, or use --force")
        differ = {key: states[key] for key in now if now[key] != states[key]}
        if together is not None:
            await together(differ, context)
        else:
            await _one_by_one(resource, differ, (context,) if takes_context else ())
        for key in differ:
            if _plain(await resource.read_state(key)) != states[key]:
                raise InDoubt(f"{key!r} was put back, but does not read back the same")
        return {"record": record, "restored": sorted(states)}

    assert isinstance(restore.input, ModelInput)
    # States that were read, changed and kept are put back, whatever a model may be allowed to send.
    return msgspec.structs.replace(restore, input=restore.input.for_kept())


def _longest_retention(changers: list[Tool]) -> timedelta | None:
    """What was put back is kept as long as what was done; for good, where a tool says nothing."""
    found = [item.retention for item in changers if item.retention is not None]
    return max(found) if len(found) == len(changers) else None


async def _one_by_one(resource: Resource, states: Mapping[str, Json], more: tuple[Context, ...]) -> None:
    """For a resource that cannot put several keys back at once."""
    for place, (key, state) in enumerate(states.items()):
        try:
            await resource.restore(key, state, *more)
        except ToolError as error:
            if place == 0:
                raise  # nothing was put back yet
            raise InDoubt(f"only some keys were put back; {key!r} failed: {error}") from None


def _plain(state: Any) -> Json:
    return state.value if isinstance(state, Versioned) else state


async def undo_steps(ctx: EngineContext, which: ChangeFilter, *, force: bool = False) -> list[UndoStep]:
    """How each of those changes can be taken back, last change first.

    What took something back is not itself taken back by a turn, run, key or time that it falls into: that would make
    the change again. Whoever wants that names its record.
    """
    ctx.at("undo.read")
    made = [claim for claim in await changes_meant(ctx, which) if claim.state is ClaimState.DONE or in_doubt(claim)]
    if which.record is None:
        made = [claim for claim in made if not await takes_back(ctx, claim)]
    # What was taken back and is there again is taken back with whatever has made it again.
    paths = [await made_by(ctx, claim) for claim in made]
    made = list({path[-1].name: path[-1] for path in paths}.values())
    # By their intents: what was in doubt was made when it was begun, not when somebody settled it.
    made.sort(key=lambda claim: claim.intent or claim.record or 0, reverse=True)
    so_far = _SoFar(LaterChanges(ctx, made, {claim.name for path in paths for claim in path}), force)
    return [await _plan_step(ctx, claim, so_far) for claim in made]


def in_doubt(claim: Claimed) -> bool:
    """Whether nobody knows yet if a change was made: it is listed and waited for, not passed over in silence."""
    return claim.state in (ClaimState.OPEN, ClaimState.UNKNOWN, ClaimState.RETURNING) and not claim.is_lock


async def _plan_step(ctx: EngineContext, claim: Claimed, so_far: _SoFar) -> UndoStep:
    """One odd change must not stand in the way of undoing the others."""
    try:
        intent, before = await intent_of(ctx, claim)
        if in_doubt(claim):
            return with_arguments(impossible(claim, IN_DOUBT), intent)
        change = None if intent is None else intent.content().change
        fault = (
            "" if change is None or change.undoes is None else chain_fault(await links_of(ctx.store, ctx.at, claim.key))
        )
        if fault:
            return with_arguments(impossible(claim, fault), intent)
        step = with_arguments(await _step(ctx, claim, before, so_far), intent)
        step = msgspec.structs.replace(step, locks=locked_keys(intent, before))
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 - compensations and states are somebody else's
        step = impossible(claim, f"its undo cannot be made: {type(error).__name__}: {error}")
    binding = ctx.bindings.get(claim.tool)
    if binding is not None and binding.tool.resource is None:
        # A send that has no way back stays for good: nothing could ever be taken back that waited for it.
        return msgspec.structs.replace(step, holds_back=False)
    return step


def with_arguments(step: UndoStep, intent: Stored | None) -> UndoStep:
    """A step with the arguments that the record of its intent shows."""
    return step if intent is None else msgspec.structs.replace(step, of=intent.content().arguments)


def locked_keys(record: Stored | None, payload: Mapping[str, Json]) -> tuple[str, ...]:
    """The keys that were locked for a recorded call, and are locked when it is made again or taken back."""
    change = None if record is None else record.content().change
    under = payload.get("under") or (() if change is None else change.under)  # as they are, where a record is redacted
    return tuple(sorted({*under, *payload.get("lock_keys", ())}))


async def _step(ctx: EngineContext, claim: Claimed, before: Mapping[str, Json], so_far: _SoFar) -> UndoStep:
    binding = ctx.bindings.get(claim.tool)
    if binding is None or claim.record is None:
        return impossible(claim, f"the tool {claim.tool!r} is not registered any more")
    tool = binding.tool
    outcome, after = await read_record(ctx, claim.record)
    if tool.resource is not None:
        unseen = outcome is not None and outcome.kind == "settle" and not recorded_versions(outcome)
        return await _restoring(ctx, claim, tool, _Payloads(before, after, unseen, _beside(outcome)), so_far)
    if tool.compensate is None:
        return impossible(claim, "a send cannot be taken back, and its tool declares no compensating call")
    if "arguments" not in before or outcome is None:
        return impossible(claim, "its arguments have been deleted, so its compensation cannot be made")
    made_up_by, value = tool.compensate.tool, after.get("value")
    handed = "; its own answer was lost or empty, so that its compensation was handed None" if value is None else ""
    try:
        arguments = tool.compensate.arguments(before["arguments"], value)
    except Exception as error:  # noqa: BLE001 - the tool's own function
        failed = f"what makes the arguments of its compensation {made_up_by!r} failed ({type(error).__name__})"
        return impossible(claim, f"{failed}{handed}; look at the change, and make {made_up_by!r} yourself")
    parsed = _parse(ctx, made_up_by, arguments)
    if isinstance(parsed, str):
        return impossible(claim, f"its compensation {made_up_by!r} would be refused: {parsed}{handed}")
    back = ctx.bindings[made_up_by].tool
    why = await made_already(ctx, back, keys_of(back, parsed.arguments), parsed.by_value(), claim.key)
    if why is not None:
        return impossible(claim, why)
    return UndoStep(claim, claim.record, made_up_by, arguments, claim.keys, f"compensated by {made_up_by}")


def _parse(ctx: EngineContext, name: str, arguments: Any) -> Parsed | str:
    """The arguments as a call takes them, or why it would not: a preview judges what undo will judge."""
    binding = ctx.bindings.get(name)
    if binding is None:
        return "there is no such tool"
    try:
        known = resolve(binding.tool.known_values, arguments, ctx.limits) if binding.tool.known_values else None
        if isinstance(known, Unclear):
            return known.message
        return binding.tool.input.parse(arguments if known is None else known[0])
    except Refusal as refusal:
        return str(refusal)


async def _restoring(ctx: EngineContext, claim: Claimed, tool: Tool, held: _Payloads, so_far: _SoFar) -> UndoStep:
    before, after = held.intent, held.outcome
    assert tool.resource is not None
    assert claim.record is not None
    try:
        # A change that was settled later has no snapshot of its own after it: what was planned stands in for it.
        became_states = after.get("after") or before["planned"]
        if became_states is None and held.unseen and so_far.force:  # then whatever there is now: so a person wants it
            became_states = [found.state for found in await read_snapshots(tool, claim.keys, ctx.snapshot_reader)]
        was, became = _by_key(claim.keys, before["before"]), _by_key(claim.keys, became_states)
    except Unreadable as error:
        return impossible(claim, str(error))
    except (AttributeError, KeyError, TypeError, ValueError):
        return impossible(claim, _nothing_to_put_back(held))
    changed = sorted(key for key in {*was, *became} if was.get(key) != became.get(key))
    if not changed:
        why = await _explain_nothing(ctx, claim, tool, held, so_far)
        left = impossible(claim, why or "it changed nothing", holds_back=False)
        return msgspec.structs.replace(left, nothing=not why)
    keys = tuple(f"{tool.resource.name}/{key}" for key in changed)
    unseen = tuple(key for key in keys if key not in so_far.becomes)
    try:
        now = dict(zip(unseen, await read_snapshots(tool, unseen, ctx.snapshot_reader), strict=True))
    except Unreadable as error:
        return impossible(claim, str(error))
    current = {key: now[key].state if key in now else so_far.becomes[key] for key in keys}
    moved = {
        key: why
        for key in keys
        if (why := await _explain_move(so_far, claim, key, now.get(key), current[key] != became.get(local_key(key))))
    }
    if moved and not so_far.force:
        return impossible(claim, f"{', '.join(moved.values())}; undo what came after, or use --force")
    if held.unseen and not so_far.force:
        # Its keys may be as planned because somebody else has made them so since.
        why = f"it was settled by record {claim.record} without anybody having seen what it left at {', '.join(keys)}"
        return impossible(claim, f"{why}; look, and use --force if that may be put back")
    so_far.becomes |= {key: was.get(local_key(key)) for key in keys}
    arguments = {
        "record": claim.record,
        "states": {key: was.get(key) for key in changed},
        "expected": {key: became.get(key) for key in changed},
        "force": bool(moved) or held.unseen,
    }
    diff = await show_difference(tool, keys, list(current.values()), [was.get(key) for key in changed])
    if held.beside:
        diff = f"{diff or ''}\nand leaves {', '.join(held.beside)}, which it wrote beside its keys"
    versions = {key: snapshot.version for key, snapshot in now.items()}
    return UndoStep(claim, claim.record, f"{UNDO}{tool.resource.name}", arguments, keys, diff, versions=versions)


def _beside(outcome: Stored | None) -> tuple[str, ...]:
    content = None if outcome is None else outcome.content()
    return () if content is None else tuple(key for key in content.deviates if key not in content.keys)


async def _explain_nothing(ctx: EngineContext, claim: Claimed, tool: Tool, held: _Payloads, so_far: _SoFar) -> str:
    """What is said of a change that left its keys as they were; nothing where it changed nothing for sure."""
    if held.beside:
        wrote = ", ".join(held.beside)
        return f"it wrote {wrote} beside the keys that it names, and what was there before is not kept: look at that"
    if not getattr(tool.resource, "notes_writes", False):
        return ""  # what was found when it had ended was what there had been
    keys = tuple(key for key in claim.keys if not is_wildcard(key))
    try:
        now = await read_snapshots(tool, keys, ctx.snapshot_reader)
    except Unreadable as error:
        return f"no write of it was noted, and {error}"
    for key, snapshot in zip(keys, now, strict=True):
        # A later change that is recorded explains why a key moved.
        if await so_far.later.standing(claim, key) is None and await so_far.later.explain_unrecorded(key, snapshot):
            return (
                f"no write of it was noted, but {key} is not at the version that it had before: somebody else has"
                " changed it, or this call has in a thread or task that was not handed its context; look at it"
            )
    return ""


def _nothing_to_put_back(held: _Payloads) -> str:
    if held.unseen and "before" in held.intent and held.intent.get("planned") is None:
        said = "nobody has seen what it left, and its tool does not say what it was to leave (it has no simulate)"
        return f"{said}; look, and use --force if what there was before may be put back over what there is now"
    return "its snapshots have been deleted or cannot be read, so there is nothing to put back"


async def _explain_move(so_far: _SoFar, claim: Claimed, key: str, now: Snapshot | None, differs: bool) -> str:
    """Why a key is not what the change left: another recorded change that stands, or somebody who left no record."""
    other = await so_far.later.standing(claim, key)
    if other is not None:
        return f"{key} has changed since (record {other.record})"
    if differs:
        return f"{key} has changed since"
    return "" if now is None else await so_far.later.explain_unrecorded(key, now)


def _by_key(keys: tuple[str, ...], states: Json) -> dict[str, Json]:
    """The states of a record's snapshots by key; a snapshot is that already."""
    return {local_key(key): state for key, state in states_by_key(keys, states).items()}


def impossible(claim: Claimed, why: str, *, holds_back: bool = True) -> UndoStep:
    """A step with no call. Those beyond the next send wait for it, unless there is nothing to wait for."""
    return UndoStep(claim, claim.record or claim.intent or 0, "", {}, claim.keys, None, why, holds_back)
