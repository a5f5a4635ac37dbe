"""Plan sets: changes that belong together, stored before the first effect; a rerun goes on where the last one ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from interlock.canonical import WHATEVER, Refusal, canonical
from interlock.changes import Unreadable, claim_name, keys_of, on_versions, read_snapshots
from interlock.engine import EngineContext, hold_locks
from interlock.engine.admit import accept
from interlock.engine.context import Ended, Started
from interlock.errors import NotAllowed
from interlock.operations.execute import Run, left_behind
from interlock.operations.ledger_writer import LedgerEntry, LedgerWriter, record_with_payload
from interlock.ports import Query
from interlock.reasons import Reason
from interlock.values import Call, Decision, Effect, Json, Mode, Outcome, Plan, Status

_MARGIN_S = 5.0
"""For whoever stores a set of the same name, beyond the lease that one who died doing so leaves behind."""
_OTHERWISE = "otherwise than planned"
"""Stands for the version of a key that an earlier change of the set has not left as planned: no key has it."""


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
    notes: tuple[str, ...] = ()
    """What else is to be known of it beforehand: that a person will be asked, or on what it could not be planned."""
    found: tuple[str, ...] = ()
    """Digests of the states that it was planned on, in the order of the keys."""
    leaves: tuple[str, ...] = ()
    """Digests of the states that it is to leave; empty where its tool cannot say."""


def turn_of(name: str) -> str:
    """The turn in which a set is made: its changes are the same changes however often the set is run."""
    return f"set:{name}"


async def plan_set(
    run: Run, ctx: EngineContext, changes: Sequence[Change], *, by: str, actor: str
) -> tuple[list[PlannedChange], Outcome | None]:
    """Every change planned on what those before it would leave; the first that cannot be planned ends it."""
    ahead = _Ahead(ctx)
    for place, change in enumerate(changes):
        call = _call(ctx, change, by, actor, turn=None, mode=Mode.DRY_RUN)
        claim = _claim_in_set(ctx, call, place)
        same = ahead.same_as(claim)
        if same is not None:
            ahead.planned.append(_repeat(ahead.planned[same], same))
            continue
        outcome = await run(msgspec.structs.replace(call, overlay=dict(ahead.overlay)))
        if outcome.status is not Status.PLANNED or outcome.plan is None:
            return ahead.planned, outcome
        ahead.add(change, claim, outcome, outcome.plan)
    return ahead.planned, None


class _Ahead:
    """What a set would have made of the world, as far as it is planned."""

    def __init__(self, ctx: EngineContext) -> None:
        self._ctx = ctx
        self._claims: dict[str, int] = {}
        self._touched: dict[str, int] = {}
        self._unsaid: dict[str, int] = {}
        self.overlay: dict[str, Json] = {}
        self.planned: list[PlannedChange] = []

    def same_as(self, claim: str | None) -> int | None:
        """The place of the same change before, where it would be answered by that: as the path will judge."""
        place = None if claim is None else self._claims.get(claim)
        if place is None:
            return None
        item = self.planned[place]
        writes = self._ctx.bindings[item.tool].tool.effect is Effect.WRITE
        since = (later for key in item.keys for other, later in self._touched.items() if _overlap(key, other))
        return None if writes and any(later > place for later in since) else place

    def add(self, change: Change, claim: str | None, outcome: Outcome, plan: Plan) -> None:
        """One more change is planned."""
        place, stateful = len(self.planned), self._ctx.bindings[change.tool].tool.resource is not None
        notes = (*_asks_a_person(outcome), *self._planned_without(plan.keys))
        self.planned.append(
            PlannedChange(
                change.tool,
                change.arguments,
                plan.digest,
                plan.keys,
                plan.versions,
                plan.diff,
                notes,
                found=_digests(self._ctx, plan.before),
                leaves=_digests(self._ctx, plan.after),
            )
        )
        if claim is not None:
            self._claims[claim] = place
        self._touched.update(dict.fromkeys(plan.keys, place))
        if stateful and plan.after is None:
            self._unsaid.update(dict.fromkeys(plan.keys, place))
        elif stateful:
            self.overlay.update(_states_after(plan))

    def _planned_without(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Which keys are taken to be as they are now, though an earlier change touches them."""
        found = {(key, place) for key in keys for other, place in self._unsaid.items() if _overlap(key, other)}
        return tuple(
            f"planned on {key} as it is now, and made on what change {place + 1} of the set leaves of it:"
            f" {self.planned[place].tool!r} cannot say that beforehand (it has no simulate)"
            for key, place in sorted(found)
        )


