"""Holds: a lease that outlives one call, so that several changes are made while nobody else makes any.

A hold changes nothing itself. Its token goes with every change that is made under it; once it is lost, the begin commit
of the next change is refused, and so is one that has begun and not yet reached its effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from interlock.engine.stages import World
from interlock.errors import Locked, StoreError
from interlock.ports import noted_receipt
from interlock.standing import HOLD, ClaimState
from interlock.transitions import Batch, Claim, Close, Committed, Refused, Renew, Resolve
from interlock.values import Hold

_WAIT_S = 0.02


class Held(msgspec.Struct, frozen=True):
    """Holds that are kept alive, until they are given back."""

    holds: tuple[Hold, ...]
    beating: tuple[asyncio.Task[None], ...]


@asynccontextmanager
async def holding(world: World, keys: Iterable[str], *, call: str, wait_s: float) -> AsyncIterator[tuple[Hold, ...]]:
    """Hold these keys; `Locked` if somebody else does and does not let go in time."""
    held = await take(world, keys, call=call, wait_s=wait_s)
    try:
        yield held.holds
    finally:
        interrupt = await give(world, held)
        if interrupt is not None:
            raise interrupt


async def take(world: World, keys: Iterable[str], *, call: str, wait_s: float) -> Held:
    """Take holds in sorted order, all or none; whoever is cancelled meanwhile holds nothing."""
    end, held = world.clock.monotonic() + wait_s, Held((), ())
    try:
        for key in sorted(set(keys)):
            hold = await _taken(world, key, call, end)
            beating = asyncio.get_running_loop().create_task(_beat(world, hold))
            held = Held((*held.holds, hold), (*held.beating, beating))
    except BaseException:
        await give(world, held)
        raise
    return held


async def give(world: World, held: Held) -> asyncio.CancelledError | None:
    """Give holds back, whoever cancels meanwhile; the cancellation, if there was one."""
    for task in held.beating:
        task.cancel()
    interrupt = None
    for hold in held.holds:
        interrupt = await _to_the_end(_let_go(world, hold)) or interrupt
    return interrupt


async def _to_the_end(work: Coroutine[Any, Any, None]) -> asyncio.CancelledError | None:
    task, interrupt = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            interrupt = error
    task.result()
    return interrupt


async def _taken(world: World, key: str, call: str, end: float) -> Hold:
    name, holder = hold_name(key), world.ids.new()
    while True:
        now_us = world.clock.now_us()
        ask = Claim(name, HOLD, 1, holder, call, HOLD, (key,), now_us + world.lease_us)
        if world.faults is not None:
            world.faults.at("hold.take")
        try:
            receipt = await world.store.commit(Batch(now_us, (ask,)))
        except asyncio.CancelledError as error:
            landed = noted_receipt(error)
            if isinstance(landed, Committed):
                await _to_the_end(_let_go(world, Hold(name, holder, key, landed.tokens[0])))
            raise
        if isinstance(receipt, Committed):
            return Hold(name, holder, key, receipt.tokens[0])
        if await freed(world, name):
            continue
        if world.clock.monotonic() + _WAIT_S > end:
            raise Locked(f"{key!r} is held by somebody else; it is free when they have done, or their lease is over")
        await world.clock.sleep(_WAIT_S)


def hold_name(key: str) -> str:
    """The name of the claim that stands for a hold."""
    return f"{HOLD}|{key}"


async def freed(world: World, name: str) -> bool:
    """Settle a hold whose holder is dead: it changed nothing, so there is nothing to find out."""
    if world.faults is not None:
        world.faults.at("hold.look")
    claim, now_us = await world.store.claim(name), world.clock.now_us()
    if claim is None or claim.state is not ClaimState.OPEN or claim.expires_us > now_us:
        return False
    receipt = await world.store.commit(Batch(now_us, (Resolve(name, claim.holder, ClaimState.FAILED),)))
    return isinstance(receipt, Committed)


async def lost(world: World, holds: tuple[Hold, ...]) -> Hold | None:
    """The first of the holds that is not ours any more."""
    for hold in holds:
        if world.faults is not None:
            world.faults.at("hold.still")
        claim = await world.store.claim(hold.name)
        if claim is None or claim.state is not ClaimState.OPEN or claim.holder != hold.holder:
            return hold
    return None


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
