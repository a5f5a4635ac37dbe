"""Plan sets: changes that belong together, stored before the first effect; a rerun goes on where the last one ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from interlock.canonical import WHATEVER, Refusal, canonical
from interlock.changes import (
    Unreadable,
    claim_name,
    given_version,
    keys_of,
    on_versions,
    read_snapshots,
    states_by_key,
)
from interlock.engine import EngineContext, hold_locks
from interlock.engine.admit import accept
from interlock.engine.context import Ended, Started
from interlock.operations.execute import BY_PARTS, LeftBehind, Run, left_behind
from interlock.operations.ledger_writer import LedgerWriter
from interlock.operations.made import was_made
from interlock.operations.stored_sets import Change, PlannedChange, Seen, call_id_of, stored_or_store, turn_of
from interlock.operations.undone_steps import undone_calls, undone_message, undone_outcome
from interlock.reasons import Reason
from interlock.state import overlap, overlapping
from interlock.values import NOT_THERE, Call, Decision, Effect, Json, Mode, Outcome, Plan, Status

_MARGIN_S = 5.0
"""For whoever stores a set of the same name, beyond the lease that one who died doing so leaves behind."""
_OTHERWISE = "otherwise than planned"
"""Stands for the version of a key that an earlier change of the set has not left as planned: no key has it."""


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
        since = (later for key in item.keys for other, later in self._touched.items() if overlap(key, other))
        return None if writes and any(later > place for later in since) else place

    def add(self, change: Change, claim: str | None, outcome: Outcome, plan: Plan) -> None:
        """One more change is planned."""
        place, stateful = len(self.planned), self._ctx.bindings[change.tool].tool.resource is not None
        notes = (*_asks_a_person(outcome), *_clamps(outcome), *self._planned_without(plan.keys))
        self.planned.append(
            PlannedChange(
                change.tool,
                change.arguments,
                plan.digest,
                plan.keys,
                plan.versions,
                plan.diff,
                notes,
                found=_note_seen(self._ctx, plan.keys, plan.before, _given_versions(plan)),
                leaves=_digests(self._ctx, plan.after),
                turn=change.turn,
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
        found = {(key, place) for key in keys for other, place in self._unsaid.items() if overlap(key, other)}
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


def _clamps(outcome: Outcome) -> tuple[str, ...]:
    rewrites = () if outcome.verdict is None else outcome.verdict.rewrites
    return tuple(f"{item.field}: {item.before!r} → {item.after!r} (rule {item.rule!r})" for item in rewrites)


def _states_after(plan: Plan) -> dict[str, Json]:
    """The states that a plan would leave, by key; of a whole resource, by each of its keys."""
    becomes = states_by_key(plan.keys, plan.after)
    return {key: becomes.get(key) for key in {**states_by_key(plan.keys, plan.before), **becomes}}


def _repeat(item: PlannedChange, place: int) -> PlannedChange:
    note = f"the same as change {place + 1} of the set, and made once with that"
    return msgspec.structs.replace(item, diff=None, notes=(note,))


def _claim_in_set(ctx: EngineContext, call: Call, place: int) -> str | None:
    """What says whether two changes of a set are the same one; None if the call is not taken anyway."""
    accepted = accept(ctx, call, Started(ctx.clock.now_us(), ctx.clock.monotonic()), None)
    if isinstance(accepted, Ended) or not accepted.changes:
        return None
    tool, arguments = accepted.binding.tool, accepted.facts.arguments
    in_set = msgspec.structs.replace(call, turn="set", run="set", call_id=str(place))
    try:
        return claim_name(ctx.digest, tool, keys_of(tool, arguments), accepted.parsed.by_value(), in_set).name
    except Refusal:
        return None


def _given_versions(plan: Plan) -> dict[str, str]:
    """The versions that its resource gives of what a plan was made on, by key."""
    whole = {plan.keys[0][:-1] + name: version for name, version in plan.key_versions.items()}
    return whole or _given_of(plan.keys, plan.versions)


def _given_of(keys: Sequence[str], versions: Sequence[str]) -> dict[str, str]:
    pairs = zip(keys, map(given_version, versions), strict=False)
    return {key: version for key, version in pairs if version not in (None, NOT_THERE)}


def _note_seen(ctx: EngineContext, keys: Sequence[str], states: Json, versions: Mapping[str, str]) -> dict[str, Seen]:
    held = states_by_key(keys, states) if states else {}  # a send has none
    return {key: Seen(_digest(ctx, state), versions.get(key)) for key, state in held.items()}


def _digest(ctx: EngineContext, state: Json) -> str:
    return ctx.digest(canonical(state, WHATEVER))


def _digests(ctx: EngineContext, states: Json) -> tuple[str, ...]:
    return () if states is None else tuple(ctx.digest(canonical(state, WHATEVER)) for state in states)


async def apply_set(
    run: Run, ctx: EngineContext, writer: LedgerWriter, name: str, planned: Sequence[PlannedChange], *, actor: str
) -> list[Outcome]:
    """Make the changes in order, each exactly as planned, until one is not made, or is made otherwise than the policy
    wants. One that was made goes on, also where its answer is empty or unusable: it is not made by asking again.

    What the set wrote itself has not moved: a later change of the same key is held against the version that the
    earlier one left, if that left what it was to leave; else it is refused, as it was planned on something else. The
    same change twice in a set is one change, unless its tool is repeatable: the second outcome `repeats` the first.
    A change that was made and taken back since stops the set too: nobody has said that it is to be made again.
    """
    # Two who store a set of one name at once would each take their own for the stored one.
    wait_s = ctx.lease_us / 1e6 + _MARGIN_S
    async with hold_locks(ctx, (f"plan_set/{name}",), call=ctx.ids.new(), wait_s=wait_s):
        planned = await stored_or_store(ctx, writer, name, planned, actor)
    outcomes: list[Outcome] = []
    so_far, turn = _SoFar(ctx), turn_of(name)
    undone = await undone_calls(ctx, turn)
    for place, item in enumerate(planned):
        call_id = call_id_of(name, place)
        digest = on_versions(ctx.digest, item.digest, await so_far.expected_versions(item))
        call = _call(ctx, Change(item.tool, item.arguments, item.turn), writer.by, actor, turn=turn, mode=Mode.APPLY)
        outcome = None
        if call_id not in undone:
            outcome = await run(msgspec.structs.replace(call, plan=digest, call_id=call_id))
            if outcome.undone:  # while the set was on its way
                undone = await undone_calls(ctx, turn)
        if outcome is None or call_id in undone:
            outcome = undone_outcome(call_id, undone[call_id], undone_message(undone[call_id], turn, place))
        outcomes.append(so_far.say_what_moved(item, outcome))
        if _is_wrong(outcome) or not await was_made(ctx, outcome):
            break
        so_far.add(place, item, await left_behind(ctx, outcome))
    return outcomes


def _is_wrong(outcome: Outcome) -> bool:
    """Whether a change was made otherwise than planned, and the policy calls that a failure: what follows is not made
    on it."""
    return outcome.problem is not None and outcome.problem.reason is Reason.NOT_AS_PLANNED


class _SoFar:
    """What a set has left of the keys that it has changed, by its records."""

    def __init__(self, ctx: EngineContext) -> None:
        self._ctx = ctx
        self._absent = Seen(_digest(ctx, None))
        self._last: dict[str, int] = {}
        self._versions: dict[str, str] = {}
        self._seen: dict[str, Seen] = {}

    async def expected_versions(self, item: PlannedChange) -> tuple[str, ...]:
        """The versions that a change is to be made on: those it was planned on, or those that the set has left."""
        found = []
        for key, version in zip(item.keys, item.versions, strict=False):  # sends have no versions
            shared = overlapping(key, self._last)
            if not shared:
                found.append(version)
            elif max(shared, key=self._last.__getitem__) == key and self._versions[key] != BY_PARTS:
                found.append(self._versions[key])
            else:
                found.append(await self._version_now(item, key, version))
        return tuple(found)

    async def _version_now(self, item: PlannedChange, key: str, planned: str) -> str:
        """The version of a key of which the set has changed a part, or the whole: what it is now, if all of it is what
        the set has left, or else what it was when the change was planned."""
        binding = self._ctx.bindings.get(item.tool)
        if binding is None or not item.found:
            return planned
        try:
            (now,) = await read_snapshots(binding.tool, (key,), self._ctx.snapshot_reader)
        except Unreadable:
            return planned  # the call will say so
        given = {key[:-1] + name: version for name, version in now.key_versions.items()}
        is_now = _note_seen(self._ctx, (key,), [now.state], given or _given_of((key,), (now.version,)))
        names = {*is_now, *(name for name in (*item.found, *self._seen) if overlap(name, key))}
        same = all(is_now.get(name, self._absent).is_same(self._find_wanted(item, name)) for name in names)
        return now.version if same else _OTHERWISE

    def _find_wanted(self, item: PlannedChange, name: str) -> Seen:
        planned = item.found.get(name, self._absent)
        left = self._seen.get(name, planned)
        return left if left.digest is not None else Seen(planned.digest, left.version)

    def add(self, place: int, item: PlannedChange, behind: LeftBehind) -> None:
        """One more change is made: what it left, as far as its record says, and as far as that is as planned."""
        self._last.update(dict.fromkeys(item.keys, place))
        pairs = zip(item.keys, item.leaves, _digests(self._ctx, behind.states), strict=False)
        as_planned = {key for key, planned, left in pairs if planned == left}
        if not item.leaves or behind.settled:
            as_planned.update(item.keys)
        versions = dict(zip(item.keys, behind.versions, strict=False))
        self._versions |= {key: versions.get(key, _OTHERWISE) if key in as_planned else _OTHERWISE for key in item.keys}
        if behind.settled:  # whoever settled it recorded versions only where it was as planned
            self._seen |= {name: Seen(None) for name in item.found}
            return
        given = {item.keys[0][:-1] + name: version for name, version in behind.key_versions.items()}
        left = _note_seen(self._ctx, item.keys, behind.states, given or _given_of(item.keys, behind.versions))
        for name in {*item.found, *left}:
            was, became = self._find_wanted(item, name), left.get(name, self._absent)
            # A change of a whole resource names the versions that it moved: the others are what they were.
            unmoved = name not in item.keys and became.version is None and became.digest == was.digest
            self._seen[name] = was if unmoved else became

    def say_what_moved(self, item: PlannedChange, outcome: Outcome) -> Outcome:
        """A refusal that says that the set itself has left something else than was planned."""
        moved = [key for key in item.keys if self._versions.get(key) == _OTHERWISE]
        problem = outcome.problem
        if not moved or problem is None or problem.reason is not Reason.PLAN_MOVED:
            return outcome
        said = f"an earlier change of the set left {', '.join(moved)} otherwise than planned"
        way_on = "see what is there, and plan what is left as a set with another name"
        message = f"{said}, and this one was planned on that; {way_on}"
        return msgspec.structs.replace(outcome, said=message, problem=msgspec.structs.replace(problem, message=message))


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
        found_in=change.turn,
    )
