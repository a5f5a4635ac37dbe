"""Carrying steps out: records become calls again, and take the one path."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from interlock.changes import given_version, local_key, plan_digest
from interlock.engine import EngineContext, made_by
from interlock.errors import NotAllowed
from interlock.operations.ledger_writer import record_with_payload
from interlock.operations.made import was_made
from interlock.operations.ordering import AGAIN, BACK, Done, take_in_order
from interlock.operations.recover import read_record
from interlock.operations.standing import recorded_versions
from interlock.operations.undo import UndoStep, locked_keys
from interlock.reasons import Reason
from interlock.records import Stored
from interlock.review import waiting_message
from interlock.state import ChangeFilter, Ticket, TicketKind, TicketState, is_wildcard, state_of
from interlock.values import Call, Json, Lock, Mode, Outcome, Problem, Status

Run = Callable[[Call], Awaitable[Outcome]]
_LONGEST_RATE_WAIT_S = 60.0
_ROUNDING_S = 1.0  # a token that comes in a minute may be told to come a moment later
BY_PARTS = "made again by parts"
"""In place of the version of a whole resource in which a change was made again: nobody has seen it as a whole then."""


class Pace:
    """Makes the calls of steps no faster than rates allow: a rate says how fast, not whether."""

    def __init__(self, run: Run, ctx: EngineContext, locks: tuple[Lock, ...] = ()) -> None:
        self._run = run
        self._ctx = ctx
        self._locks = locks
        self._waiting = asyncio.Lock()

    async def take(self, step: UndoStep, call: Call) -> Outcome:
        """Make the call of a step: what was locked for its change is locked for it, unless the caller has it."""
        call = msgspec.structs.replace(call, lock_keys=step.locks, locks=self._locks)
        outcome = await self._run(call)
        if _rate_wait_s(outcome) is None:
            return outcome
        clock = self._ctx.clock
        async with self._waiting:  # one after the other, or all who wait would ask again at once
            # By the clock, not by the waits: others may take each token that comes, however soon the next one does.
            end_s = clock.monotonic() + _LONGEST_RATE_WAIT_S
            while True:
                outcome = await self._run(call)
                wait_s = _rate_wait_s(outcome)
                if wait_s is None or clock.monotonic() + wait_s > end_s + _ROUNDING_S:
                    return outcome
                await clock.sleep(wait_s)


def _rate_wait_s(outcome: Outcome) -> float | None:
    """How long to wait for a rate; None where none refused the call, or for longer than anybody waits.

    A rate of the policy denies a call before it is begun. That the other side answers "too many requests" has failed
    it: how often it is asked again is for the tool's `retry`, and what comes then is the outcome.
    """
    problem = outcome.problem
    if problem is None or problem.reason is not Reason.RATE_LIMITED or problem.retry_after_s is None:
        return None
    if outcome.status is not Status.DENIED:
        return None
    return problem.retry_after_s if problem.retry_after_s <= _LONGEST_RATE_WAIT_S else None


async def run_undo(
    run: Run,
    ctx: EngineContext,
    steps: Sequence[UndoStep],
    *,
    by: str,
    name: str,
    locks: tuple[Lock, ...] = (),
) -> list[Done]:
    """Take changes back, the last one first: those on different keys side by side, a send when all after it is back."""
    left: dict[str, str] = {}  # the versions that steps have left behind
    pace = Pace(run, ctx, locks)

    async def take(step: UndoStep) -> Outcome:
        call = msgspec.structs.replace(call_of_undo(ctx, step, by, name), plan=_looked_at(ctx, step, left))
        outcome = await pace.take(step, call)
        if await was_made(ctx, outcome):
            left.update(zip(step.keys, (await left_behind(ctx, outcome)).versions, strict=False))
        return outcome

    return await take_in_order(ctx, steps, take, BACK)


def call_of_undo(ctx: EngineContext, step: UndoStep, by: str, name: str) -> Call:
    """The call that takes a change back, in an undo of that name."""
    return Call(
        call_id=ctx.ids.new(),
        id_is_ours=True,
        tool=step.tool,
        arguments=step.arguments,
        actor=by,
        principal=by,
        mode=Mode.APPLY,
        turn=name,
        run=name,
        undoes=step.claim.key,
    )


def _looked_at(ctx: EngineContext, step: UndoStep, left: Mapping[str, str]) -> str | None:
    """The digest of the plan that was looked at, on the versions of that moment or those that earlier steps left:
    whoever changes a key in between is not overwritten. None where a person said that it is to be done all the same,
    or where there is no state to put back."""
    versions = {**step.versions, **{key: left[key] for key in step.keys if key in left}}
    if not step.versions.keys() | left.keys() >= set(step.keys) or not versions or step.arguments.get("force"):
        return None
    policy = ctx.bindings[step.tool].rules.version
    at = tuple(versions[key] for key in step.keys)
    return plan_digest(ctx.digest, step.tool, step.keys, step.arguments, policy, at)


class LeftBehind(msgspec.Struct, frozen=True):
    """What a change left: versions and states in the order of its keys, as its record has them."""

    versions: tuple[str, ...] = ()
    states: Json = None
    """None where its record does not say."""
    key_versions: dict[str, str] = {}
    """Of a whole resource: the versions of the keys in it that the change moved."""
    settled: bool = False
    """Whether somebody said later that it landed: then nobody but they saw its states."""


async def left_behind(ctx: EngineContext, outcome: Outcome) -> LeftBehind:
    """What a change left behind, from its own record or from the one that it repeats: then by what has made it again,
    where that was taken back since and stands all the same."""
    number = outcome.record
    while number is not None:
        record, whole = await record_with_payload(ctx.store, number)
        if record is None:
            return LeftBehind()
        repeats = record.content().repeats
        if repeats is None:
            moved, settled = whole.get("versions") or {}, record.kind == "settle"
            behind = LeftBehind(recorded_versions(record), whole.get("after"), moved, settled)
            return behind if number == outcome.record else await _left_by_chain(ctx, number, behind)
        number = repeats
    return LeftBehind()


async def _left_by_chain(ctx: EngineContext, number: int, behind: LeftBehind) -> LeftBehind:
    """What the change of a record left, with what each change left that has made it again since."""
    ctx.at("left.chain")
    for claim in await ctx.store.claims(ChangeFilter(record=number)):
        for again in (await made_by(ctx, claim))[1:]:
            record, whole = (None, {}) if again.record is None else await record_with_payload(ctx.store, again.record)
            versions, states = () if record is None else recorded_versions(record), whole.get("after") or ()
            at = dict(zip(again.keys, versions, strict=False))
            held = {local_key(key): state for key, state in zip(again.keys, states, strict=False)}
            behind = _made_again(behind, claim.keys, {key: at.get(key, "") for key in again.keys}, held)
    return behind


def _made_again(behind: LeftBehind, keys: Sequence[str], at: Mapping[str, str], held: Mapping[str, Json]) -> LeftBehind:
    """What a change left of its keys, some of which are now at the versions and states that another one left."""
    known = dict(zip(keys, behind.versions, strict=False))
    versions = tuple(
        BY_PARTS if is_wildcard(key) and key not in at else at.get(key, known.get(key, "")) for key in keys
    )
    given = {local_key(key): given_version(version) or "" for key, version in at.items()}
    states = behind.states
    if states is not None:
        names = [local_key(key) for key in keys]
        states = [
            _with_parts(state, held) if is_wildcard(key) else held.get(name, state)
            for key, name, state in zip(keys, names, states, strict=True)
        ]
    moved = {**behind.key_versions, **given} if behind.key_versions else {}
    return msgspec.structs.replace(behind, versions=versions, states=states, key_versions=moved)


def _with_parts(whole: Json, parts: Mapping[str, Json]) -> Json:
    """The states of a whole resource, with those of some keys in it as they are now; None is not there."""
    return {name: state for name, state in {**(whole or {}), **parts}.items() if state is not None}


async def run_replay(
    run: Run, ctx: EngineContext, steps: Sequence[UndoStep], *, principal: str, locks: tuple[Lock, ...] = ()
) -> list[Done]:
    """Try failed changes again with their own keys, and undone ones as the next generation, in their order."""
    pace = Pace(run, ctx, locks)

    async def take(step: UndoStep) -> Outcome:
        return await pace.take(step, await call_of_replay(ctx, step, principal))

    return await take_in_order(ctx, steps, take, AGAIN)


async def resume(run: Run, ctx: EngineContext, name: str, locks: tuple[Lock, ...] = ()) -> Outcome:
    """Make the call that waited for a ticket; whatever the ticket says, the call's outcome says it.

    What was locked for it when it parked is locked for it again, unless the caller has it (`locks`).

    Where people have yet to decide nothing is made and nothing recorded: the call waits as it did, and was not refused.
    """
    ctx.at("resume.read")
    ticket = await ctx.store.ticket(name)
    if ticket is None:
        raise NotAllowed(f"there is no ticket {name!r}; see interlock review list")
    call = await call_of_ticket(ctx, ticket)
    if state_of(ticket, await ctx.store.now_us(ctx.clock.now_us())) is TicketState.OPEN:
        problem = Problem(reason=Reason.NEEDS_REVIEW, message=waiting_message(ticket))
        said, waits = problem.message, Status.PARKED
        return Outcome(ticket.call, ticket.tool, waits, said=said, problem=problem, ticket=name)
    return await run(msgspec.structs.replace(call, ticket=name, locks=locks))


async def call_of_ticket(ctx: EngineContext, ticket: Ticket) -> Call:
    """The call that waits for a ticket; `NotAllowed` if it cannot be made from its record."""
    name = ticket.id
    if ticket.kind is not TicketKind.CHANGE or ticket.record is None:
        about = "whether an answer may leave" if ticket.kind is TicketKind.ANSWER else "whether an effect landed"
        raise NotAllowed(f"ticket {name!r} asks {about}; there is no call to make")
    record, whole = await read_record(ctx, ticket.record)
    if record is None:
        raise NotAllowed(f"the call behind ticket {name!r} is not in the ledger; run audit verify")
    content = record.content()
    if content.payload and "arguments" not in whole:
        raise NotAllowed(f"the arguments behind ticket {name!r} have been deleted; propose the call again")
    return _recorded_call(record, whole, whole.get("asked") or whole.get("arguments", content.arguments))


async def call_of_replay(ctx: EngineContext, step: UndoStep, principal: str) -> Call:
    """The call behind the intent of a step, for the principal who has it made again."""
    assert step.claim.intent is not None
    record, whole = await read_record(ctx, step.claim.intent)
    assert record is not None
    call = _recorded_call(record, whole, whole.get("asked") or step.arguments)
    return msgspec.structs.replace(call, principal=principal, replays=True)


def _recorded_call(record: Stored, whole: Mapping[str, Json], arguments: Json) -> Call:
    """The call of a record, with everything that decides which change it is and whose budgets it spends."""
    content = record.content()
    change = content.change
    return Call(
        call_id=record.call,
        tool=record.tool,
        arguments=arguments,
        actor=record.actor,
        principal=content.principal,
        mode=Mode.APPLY,
        on_behalf_of=content.on_behalf_of,
        turn=record.turn,
        run=content.run,
        parent=content.parent,
        evidence=tuple(whole.get("evidence", content.evidence)),
        confidence=content.confidence,
        budgets=content.budgets,
        root_turn=content.root_turn,
        id_is_ours=change is not None and change.id_is_ours,
        claim=None if change is None else change.claim,
        undoes=None if change is None else change.undoes,
        replays=change is not None and change.replays,
        lock_keys=locked_keys(record, whole),
        question=whole.get("question"),
        constants=tuple(whole.get("constants", ())),
        edited=dict(whole.get("edited", {})),
        parties=tuple(whole.get("parties", ())),
    )
