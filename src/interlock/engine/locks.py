"""Locks: a lease that outlives one call, so that several changes are made while nobody else makes any.

A lock changes nothing itself. Its token goes with every change that is made under it; once it is lost, the begin commit
of the next change is refused, and so is one that has begun and not yet reached its effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import msgspec

from interlock.engine.context import EngineContext
from interlock.engine.heart import Beat
from interlock.engine.uninterrupted import run_uninterrupted
from interlock.engine.waiting import Waiting
from interlock.errors import Locked, StoreError, StoreSilent
from interlock.ports import GIVEN_UP_S, noted_receipt
from interlock.state import LOCK, ClaimState
from interlock.transitions import Batch, CloseClaim, Committed, OpenClaim, ResolveClaim
from interlock.values import Lock

_WAIT_S = 0.02
_LAST_WAIT_S = 2.0
"""How long a store that hangs may hold whoever takes a lock, beyond what they would wait."""


class HeldLocks(msgspec.Struct, frozen=True):
    """Locks that are kept alive, until they are given back."""

    locks: tuple[Lock, ...]
    beats: tuple[Beat, ...]


@asynccontextmanager
async def hold_locks(
    ctx: EngineContext, keys: Iterable[str], *, call: str, wait_s: float
) -> AsyncIterator[tuple[Lock, ...]]:
    """Hold these keys; `Locked` if somebody else does and does not let go in time."""
    held = await take_locks(ctx, keys, call=call, wait_s=wait_s)
    try:
        yield held.locks
    finally:
        interrupt = await release_locks(ctx, held)
        if interrupt is not None:
            raise interrupt


async def take_locks(ctx: EngineContext, keys: Iterable[str], *, call: str, wait_s: float) -> HeldLocks:
    """Take locks in sorted order, all or none; whoever is cancelled meanwhile holds nothing."""
    end, held = ctx.clock.monotonic() + wait_s, HeldLocks((), ())
    try:
        # In sorted order: two callers who want the same two keys cannot each lock one and wait for the other.
        for key in sorted(set(keys)):
            since_s = ctx.heart.now_s()
            lock = await _take(ctx, key, call, end)
            # What is made under a lost lock is refused, so nobody has to be told.
            beat = ctx.heart.keep(lock.name, lock.holder, since_s, _nobody)
            held = HeldLocks((*held.locks, lock), (*held.beats, beat))
    except BaseException:
        await release_locks(ctx, held)
        raise
    return held


async def release_locks(ctx: EngineContext, held: HeldLocks) -> asyncio.CancelledError | None:
    """Give locks back, whoever cancels meanwhile; the cancellation, if there was one."""
    for beat in held.beats:
        beat.stop()
    # All of them together hold their caller no longer than one: whatever is taken stays in line.
    interrupt, end = None, ctx.clock.monotonic() + GIVEN_UP_S
    for lock in held.locks:
        _, cancelled = await run_uninterrupted(_let_go(ctx, lock, end - ctx.clock.monotonic()))
        interrupt = cancelled or interrupt
    return interrupt


async def _take(ctx: EngineContext, key: str, call: str, end: float) -> Lock:
    name, holder, waiting = lock_name(key), ctx.ids.new(), Waiting(ctx.clock)
    while True:
        now_us = ctx.clock.now_us()
        ask = OpenClaim(name, LOCK, 1, holder, call, LOCK, (key,), ctx.lease_us)
        ctx.at("lock.take")
        try:
            wait_s = max(_LAST_WAIT_S, end - ctx.clock.monotonic())
            receipt = await ctx.store.commit(Batch(now_us, (ask,), wait_s))
        except (asyncio.CancelledError, StoreSilent) as error:
            landed = noted_receipt(error) if isinstance(error, asyncio.CancelledError) else error
            if isinstance(landed, Committed):
                await run_uninterrupted(_let_go(ctx, Lock(name, holder, key, landed.tokens[0]), GIVEN_UP_S))
            elif isinstance(landed, StoreSilent):  # it may still land; batches do so in their order
                await run_uninterrupted(_let_go(ctx, Lock(name, holder, key, 0), 0.0))
            raise
        if isinstance(receipt, Committed):
            return Lock(name, holder, key, receipt.tokens[0])
        if await release_dead(ctx, name):
            continue
        if ctx.clock.monotonic() + _WAIT_S > end:
            raise Locked(f"{key!r} is held by somebody else; it is free when they have done, or their lease is over")
        waiting.note("a lock that somebody else holds", ctx.lease_us / 1e6)
        await ctx.clock.sleep(_WAIT_S)


def lock_name(key: str) -> str:
    """The name of the claim that stands for a lock."""
    return f"{LOCK}|{key}"


async def release_dead(ctx: EngineContext, name: str) -> bool:
    """Settle a lock whose holder is dead: it changed nothing, so there is nothing to find out."""
    ctx.at("lock.look")
    claim, here_us = await ctx.store.claim(name), ctx.clock.now_us()
    if claim is None or claim.state is not ClaimState.OPEN or claim.expires_us > await ctx.store.now_us(here_us):
        return False
    receipt = await ctx.store.commit(Batch(here_us, (ResolveClaim(name, claim.holder, ClaimState.FAILED),)))
    return isinstance(receipt, Committed)


async def lost_lock(ctx: EngineContext, locks: tuple[Lock, ...]) -> Lock | None:
    """The first of the locks that is not ours any more."""
    for lock in locks:
        ctx.at("lock.check")
        claim = await ctx.store.claim(lock.name)
        if claim is None or claim.state is not ClaimState.OPEN or claim.holder != lock.holder:
            return lock
    return None


def _nobody() -> None: ...


async def _let_go(ctx: EngineContext, lock: Lock, wait_s: float) -> None:
    ctx.at("lock.release")
    try:
        close = CloseClaim(lock.name, lock.holder, ClaimState.FAILED)
        await ctx.store.commit(Batch(ctx.clock.now_us(), (close,), max(0.0, wait_s)))
    except StoreError:
        pass  # it expires by itself
