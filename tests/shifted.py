"""A worker whose clocks are not those of the others: started as a process of its own, told what to do by lines.

Time is moved before anything of Interlock is loaded, as on a machine whose clock is wrong.
"""

from __future__ import annotations

import sys
import time

if __name__ == "__main__":
    SHIFT_S = float(sys.argv[1])
    REAL_TIME, REAL_NS, REAL_MONOTONIC = time.time, time.time_ns, time.monotonic
    time.time = lambda: REAL_TIME() + SHIFT_S
    time.time_ns = lambda: REAL_NS() + int(SHIFT_S * 1e9)
    time.monotonic = lambda: REAL_MONOTONIC() + 10 * abs(SHIFT_S)  # no two machines were started together

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

from interlock import Context, Runtime, Tool, tool
from interlock.config import Settings
from interlock.errors import NotAllowed
from interlock.policy import parse_policy

LEASE_S = 1.0
POLICY = """
version = 1
mode = "apply"
[review]
vouched = ["user"]
expires = "10m"
approvers = ["user:chief"]
[[review.delegation]]
of = "user:chief"
to = "user:deputy"
until = {deputy}
[[review.delegation]]
of = "user:chief"
to = "user:former"
until = {former}
[[rule]]
id = "open"
tools = ["pay"]
decision = "allow"
[[rule]]
id = "ask"
tools = ["send"]
decision = "review"
"""


def say(**what: Any) -> None:
    """One line to whoever started this."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def hear() -> Any:
    """One line from them."""
    return json.loads(await asyncio.to_thread(sys.stdin.readline))


def paying(file: str, waiting: set[str]) -> list[Tool]:
    """Payments, each a line in a file that all workers write to; one of those that wait goes on when it is told to."""

    def paid() -> list[str]:
        with open(file) as lines:
            return lines.read().split()

    async def has_paid(arguments: Any, _context: Context) -> bool:
        return arguments["order"] in await asyncio.to_thread(paid)

    def note(order: str) -> None:
        out = os.open(file, os.O_WRONLY | os.O_APPEND)
        os.write(out, f"{order}\n".encode())
        os.close(out)

    @tool(effect="send", probe=has_paid, timeout_s=60, deadline_s=60)
    async def pay(order: str) -> str:
        if order in waiting:
            say(entered=order)
            await hear()
        await asyncio.to_thread(note, order)
        return "paid"

    @tool(effect="send")
    async def send(order: str) -> str:
        await asyncio.to_thread(note, order)
        return "sent"

    return [pay, send]


class Worker:
    """What it can be told to do."""

    def __init__(self, runtime: Runtime, waiting: set[str]) -> None:
        self._runtime, self._waiting = runtime, waiting

    async def pay(self, order: str, waits: bool = False) -> Any:
        """A payment; the same order is the same call."""
        self._waiting |= {order} if waits else set()
        outcome = await self._runtime.call("pay", {"order": order}, actor="ann", call_id=order)
        return outcome.status.value

    async def recover(self, during_s: float) -> Any:
        """What it settles within that time: whom it takes for dead."""
        end, found = asyncio.get_running_loop().time() + during_s, list[str]()
        while not found and asyncio.get_running_loop().time() < end:
            found += [item.state for item in await self._runtime.operations.recover()]
            await asyncio.sleep(0.05)
        return found

    async def ask(self, order: str) -> Any:
        """A call that waits for a person; its ticket."""
        return (await self._runtime.call("send", {"order": order}, actor="ann", call_id=order)).ticket

    async def decide(self, ticket: str, by: str) -> Any:
        """Approve; or why they may not."""
        try:
            await self._runtime.operations.decide(ticket, approve=True, by=by)
        except NotAllowed as error:
            return str(error)
        return "approved"

    async def resume(self, ticket: str) -> Any:
        """The call, made."""
        outcome = await self._runtime.operations.resume(ticket)
        return [outcome.status.value, outcome.said]


async def work(url: str, file: str, deputy: str, former: str) -> None:
    """Open the store, and do as told until there is nothing more."""
    settings = Settings(lease_s=LEASE_S, busy_s=30.0)
    policy = parse_policy(POLICY.replace("{deputy}", deputy).replace("{former}", former))
    waiting: set[str] = set()
    tools = paying(file, waiting)
    async with Runtime.open(url, policy=policy, tools=tools, settings=settings, principal="service:asker") as runtime:
        worker = Worker(runtime, waiting)
        say(ready=os.getpid())
        while (told := await hear()) is not None:
            do: Callable[..., Awaitable[Any]] = getattr(worker, told["do"])
            say(did=await do(**told["given"]))


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[2:]))
