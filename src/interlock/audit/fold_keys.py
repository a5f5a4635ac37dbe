"""What the records say about keys: which changes held them, under which tokens, and which one landed last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from interlock.audit.signed_times import is_about
from interlock.ports import Store
from interlock.records import Content
from interlock.state import LANDED, NOT_KEPT, Claimed, ClaimState, Lease, overlapping, wildcard

_DOUBT = (ClaimState.OPEN, ClaimState.UNKNOWN)


class Landing(msgspec.Struct, frozen=True):
    """When a change landed, in which run or turn, and whether it left the key as it was."""

    at_us: int
    run: str
    untouched: bool


def exact_keys(content: Content) -> tuple[str, ...]:
    """The keys of a record as they are; none where its tool redacts, as what stands there may stand for several."""
    return content.keys if content.arguments_digest is None else ()


class KeyFold:
    """Folded in the order of record ids: whoever begins a change has waited for the end of the one before it."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        """What can be in no honest ledger, whatever the tables say now."""
        self._held: dict[str, int] = {}
        self._tokens: dict[str, int] = {}
        self._changed: dict[str, int] = {}
        self._landed: dict[str, int] = {}
        """By which record a change of each key is known to have landed last."""
        self._resources: set[str] = set()

    def know(self, content: Content) -> None:
        """Note which resources there are, and the locks that a change was made under."""
        under = {} if content.change is None else content.change.under
        self._resources.update(map(wildcard, (*content.keys, *under)))
        # Where a tool redacts, a key of theirs may stand for several, too.
        for key, token in under.items() if content.arguments_digest is None else ():
            self._tokens[key] = max(self._tokens.get(key, 0), token)

    def begin(self, keys: tuple[str, ...], number: int) -> None:
        """A change was begun, by a record: its keys were free, and each has a new token."""
        for key in keys:
            before = self._holder(key)
            if before is not None:
                self.faults.append(
                    f"record {number}: begins a change of {key}, which the change of record {before} still held"
                )
            self._tokens[key] = self._tokens.get(key, 0) + 1
        self._held.update(dict.fromkeys(keys, number))

    def grant(self, keys: tuple[str, ...], tokens: tuple[int, ...]) -> None:
        """A change says under which tokens it was made."""
        for key, token in zip(keys, tokens, strict=False):
            self._tokens[key] = max(self._tokens.get(key, 0), token)

    def free(self, keys: tuple[str, ...]) -> None:
        """It is known how a change ended: its keys are free again."""
        for key in keys:
            self._held.pop(key, None)

    def land(self, shown: tuple[str, ...], keys: tuple[str, ...], tokens: tuple[int, ...], number: int) -> None:
        """A change landed, as a record says; of which key, if that is redacted, only its resource knows."""
        self._changed.update(zip(keys, tokens, strict=False))
        self._landed.update(dict.fromkeys(keys or map(wildcard, shown), number))

    def changed_since(self, stands: dict[str, int]) -> bool:
        """Whether another change of one of the keys landed after the record by which a change made it what it is."""
        oldest: dict[str, int] = {}  # in each resource, which a change of the whole is held against
        for key, number in stands.items():
            oldest[wildcard(key)] = min(number, oldest.get(wildcard(key), number))
        for name in {name for key in stands for name in overlapping(key, self._landed)}:
            known = (stands.get(name, 0), stands.get(wildcard(name), 0), oldest.get(name, 0))
            if self._landed[name] > max(known):
                return True
        return False

    def _holder(self, key: str) -> int | None:
        return next(_overlapping(self._held, key), None)

    async def read(self, store: Store) -> dict[str, Lease]:
        """The leases of every resource that the ledger knows."""
        if not self._resources:
            return {}
        return {lease.key: lease for lease in await store.leases(tuple(sorted(self._resources)))}

    def compare(
        self,
        before: dict[str, Lease],
        claims: Iterable[Claimed],
        after: dict[str, Lease],
        landings: dict[tuple[str, int], Landing],
    ) -> list[str]:
        """What leases say otherwise than the ledger and the claims, which were read between two looks at them.

        Locks come and go without a record: only a lease that both looks found the same is compared.
        """
        rows = [claim for claim in claims if any(wildcard(key) in self._resources for key in claim.keys)]
        granted = {pair for row in rows for pair in zip(row.keys, row.tokens, strict=False)}
        least = dict(self._tokens)
        for key, token in granted:
            least[key] = max(least.get(key, 0), token)
        leases = {}
        for key in sorted(key for key in {*before, *after, *least} if wildcard(key) in self._resources):
            first, second = before.get(key) or Lease(key), after.get(key) or Lease(key)
            if _grant(first) == _grant(second):
                leases[key] = first
        landed: dict[str, set[int]] = {}
        for row in rows:
            for key, token in zip(row.keys, row.tokens, strict=False) if row.state in LANDED else ():
                landed.setdefault(key, set()).add(token)
        problems: list[str] = []
        for key, lease in leases.items():
            problems += self._token_faults(key, lease, least.get(key, 0), landed)
        problems += _holder_faults(leases, rows, self._show_key)
        problems += _time_faults(leases, landings, self._show_key)
        return problems

    def _token_faults(self, key: str, lease: Lease, least: int, landed: dict[str, set[int]]) -> Iterator[str]:
        where = f"key {self._show_key(key)}"
        if lease.token < least:
            yield (
                f"{where}: its lease has the token {lease.token}, and {least} was granted: it was set back, so that two"
                " holders could have the same one"
            )
        changed = max([self._changed.get(key, 0), *landed.get(key, ())])
        if lease.changed < changed:
            yield f"{where}: was changed under token {changed}, and its lease says {lease.changed}"
        elif lease.changed and lease.changed not in landed.get(key, ()):
            yield f"{where}: its lease says that it was changed under token {lease.changed}, and no change was"

    def _show_key(self, key: str) -> str:
        """A key that stands in the ledger; of one that may be redacted there only its resource."""
        return key if key in self._tokens else f"of {key.partition('/')[0]}"


def _holder_faults(leases: dict[str, Lease], rows: list[Claimed], shown: Callable[[str], str]) -> Iterator[str]:
    doubtful = [row for row in rows if row.state in _DOUBT]
    for row in doubtful:
        for key in row.keys:
            if key in leases and leases[key].holder != row.holder:
                held = "held for another change" if leases[key].holder else "free"
                whose = "somebody has locked it" if row.is_lock else f"the change of record {row.intent} is not over"
                yield f"key {shown(key)}: is {held} in the store, while {whose}: it could be changed meanwhile"
            elif key in leases and (key, leases[key].token) not in zip(row.keys, row.tokens, strict=False):
                yield f"key {shown(key)}: is held under another token than its claim says"
    holders = {row.holder for row in doubtful}
    for key, lease in leases.items():
        if lease.holder and lease.holder not in holders:
            yield f"key {shown(key)}: is held in the store for a change that nobody is making: nobody can change it"


def _time_faults(
    leases: dict[str, Lease], landings: dict[tuple[str, int], Landing], shown: Callable[[str], str]
) -> Iterator[str]:
    """When a key was last changed, and when by another run than that, decides how long it rests."""
    changes: dict[str, list[tuple[int, Landing]]] = {}
    for (key, token), landing in landings.items():
        if not landing.untouched:
            changes.setdefault(key, []).append((token, landing))
    never = Landing(0, "", untouched=True)
    for key, lease in leases.items():
        newest_first = [landing for _token, landing in sorted(changes.get(key, ()), key=lambda one: -one[0])]
        last = newest_first[0] if newest_first else never
        others = next((landing for landing in newest_first if landing.run != last.run), never)
        is_last = lease.changed_run == last.run and is_about(lease.changed_us, last.at_us)
        # Where nobody has kept it, the key rests for whatever run changed it last.
        knows = lease.others_us != NOT_KEPT
        if not is_last or (knows and not (lease.others_run == others.run and is_about(lease.others_us, others.at_us))):
            yield f"key {shown(key)}: was changed at another time, or in another run, than its lease says"


def _overlapping(numbers: dict[str, int], key: str) -> Iterator[int]:
    """What is noted for a key, and for its whole resource; for that, what is noted for each key in it."""
    yield from (numbers[name] for name in overlapping(key, numbers))


def _grant(lease: Lease) -> tuple[str, int, int]:
    return lease.holder, lease.token, lease.changed
