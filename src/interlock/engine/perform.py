"""PERFORM: one begin commit that may still refuse, then the effect, with timeout and retry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from interlock.budget import reservations, settlements, tokens
from interlock.engine.stages import Ended, Prepared, World, refused
from interlock.engine.threads import Threads
from interlock.errors import NotFound, RateLimited, StoreError, TimedOut, ToolError, Transient, from_exception
from interlock.ports import Batch, Refused, Reserve, Transition
from interlock.resilience import Expired, next_wait
from interlock.schema import Reading, Tool, clean, read_result
from interlock.values import Attempt, Context, Status

_LIMITS = {"budget": "budget_exhausted", "rate": "rate_limited"}


async def perform(world: World, prepared: Prepared) -> Ended:
    """Make the effect happen, as often as its class allows, within the call's deadline."""
    gate = prepared.admitted.desk.gate
    work = _Work(world, prepared)
    wait_s = gate.breaker.wait_s(world.clock)
    if wait_s is not None:
        message = f"{work.tool.name!r} has been failing and is not tried for another {wait_s:.1f} s"
        return work.end(refused(Status.FAILED, "circuit_open", message, wait_s=wait_s))
    probes = gate.breaker.state == "half-open"  # only the probe itself may give its turn back
    try:
        if gate.places is not None:
            await work.take_place(gate.places.take())
        refusal = await work.begin()
        if refusal is not None:
            if probes:
                gate.breaker.abandoned()
            return work.end(refusal)
        return work.end(await work.attempt())
    except (asyncio.CancelledError, KeyboardInterrupt) as interrupt:
        if probes:
            gate.breaker.abandoned()
        return work.end(_interrupted(interrupt), interrupt)
    finally:
        if work.give_place_back is not None:
            work.leave()


