"""Taking changes back: from before-images, in reverse order, as calls on the one path."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from interlock.changes import Unreadable, diff_of, local, look
from interlock.engine import World
from interlock.errors import Conflict, ContractError, InDoubt, StoreError, ToolError
from interlock.operations.recover import beside, intent_of
from interlock.ports import Resource
from interlock.schema import Tool, tool
from interlock.standing import Claimed, ClaimState, Which
from interlock.values import Context, Effect, Json, Versioned

UNDO = "undo."


class Step(msgspec.Struct, frozen=True):
    """One change and how it can be taken back: by a call, or not at all and why not."""

    claim: Claimed
    record: int
    tool: str
    """The tool of the call that takes it back; empty if there is none."""
    arguments: dict[str, Json]
    keys: tuple[str, ...]
    diff: str | None = None
    why_not: str = ""
    within: tuple[str, ...] = ()
    """The leases under which it was made, and is taken back."""


def with_undo(tools: Iterable[Tool]) -> list[Tool]:
    """The tools, and one more for each resource that they change: it puts states back.

    It needs what they need, and hides what they hide.
    """
    given = list(tools)
    names, by_resource = {item.name for item in given}, dict[str, list[Tool]]()
    for item in given:
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
        ask_when="args.force",
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

    return restore


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


async def undo_steps(world: World, which: Which, *, force: bool = False) -> list[Step]:
    """How each of those changes can be taken back, last change first."""
    if world.faults is not None:
        world.faults.at("undo.read")
    made = [claim for claim in await world.store.claims(which) if claim.state is ClaimState.DONE]
    made.sort(key=lambda claim: claim.record or 0, reverse=True)
    becomes: dict[str, Json] = {}  # what keys will be once the steps before have been taken
    return [await _step_or_why_not(world, claim, force, becomes) for claim in made]


async def _step_or_why_not(world: World, claim: Claimed, force: bool, becomes: dict[str, Json]) -> Step:
    """One odd change must not stand in the way of undoing the others."""
    try:
        return await _step(world, claim, force, becomes)
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 - compensations and states are somebody else's
        return _impossible(claim, f"its undo cannot be made: {type(error).__name__}: {error}")


async def _step(world: World, claim: Claimed, force: bool, becomes: dict[str, Json]) -> Step:
    desk = world.desks.get(claim.tool)
    if desk is None or claim.record is None:
        return _impossible(claim, f"the tool {claim.tool!r} is not registered any more")
    tool = desk.tool
    intent, before = await intent_of(world, claim)
    outcome, after = await beside(world, claim.record)
    if tool.resource is not None:
        step = await _restoring(world, claim, tool, (before, after), force, becomes)
        change = None if intent is None else intent.content().change
        return msgspec.structs.replace(step, within=() if change is None else tuple(change.under))
    if tool.compensate is None:
        return _impossible(claim, "a send cannot be taken back, and its tool declares no compensating call")
    if "arguments" not in before or outcome is None:
        return _impossible(claim, "its arguments have been deleted, so its compensation cannot be made")
    arguments = tool.compensate.arguments(before["arguments"], after.get("value"))
    return Step(
        claim, claim.record, tool.compensate.tool, arguments, claim.keys, f"compensated by {tool.compensate.tool}"
    )


async def _restoring(
    world: World,
    claim: Claimed,
    tool: Tool,
    beside: tuple[Mapping[str, Json], Mapping[str, Json]],
    force: bool,
    becomes: dict[str, Json],
) -> Step:
    before, after = beside
    assert tool.resource is not None
    assert claim.record is not None
    try:
        # A change that was settled later has no image of its own after it: what was planned stands in for it.
        became_states = after.get("after") or before["planned"]
        was, became = _by_key(claim.keys, before["before"]), _by_key(claim.keys, became_states)
    except (KeyError, TypeError, ValueError, IndexError):
        return _impossible(claim, "its images have been deleted or cannot be read, so there is nothing to put back")
    changed = sorted(key for key in {*was, *became} if was.get(key) != became.get(key))
    if not changed:
        return _impossible(claim, "it changed nothing")
    keys = tuple(f"{tool.resource.name}/{key}" for key in changed)
    try:
        images = await look(tool, tuple(key for key in keys if key not in becomes), world.sight)
    except Unreadable as error:
        return _impossible(claim, str(error))
    now = iter(images)
    current = {key: becomes[key] if key in becomes else next(now).state for key in keys}
    moved = [key for key in keys if current[key] != became.get(local(key))]
    if moved and not force:
        return _impossible(claim, f"{', '.join(moved)} has changed since; undo what came after, or use --force")
    becomes |= {key: was.get(local(key)) for key in keys}
    arguments = {
        "record": claim.record,
        "states": {key: was.get(key) for key in changed},
        "expected": {key: became.get(key) for key in changed},
        "force": bool(moved),
    }
    diff = diff_of(tool, keys, list(current.values()), [was.get(key) for key in changed])
    return Step(claim, claim.record, f"{UNDO}{tool.resource.name}", arguments, keys, diff)


def _by_key(keys: tuple[str, ...], states: Json) -> dict[str, Json]:
    """The states of a record's images by key; a snapshot is that already."""
    if keys and keys[0].endswith("/*"):
        return dict(states[0])
    return {local(key): state for key, state in zip(keys, states, strict=True)}


def _impossible(claim: Claimed, why: str) -> Step:
    return Step(claim, claim.record or 0, "", {}, claim.keys, None, why)


async def replay_steps(world: World, run: str) -> list[Step]:
    """What of a run failed or was undone, in the order in which it was tried, with its own arguments."""
    if world.faults is not None:
        world.faults.at("replay.read")
    steps = []
    for claim in await world.store.claims(Which(run=run)):
        history = "#" in claim.name  # an earlier generation
        if history or claim.state not in (ClaimState.FAILED, ClaimState.UNDONE) or claim.tool.startswith(UNDO):
            continue
        _record, before = await intent_of(world, claim)
        if "arguments" in before:
            steps.append(Step(claim, claim.record or 0, claim.tool, before["arguments"], claim.keys))
        else:
            steps.append(_impossible(claim, "its arguments have been deleted"))
    return steps
