"""PERFORM: one begin commit that may still refuse, then the effect, with timeout and retry."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

from interlock.budget import reservations, settlements, tokens
from interlock.engine.gates import Gate
from interlock.engine.stages import Ended, Prepared, World, refused
from interlock.errors import NotFound, RateLimited, StoreError, TimedOut, ToolError, Transient, from_exception
from interlock.ports import Batch, Refused, Reserve
from interlock.resilience import next_wait
from interlock.schema import Reading, Tool, read_result
from interlock.values import Attempt, Context, Status


async def perform(world: World, prepared: Prepared) -> Ended:
    """Make the effect happen, as often as its class allows, within the call's deadline."""
    tool = prepared.admitted.tool
    gate = world.gates[tool.name]
    work = _Work(world, prepared, gate)
    wait_s = gate.breaker.wait_s(world.clock)
    if wait_s is not None:
        message = f"{tool.name!r} has been failing and is not tried for another {wait_s:.1f} s"
        return work.end(refused(Status.FAILED, "circuit_open", message, wait_s=wait_s), 0)
    try:
        if gate.places is not None:
            await work.take_place(gate.places.take())
        refusal = await work.begin()
        if refusal is None:
            return work.end(await work.attempts(), 1)
        gate.breaker.abandoned()
        return work.end(refusal, 0)
    except (asyncio.CancelledError, KeyboardInterrupt) as interrupt:
        gate.breaker.abandoned()
        return work.end(_interrupted(interrupt), work.begun, interrupt)
    finally:
        if gate.places is not None:
            work.give_place_back()


class _Work:
    """One call inside PERFORM: its reservations, its place, its attempts so far."""

    __slots__ = ("_attempts", "_gate", "_has_place", "_held", "_prepared", "_thread", "_world", "begun")

    def __init__(self, world: World, prepared: Prepared, gate: Gate) -> None:
        self._world = world
        self._prepared = prepared
        self._gate = gate
        self._held: tuple[Reserve, ...] = ()
        self._attempts: tuple[Attempt, ...] = ()
        self._thread: Future[Any] | None = None
        self._has_place = False
        self.begun = 0

    async def take_place(self, taking: Any) -> None:
        """Wait in line, no longer than the call may last."""
        tool = self._prepared.admitted.tool
        try:
            await self._world.deadlines.within(tool.deadline_s, taking)
        except TimeoutError:
            return
        self._has_place = True

    def give_place_back(self) -> None:
        """Free the place; if a thread still runs, when it ends."""
        places = self._gate.places
        if places is None or not self._has_place:
            return
        if self._thread is not None and not self._thread.done():
            loop = asyncio.get_running_loop()
            self._thread.add_done_callback(lambda _f: _call_soon(loop, places.give_back))
        else:
            places.give_back()

    async def begin(self) -> Reading | None:
        """The begin commit: reservations, tokens and what the journal adds. None if it landed."""
        world, admitted = self._world, self._prepared.admitted
        call, tool = admitted.facts.call, admitted.tool
        if self._gate.places is not None and not self._has_place:
            return refused(Status.FAILED, "overloaded", f"no place to run {tool.name!r} came free in time")
        transitions: tuple[Any, ...] = world.journals[tool.effect].begin(
            call, self._prepared.plan, self._prepared.verdict
        )
        budgets, rates = world.ruleset.budgets, world.ruleset.rates(tool.name)
        if budgets:
            self._held = reservations(budgets, call, tool, admitted.started.at_us)
            transitions += self._held
        if rates:
            transitions += tokens(rates, call)
        if transitions:
            world.faults.at("perform.begin")
            try:
                receipt = await world.store.commit(Batch(now_us=admitted.started.at_us, transitions=transitions))
            except StoreError as error:
                self._held = ()
                return refused(Status.FAILED, "store_unavailable", str(error))
            world.faults.at("perform.begun")
            if isinstance(receipt, Refused):
                self._held = ()
                error_class = _LIMITS.get(receipt.kind, receipt.kind)
                return refused(Status.DENIED, error_class, receipt.message, wait_s=receipt.retry_after_s)
        self.begun = 1
        return None

    async def attempts(self) -> Reading:
        """Try until it works, may not be tried again, or time is up."""
        world, tool, breaker = self._world, self._prepared.admitted.tool, self._gate.breaker
        monotonic = world.clock.monotonic
        now = monotonic()
        end, waited_us = now + tool.deadline_s, 0
        while True:
            started = now
            timeout_s = tool.timeout_s if now + tool.timeout_s <= end else end - now
            found = await self._attempt(tool, timeout_s)
            now = monotonic()
            duration_us = round((now - started) * 1e6)
            if type(found) is Reading:
                error = None if found.problem is None else found.problem.error
                self._attempts += (Attempt(waited_us=waited_us, duration_us=duration_us, error=error),)
                breaker.succeeded()
                return found
            assert isinstance(found, ToolError)
            self._attempts += (Attempt(waited_us=waited_us, duration_us=duration_us, error=found.error_class),)
            if isinstance(found, Transient) and not isinstance(found, RateLimited):
                breaker.failed(now)
            else:
                breaker.succeeded()
            wait_s = next_wait(tool.retry, tool.effect, len(self._attempts), found, end - now, world.ids.uniform)
            if wait_s is None or breaker.state == "open":
                return _failure(found, tool)
            waited_us = round(wait_s * 1e6)
            await world.clock.sleep(wait_s)
            now = monotonic()

    async def _attempt(self, tool: Tool, timeout_s: float) -> Reading | ToolError:
        """One try: what the tool returned, or what kind of failure it was."""
        prepared = self._prepared
        context = self._context() if tool.wants_context else None
        try:
            if tool.is_async:
                work = tool.body(prepared.admitted.parsed, context)
            else:
                work = self._in_thread(tool, context)
            raw = await self._world.deadlines.within(timeout_s, work)
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

    def end(self, reading: Reading, calls: int, interrupt: BaseException | None = None) -> Ended:
        """The end of the call, with what was set aside settled by what was spent."""
        prepared, attempts = self._prepared, self._attempts
        admitted, cost = prepared.admitted, reading.cost_micros
        if cost is None:
            cost = admitted.tool.cost_micros if attempts else 0
        settle: tuple[Any, ...] = ()
        if self._held:
            spent_us = attempts[0].duration_us if len(attempts) == 1 else sum(a.duration_us for a in attempts)
            settle = settlements(self._held, calls=calls, cost_micros=cost, ms=-(-spent_us // 1000))
        return Ended(
            call=admitted.facts.call,
            started=admitted.started,
            tool=admitted.tool,
            arguments=admitted.facts.arguments,
            verdict=prepared.verdict,
            plan=prepared.plan,
            reading=reading,
            attempts=attempts,
            settle=settle,
            cost_micros=cost,
            interrupt=interrupt,
        )


_LIMITS = {"budget": "budget_exhausted", "rate": "rate_limited"}


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
