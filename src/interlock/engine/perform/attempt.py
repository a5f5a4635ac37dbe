"""One call inside PERFORM: its place in line, what it sets aside, and its attempts with timeout and retry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import msgspec

from interlock.budget import by_scope, reservations, settlements, tokens
from interlock.changes import Unreadable, contradicts_nothing, local_key, planned_versions, read_snapshots
from interlock.engine.context import Ended, EngineContext, Prepared, refuse
from interlock.engine.heart import Beat
from interlock.engine.perform.readings import failure_reading
from interlock.engine.perform.threads import Threads
from interlock.engine.redaction import held_by
from interlock.errors import (
    InDoubt,
    InterlockError,
    InvalidInput,
    NothingLanded,
    Permanent,
    RateLimited,
    StoreError,
    StoreSilent,
    TimedOut,
    ToolError,
    Transient,
    from_exception,
)
from interlock.reasons import Reason, RefusalKind
from interlock.records import Charge
from interlock.resilience import Expired, next_wait
from interlock.state import halt_message
from interlock.tools import Reading, Tool, read_result, read_short, redactor_of
from interlock.tools.tracebacks import log_traceback
from interlock.tools.wire import Wire, follow_wire, leave_wire
from interlock.transitions import Batch, Refused, Reserve, SpendTicket, Transition
from interlock.values import Attempt, Call, Context, Effect, Status, Trust, shorten

IN_THE_RESOURCE = "but what it was to change has changed meanwhile"
ON_THE_WIRE = "but a request or write of this call may have landed"
_LONGEST_SAID = 500
_TRUSTED = Trust.TRUSTED  # looked up once: on Python 3.11 a member of an enum costs as much as a call
_REFUSED = {
    RefusalKind.BUDGET: Reason.BUDGET_EXHAUSTED,
    RefusalKind.RATE: Reason.RATE_LIMITED,
    RefusalKind.TICKET: Reason.NOT_APPROVED,
    RefusalKind.REUSED: Reason.CALL_ID_REUSED,
    RefusalKind.HALTED: Reason.HALTED,
    RefusalKind.LEASED: Reason.BUSY,
    RefusalKind.CLAIMED: Reason.IN_PROGRESS,
    RefusalKind.IN_DOUBT: Reason.BLOCKED,
    RefusalKind.LOST: Reason.LEASE_LOST,
}


class Work:
    """One call inside PERFORM: its reservations, its place, its attempts so far."""

    tokens: dict[str, int] = {}
    _versions: dict[str, str] | None = None
    wire: Wire | None = None
    """What its attempts have sent, where it changes something."""
    _threads: Threads | None = None
    _release_slot: Callable[[], None] | None = None

    # What a read asks for is set here: what only the class has is looked for in the object first, at three times the
    # price.
    def __init__(self, ctx: EngineContext, prepared: Prepared) -> None:
        admitted = prepared.admitted
        self._ctx, self._prepared, self._binding = ctx, prepared, admitted.binding
        self.tool = tool = admitted.binding.tool
        self.end_s = admitted.started.clock + tool.deadline_s
        self._held: tuple[Reserve, ...] = ()
        self.attempts: tuple[Attempt, ...] = ()
        self._calls = 0
        self.probes = False
        """Whether this call is the one that tries a tool which has been failing."""
        self.beat: Beat | None = None
        """What keeps the claim of a change alive."""

    def restate(self, prepared: Prepared) -> None:
        """What it will do was planned again."""
        self._prepared = prepared

    def check_breaker(self) -> Reading | None:
        """The refusal of a tool that has been failing; None if the call may pass, perhaps as the one that tries it."""
        breaker = self._binding.limits.breaker
        wait_s = breaker.wait_s(self._ctx.clock)
        if wait_s is None:
            self.probes = breaker.state == "half-open"
            return None
        message = f"{self.tool.name!r} has been failing and is not tried for another {wait_s:.1f} s"
        return refuse(Status.FAILED, Reason.CIRCUIT_OPEN, message, wait_s=wait_s)

    async def take_slot(self) -> Reading | None:
        """Wait in line, no longer than the call may last; the refusal if that was not enough."""
        slots = self._binding.limits.slots
        assert slots is not None
        left_s = self.end_s - self._ctx.clock.monotonic()
        self._ctx.at("perform.place")
        try:
            self._release_slot = await self._ctx.deadlines.within(left_s, slots.take())
        except Expired:
            message = f"no place to run {self.tool.name!r} came free in time"
            return refuse(Status.FAILED, Reason.OVERLOADED, message)
        return await self.check_halt()

    @property
    def runs_on(self) -> bool:
        """Whether a thread of this call still runs."""
        return self._threads is not None and self._threads.running

    def when_idle(self, done: Callable[[], None]) -> bool:
        """Call `done` as soon as no thread of this call runs any more; False if none does."""
        if self._threads is None or not self._threads.running:
            return False
        self._threads.when_idle(done)
        return True

    def leave(self) -> None:
        """Give back a probe that was not made, and the place in line once no thread of this call runs any more."""
        if self.probes and not self.attempts:
            self._binding.limits.breaker.abandon()
        if self._release_slot is None:
            return
        if self._threads is None:
            self._release_slot()
        else:
            self._threads.when_idle(self._release_slot)

    def begin_batch(self, first: tuple[Transition, ...] = (), name: str | None = None) -> Batch | Refused | None:
        """The begin commit: what comes first, reservations, tokens, approval; None if there is nothing to commit.

        A refusal where no store need be asked to know that a budget does not suffice.
        """
        ctx, prepared, binding = self._ctx, self._prepared, self._binding
        call, transitions = prepared.admitted.facts.call, first
        if binding.waits:
            now_us, wait_s = ctx.clock.now_us(), max(0.0, self.end_s - ctx.clock.monotonic())
        else:
            now_us, wait_s = prepared.admitted.started.at_us, self.tool.deadline_s
        # Taking back is an operator's act, bounded by what was made: no budget stops it half-way.
        budgets = ctx.budgets + call.budgets if call.undoes is None else ()
        if budgets:
            name = name or (call.call_id if call.id_is_ours else ctx.ids.new())
            held = reservations(budgets, call, prepared.admitted.facts.arguments, self.tool, now_us, name)
            if not isinstance(held, tuple):
                return held
            self._held = by_scope(held) if call.budgets else held
            transitions += held
        if prepared.ticket is not None:
            transitions += (SpendTicket(prepared.ticket.id, prepared.ticket.binding),)
        if binding.rates:
            transitions += tokens(binding.rates, call)
        return Batch(now_us, transitions, wait_s) if transitions else None

    def not_begun(self, why: Refused | StoreError) -> Reading:
        """The begin commit did not land: nothing was done, and nothing is set aside (or given back, should it land)."""
        if not isinstance(why, StoreSilent):
            self._held = ()
        if isinstance(why, StoreError):
            return refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, str(why))
        return refuse(Status.DENIED, _REFUSED.get(why.kind, Reason.DENIED), why.message, wait_s=why.retry_after_s)

    async def attempt(self) -> Reading:
        """Try until it works, may not be tried again, or time is up."""
        ctx, tool, waited_us = self._ctx, self.tool, 0
        monotonic = ctx.clock.monotonic
        self._calls = 1
        while True:
            started = monotonic()
            if self.beat is not None and (late := self._too_late(started)) is not None:
                return late
            try:
                work = tool.body(self._prepared.admitted.parsed, None) if self._binding.direct else self._start(tool)
                try:  # a first step by hand: only a tool that has to wait needs a timer
                    waiting = work.send(None)
                except StopIteration as done:
                    raw = done.value
                else:
                    ctx.at("perform.wait")
                    raw = await ctx.deadlines.rest(self._timeout_s(started), work, waiting)
                short = read_short(raw, tool.output, tool.nothing_is_ok, tool.limits.max_bytes)
                found = await self._read_long(raw) if short is None else short
            except BaseException as error:  # noqa: BLE001 - whatever a tool raises becomes an outcome
                fault = self._fault(error, waited_us, started)
            else:
                problem, breaker = found.problem, self._binding.limits.breaker
                why = None if problem is None else problem.reason
                self.attempts += (Attempt(waited_us, int((monotonic() - started) * 1e6), why),)
                if breaker.troubled:  # the other side answers
                    breaker.record_success()
                return found
            self._count_fault(fault, waited_us, int((monotonic() - started) * 1e6))
            wait_s = self._next_wait(fault)
            if wait_s is None:
                return failure_reading(fault, tool)
            waited_us = round(wait_s * 1e6)
            await ctx.clock.sleep(wait_s)
            stopped = await self.check_halt(again=True) or await self._look_again(fault) or self._follow_wire(fault)
            if stopped is not None:
                return stopped

    async def _read_long(self, raw: Any) -> Reading:
        tool = self.tool
        return await asyncio.to_thread(read_result, raw, tool.output, tool.nothing_is_ok, tool.limits.max_bytes)

    def _too_late(self, now_s: float) -> Reading | None:
        """The refusal of a change whose time is over before it is begun, or begun again."""
        # A process that was stopped for longer than its lease must not go on where it was: somebody may have taken it
        # for dead and made the same change.
        if self.beat is not None and self.beat.is_overdue:
            return refuse(Status.FAILED, Reason.LEASE_LOST, "no sign of life came through for as long as its lease")
        if now_s >= self.end_s and not self.attempts:
            return refuse(Status.FAILED, Reason.TIMEOUT, "its deadline passed before it was begun")
        return None

    def _timeout_s(self, started: float) -> float:
        """How long an attempt may last: no longer than the call."""
        return max(0.0, min(self.tool.timeout_s, self.end_s - started))

    def _next_wait(self, error: ToolError) -> float | None:
        """How long to wait before the next attempt; None if there is none."""
        ctx, tool = self._ctx, self.tool
        repeatable, left_s = tool.effect is Effect.READ or tool.idempotent, self.end_s - ctx.clock.monotonic()
        wait_s = next_wait(tool.retry, len(self.attempts), error, left_s, ctx.ids.uniform, repeatable=repeatable)
        return None if self._binding.limits.breaker.state == "open" else wait_s

    def _count_fault(self, found: ToolError, waited_us: int, took_us: int) -> None:
        """Write the attempt down, and tell the breaker whether the other side failed or refused."""
        self.attempts += (Attempt(waited_us, took_us, found.reason),)
        breaker = self._binding.limits.breaker
        if isinstance(found, Transient) and not isinstance(found, RateLimited):
            breaker.record_failure(self._ctx.clock.monotonic())
        elif breaker.troubled:
            breaker.record_success()

    async def check_halt(self, *, again: bool = False) -> Reading | None:
        """A halt is looked for after every wait; before every further attempt (`again`) in the store itself, as what is
        known may be half a second old, and no commit comes between that would find it."""
        halts, said = self._ctx.halts, True
        now_s = self._ctx.clock.monotonic()
        if again or now_s >= halts.until:
            self._ctx.at("perform.halts")
            try:
                said = await self._ctx.deadlines.within(max(0.0, self.end_s - now_s), halts.refresh())
            except Expired:
                return refuse(Status.FAILED, Reason.TIMEOUT, "its deadline passed while the store gave no answer")
        if again and not said and self.tool.effect is not Effect.READ:
            message = "it is not tried again: the store does not say whether it was halted meanwhile"
            return refuse(Status.FAILED, Reason.STORE_UNAVAILABLE, message)
        halt = halts.stops(self._prepared.admitted.facts.call)
        return None if halt is None else refuse(Status.FAILED, Reason.HALTED, halt_message(halt))

    async def _look_again(self, error: ToolError) -> Reading | None:
        """That nothing landed is tried again only where the resource does not show otherwise."""
        plan, tool, ctx = self._prepared.plan, self.tool, self._ctx
        if self.beat is None or tool.resource is None or tool.idempotent:
            return None
        said, left_s = failure_reading(error, tool), max(0.0, self.end_s - ctx.clock.monotonic())
        own = dict(zip(plan.keys, self.tokens.values(), strict=True))
        ctx.at("perform.look")
        try:
            now = await ctx.deadlines.within(left_s, read_snapshots(tool, plan.keys, ctx.snapshot_reader, own))
        except (Expired, Unreadable):
            return None  # as the tool says
        if not contradicts_nothing(said, plan, now, shown=False):
            return None
        return failure_reading(InDoubt(f"{error}; {IN_THE_RESOURCE}"), tool)

    def _follow_wire(self, error: ToolError) -> Reading | None:
        """Ask the wire last, with no wait behind it: something may have been sent since the attempt before was over."""
        if self.wire is None or not self.wire.is_sealed:
            return None  # it may have landed already, and may be tried again all the same
        if self.wire.may_have_landed and not self.tool.idempotent:
            return failure_reading(InDoubt(f"{error}; {ON_THE_WIRE}"), self.tool)
        self.wire = follow_wire(self.wire)
        return None

    def _start(self, tool: Tool) -> Any:
        """One try as a coroutine that has not taken its first step."""
        context = self.context() if tool.wants_context else None
        if tool.is_async:
            return tool.body(self._prepared.admitted.parsed, context)
        return self._in_thread(tool, context)

    def _fault(self, error: BaseException, waited_us: int, started: float) -> ToolError:
        """The error that says how an attempt failed; raises again if it is the call itself that was interrupted."""
        if isinstance(error, Expired):
            return TimedOut(f"{self.tool.name!r} gave no answer within {_in_seconds(self._timeout_s(started))}")
        task = asyncio.current_task() if isinstance(error, asyncio.CancelledError) else None
        if isinstance(error, KeyboardInterrupt) or (task is not None and task.cancelling()):
            took_us = int((self._ctx.clock.monotonic() - started) * 1e6)
            self.attempts += (Attempt(waited_us, took_us, Reason.CANCELLED),)
            if self.probes:  # whether the tool works is as unknown as before: the next call tries it
                self._binding.limits.breaker.abandon()
            raise error
        reads = self.tool.effect is Effect.READ
        if isinstance(error, asyncio.CancelledError):
            error = (Permanent if reads else InDoubt)(f"{self.tool.name!r} cancelled itself")
        refused = isinstance(error, self.tool.refusals) and not isinstance(error, InterlockError)
        fault = InvalidInput(shorten(str(error), _LONGEST_SAID)) if refused else from_exception(error, reads=reads)
        if not refused and not isinstance(error, InterlockError):
            fault.traceback = self._log_traceback(error)
        # What is refused for good is not tried again, and is judged when the call has ended.
        if isinstance(fault, NothingLanded | RateLimited) and self.wire is not None:
            if not self.wire.seal():
                return InDoubt(f"{fault}; {ON_THE_WIRE}")
            leave_wire()
        return fault

    def _log_traceback(self, error: BaseException) -> str:
        """For whoever wrote the tool: who called it hears the class alone."""
        call = self._prepared.admitted.facts.call
        what = f"tool {self.tool.name!r} in attempt {len(self.attempts) + 1} of call {call.call_id}"
        return log_traceback(what, error, redactor_of(self.tool, *held_by(self._prepared)))

    async def _in_thread(self, tool: Tool, context: Context | None) -> Any:
        if self._threads is None:
            self._threads = Threads(self._ctx.threads)
        returned = await self._threads.run(tool.body, self._prepared.admitted.parsed, context)
        if not isawaitable(returned):
            return returned
        self._ctx.at("perform.await")
        return await returned  # a plain function around an async one (a decorator) has only begun what is to be done

    def context(self) -> Context:
        """What the tool may know about its call."""
        call = self._prepared.admitted.facts.call
        if self._versions is None:  # one for all attempts: what one has written the next may write again
            self._versions = planned_versions(self._prepared.plan)
        return Context(
            call_id=call.call_id,
            actor=call.actor,
            attempt=len(self.attempts) + 1,
            turn=call.turn,
            idempotency_key=self._prepared.plan.idempotency_key,
            tokens={**self._under(call), **self.tokens},
            ledger=self._ctx.store.identity.ledger,
            versions=self._versions,
            written={} if self.wire is None else self.wire.written,
        )

    def _under(self, call: Call) -> dict[str, int]:
        """The tokens of the holds that are keys of the tool's own resource: to another one they say nothing."""
        owner = self.tool.name if self.tool.resource is None else self.tool.resource.name
        return {local_key(hold.key): hold.token for hold in call.locks if hold.key.startswith(f"{owner}/")}

    def end(self, reading: Reading, interrupt: BaseException | None = None) -> Ended:
        """The end of the call, with what was set aside settled by what was spent."""
        prepared, attempts, tool = self._prepared, self.attempts, self.tool
        admitted, cost = prepared.admitted, reading.cost_micros
        if cost is None:
            cost = tool.cost_micros if attempts else 0
        settle: tuple[Transition, ...] = ()
        charged: tuple[Charge, ...] = ()
        if self._held:
            spent_us = attempts[0].duration_us if len(attempts) == 1 else sum([made.duration_us for made in attempts])
            settle, charged = settlements(self._held, self._calls, cost, -(-spent_us // 1000), reading)
        facts, plan, asked = admitted.facts, prepared.plan, admitted.asked
        call = facts.call
        usual = not cost and interrupt is None and asked is None
        plain = usual and reading.is_bare and call.is_bare and not plan.digest and tool.trust is _TRUSTED
        ended = Ended(
            call, admitted.started, reading, tool, facts.arguments, prepared.verdict, plan, attempts, settle,
            plain, charged,
        )  # fmt: skip
        if usual:
            return ended
        return msgspec.structs.replace(ended, cost_micros=cost, asked=asked, interrupt=interrupt)


def _in_seconds(stretch_s: float) -> str:
    """A stretch of time for people: what is left of a deadline has more digits than anybody wants to read."""
    return f"{stretch_s:.0f} s" if stretch_s >= 100 else f"{max(stretch_s, 0.001):.3g} s"
