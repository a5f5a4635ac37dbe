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
from interlock.values import Attempt, Context, Effect, Status


async def perform(world: World, prepared: Prepared) -> Ended:
    """Make the effect happen, as often as its class allows, within the call's deadline."""
    admitted = prepared.admitted
    tool, gate = admitted.tool, world.gates[admitted.tool.name]
    end = world.clock.monotonic() + tool.whole_deadline_s
    wait_s = gate.breaker.wait_s(world.clock.monotonic())
    if wait_s is not None:
        message = f"{tool.name!r} has been failing and is not tried for another {wait_s:.1f} s"
        return _ended(prepared, refused(Status.FAILED, "circuit_open", message, wait_s=wait_s))
    try:
        if gate.places is not None:
            await world.deadlines.within(tool.whole_deadline_s, gate.places.take())
    except TimeoutError:
        gate.breaker.abandoned()
        return _ended(prepared, refused(Status.FAILED, "overloaded", f"no place to run {tool.name!r} came free in time"))
    except asyncio.CancelledError as interrupt:
        gate.breaker.abandoned()
        return _ended(prepared, _cancelled(), interrupt=interrupt)
    work = _Work(world, prepared, gate)
    try:
        return await work.begin_and_run(end)
    finally:
        work.give_place_back()


class _Work:
    """One call inside PERFORM: its reservations, its place, its attempts so far."""

    def __init__(self, world: World, prepared: Prepared, gate: Gate) -> None:
        self._world = world
        self._prepared = prepared
        self._gate = gate
        self._held: tuple[Reserve, ...] = ()
        self._attempts: list[Attempt] = []
        self._thread: Future[Any] | None = None

    def give_place_back(self) -> None:
        """Free the place; if a thread still runs, when it ends."""
        places = self._gate.places
        if places is None:
            return
        if self._thread is not None and not self._thread.done():
            loop = asyncio.get_running_loop()
            self._thread.add_done_callback(lambda _f: _call_soon(loop, places.give_back))
        else:
            places.give_back()

    async def begin_and_run(self, end: float) -> Ended:
        try:
            refusal = await self._begin()
        except asyncio.CancelledError as interrupt:
            self._gate.breaker.abandoned()
            return self._end(_cancelled(), calls=0, interrupt=interrupt)
        except StoreError as error:
            self._gate.breaker.abandoned()
            return self._end(refused(Status.FAILED, "store_unavailable", str(error)), calls=0)
        if refusal is not None:
            self._gate.breaker.abandoned()
            self._held = ()
            return self._end(refusal, calls=0)
        try:
            return self._end(await self._attempt_until(end), calls=1)
        except asyncio.CancelledError as interrupt:
            self._gate.breaker.abandoned()
            return self._end(_cancelled(), calls=1, interrupt=interrupt)
        except KeyboardInterrupt as interrupt:
            reading = refused(Status.FAILED, "interrupted", "interrupted from the keyboard")
            return self._end(reading, calls=1, interrupt=interrupt)

    async def _begin(self) -> Reading | None:
        """The begin commit: reservations, tokens and what the journal adds."""
        world, admitted = self._world, self._prepared.admitted
        call, tool = admitted.call, admitted.tool
        budgets, rates = world.ruleset.budgets, world.ruleset.rates(tool.name)
        now_us = world.clock.now_us() if budgets or rates else 0
        self._held = reservations(budgets, call, tool, now_us) if budgets else ()
        journal = world.journals[tool.effect].begin(call, self._prepared.plan, self._prepared.verdict)
        transitions = (*self._held, *(tokens(rates, call) if rates else ()), *journal)
        if not transitions:
            return None
        world.faults.at("perform.begin")
        receipt = await world.store.commit(Batch(now_us=now_us or world.clock.now_us(), transitions=transitions))
        world.faults.at("perform.begun")
        if not isinstance(receipt, Refused):
            return None
        error = {"budget": "budget_exhausted", "rate": "rate_limited"}.get(receipt.kind, receipt.kind)
        return refused(Status.DENIED, error, receipt.message, wait_s=receipt.retry_after_s)

    async def _attempt_until(self, end: float) -> Reading:
        world, tool = self._world, self._prepared.admitted.tool
        waited_us = 0
        while True:
            started = world.clock.monotonic()
            found = await self._attempt(min(tool.timeout_s, end - started))
            duration_us = round((world.clock.monotonic() - started) * 1e6)
            if isinstance(found, Reading):
                error = None if found.problem is None else found.problem.error
                self._attempts.append(Attempt(waited_us=waited_us, duration_us=duration_us, error=error))
                self._gate.breaker.succeeded()
                return found
            self._attempts.append(Attempt(waited_us=waited_us, duration_us=duration_us, error=found.error_class))
            self._tell_breaker(found)
            wait_s = next_wait(
                tool.retry,
                tool.effect,
                len(self._attempts),
                found,
                end - world.clock.monotonic(),
                world.ids.uniform,
            )
            if wait_s is None or self._gate.breaker.state == "open":
                return _failure(found, tool)
            waited_us = round(wait_s * 1e6)
            await world.clock.sleep(wait_s)

    async def _attempt(self, timeout_s: float) -> Reading | ToolError:
        """One try: what the tool returned, or what kind of failure it was."""
        admitted = self._prepared.admitted
        tool, call = admitted.tool, admitted.call
        context = Context(
            call_id=call.call_id,
            actor=call.actor,
            attempt=len(self._attempts) + 1,
            turn=call.turn,
            idempotency_key=self._prepared.plan.idempotency_key,
        )
        try:
            raw = await self._world.deadlines.within(timeout_s, self._run(tool, context))
        except TimeoutError:
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
        nothing_is_ok = tool.output.nothing_is_ok and tool.effect is not Effect.READ
        return read_result(raw, tool.output, nothing_is_ok=nothing_is_ok, max_bytes=tool.limits.max_bytes)

    async def _run(self, tool: Tool, context: Context) -> Any:
        parsed = self._prepared.admitted.parsed
        if tool.is_async:
            return await tool.body(parsed, context)
        self._thread = self._world.threads.submit(tool.body, parsed, context)
        return await asyncio.wrap_future(self._thread)

    def _tell_breaker(self, error: ToolError) -> None:
        if isinstance(error, Transient) and not isinstance(error, RateLimited):
            self._gate.breaker.failed(self._world.clock.monotonic())
        else:
            self._gate.breaker.succeeded()

    def _end(self, reading: Reading, *, calls: int, interrupt: BaseException | None = None) -> Ended:
        """The end of the call, with what was set aside settled by what was spent."""
        tool = self._prepared.admitted.tool
        cost = reading.cost_micros
        if cost is None:
            cost = round(tool.limits.cost_usd * 1_000_000) * len(self._attempts[:1])
        spent_us = sum(attempt.duration_us for attempt in self._attempts)
        settle = settlements(self._held, calls=calls, cost_micros=cost, ms=-(-spent_us // 1000))
        return _ended(self._prepared, reading, tuple(self._attempts), settle, cost, interrupt)


def _ended(  # noqa: PLR0913
    prepared: Prepared,
    reading: Reading,
    attempts: tuple[Attempt, ...] = (),
    settle: tuple[Any, ...] = (),
    cost_micros: int = 0,
    interrupt: BaseException | None = None,
) -> Ended:
    admitted = prepared.admitted
    return Ended(
        call=admitted.call,
        started=admitted.started,
        tool=admitted.tool,
        arguments=admitted.parsed.arguments,
        digest=admitted.digest,
        verdict=prepared.verdict,
        plan=prepared.plan,
        reading=reading,
        attempts=attempts,
        settle=settle,
        cost_micros=cost_micros,
        interrupt=interrupt,
    )


def _failure(error: ToolError, tool: Tool) -> Reading:
    message = str(error) or f"{tool.name!r} failed"
    if isinstance(error, NotFound):
        return refused(Status.NO_DATA, error.error_class, message, hints=error.hints)
    wait_s = error.retry_after_s if isinstance(error, Transient) else None
    return refused(Status.FAILED, error.error_class, message, hints=error.hints, wait_s=wait_s)


def _cancelled() -> Reading:
    return refused(Status.FAILED, "cancelled", "the caller cancelled the call")


def _call_soon(loop: asyncio.AbstractEventLoop, function: Any) -> None:
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        return  # the loop has ended, and its places with it
