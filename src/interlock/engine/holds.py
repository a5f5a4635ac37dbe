"""Holds: a lease that outlives one call, so that several changes are made while nobody else makes any.

A hold changes nothing itself. Its token goes with every change that is made under it; once it is lost, the begin commit
of the next change is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from interlock.engine.stages import World
from interlock.errors import Locked, StoreError
from interlock.standing import HOLD, ClaimState
from interlock.transitions import Batch, Claim, Close, Committed, Refused, Renew, Resolve
from interlock.values import Hold

_WAIT_S = 0.02


@asynccontextmanager
async def holding(world: World, keys: Iterable[str], *, call: str, wait_s: float) -> AsyncIterator[tuple[Hold, ...]]:
    """Hold these keys, taken in sorted order; `Locked` if somebody else does and does not let go in time."""
    end, held, beating = world.clock.monotonic() + wait_s, list[Hold](), list[asyncio.Task[None]]()
    try:
        for key in sorted(set(keys)):
            held.append(await _taken(world, key, call, end))
            beating.append(asyncio.get_running_loop().create_task(_beat(world, held[-1])))
        yield tuple(held)
    finally:
        for task in beating:
            task.cancel()
        for hold in held:
            await _let_go(world, hold)


async def _taken(world: World, key: str, call: str, end: float) -> Hold:
    name, holder = f"{HOLD}|{key}", world.ids.new()
    while True:
        now_us = world.clock.now_us()
        ask = Claim(name, HOLD, 1, holder, call, HOLD, (key,), now_us + world.lease_us)
        if world.faults is not None:
            world.faults.at("hold.take")
        receipt = await world.store.commit(Batch(now_us, (ask,)))
        if isinstance(receipt, Committed):
            return Hold(name, holder, key, receipt.tokens[0])
        if await _freed(world, name):
            continue
        if world.clock.monotonic() + _WAIT_S > end:
            raise Locked(f"{key!r} is held by somebody else; it is free when they have done, or their lease is over")
        await world.clock.sleep(_WAIT_S)


async def _freed(world: World, name: str) -> bool:
    """Settle a hold whose holder is dead: it changed nothing, so there is nothing to find out."""
    if world.faults is not None:
        world.faults.at("hold.look")
    claim, now_us = await world.store.claim(name), world.clock.now_us()
    if claim is None or claim.state is not ClaimState.OPEN or claim.expires_us > now_us:
        return False
    receipt = await world.store.commit(Batch(now_us, (Resolve(name, claim.holder, ClaimState.FAILED),)))
    return isinstance(receipt, Committed)


async def _beat(world: World, hold: Hold) -> None:
    """Renew it until it is given up or lost: what is made under a lost one is refused, so there is no more to do."""
    while True:
        await world.clock.sleep(world.lease_us / 3e6)
        now_us = world.clock.now_us()
        if world.faults is not None:
            world.faults.at("hold.renew")
        try:
            receipt = await world.store.commit(Batch(now_us, (Renew(hold.name, hold.holder, now_us + world.lease_us),)))
        except StoreError:
            continue  # the store is away: it stays ours until somebody settles it
        if isinstance(receipt, Refused):
            return


async def _let_go(world: World, hold: Hold) -> None:
    if world.faults is not None:
        world.faults.at("hold.give")
    try:
        await world.store.commit(Batch(world.clock.now_us(), (Close(hold.name, hold.holder, ClaimState.FAILED),)))
    except StoreError:
        pass  # it expires by itself
