"""`Operations`: what an operator does with a runtime's records, each change of it as a call on the one path."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TypedDict, Unpack

import msgspec

from interlock.canonical import did_you_mean
from interlock.engine import Engine, EngineContext
from interlock.errors import ConfigError
from interlock.operations.approvals import Look, decide_ticket, decider, decision_state, sweep
from interlock.operations.edits import edit_call
from interlock.operations.execute import call_of_replay, call_of_undo, resume, run_replay, run_undo
from interlock.operations.foresight import foresee
from interlock.operations.halts import halt, refuse_odd_scope, unhalt
from interlock.operations.journal import Entry, journal
from interlock.operations.key_states import KeyState, changed_keys, key_states
from interlock.operations.ledger_writer import LedgerWriter
from interlock.operations.ordering import AGAIN, BACK, Done, hold_back
from interlock.operations.plan_sets import apply_set, plan_set
from interlock.operations.recover import Recovered, recover, under_way, versions_left
from interlock.operations.replay import replay_steps
from interlock.operations.retention import Erasure, Expiry, Target, forget, plan_forget, plan_purge, purge
from interlock.operations.shadow import ShadowComparison, compare
from interlock.operations.stored_sets import Change, PlannedChange, note_undone, stored_as
from interlock.operations.undo import UndoStep, undo_steps
from interlock.principals import check_vouched
from interlock.state import ChangeFilter, Ticket
from interlock.values import Json, Lock, Outcome
from interlock.wrong_values import refuse_unknown

Locks = Sequence[Lock]
_PREVIEW = "undo"
"""The turn and run of an undo that is only looked at."""


class Changes(TypedDict, total=False):
    """Which changes: everything that is named must hold."""

    turn: str | None
    run: str | None
    key: str | None
    since_us: int | None
    record: int | None


class Operations:
    """Undo, replay, recover, plan sets, journal, tickets, halts and deletions of one runtime."""

    def __init__(self, engine: Engine, principal: str, token: str | None = None) -> None:
        self._engine = engine
        self._run = engine.run
        self._principal = principal
        self._token = token

    @property
    def _ctx(self) -> EngineContext:
        """What the runtime is put together from now: its policy and its tools may be replaced."""
        return self._engine.context

    async def undo_plan(self, *, force: bool = False, **which: Unpack[Changes]) -> Sequence[UndoStep]:
        """How those changes would be taken back, last change first, and which could not be; nothing is done."""
        ctx = self._ctx
        steps = await undo_steps(ctx, _require_filter(which, "undo"), force=force)
        calls = [None if step.obstacle else call_of_undo(ctx, step, self._principal, _PREVIEW) for step in steps]
        return hold_back(ctx, await foresee(ctx, list(zip(steps, calls, strict=True))), BACK)

    async def undo(
        self, *, force: bool = False, by: str | None = None, locks: Locks = (), **which: Unpack[Changes]
    ) -> Sequence[Done]:
        """Take those changes back, each as a call on the path, the last one first.

        What was locked for a change is locked again for taking it back, unless the caller has it (`locks`).
        Beside a step for which no call was made stands None; its `obstacle` says why.
        """
        ctx, name, held = self._ctx, f"undo-{self._ctx.ids.new()}", _handed_over(locks)
        steps = await undo_steps(ctx, _require_filter(which, "undo"), force=force)
        steps, who = hold_back(ctx, steps, BACK), self.writer(by).by
        return tuple(await run_undo(self._run, ctx, steps, by=who, name=name, locks=held))

    async def replay_plan(self, run: str | None = None, *, turn: str | None = None) -> Sequence[UndoStep]:
        """What of a run or turn would be made again, and what could not be; nothing is done."""
        ctx, who = self._ctx, self._principal
        steps = await replay_steps(ctx, _require_filter(Changes(run=run, turn=turn), "replay"))
        calls = [None if step.obstacle else await call_of_replay(ctx, step, who) for step in steps]
        return hold_back(ctx, await foresee(ctx, list(zip(steps, calls, strict=True))), AGAIN)

    async def replay(self, run: str | None = None, *, turn: str | None = None, locks: Locks = ()) -> Sequence[Done]:
        """Make what failed in a run again with its own keys, and what was undone as the next generation.

        What was locked for a change is locked for it again, unless the caller has it (`locks`).
        """
        held = _handed_over(locks)
        which = _require_filter(Changes(run=run, turn=turn), "replay")
        steps = hold_back(self._ctx, await replay_steps(self._ctx, which), AGAIN)
        return tuple(await run_replay(self._run, self._ctx, steps, principal=self._principal, locks=held))

    async def recover(self, *, by: str | None = None) -> tuple[Recovered, ...]:
        """Settle what dead processes left behind, and expire and escalate the tickets that are due."""
        writer = self.writer(by)
        await sweep(writer)
        return await recover(self._ctx, writer)

    async def under_way(self) -> tuple[Recovered, ...]:
        """Changes that `recover` leaves alone as their leases still run: until then nobody knows who lives."""
        return await under_way(self._ctx)

    async def plan_set(
        self, changes: Sequence[Change], *, actor: str, name: str | None = None
    ) -> tuple[Sequence[PlannedChange], Outcome | None]:
        """Plan changes that belong together, each on what those before it would leave.

        Beside the plans, the outcome of the first that cannot be planned. A set that was stored under the name is not
        planned anew: it goes on as it was planned then, and `notes` say where it would stop. `NotAllowed` if it was
        begun by another actor.
        """
        stored = None if name is None else await stored_as(self._ctx, name, changes, actor)
        if name is not None and stored is not None:
            return await note_undone(self._ctx, name, stored), None
        self._ctx.ruleset.named.check_actor(actor)
        return await plan_set(self._run, self._ctx, changes, by=self._principal, actor=actor)

    async def apply_set(self, name: str, planned: Sequence[PlannedChange], *, actor: str) -> Sequence[Outcome]:
        """Make a planned set, exactly as planned and in order; run again by its actor, it goes on where it ended."""
        self._ctx.ruleset.named.check_actor(actor)
        return await apply_set(self._run, self._ctx, self.writer(), name, planned, actor=actor)

    async def shadow(self, *, run: str | None = None, since_us: int | None = None) -> Sequence[ShadowComparison]:
        """Shadow plans against what then really happened."""
        return await compare(self._ctx, run=run, since_us=since_us)

    def journal(self, **which: Unpack[Changes]) -> AsyncIterator[Entry]:
        """What was changed, and for a turn also what was planned or refused, with snapshots and evidence."""
        return journal(self._ctx, _filter(which, "journal"))

    async def decide(
        self,
        ticket: str,
        *,
        approve: bool,
        by: str | None = None,
        token: str | None = None,
        reason: str = "",
        vouch: Sequence[int] = (),
    ) -> int:
        """Approve or deny a ticket; the id of the decision's record.

        `vouch`: records of results of its turn of which whoever approves says that they are meant, for the rest of it.
        As whoever runs this, as the service of a token, or as somebody whom the application has authenticated (`by`),
        where the policy takes its word for that (`[review] vouched`).
        """
        state = decision_state(approve)
        return await decide_ticket(await self.decider(ticket, by, token), ticket, state, reason, self.look, vouch)

    async def edit(
        self,
        ticket: str,
        arguments: Mapping[str, Json],
        *,
        by: str | None = None,
        token: str | None = None,
        reason: str = "",
    ) -> Outcome:
        """Refuse what a ticket asks, and make its call with these arguments in place of its own.

        Whoever edits it, as in `decide`, is who it is made for from then on: their values come from a person, and where
        it is to be reviewed again, somebody else decides.
        """
        return await self.edit_as(await self.decider(ticket, by, token), ticket, arguments, reason)

    async def edit_as(
        self, writer: LedgerWriter, ticket: str, arguments: Mapping[str, Json], reason: str = ""
    ) -> Outcome:
        """The same, by whoever is known already to be who they say."""
        return await edit_call(self._run, self._ctx, writer, ticket, arguments, reason)

    @property
    def look(self) -> Look:
        """How a change is looked at of which somebody says whether it landed."""
        return Look(partial(versions_left, self._ctx), partial(changed_keys, self._ctx))

    async def key_states(self, ticket: str) -> tuple[KeyState, ...]:
        """Of an effect of which people are asked whether it landed: what each of its keys was before, was to become
        and is now, redacted. `NotAllowed` says why that cannot be seen."""
        return await key_states(self._ctx, ticket)

    async def decider(self, ticket: str, by: str | None, token: str | None) -> LedgerWriter:
        """What writes the decision of whoever may decide a ticket."""
        ctx = self._ctx
        ctx.at("decide.who")
        if by in (None, self._principal):
            token = token or self._token
        who = await decider(ctx.store, ticket, self._principal, by, token, ctx.clock.now_us())
        writer = LedgerWriter(who, ctx.store, ctx.clock, ctx.ids, ctx.faults)
        writer.proof = None if token is None else {"token": token.strip()}
        return writer

    async def sweep(self) -> tuple[Ticket, ...]:
        """Expire, escalate and remind of the tickets that are due; those tickets, for whoever tells people."""
        return await sweep(self.writer())

    async def resume(self, ticket: str, *, locks: Locks = ()) -> Outcome:
        """Make the call that waits for a ticket; if it is not approved (yet), the outcome says why.

        What was locked for it when it parked is locked for it again, unless the caller has it (`locks`).
        """
        return await resume(self._run, self._ctx, ticket, _handed_over(locks))

    async def purge_plan(self, *, older_than: timedelta | None = None, tool: str | None = None) -> Erasure:
        """Which payloads are older than that, or than the retention of their tools; nothing is deleted."""
        return await plan_purge(self._ctx.store, self._expiry(older_than, tool), self._ctx.clock.now_us())

    async def purge(
        self, *, older_than: timedelta | None = None, tool: str | None = None, by: str | None = None
    ) -> Erasure:
        """Delete those payloads, with a record of it; what is in doubt, asked or still to be undoable is kept."""
        self._ctx.kept_states.forget()
        return await purge(self.writer(by), self._expiry(older_than, tool))

    async def forget_plan(
        self, *, key: str | None = None, actor: str | None = None, record: int | None = None
    ) -> Erasure:
        """Which payloads are about a key, by an actor, or of the call of a record; nothing is deleted."""
        target = Target(key=key, actor=actor, record=record)
        return await plan_forget(self._ctx.store, target, self._ctx.clock.now_us())

    async def forget(
        self,
        *,
        key: str | None = None,
        actor: str | None = None,
        record: int | None = None,
        reason: str,
        by: str | None = None,
    ) -> Erasure:
        """Delete those payloads, with a record of it. What stands in the records themselves stays."""
        self._ctx.kept_states.forget()
        return await forget(self.writer(by), Target(key=key, actor=actor, record=record), reason)

    def _expiry(self, older_than: timedelta | None, tool: str | None) -> Expiry:
        tools = (binding.tool for binding in self._ctx.bindings.values())
        kept = {tool.name: tool.retention for tool in tools if tool.retention is not None}
        return Expiry(retention=kept, older_than=older_than, tool=tool)

    async def halt(self, scope: str, *, reason: str = "", by: str | None = None) -> int:
        """Stop a scope (all, tool:NAME, actor:NAME, run:NAME) in every process within a second."""
        self._refuse_unknown_tool(scope)
        number = await halt(self.writer(by), scope, reason)
        await self._ctx.halts.refresh()
        return number

    async def unhalt(self, scope: str, *, by: str | None = None) -> int:
        """Let a halted scope run again."""
        number = await unhalt(self.writer(by), scope)
        await self._ctx.halts.refresh()
        return number

    def _refuse_unknown_tool(self, scope: str) -> None:
        """A kill switch that stops nothing would be believed."""
        refuse_odd_scope(scope)
        name = scope.removeprefix("tool:")
        if name != scope and name not in self._ctx.bindings:
            raise ConfigError(f"there is no tool {name!r} to halt{did_you_mean(name, self._ctx.bindings)}")

    def writer(self, by: str | None = None) -> LedgerWriter:
        """What writes a person's or service's decisions into the ledger."""
        ctx = self._ctx
        if by is not None:
            check_vouched(by, self._principal)
            ctx.ruleset.named.refuse_respelled(by)
        return LedgerWriter(by or self._principal, ctx.store, ctx.clock, ctx.ids, ctx.faults)


def _handed_over(locks: Locks) -> tuple[Lock, ...]:
    if not isinstance(locks, list | tuple) or not all(isinstance(lock, Lock) for lock in locks):
        raise ConfigError(f"locks= is what `async with runtime.lock(...) as locks` gives, not {locks!r}")
    return tuple(locks)


def _filter(which: Changes, what: str) -> ChangeFilter:
    refuse_unknown(f"Operations.{what}", which, Changes.__annotations__)
    try:
        return msgspec.convert(which, ChangeFilter, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"{what} which changes? {error}; record is the number of a record, since_us microseconds since 1970,"
            " turn, run and key are texts"
        ) from None


def _require_filter(which: Changes, what: str) -> ChangeFilter:
    made = _filter(which, what)
    if made == ChangeFilter():
        raise ConfigError(f"{what} which changes? name record=, turn=, run=, key= or since_us=")
    return made