class _Work:
    """One call inside PERFORM: its reservations, its place, its attempts so far."""

    _held: tuple[Reserve, ...] = ()
    _attempts: tuple[Attempt, ...] = ()
    _calls = 0
    _threads: Threads | None = None
    give_place_back: Callable[[], None] | None = None

    def __init__(self, world: World, prepared: Prepared) -> None:
        self._world = world
        self._prepared = prepared
        self._desk = prepared.admitted.desk
        self.tool = self._desk.tool
        self._end = prepared.admitted.started.clock + self.tool.deadline_s

    async def take_place(self, taking: Any) -> None:
        """Wait in line, no longer than the call may last."""
        left_s = self._end - self._world.clock.monotonic()
        try:
            self.give_place_back = await self._world.deadlines.within(left_s, taking)
        except Expired:
            return

    def leave(self) -> None:
        """Give the place back, as soon as no thread of this call runs any more."""
        assert self.give_place_back is not None
        if self._threads is None:
            self.give_place_back()
        else:
            self._threads.when_idle(self.give_place_back)

    async def begin(self) -> Reading | None:
        """The begin commit: reservations, tokens, and what the journal adds; None if it landed."""
        world, prepared, desk = self._world, self._prepared, self._desk
        if desk.gate.places is not None and self.give_place_back is None:
            return refused(Status.FAILED, "overloaded", f"no place to run {self.tool.name!r} came free in time")
        call = prepared.admitted.facts.call
        transitions: tuple[Transition, ...] = desk.journal.begin(call, prepared.plan, prepared.verdict)
        # A call that had to wait for its place begins later than it came in.
        now_us = prepared.admitted.started.at_us if desk.gate.places is None else world.clock.now_us()
        if world.budgets:
            name = call.call_id if call.id_is_ours else world.ids.new()
            self._held = reservations(world.budgets, call, self.tool, now_us, name)
            transitions += self._held
        if desk.rates:
            transitions += tokens(desk.rates, call)
        if transitions:
            if world.faults is not None:
                world.faults.at("perform.begin")
            try:
                receipt = await world.store.commit(Batch(now_us, transitions))
            except StoreError as error:
                self._held = ()
                return refused(Status.FAILED, "store_unavailable", str(error))
            if world.faults is not None:
                world.faults.at("perform.begun")
            if type(receipt) is Refused:
                self._held = ()
                error_class = _LIMITS.get(receipt.kind, receipt.kind)
                return refused(Status.DENIED, error_class, receipt.message, wait_s=receipt.retry_after_s)
        self._calls = 1
        return None

    async def attempt(self) -> Reading:
        """Try until it works, may not be tried again, or time is up."""
        world, tool, breaker, end = self._world, self.tool, self._desk.gate.breaker, self._end
        monotonic, waited_us = world.clock.monotonic, 0
        now = monotonic()
        while True:
            started = now
            try:
                found = await self._try_once(tool.timeout_s if now + tool.timeout_s <= end else max(0.0, end - now))
            except (asyncio.CancelledError, KeyboardInterrupt):
                self._attempts += (Attempt(waited_us, round((monotonic() - started) * 1e6), "cancelled"),)
                raise
            now = monotonic()
            failed = type(found) is not Reading
            error = found.error_class if failed else None if found.problem is None else found.problem.error
            self._attempts += (Attempt(waited_us, round((now - started) * 1e6), error),)
            if not failed:
                breaker.succeeded()
                return found  # type: ignore[no-any-return]
            if isinstance(found, Transient) and not isinstance(found, RateLimited):
                breaker.failed(now)
            else:
                breaker.succeeded()
            tries = len(self._attempts)
            wait_s = next_wait(tool.retry, tool.effect, tries, found, end - now, world.ids.uniform)
            if wait_s is None or breaker.state == "open":
                return _failure(found, tool)
            waited_us = round(wait_s * 1e6)
            await world.clock.sleep(wait_s)
            now = monotonic()

    async def _try_once(self, timeout_s: float) -> Any:
        """One try: the reading of what the tool returned, or the error that says how it failed."""
        tool, parsed = self.tool, self._prepared.admitted.parsed
        context = self._context() if tool.wants_context else None
        try:
            work = tool.body(parsed, context) if tool.is_async else self._in_thread(tool, context)
            try:
                waiting = work.send(None)  # the first step: what never waits needs no timer
            except StopIteration as done:
                raw = done.value
            else:
                raw = await self._world.deadlines.rest(timeout_s, work, waiting)
            return read_result(raw, tool.output, nothing_is_ok=tool.nothing_is_ok, max_bytes=tool.limits.max_bytes)
        except Expired:
            return TimedOut(f"{tool.name!r} gave no answer within {timeout_s:g} s")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return from_exception(RuntimeError(f"{tool.name!r} cancelled itself"))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises becomes an outcome
            return from_exception(error)

    async def _in_thread(self, tool: Tool, context: Context | None) -> Any:
        if self._threads is None:
            self._threads = Threads(self._world.threads)
        return await self._threads.run(tool.body, self._prepared.admitted.parsed, context)

    def _context(self) -> Context:
        call = self._prepared.admitted.facts.call
        return Context(
            call_id=call.call_id,
            actor=call.actor,
            attempt=len(self._attempts) + 1,
            turn=call.turn,
            idempotency_key=self._prepared.plan.idempotency_key,
        )

    def end(self, reading: Reading, interrupt: BaseException | None = None) -> Ended:
        """The end of the call, with what was set aside settled by what was spent."""
        prepared, attempts = self._prepared, self._attempts
        admitted, cost = prepared.admitted, reading.cost_micros
        if cost is None:
            cost = self.tool.cost_micros if attempts else 0
        settle: tuple[Transition, ...] = ()
        if self._held:
            spent_us = attempts[0].duration_us if len(attempts) == 1 else sum([made.duration_us for made in attempts])
            settle = settlements(self._held, calls=self._calls, cost_micros=cost, ms=-(-spent_us // 1000))
        return Ended(
            admitted.facts.call,
            admitted.started,
            reading,
            self.tool,
            admitted.facts.arguments,
            prepared.verdict,
            prepared.plan,
            attempts,
            settle,
            cost,
            None,
            None,
            admitted.asked,
            interrupt,
        )


def _failure(error: ToolError, tool: Tool) -> Reading:
    message = clean(str(error)) or f"{tool.name!r} failed"
    given = error.hints if isinstance(error.hints, list | tuple) else ()
    hints = tuple(clean(hint) for hint in given if isinstance(hint, str))
    if isinstance(error, NotFound):
        return refused(Status.NO_DATA, error.error_class, message, hints=hints)
    wait_s = error.retry_after_s if isinstance(error, Transient) else None
    return refused(Status.FAILED, error.error_class, message, hints=hints, wait_s=wait_s)


def _interrupted(interrupt: BaseException) -> Reading:
    if isinstance(interrupt, KeyboardInterrupt):
        return refused(Status.FAILED, "interrupted", "interrupted from the keyboard")
    return refused(Status.FAILED, "cancelled", "the caller cancelled the call")
