"""Claims and leases: the arithmetic of "at most once", the same for every store.

A key is held from the intent of a change until its outcome is known, however long that takes: no expiry ever gives a
held key to somebody else. Expiry only says when a holder may be taken for dead, so that its claim can be settled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import msgspec

from interlock.reasons import RefusalKind
from interlock.state import (
    LANDED,
    ChangeFilter,
    Claimed,
    ClaimState,
    Lease,
    call_id_row,
    is_wildcard,
    may_bind,
    wildcard,
)
from interlock.transitions import (
    BindCallId,
    CloseClaim,
    MarkReturning,
    MarkStanding,
    MarkUndone,
    OpenClaim,
    Refused,
    RenewClaim,
    RequireClaim,
    ResolveClaim,
)

Mark = MarkUndone | MarkReturning | MarkStanding
ClaimTransition = OpenClaim | BindCallId | RenewClaim | CloseClaim | ResolveClaim | Mark | RequireClaim
_MARKS: dict[type[Mark], tuple[ClaimState, tuple[ClaimState, ...]]] = {
    MarkUndone: (ClaimState.UNDONE, (ClaimState.DONE, ClaimState.RETURNING)),
    MarkReturning: (ClaimState.RETURNING, (ClaimState.UNDONE,)),
    MarkStanding: (ClaimState.DONE, (ClaimState.RETURNING,)),
}
"""What each makes of a claim that was made, and in which states that has to be."""
_OVER = (ClaimState.DONE, ClaimState.FAILED)
_IN_DOUBT = (ClaimState.OPEN, ClaimState.UNKNOWN)


class LeaseGrant(msgspec.Struct, frozen=True, gc=False):
    """What the holder of a key is told: its fencing token, and that of the last change that landed on the key."""

    token: int
    changed: int


class ClaimTable:
    """Claims and leases, as far as they are loaded."""

    def __init__(self) -> None:
        self.claims: dict[str, Claimed] = {}
        self.leases: dict[str, Lease] = {}
        self.changed: set[str] = set()
        """Claims that were opened, or put aside, and are written whole."""
        self.moved: set[str] = set()
        """Claims of which only the state, the expiry or a record changed."""
        self.changed_keys: set[str] = set()
        self.unnumbered: list[tuple[str, str]] = []
        self.granted: tuple[LeaseGrant, ...] = ()

    def check(self, ask: ClaimTransition, now_us: int) -> Refused | None:
        """Why the transition is refused, or None."""
        row = self.claims.get(ask.name)
        match ask:
            case OpenClaim():
                before = None if row is None else self._made_before(row, ask)
                refused = self._used_otherwise(ask) or before or self._answered_before(ask)
                return refused or self._refuse_held(ask, now_us)
            case BindCallId():
                return None
            case RenewClaim() | CloseClaim() | RequireClaim():
                state = ask.state if isinstance(ask, RequireClaim) else ClaimState.OPEN
                if row is not None and (row.holder, row.state) == (ask.holder, state):
                    return None
                return Refused(RefusalKind.LOST, ask.name, "the claim was settled by somebody else meanwhile")
            case ResolveClaim():
                doubtful = row is not None and row.holder == ask.holder and row.state in _IN_DOUBT
                if doubtful and row is not None and (row.expires_us <= now_us or row.state is ClaimState.UNKNOWN):
                    return None
                return Refused(
                    RefusalKind.SETTLED, ask.name, "the claim is not in doubt: it was settled, or its holder is alive"
                )
            case MarkUndone() | MarkReturning() | MarkStanding():
                return _mark_fault(row, ask)
            case _:
                assert_never(ask)

    def apply(self, ask: ClaimTransition, now_us: int) -> None:
        """Make a transition that was checked."""
        if not isinstance(ask, RequireClaim | OpenClaim | BindCallId):
            self.moved.add(ask.name)
        match ask:
            case RequireClaim():
                pass
            case BindCallId():
                self._bind(ask)
            case OpenClaim():
                self.changed.add(ask.name)
                self._claim(ask, now_us)
            case RenewClaim():
                self._renew(ask, now_us + ask.lease_us)
            case CloseClaim() | ResolveClaim():
                row = self.claims[ask.name]
                self.claims[ask.name] = msgspec.structs.replace(row, state=ask.state)
                self.unnumbered.append((ask.name, "record"))
                if ask.state in _OVER:
                    self._release(row, frozenset(ask.untouched), now_us, landed=ask.state is ClaimState.DONE)
                else:
                    self._give_up(row, now_us)
            case MarkUndone() | MarkReturning() | MarkStanding():
                self.claims[ask.name] = msgspec.structs.replace(self.claims[ask.name], state=_MARKS[type(ask)][0])
            case _:
                assert_never(ask)

    def number(self, wanting: list[tuple[str, str]], record: int) -> None:
        """Tell claims the id of their intent or outcome, now that it has one."""
        for name, field in wanting:
            self.claims[name] = msgspec.structs.replace(self.claims[name], **{field: record})

    def _used_otherwise(self, ask: OpenClaim) -> Refused | None:
        used = self.claims.get(ask.call_name) if ask.call_name else None
        if used is None or used.request == ask.name:
            return None
        return Refused(
            RefusalKind.REUSED, ask.call_name, f"call id {ask.call!r} was used for another call; use a new one"
        )

    def _answered_before(self, ask: OpenClaim) -> Refused | None:
        used = self.claims.get(ask.call_name) if ask.call_name else None
        if used is None or used.record is None or ask.replays:
            return None
        message = f"call id {ask.call!r} was answered from record {used.record}"
        return Refused(RefusalKind.CLAIMED, ask.call_name, message)

    def _made_before(self, row: Claimed, ask: OpenClaim) -> Refused | None:
        if row.request != ask.request:
            return Refused(
                RefusalKind.REUSED, ask.name, f"call {row.call!r} used this idempotency key for another request"
            )
        match row.state:
            case ClaimState.OPEN:
                return Refused(RefusalKind.CLAIMED, ask.name, f"call {row.call!r} is making this very change")
            case ClaimState.UNKNOWN | ClaimState.RETURNING:
                return Refused(
                    RefusalKind.IN_DOUBT, ask.name, f"call {row.call!r} may have made this change; nobody knows yet"
                )
            case ClaimState.DONE:
                return (
                    None
                    if self._is_again(row, ask)
                    else Refused(RefusalKind.DONE, ask.name, f"call {row.call!r} has made this change")
                )
            case ClaimState.FAILED:
                expected = row.generation
            case ClaimState.UNDONE:
                expected = row.generation + 1
            case _:
                assert_never(row.state)
        return (
            None if ask.generation == expected else Refused(RefusalKind.CLAIMED, ask.name, "the claim moved meanwhile")
        )

    def _is_again(self, row: Claimed, ask: OpenClaim) -> bool:
        """Whether a change that stands may be made again: its caller found that another one came after it, and nothing
        has landed since it looked. Of what has, a store cannot tell what only took it back or made it again."""
        leases = self.leases.values()
        looked = ask.landings is not None and ask.landings == landings_on(row.keys, leases)
        return looked and ask.generation == row.generation + 1 and changed_since(row, leases)

    def _grant(self, key: str, now_us: int) -> LeaseGrant:
        """From the leases of the key and of everything in its resource, and for everything of each key in it."""
        everything, newest, changed = wildcard(key), 0, 0
        for name in (key, everything) if key != everything else self._of(everything):
            lease = self.leases.get(name)
            if lease is not None:
                newest, changed = max(newest, lease.token), max(changed, lease.changed)
        # Not below the time: a copy that was put back has forgotten tokens that resources remember as fences, of
        # keys, too, that it has never heard of. What it grants next is above all of them.
        return LeaseGrant(max(newest + 1, now_us), changed)

    def _refuse_held(self, ask: OpenClaim, now_us: int) -> Refused | None:
        for key in ask.keys:
            everything = wildcard(key)
            for name in (key, everything) if key != everything else self._of(everything):
                lease = self.leases.get(name)
                if lease is not None and lease.holder:
                    kind = RefusalKind.LEASED if lease.expires_us > now_us else RefusalKind.IN_DOUBT
                    # Expiry never grants a key that has an open intent: nobody knows yet whether that effect landed.
                    return Refused(kind, key, f"{key!r} is held by another change ({lease.holder})")
        return None

    def _of(self, everything: str) -> list[str]:
        return [key for key in self.leases if key.startswith(everything[:-1])]

    def _claim(self, ask: OpenClaim, now_us: int) -> None:
        granted: list[LeaseGrant] = []
        expires_us, before = now_us + ask.lease_us, self.claims.get(ask.name)
        if before is not None and before.state in LANDED and not before.is_lock:
            # It stands, and can still be undone; or it is history.
            kept = before.supersede()
            self.claims[kept.name] = kept
            self.changed.add(kept.name)
        for key in ask.keys:
            lease, grant = self.leases.get(key) or Lease(key), self._grant(key, now_us)
            granted.append(grant)
            self._lease(msgspec.structs.replace(lease, holder=ask.holder, token=grant.token, expires_us=expires_us))
        self.granted = tuple(granted)
        self.claims[ask.name] = Claimed(
            name=ask.name,
            request=ask.request,
            state=ClaimState.OPEN,
            generation=ask.generation,
            holder=ask.holder,
            call=ask.call,
            tool=ask.tool,
            keys=ask.keys,
            tokens=tuple([grant.token for grant in granted]),
            expires_us=expires_us,
            turn=ask.turn,
            run=ask.run,
            at_us=now_us,
        )
        self.unnumbered.append((ask.name, "intent"))
        if ask.call_name:
            # A row of its own: whoever comes with the same id waits for it in the store, and finds what it stands for.
            known = self.claims.get(ask.call_name)
            self._stand_for(call_id_row(known, ask.call_name, ask.name, ask.generation, ask.call))

    def _bind(self, ask: BindCallId) -> None:
        known = self.claims.get(ask.name)
        if may_bind(known, ask.claim, ask.generation):
            row = call_id_row(known, ask.name, ask.claim, ask.generation, ask.call)
            self._stand_for(msgspec.structs.replace(row, record=ask.record))

    def _stand_for(self, row: Claimed) -> None:
        self.claims[row.name] = row
        self.changed.add(row.name)
        self.unnumbered.append((row.name, "intent"))

    def _release(self, row: Claimed, untouched: frozenset[str], now_us: int, *, landed: bool) -> None:
        for key in row.keys:
            lease = self.leases[key]
            changed = lease.token if landed else lease.changed
            lease = msgspec.structs.replace(lease, holder="", expires_us=0, changed=changed)
            if landed and key not in untouched:
                lease = _changed_in(lease, row.run or row.turn or "", now_us)
            self._lease(lease)

    def _renew(self, ask: RenewClaim, expires_us: int) -> None:
        row = self.claims[ask.name]
        self.claims[ask.name] = msgspec.structs.replace(row, expires_us=expires_us)
        if ask.restated:
            self.unnumbered.append((ask.name, "intent"))
        for key in row.keys:
            self._lease(msgspec.structs.replace(self.leases[key], expires_us=expires_us))

    def _give_up(self, row: Claimed, now_us: int) -> None:
        """Nobody renews it any more: whoever wants its keys is told so now, not when the lease is over."""
        for key in row.keys:
            lease = self.leases[key]
            self._lease(msgspec.structs.replace(lease, expires_us=min(lease.expires_us, now_us)))

    def _lease(self, lease: Lease) -> None:
        self.leases[lease.key] = lease
        self.changed_keys.add(lease.key)


def _changed_in(lease: Lease, run: str, now_us: int) -> Lease:
    """A lease whose key was changed in a run, which must not hide when another one has changed it."""
    if lease.changed_us and lease.changed_run != run:
        lease = msgspec.structs.replace(lease, others_us=lease.changed_us, others_run=lease.changed_run)
    return msgspec.structs.replace(lease, changed_us=now_us, changed_run=run)


def _mark_fault(row: Claimed | None, ask: Mark) -> Refused | None:
    _becomes, fits = _MARKS[type(ask)]
    if row is not None and row.generation == ask.generation and row.state in fits:
        return None
    if isinstance(ask, MarkUndone):
        message = "the change does not stand any more: it was undone, or made again"
    else:
        message = "what was taken back stands again, is about to, or was made again since"
    return Refused(RefusalKind.UNDONE, ask.name, message)


def changed_since(row: Claimed, leases: Iterable[Lease]) -> bool:
    """Whether another recorded effect changed a key of the claim after it did: alone, or with its whole resource."""
    tokens = dict(zip(row.keys, row.tokens, strict=True))
    # The oldest of its own tokens in each resource, which one for the whole of that is held against: what has made
    # the change again may have done so for some of its keys only.
    oldest: dict[str, int] = {}
    for key, token in tokens.items():
        oldest[wildcard(key)] = min(token, oldest.get(wildcard(key), token))
    for lease in leases:
        mine = (tokens.get(lease.key), tokens.get(wildcard(lease.key)), oldest.get(lease.key))
        known = [token for token in mine if token is not None]
        if known and lease.changed > max(known):
            return True
    return False


def landings_on(keys: tuple[str, ...], leases: Iterable[Lease]) -> int:
    """A number that is another one as soon as a change has landed on one of the keys, alone or with its whole resource:
    the sum of the tokens under which each was changed last, as these only grow."""
    named, whole = {*keys, *map(wildcard, keys)}, tuple(key[:-1] for key in keys if is_wildcard(key))
    return sum(lease.changed for lease in leases if lease.key in named or lease.key.startswith(whole))


def matches_filter(claim: Claimed, which: ChangeFilter) -> bool:
    """Whether a claim is one of those."""
    return (
        (which.turn is None or claim.turn == which.turn)
        and (which.run is None or claim.run == which.run)
        and (which.key is None or which.key in claim.keys or wildcard(which.key) in claim.keys)
        and (which.since_us is None or claim.at_us >= which.since_us)
        # The row of an id names records too, and is no change.
        and (which.record is None or (which.record in (claim.record, claim.intent) and not claim.is_call_id))
    )
