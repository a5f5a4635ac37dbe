"""What a batch means: the same arithmetic for every store.

A store loads the few accounts, buckets and heads that a batch touches into a `State`, asks `refusal`, and if there is
none lets `apply` change it; then it writes the state back. The memory store simply keeps its one State.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from interlock.ports import Append, Batch, Refused, Reserve, Seal, Settle, Spent, Take, link
from interlock.values import Checkpoint, Record, Stored

_encode = msgspec.json.Encoder().encode


class Account(msgspec.Struct):
    """What a scope has spent."""

    calls: int = 0
    cost_micros: int = 0
    ms: int = 0


class Chain(msgspec.Struct):
    """The end of one lane."""

    lane: int
    id: int
    count: int
    hash: str

    def extend(self, record: Record, number: int) -> Stored:
        """Put a record at the end of the lane."""
        body = _encode(record.content)
        columns = (
            number,
            self.lane,
            record.at_us,
            record.kind,
            record.call,
            record.turn,
            record.actor,
            record.tool,
            record.status,
        )
        self.hash = link(self.hash, columns, body)
        self.id = number
        self.count += 1
        return Stored(
            id=number,
            lane=self.lane,
            hash=self.hash,
            at_us=record.at_us,
            kind=record.kind,
            call=record.call,
            turn=record.turn,
            actor=record.actor,
            tool=record.tool,
            status=record.status,
            body=body.decode(),
        )


class State:
    """Accounts, reservations, buckets and checkpoints, as far as they are loaded."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.held: dict[str, dict[str, Reserve]] = {}
        self.buckets: dict[str, tuple[float, int]] = {}
        self.last_checkpoint = 0
        self.spent_scopes: set[str] = set()
        self.taken_buckets: set[str] = set()
        self.held_new: dict[tuple[str, str], Reserve] = {}
        self.held_gone: set[tuple[str, str]] = set()
        self.sealed: list[Checkpoint] = []

    def refusal(self, batch: Batch) -> Refused | None:
        """Why the batch cannot land, or None; nothing is changed."""
        for transition in batch.transitions:
            refused = None
            if isinstance(transition, Reserve):
                refused = self._overspends(transition, batch.now_us)
            elif isinstance(transition, Take):
                refused = self._drained(transition, batch.now_us)
            elif isinstance(transition, Seal) and transition.checkpoint.n != self.last_checkpoint + 1:
                refused = Refused(kind="conflict", limit="checkpoint", message="another checkpoint was made meanwhile")
            if refused is not None:
                return refused
        return None

    def apply(self, batch: Batch) -> list[Append]:
        """Change the state by an accepted batch; its appends are for the caller to chain."""
        appends = []
        for transition in batch.transitions:
            match transition:
                case Append():
                    appends.append(transition)
                case Reserve():
                    self._drop_expired(transition.scope, batch.now_us)
                    self.held.setdefault(transition.scope, {})[transition.call] = transition
                    self.held_new[transition.call, transition.scope] = transition
                case Settle():
                    self._settle(transition)
                case Take():
                    tokens = _refilled(self.buckets.get(transition.bucket), transition, batch.now_us)
                    self.buckets[transition.bucket] = (tokens - 1.0, batch.now_us)
                    self.taken_buckets.add(transition.bucket)
                case Seal():
                    self.last_checkpoint = transition.checkpoint.n
                    self.sealed.append(transition.checkpoint)
                case _:
                    assert_never(transition)
        return appends

    def forget_changes(self) -> None:
        """What had to be written back has been."""
        self.spent_scopes.clear()
        self.taken_buckets.clear()
        self.held_new.clear()
        self.held_gone.clear()
        self.sealed.clear()

    def spent(self, scope: str, now_us: int) -> Spent:
        """What a scope has used and what is set aside in it now."""
        account = self.accounts.get(scope) or Account()
        live = [held for held in self.held.get(scope, {}).values() if held.expires_us > now_us]
        return Spent(
            calls=account.calls,
            cost_micros=account.cost_micros,
            ms=account.ms,
            reserved_calls=sum(held.calls for held in live),
            reserved_cost_micros=sum(held.cost_micros for held in live),
            reserved_ms=sum(held.ms for held in live),
        )

    def _overspends(self, ask: Reserve, now_us: int) -> Refused | None:
        now = self.spent(ask.scope, now_us)
        for what, used, more, limit in (
            ("calls", now.calls + now.reserved_calls, ask.calls, ask.limit_calls),
            ("cost", now.cost_micros + now.reserved_cost_micros, ask.cost_micros, ask.limit_cost_micros),
            ("milliseconds", now.ms + now.reserved_ms, ask.ms, ask.limit_ms),
        ):
            if limit is not None and used + more > limit:
                left = max(0, limit - used)
                message = f"budget {ask.budget!r} has {left} of {limit} {what} left, and this call needs {more}"
                return Refused(kind="budget", limit=ask.budget, message=message)
        return None

    def _drained(self, ask: Take, now_us: int) -> Refused | None:
        tokens = _refilled(self.buckets.get(ask.bucket), ask, now_us)
        if tokens >= 1.0:
            return None
        wait_s = round((1.0 - tokens) / ask.per_s, 3)
        message = f"rate limit {ask.rate!r} is reached; try again in {wait_s:g} s"
        return Refused(kind="rate", limit=ask.rate, message=message, retry_after_s=wait_s)

    def _settle(self, done: Settle) -> None:
        if self.held.get(done.scope, {}).pop(done.call, None) is not None:
            self.held_gone.add((done.call, done.scope))
            self.held_new.pop((done.call, done.scope), None)
        account = self.accounts.setdefault(done.scope, Account())
        account.calls += done.calls
        account.cost_micros += done.cost_micros
        account.ms += done.ms
        self.spent_scopes.add(done.scope)

    def _drop_expired(self, scope: str, now_us: int) -> None:
        held = self.held.get(scope)
        if held:
            for call in [call for call, item in held.items() if item.expires_us <= now_us]:
                del held[call]
                self.held_gone.add((call, scope))


def _refilled(held: tuple[float, int] | None, ask: Take, now_us: int) -> float:
    """Tokens in a bucket now; a clock that stepped back adds none and takes none."""
    if held is None:
        return float(ask.burst)
    tokens, at_us = held
    return min(float(ask.burst), tokens + max(0, now_us - at_us) / 1e6 * ask.per_s)
