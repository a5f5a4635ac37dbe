"""What was done to a key after a change, told by tokens and versions: that its words are equal again proves nothing."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.engine import EngineContext
from interlock.operations.recover import intent_of, read_record
from interlock.records import Stored
from interlock.state import ChangeFilter, Claimed, ClaimState

_LANDED = (ClaimState.DONE, ClaimState.UNDONE)


async def takes_back(ctx: EngineContext, claim: Claimed) -> bool:
    """Whether a change was made to take another one back."""
    record, _payload = await intent_of(ctx, claim)
    change = None if record is None else record.content().change
    return change is not None and change.undoes is not None


def recorded_versions(record: Stored) -> tuple[str, ...]:
    """The versions at which a change left its keys, by its outcome or by whoever settled it; () if nobody saw them."""
    content = record.content()
    if record.kind != "settle":
        return () if content.change is None else content.change.versions
    said = content.arguments.get("versions", ()) if isinstance(content.arguments, dict) else ()
    return tuple(str(version) for version in said)


class LaterChanges:
    """The changes that landed since the earliest of those that are to be taken back; read once, when first needed."""

    def __init__(self, ctx: EngineContext, made: Sequence[Claimed]) -> None:
        self._ctx = ctx
        self._taken_back_too = {claim.name for claim in made}
        self._since_us = min((claim.at_us for claim in made), default=0)
        self._found: dict[str, list[tuple[int, Claimed]]] | None = None

    async def standing(self, claim: Claimed, key: str) -> Claimed | None:
        """The last recorded change of the key after the claim's, which stands and is not taken back with it."""
        own = _token(claim, key)
        for token, other in reversed(await self._of(key)):
            if token <= own:
                return None
            stands = other.state is ClaimState.DONE and other.name not in self._taken_back_too
            if stands and not await takes_back(self._ctx, other):
                return other
        return None

    async def version(self, key: str) -> str | None:
        """The version at which the last recorded change left the key; None where its record does not say."""
        changes = await self._of(key)
        last = changes[-1][1] if changes else None
        if last is None or last.record is None or key not in last.keys:
            return None
        record, _payload = await read_record(self._ctx, last.record)
        versions = () if record is None else recorded_versions(record)
        return versions[last.keys.index(key)] if len(versions) == len(last.keys) else None

    async def _of(self, key: str) -> list[tuple[int, Claimed]]:
        """What landed on a key, alone or with its whole resource, in the order of tokens."""
        if self._found is None:
            self._ctx.at("undo.later")
            self._found = {}
            for claim in await self._ctx.store.claims(ChangeFilter(since_us=self._since_us)):
                if claim.state in _LANDED and not claim.is_lock:
                    for name, token in zip(claim.keys, claim.tokens, strict=True):
                        self._found.setdefault(name, []).append((token, claim))
        everything = f"{key.partition('/')[0]}/*"
        both = [*self._found.get(key, ()), *(self._found.get(everything, ()) if key != everything else ())]
        return sorted(both, key=lambda item: item[0])


def _token(claim: Claimed, key: str) -> int:
    tokens = dict(zip(claim.keys, claim.tokens, strict=True))
    return tokens.get(key, max(tokens.values(), default=0))
