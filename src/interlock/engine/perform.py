"""PERFORM: one begin commit that may still refuse, then the effect, with timeout and retry."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

from interlock.budget import reservations, settlements, tokens
from interlock.engine.stages import Ended, Prepared, World, refused
from interlock.errors import NotFound, RateLimited, StoreError, TimedOut, ToolError, Transient, from_exception
from interlock.ports import Batch, Refused, Reserve, Transition
from interlock.resilience import next_wait
from interlock.schema import Reading, Tool, read_result
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
    try:
        if gate.places is not None:
            await work.take_place()
        transitions = work.set_aside()
        refusal = await work.begin(transitions) if transitions or gate.places is not None else None
        if refusal is not None:
            gate.breaker.abandoned()
            return work.end(refusal)
        work.calls = 1
        return work.end(await work.attempt())
    except (asyncio.CancelledError, KeyboardInterrupt) as interrupt:
        gate.breaker.abandoned()
        return work.end(_interrupted(interrupt), interrupt)
    finally:
        if gate.places is not None:
            work.give_place_back()


class _Work:
    """One call inside PERFORM: its reservations, its place, its attempts so far."""

    __slots__ = ("_attempts", "_desk", "_has_place", "_held", "_prepared", "_thread", "_world", "calls", "tool")

    def __init__(self, world: World, prepared: Prepared) -> None:
        self._world = world
        self._prepared = prepared
        self._desk = prepared.admitted.desk
        self._held: tuple[Reserve, ...] = ()
        self._attempts: tuple[Attempt, ...] = ()
        self._thread: Future[Any] | None = None
        self._has_place = False
        self.tool = self._desk.tool
        self.calls = 0

    async def take_place(self) -> None:
        """Wait in line, no longer than the call may last."""
        places = self._desk.gate.places
        assert places is not None
        try:
            await self._world.deadlines.within(self.tool.deadline_s, places.take())
        except TimeoutError:
            return
        self._has_place = True

    def give_place_back(self) -> None:
        """Free the place; if a thread still runs, when it ends."""
        places = self._desk.gate.places
        if places is None or not self._has_place:
            return
        if self._thread is not None and not self._thread.done():
            loop = asyncio.get_running_loop()
            self._thread.add_done_callback(lambda _f: _call_soon(loop, places.give_back))
        else:
            places.give_back()

    def set_aside(self) -> tuple[Transition, ...]:
        """What the begin commit carries: reservations, tokens, and what the journal adds."""
        prepared, world, desk = self._prepared, self._world, self._desk
        call = prepared.admitted.facts.call
        transitions = desk.journal.begin(call, prepared.plan, prepared.verdict)
        if world.budgets:
            self._held = reservations(world.budgets, call, self.tool, prepared.admitted.started.at_us)
            transitions += self._held
        return transitions + tokens(desk.rates, call) if desk.rates else transitions

    async def begin(self, transitions: tuple[Transition, ...]) -> Reading | None:
        """The begin commit; None if it landed."""
        world = self._world
        if self._desk.gate.places is not None and not self._has_place:
            self._held = ()
            return refused(Status.FAILED, "overloaded", f"no place to run {self.tool.name!r} came free in time")
        if not transitions:
            return None
        if world.faults is not None:
            world.faults.at("perform.begin")
        batch = Batch(self._prepared.admitted.started.at_us, transitions)
        try:
            receipt = await world.store.commit(batch)
        except StoreError as error:
            self._held = ()
            return refused(Status.FAILED, "store_unavailable", str(error))
        if world.faults is not None:
            world.faults.at("perform.begun")
        if type(receipt) is Refused:
            self._held = ()
            error_class = _LIMITS.get(receipt.kind, receipt.kind)
            return refused(Status.DENIED, error_class, receipt.message, wait_s=receipt.retry_after_s)
        return None

    async def attempt(self) -> Reading:
        """Try until it works, may not be tried again, or time is up."""
        world, tool, breaker = self._world, self.tool, self._desk.gate.breaker
        monotonic = world.clock.monotonic
        now = monotonic()
        end, waited_us = now + tool.deadline_s, 0
        while True:
            started = now
            found = await self._try_once(tool.timeout_s if now + tool.timeout_s <= end else end - now)
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
        tool = self.tool
        context = self._context() if tool.wants_context else None
        try:
            parsed = self._prepared.admitted.parsed
            work = tool.body(parsed, context) if tool.is_async else self._in_thread(tool, context)
            try:
                waiting = work.send(None)  # the first step: what never waits needs no timer
            except StopIteration as done:
                raw = done.value
            else:
                raw = await self._world.deadlines.rest(timeout_s, work, waiting)
        except TimeoutError as error:
            if error.args:  # the tool's own, not ours
                return from_exception(error)
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
        return read_result(raw, tool.output, nothing_is_ok=tool.nothing_is_ok, max_bytes=tool.limits.max_bytes)

    async def _in_thread(self, tool: Tool, context: Context | None) -> Any:
        self._thread = self._world.threads.submit(tool.body, self._prepared.admitted.parsed, context)
        return await asyncio.wrap_future(self._thread)

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
            spent_us = sum([attempt.duration_us for attempt in attempts])
            settle = settlements(self._held, calls=self.calls, cost_micros=cost, ms=-(-spent_us // 1000))
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
            interrupt=interrupt,
        )


def _failure(error: ToolError, tool: Tool) -> Reading:
    message = str(error) or f"{tool.name!r} failed"
    if isinstance(error, NotFound):
        return refused(Status.NO_DATA, error.error_class, message, hints=error.hints)
    wait_s = error.retry_after_s if isinstance(error, Transient) else None
    return refused(Status.FAILED, error.error_class, message, hints=error.hints, wait_s=wait_s)


def _interrupted(interrupt: BaseException) -> Reading:
    if isinstance(interrupt, KeyboardInterrupt):
        return refused(Status.FAILED, "interrupted", "interrupted from the keyboard")
    return refused(Status.FAILED, "cancelled", "the caller cancelled the call")


def _call_soon(loop: asyncio.AbstractEventLoop, function: Any) -> None:
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        return  # the loop has ended, and its places with it
