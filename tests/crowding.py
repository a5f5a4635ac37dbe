"""What one of many processes does: deliver the same changes as all the others, in an order of its own."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from interlock import Context, Runtime, tool
from interlock.config import Settings
from interlock.policy import parse_policy
from interlock.resources import Documents

POLICY = 'version = 1\nmode = "apply"\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'


def crowd(store: str, documents: str, keys: int, seed: int) -> None:
    """The body of one process."""
    asyncio.run(_crowd(store, documents, keys, seed))


async def _crowd(store: str, url: str, keys: int, seed: int) -> None:
    shelf = Documents(url, "shelf", busy_s=60)

    @tool(effect="write", key="{key}", resource=shelf, timeout_s=60, deadline_s=120)
    async def bump(key: str, delivery: int, context: Context) -> int:
        """Add one and note who did it under which token: a lost update or an old token would show."""
        found = await shelf.read_state(key)
        state: dict[str, Any] = {"n": 0, "tokens": [], "deliveries": []} if found is None else found.value
        await asyncio.sleep(random.uniform(0, 0.002))
        token, version = context.tokens[key], None if found is None else found.version
        state = {
            "n": state["n"] + 1,
            "tokens": [*state["tokens"], token],
            "deliveries": [*state["deliveries"], delivery],
        }
        await shelf.write(key, state, context, version=version or "0")
        return int(state["n"])

    runtime = Runtime.open(store, policy=parse_policy(POLICY), tools=[bump], settings=Settings(busy_s=60))
    work = [(f"k{key}", delivery) for key in range(keys) for delivery in (1, 2)]
    random.Random(seed).shuffle(work)
    places = asyncio.Semaphore(16)

    async def deliver(key: str, delivery: int) -> None:
        async with places:
            turn = f"turn-{key}-{delivery}"
            outcome = await runtime.call(
                "bump", {"key": key, "delivery": delivery}, actor="ann", turn=turn, call_id=turn
            )
            assert outcome.ok, outcome

    await asyncio.gather(*(deliver(key, delivery) for key, delivery in work))
    await runtime.close()
    await shelf.close()