def _asks_a_person(outcome: Outcome) -> tuple[str, ...]:
    verdict = outcome.verdict
    if verdict is None or verdict.decision is not Decision.REVIEW:
        return ()
    return (f"a person will be asked: {verdict.reason} (rule {verdict.rule!r}); the set stops there until then",)


def _states_after(plan: Plan) -> dict[str, Json]:
    """The states that a plan would leave, by key; of a whole resource, by each of its keys."""
    if not (plan.keys and plan.keys[0].endswith("/*")):
        return dict(zip(plan.keys, plan.after, strict=True))
    was, becomes = plan.before[0] or {}, plan.after[0] or {}
    return {plan.keys[0][:-1] + name: becomes.get(name) for name in {*was, *becomes}}


def _repeat(item: PlannedChange, place: int) -> PlannedChange:
    note = f"the same as change {place + 1} of the set, and made once with that"
    return msgspec.structs.replace(item, diff=None, notes=(note,))


def _claim_in_set(ctx: EngineContext, call: Call, place: int) -> str | None:
    """What says whether two changes of a set are the same one; None if the call is not taken anyway."""
    accepted = accept(ctx, call, Started(ctx.clock.now_us(), ctx.clock.monotonic()), None)
    if isinstance(accepted, Ended) or not accepted.changes:
        return None
    tool, arguments = accepted.binding.tool, accepted.facts.arguments
    compared = arguments if accepted.parsed.compared is None else accepted.parsed.compared
    in_set = msgspec.structs.replace(call, turn="set", run="set", call_id=str(place))
    try:
        return claim_name(ctx.digest, tool, keys_of(tool, arguments), compared, in_set).name
    except Refusal:
        return None


def _overlap(key: str, other: str) -> bool:
    """Whether two keys are the same one, or one of them is the whole resource of the other."""
    return key == other or f"{key.partition('/')[0]}/*" == other or f"{other.partition('/')[0]}/*" == key


def _digests(ctx: EngineContext, states: Json) -> tuple[str, ...]:
    return () if states is None else tuple(ctx.digest(canonical(state, WHATEVER)) for state in states)


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


async def stored_as(
    ctx: EngineContext, name: str, changes: Sequence[Change | PlannedChange]
) -> list[PlannedChange] | None:
    """The stored set of that name with these changes, or None; `NotAllowed` if it has others."""
    before = await stored_set(ctx, name)
    if before is None:
        return None
    if [(item.tool, item.arguments) for item in before] != [(item.tool, item.arguments) for item in changes]:
        raise NotAllowed(f"there is another set called {name!r}; give this one a name of its own")
    return before


