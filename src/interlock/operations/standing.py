"""What was done to a key after a change, told by tokens and versions: that its words are equal again proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from interlock.changes import Snapshot, given_version, is_same_version, read_snapshots
from interlock.engine import EngineContext, WholeChange, links_of, undoes_of, whole_change
from interlock.operations.recover import read_record
from interlock.records import Stored
from interlock.state import LANDED, ChangeFilter, Claimed, ClaimState, overlapping


async def takes_back(ctx: EngineContext, claim: Claimed) -> bool:
    """Whether a change was made to take another one back."""
    return await undoes_of(ctx.store, ctx.at, claim) is not None


def recorded_versions(record: Stored) -> tuple[str, ...]:
    """The versions at which a change left its keys, by its outcome or by whoever settled it; () if nobody saw them."""
    content = record.content()
    if record.kind != "settle":
        return () if content.change is None else content.change.versions
    said = content.arguments.get("versions", ()) if isinstance(content.arguments, dict) else ()
    return tuple(str(version) for version in said)


class LaterChanges:
    """The changes that landed since the earliest of those that are to be taken back; read once, when first needed."""

    def __init__(self, ctx: EngineContext, made: Sequence[Claimed], with_them: Iterable[str] = ()) -> None:
        self._ctx = ctx
        self._taken_back_too = {claim.name for claim in made}.union(with_them)
        self._since_us = min((claim.at_us for claim in made), default=0)
        self._found: dict[str, list[tuple[int, Claimed]]] | None = None
        self._whole_changes: dict[str, WholeChange] = {}

    async def standing(self, claim: Claimed, key: str) -> Claimed | None:
        """The last recorded change of the key after the claim's, which stands and is not taken back with it."""
        own = _token(claim, key)
        for token, other in reversed(await self._of(key)):
            if token <= own:
                return None
            stands = other.state is ClaimState.DONE and other.name not in self._taken_back_too
            if stands and await self._makes_since(other, key, own):
                return other
        return None

    async def _makes_since(self, other: Claimed, key: str, token: int) -> bool:
        """Whether something is there by a change that was not there at a token: it takes nothing back, or what had
        taken something back since. Where both came since, all is as it was."""
        links = await links_of(self._ctx.store, self._ctx.at, other.key)
        then = [link for link in links if link.claim is not None and _token(link.claim, key) <= token]
        return len(links) % 2 == 1 and len(then) % 2 == 0

    async def explain_unrecorded(self, key: str, now: Snapshot) -> str:
        """Why a key is not at the version at which the last recorded change of it left it, or cannot be shown to be;
        empty if it is, or if there are no versions to go by."""
        changes = await self._of(key)
        last = changes[-1][1] if changes else None
        if last is None or last.record is None:
            return ""
        if key not in last.keys:
            return await self._unrecorded_since_whole(last, key, given_version(now.version))
        record, _payload = await read_record(self._ctx, last.record)
        versions = () if record is None else recorded_versions(record)
        if len(versions) != len(last.keys) or is_same_version(now.version, versions[last.keys.index(key)]):
            return ""
        return f"{key} has changed since"

    async def _unrecorded_since_whole(self, last: Claimed, key: str, version: str | None) -> str:
        if version is None:
            return ""
        left = ((await self._whole(last)).left or {}).get(key)
        if left is not None:
            return "" if left == version else f"{key} has changed since"
        if await self._is_unmoved(last):
            return ""
        return f"record {last.record} does not say at which version it left {key}, which may have changed since"

    async def _is_unmoved(self, last: Claimed) -> bool:
        """Whether nothing at all has moved in a whole resource since a change of it that was settled later: whoever
        settled it has seen it as a whole, and not written down each version in it."""
        binding, number = self._ctx.bindings.get(last.tool), last.record
        record = None if number is None else (await read_record(self._ctx, number))[0]
        if binding is None or record is None or not recorded_versions(record):
            return False
        now = await read_snapshots(binding.tool, last.keys, self._ctx.snapshot_reader)
        return tuple(snapshot.version for snapshot in now) == recorded_versions(record)

    async def _of(self, key: str) -> list[tuple[int, Claimed]]:
        """What landed on a key, alone or with its whole resource, in the order of tokens."""
        if self._found is None:
            self._ctx.at("undo.later")
            self._found = {}
            for claim in await self._ctx.store.claims(ChangeFilter(since_us=self._since_us)):
                if claim.state in LANDED and not claim.is_lock:
                    for name, token in zip(claim.keys, claim.tokens, strict=True):
                        self._found.setdefault(name, []).append((token, claim))
        both = [item for name in overlapping(key, self._found) for item in self._found[name]]
        touched = [
            (token, claim) for token, claim in both if key in claim.keys or (await self._whole(claim)).has_touched(key)
        ]
        return sorted(touched, key=lambda item: item[0])

    async def _whole(self, claim: Claimed) -> WholeChange:
        """What a change of the whole resource did, read once."""
        if claim.name not in self._whole_changes:
            self._whole_changes[claim.name] = await whole_change(self._ctx, claim)
        return self._whole_changes[claim.name]


def _token(claim: Claimed, key: str) -> int:
    tokens = dict(zip(claim.keys, claim.tokens, strict=True))
    return tokens.get(key, max(tokens.values(), default=0))
