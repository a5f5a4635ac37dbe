"""The heart of a runtime: while an effect runs or a lock is held, others must see that its holder is alive.

It beats in a thread of its own and on a connection of its own: an event loop that is busy, or a store that is busy with
others, does not make a living holder look dead.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from math import inf

from interlock.errors import StoreError
from interlock.ports import Clock, Store
from interlock.transitions import RenewClaim

_SOON_S = 1.0


class Beat:
    """One claim that is kept alive, until it is stopped or lost."""

    def __init__(self, heart: Heart, claim: str, holder: str, since_s: float, on_lost: Callable[[], object]) -> None:
        self.claim = claim
        self.holder = holder
        self.lost = False
        """Somebody else has settled it."""
        self.renewed_s = since_s
        self.due_s = since_s + heart.lease_s / 3
        self._heart = heart
        self._loop = asyncio.get_running_loop()
        self._on_lost = on_lost

    @property
    def is_overdue(self) -> bool:
        """Whether it was not renewed for as long as a lease lasts: others may have taken its holder for dead."""
        return self._heart.now_s() - self.renewed_s > self._heart.lease_s

    def stop(self) -> None:
        """What was made under it is over."""
        self._heart.forget(self)

    def lose(self) -> None:
        """Tell whoever makes something under it, on its own loop."""
        self.lost = True
        self.stop()
        try:
            self._loop.call_soon_threadsafe(self._on_lost)
        except RuntimeError:
            return  # the loop has ended, and what it made with it


class Heart:
    """Renews every claim a third of its lease after the last time: two renewals may fail before anybody notices."""

    def __init__(self, store: Store, clock: Clock, lease_us: int, at: Callable[[str], object]) -> None:
        self.lease_s = lease_us / 1e6
        self._store = store
        self._clock = clock
        self._lease_us = lease_us
        self._at = at
        self._beats: set[Beat] = set()
        self._lock = threading.Lock()
        """Taken by itself where nobody is woken: through its condition it takes longer."""
        self._changed = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._closed = False

    @staticmethod
    def now_s() -> float:
        """The stopwatch of leases: it runs on while a process is stopped."""
        return time.monotonic()

    def keep(self, claim: str, holder: str, since_s: float, on_lost: Callable[[], object]) -> Beat:
        """Keep a claim alive that is ours since then; `on_lost` is called on this loop if somebody else settles it."""
        beat = Beat(self, claim, holder, since_s, on_lost)
        with self._lock:
            self._beats.add(beat)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._work, name="interlock-heart", daemon=True)
                self._thread.start()
        return beat  # nobody is woken for it: the thread looks often enough to be in time

    def forget(self, beat: Beat) -> None:
        """Let a claim rest."""
        with self._lock:
            self._beats.discard(beat)

    def close(self) -> None:
        """Keep nothing alive any more."""
        with self._changed:
            self._closed = True
            self._beats.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while not self._closed:
            self._renew(self._wait_for_due())

    def _wait_for_due(self) -> list[Beat]:
        with self._changed:
            while not self._closed:
                now_s = self.now_s()
                due = [beat for beat in self._beats if beat.due_s <= now_s]
                if due:
                    return due
                next_s = min((beat.due_s for beat in self._beats), default=inf)
                # At least twice as often as anything that is kept from now on can be due.
                self._changed.wait(min(next_s - now_s, self.lease_s / 6))
        return []

    def _renew(self, due: list[Beat]) -> None:
        if not due:
            return
        self._at("heart.renew")
        asked_s = self.now_s()
        claims = [RenewClaim(beat.claim, beat.holder, self._lease_us) for beat in due]
        try:
            lost = self._store.renew(claims, self._clock.now_us())
        except StoreError:  # the store is away: the claims stay ours until somebody settles them
            for beat in due:
                beat.due_s = asked_s + min(_SOON_S, self.lease_s / 3)
            return
        for beat in due:
            if beat.claim in lost:
                beat.lose()
            else:
                beat.renewed_s, beat.due_s = asked_s, asked_s + self.lease_s / 3
