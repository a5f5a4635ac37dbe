"""Carrying steps out: records become calls again, and take the one path."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from interlock.changes import plan_digest
from interlock.engine import EngineContext, hold_locks
from interlock.errors import NotAllowed
from interlock.operations.ledger_writer import record_with_payload
from interlock.operations.recover import read_record
from interlock.operations.standing import recorded_versions
from interlock.operations.undo import UndoStep
from interlock.reasons import Reason
from interlock.records import Stored
from interlock.review import waiting_message
from interlock.state import TicketKind, TicketState, state_of
from interlock.values import Call, Json, Mode, Outcome, Problem, Status

Run = Callable[[Call], Awaitable[Outcome]]
# Bounded, so that an undo of thousands does not hold thousands of calls open.
_AT_ONCE = 16
_WAIT_S = 30.0


async def run_undo(
    run: Run, ctx: EngineContext, steps: Sequence[UndoStep], *, by: str, name: str
) -> list[Outcome | None]:
    """Take changes back in their order; those on different keys side by side. None for a step that has no call."""

    def call(step: UndoStep, left: Mapping[str, str]) -> Call:
        return Call(
            call_id=ctx.ids.new(),
            id_is_ours=True,
            plan=_looked_at(ctx, step, left),
            tool=step.tool,
            arguments=step.arguments,
            actor=by,
            principal=by,
            mode=Mode.APPLY,
            turn=name,
            run=name,
            undoes=f"{step.claim.name}.{step.claim.generation}",
        )

    return await _in_order(run, ctx, steps, call)


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


async def versions_after(ctx: EngineContext, outcome: Outcome) -> tuple[str, ...]:
    """The versions that a change left behind, from its own record or from the one that it repeats."""
    number = outcome.record
    while number is not None:
        record, _whole = await record_with_payload(ctx.store, number)
        if record is None:
            return ()
        repeats = record.content().repeats
        if repeats is None:
            return recorded_versions(record)
        number = repeats
    return ()


async def run_replay(
    run: Run, ctx: EngineContext, steps: Sequence[UndoStep], *, principal: str
) -> list[Outcome | None]:
    """Try failed changes again with their own keys, and undone ones as the next generation."""
    again = {step.claim.name: await _call_of_intent(ctx, step, principal) for step in steps if step.tool}

    def call(step: UndoStep, _left: Mapping[str, str]) -> Call:
        return again[step.claim.name]

    return await _in_order(run, ctx, steps, call)


async def resume(run: Run, ctx: EngineContext, name: str) -> Outcome:
    """Make the call that waited for a ticket; whatever the ticket says, the call's outcome says it.

    Where people have yet to decide nothing is made and nothing recorded: the call waits as it did, and was not refused.
    """
    ctx.at("resume.read")
    ticket = await ctx.store.ticket(name)
    if ticket is None:
        raise NotAllowed(f"there is no ticket {name!r}; see interlock review list")
    if ticket.kind is not TicketKind.CHANGE or ticket.record is None:
        about = "whether an answer may leave" if ticket.kind is TicketKind.ANSWER else "whether an effect landed"
        raise NotAllowed(f"ticket {name!r} asks {about}; there is no call to resume")
    if state_of(ticket, ctx.clock.now_us()) is TicketState.OPEN:
        problem = Problem(reason=Reason.NEEDS_REVIEW, message=waiting_message(ticket))
        said, waits = problem.message, Status.PARKED
        return Outcome(ticket.call, ticket.tool, waits, said=said, problem=problem, ticket=name)
    record, whole = await read_record(ctx, ticket.record)
    if record is None:
        raise NotAllowed(f"the call behind ticket {name!r} is not in the ledger; run audit verify")
    content = record.content()
    if content.payload and "arguments" not in whole:
        raise NotAllowed(f"the arguments behind ticket {name!r} have been deleted; propose the call again")
    call = _recorded_call(record, whole, whole.get("asked") or whole.get("arguments", content.arguments))
    return await run(msgspec.structs.replace(call, ticket=name))


async def _call_of_intent(ctx: EngineContext, step: UndoStep, principal: str) -> Call:
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
    )


async def _in_order(
    run: Run, ctx: EngineContext, steps: Sequence[UndoStep], call: Callable[[UndoStep, Mapping[str, str]], Call]
) -> list[Outcome | None]:
    """Steps that share a key one after the other, the others side by side."""
    places, last = asyncio.Semaphore(_AT_ONCE), dict[str, asyncio.Task[Outcome | None]]()
    left: dict[str, str] = {}  # the versions that steps have left behind

    async def work(step: UndoStep, after: set[asyncio.Task[Outcome | None]]) -> Outcome | None:
        if after:
            await asyncio.wait(after)
            # What an earlier step has not put back is not what this one was planned on.
            refused = [found for task in after if (found := task.result()) is not None and not found.ok]
            if refused:
                return refused[0]
        async with places:
            made = call(step, left)
            if not step.locks:
                outcome = await run(made)
            else:
                async with hold_locks(ctx, step.locks, call=made.call_id, wait_s=_WAIT_S) as locks:
                    outcome = await run(msgspec.structs.replace(made, locks=locks))
            if outcome.ok:
                left.update(zip(step.keys, await versions_after(ctx, outcome), strict=False))
            return outcome

    tasks: list[asyncio.Task[Outcome | None] | None] = []
    for step in steps:
        if not step.tool:
            tasks.append(None)
            continue
        task = asyncio.ensure_future(work(step, {last[key] for key in step.keys if key in last}))
        last.update(dict.fromkeys(step.keys, task))
        tasks.append(task)
    try:
        return [None if task is None else await task for task in tasks]
    except BaseException:  # what has not begun is not begun; what has is waited for, as on the path itself
        begun = [task for task in tasks if task is not None]
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
        raise
