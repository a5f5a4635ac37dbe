"""What processes do that want the same thing: room on a disk that is full, a file that is held, the same keys."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import signal
import time
from pathlib import Path
from typing import Any

from interlock import Context, Outcome, Runtime, Status, Tool, tool
from interlock.config import Settings
from interlock.errors import StoreError, StoreFull
from interlock.policy import parse_policy
from interlock.resources import Documents
from interlock.stores import open_store
from tests.test_changes import OPEN
from tests.test_store_contract import batch, entry

ROOM = 1_200_000
"""The bytes that a file may have while the disk is "full": the kernel itself refuses what goes beyond."""
CALLERS = 24


def key_beside(url: str) -> str:
    """The file of the payloads' key, named: a process may have been started in another test's environment."""
    return f"{Path(url.removeprefix('sqlite:///')).parent}/payloads.key" if url.startswith("sqlite") else ""


def set_room(most: int) -> None:
    """Make the disk full, or give it room again."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write is to fail as on a full disk, not to end the process
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def fill_in_groups(url: str, answers: Path) -> None:
    """Callers who commit at once, until the disk is full under all of them; then with room again."""

    async def run() -> None:
        heard: dict[str, list[Any]] = {"acknowledged": [], "full": [], "afterwards": []}
        store = open_store(url, payload_key=key_beside(url))

        async def keep_committing(who: int) -> None:
            for n in range(5_000):
                call = who * 10_000 + n
                try:
                    receipt: Any = await store.commit(batch(entry(call, payload=b"x" * random.randrange(4_000))))
                except StoreFull:
                    heard["full"].append(f"c{call}")
                    return
                heard["acknowledged"].append((receipt.ids[0], f"c{call}"))

        set_room(ROOM)
        await asyncio.gather(*map(keep_committing, range(CALLERS)))
        set_room(resource.RLIM_INFINITY)
        for who in range(CALLERS):
            receipt: Any = await store.commit(batch(entry(who * 10_000 + 9_999)))
            heard["afterwards"].append((receipt.ids[0], f"c{who * 10_000 + 9_999}"))
        await store.close()
        answers.write_text(json.dumps(heard))

    asyncio.run(run())


def paying(made: list[str]) -> Tool:
    """A payment with a note that takes room."""

    async def has_paid(arguments: Any, _context: Context) -> bool:
        return arguments["order"] in made

    @tool(effect="send", probe=has_paid)
    async def pay(order: str, note: str) -> str:
        made.append(order)
        await asyncio.sleep(0)
        return f"paid {order}"

    return pay


def pay_on_a_full_disk(url: str, answers: Path) -> None:
    """Calls at once through the path, on a disk that fills up; all of them again when there is room."""

    async def run() -> None:
        made: list[str] = []
        first: dict[str, str] = {}
        settings = Settings(lease_s=1.0, payload_key=key_beside(url))
        async with Runtime.open(url, policy=parse_policy(OPEN), tools=[paying(made)], settings=settings) as runtime:

            async def deliver(order: str) -> Outcome:
                arguments = {"order": order, "note": "x" * 300}
                return await runtime.call("pay", arguments, actor="ann", call_id=order, mode="apply")

            set_room(ROOM)
            for round_ in range(100):
                orders = [f"{round_}-{who}" for who in range(CALLERS)]
                ends = await asyncio.gather(*map(deliver, orders))
                first |= {order: end.status.value for order, end in zip(orders, ends, strict=True)}
                if all(end.status is Status.FAILED for end in ends):  # not one intent finds room
                    break
            paid_first = list(made)
            set_room(resource.RLIM_INFINITY)
            again, end = {order: await deliver(order) for order in first}, time.monotonic() + 60
            while (left := [order for order in first if not again[order].ok]) and time.monotonic() < end:
                await runtime.operations.recover()  # what found no room for its end is settled once its lease is over
                again |= {order: await deliver(order) for order in left}
            statuses = [again[order].status.value for order in first]
        answers.write_text(json.dumps({"first": first, "paid first": paid_first, "again": statuses, "made": made}))

    asyncio.run(run())


def hold_file(file: str, until: Any) -> None:
    """Somebody else's process: it takes the file for longer than anybody waits, again and again."""
    import sqlite3

    other = sqlite3.connect(file, isolation_level=None, timeout=30)
    while not until.is_set():
        other.execute("BEGIN IMMEDIATE")
        time.sleep(0.1)
        other.execute("ROLLBACK")
        time.sleep(0.05)
    other.close()


def deliver_impatiently(url: str, file: Path, calls: int, answers: Path, seed: int) -> None:
    """The same calls as every other process, with little patience, until each has an answer."""

    async def has_paid(arguments: Any, _context: Context) -> bool:
        return arguments["order"] in (file.read_text().split() if file.exists() else [])

    @tool(effect="send", probe=has_paid, timeout_s=20)
    async def pay(order: str) -> str:
        with file.open("a") as out:
            out.write(f"{order}\n")
        return f"paid {order}"

    async def run() -> None:
        settings, busy = Settings(busy_s=0.03, lease_s=2.0, payload_key=key_beside(url)), 0
        async with Runtime.open(url, policy=parse_policy(OPEN), tools=[pay], settings=settings) as runtime:
            left = [f"o{n}" for n in range(calls)]
            random.Random(seed).shuffle(left)
            end = time.monotonic() + 120
            while left and time.monotonic() < end:
                order = left.pop(0)
                outcome = await runtime.call("pay", {"order": order}, actor="ann", call_id=order, mode="apply")
                if outcome.status is not Status.OK:
                    busy += 1
                    left.append(order)
                    try:
                        await runtime.operations.recover()
                    except StoreError:
                        busy += 1
        answers.write_text(json.dumps({"left": left, "busy": busy}))

    asyncio.run(run())


def swap_keys(url: str, calls: int, keys: int, answers: Path, seed: int) -> None:
    """Calls that hold several keys each, every process naming them in an order of its own."""
    shelf = Documents(url, "shelf", busy_s=60)

    @tool(effect="write", key=lambda given: tuple(given["ids"]), resource=shelf, timeout_s=60, deadline_s=120)
    async def note(n: int, ids: list[str], context: Context) -> int:
        found = {key: await shelf.read_state(key) for key in ids}
        states = {key: {"n": [*(found_.value["n"] if found_ else []), n]} for key, found_ in found.items()}
        await shelf.write_all(states, context)
        return n

    async def run() -> None:
        choose, ends = random.Random(7), list[str]()  # the same calls in every process
        work = [(n, choose.sample([f"k{k}" for k in range(keys)], 3)) for n in range(calls)]
        random.Random(seed).shuffle(work)
        settings = Settings(busy_s=60, payload_key=key_beside(url))
        async with Runtime.open(url, policy=parse_policy(OPEN), tools=[note], settings=settings) as runtime:
            places = asyncio.Semaphore(8)

            async def deliver(n: int, ids: list[str]) -> None:
                async with places:
                    call = runtime.call("note", {"n": n, "ids": ids}, actor="ann", call_id=f"n{n}", mode="apply")
                    ends.append((await call).status.value)

            await asyncio.gather(*(deliver(n, ids) for n, ids in work))
        await shelf.close()
        answers.write_text(json.dumps(ends))

    asyncio.run(run())