async def apply_set(
    run: Run, ctx: EngineContext, writer: LedgerWriter, name: str, planned: Sequence[PlannedChange], *, actor: str
) -> list[Outcome]:
    """Make the changes in order, each exactly as planned, until one does not succeed.

    What the set wrote itself has not moved: a later change of the same key is held against the version that the
    earlier one left, if that left what it was to leave; else it is refused, as it was planned on something else. The
    same change twice in a set is one change, unless its tool is repeatable: the second outcome `repeats` the first.
    """
    # Two who store a set of one name at once would each take their own for the stored one.
    wait_s = ctx.lease_us / 1e6 + _MARGIN_S
    async with hold_locks(ctx, (f"plan_set/{name}",), call=ctx.ids.new(), wait_s=wait_s):
        planned = await _stored_or_store(ctx, writer, name, planned)
    outcomes: list[Outcome] = []
    left: dict[str, str] = {}  # the versions of the keys that the set has changed, the last one last
    for place, item in enumerate(planned):
        digest = on_versions(ctx.digest, item.digest, await _expected(ctx, item, left))
        call = _call(ctx, Change(item.tool, item.arguments), writer.by, actor, turn=turn_of(name), mode=Mode.APPLY)
        outcome = await run(msgspec.structs.replace(call, plan=digest, call_id=f"{turn_of(name)}.{place}"))
        outcomes.append(_say_what_moved(item, outcome, left))
        if outcome.status is not Status.OK:
            break
        for key, version in (await _left(ctx, item, outcome)).items():
            left.pop(key, None)
            left[key] = version
    return outcomes


async def _expected(ctx: EngineContext, item: PlannedChange, left: dict[str, str]) -> tuple[str, ...]:
    """The versions that a change is to be made on: those it was planned on, or those that the set has left since."""
    found = []
    for place, (key, version) in enumerate(zip(item.keys, item.versions, strict=False)):  # sends have no versions
        last = next((other for other in reversed(left) if _overlap(key, other)), None)
        if last is None:
            found.append(version)
        else:
            found.append(left[key] if last == key else await _version_as_planned(ctx, item, place))
    return tuple(found)


async def _version_as_planned(ctx: EngineContext, item: PlannedChange, place: int) -> str:
    """The version of a key of which the set has changed a part, or the whole: what it is now, if that is as planned."""
    binding = ctx.bindings.get(item.tool)
    if binding is None or len(item.found) <= place:
        return item.versions[place]
    try:
        (now,) = await read_snapshots(binding.tool, (item.keys[place],), ctx.snapshot_reader)
    except Unreadable:
        return item.versions[place]  # the call will say so
    return now.version if _digests(ctx, [now.state])[0] == item.found[place] else _OTHERWISE


async def _left(ctx: EngineContext, item: PlannedChange, outcome: Outcome) -> dict[str, str]:
    """The version at which a change left each key, where it left what it was to leave."""
    behind = await left_behind(ctx, outcome)
    versions = dict(zip(item.keys, behind.versions, strict=False))
    if not item.leaves or behind.settled:  # whoever settled it recorded versions only where it was as planned
        return versions
    states = _digests(ctx, behind.states)
    as_planned = dict(
        zip(item.keys, (one == other for one, other in zip(item.leaves, states, strict=False)), strict=False)
    )
    return {key: version if as_planned.get(key) else _OTHERWISE for key, version in versions.items()}


def _say_what_moved(item: PlannedChange, outcome: Outcome, left: Mapping[str, str]) -> Outcome:
    """A refusal that says that the set itself has left something else than was planned."""
    moved = [key for key in item.keys if left.get(key) == _OTHERWISE]
    problem = outcome.problem
    if not moved or problem is None or problem.reason is not Reason.PLAN_MOVED:
        return outcome
    said = (
        f"an earlier change of the set left {', '.join(moved)} otherwise than planned, and this one was planned on that"
    )
    message = f"{said}; see what is there, and plan what is left as a set with another name"
    return msgspec.structs.replace(outcome, said=message, problem=msgspec.structs.replace(problem, message=message))


async def _stored_or_store(
    ctx: EngineContext, writer: LedgerWriter, name: str, planned: Sequence[PlannedChange]
) -> Sequence[PlannedChange]:
    """The set of that name as it was first stored, which is this one if there was none."""
    before = await stored_as(ctx, name, planned)
    if before is None:
        what: dict[str, Json] = {"name": name, "changes": len(planned), "state": "stored"}
        held = {"set": msgspec.to_builtins(list(planned))}
        await writer.commit(LedgerEntry("plan_set", "stored", what, held, turn_of(name)))
        return planned
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
