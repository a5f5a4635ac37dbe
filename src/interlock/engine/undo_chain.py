"""What a change takes back, what that had taken back, and so on: of such a chain every other link stands."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from interlock.changes import TakingBack
from interlock.engine.context import EngineContext
from interlock.openings import undo_name
from interlock.ports import Query, Store
from interlock.state import LANDED, Claimed, ClaimState
from interlock.stores.claims import changed_since, landings_on

_TAKEN_BACK = (ClaimState.UNDONE, ClaimState.RETURNING)
At = Callable[[str], object]
"""Names a fault point."""


class Link(msgspec.Struct, frozen=True):
    """One change of a chain: what it is called by the next one, and its claim, if there is one."""

    key: str
    claim: Claimed | None

    @property
    def number(self) -> int:
        """The record of the change."""
        return 0 if self.claim is None else self.claim.record or self.claim.intent or 0

    @property
    def is_newest(self) -> bool:
        """Whether no later generation has taken its place since it was taken back."""
        return self.claim is not None and self.claim.key == self.key


async def links_of(store: Store, at: At, undoes: str | None) -> list[Link]:
    """A change, what it had taken back, and so on down to one that took nothing back."""
    links: list[Link] = []
    while undoes is not None and all(link.key != undoes for link in links):
        link = Link(undoes, await claim_by_key(store, at, undoes))
        links.append(link)
        undoes = None if link.claim is None else await undoes_of(store, at, link.claim)
    return links


async def undoes_of(store: Store, at: At, claim: Claimed) -> str | None:
    """What a change was made to take back, as its intent says; None for one that takes nothing back."""
    if claim.intent is None:
        return None
    at("undo.intent")
    found = [record async for record in store.records(Query(after=claim.intent - 1, until=claim.intent))]
    change = found[0].content().change if found else None
    # Only of the change that it is the intent of: a row that names another one leads nowhere.
    return change.undoes if change is not None and change.claim == claim.first_name else None


async def claim_by_key(store: Store, at: At, key: str) -> Claimed | None:
    """The claim of an idempotency key, under its own name or under the one that it keeps beside later generations."""
    name, _, generation = key.rpartition(".")
    at("undo.claim")
    for kept in (name, f"{name}#{generation}"):
        row = await store.claim(kept)
        if row is not None and row.generation == int(generation):
            return row
    return None


def taking_back(links: list[Link]) -> TakingBack:
    """What becomes of the links of a chain when the first one is taken back."""
    back = tuple(link.key if link.claim is None else link.claim.key for link in links[0::2])
    return TakingBack(back, tuple(link.key for link in links[1::2]))


def chain_fault(links: list[Link]) -> str:
    """Why the first link of a chain cannot be taken back now; empty if it can."""
    for place, link in enumerate(links):
        state = None if link.claim is None else link.claim.state
        if place % 2 == 0 and state is not ClaimState.DONE:
            return f"the change of record {link.number} does not stand any more"
        if place % 2 and not link.is_newest:
            return f"the change that it took back (record {link.number}) was made again since; undo or keep that one"
        if place % 2 and state is not ClaimState.UNDONE:
            return f"the change that it took back (record {link.number}) stands again, or is about to"
    return ""


async def claims_to_mark(ctx: EngineContext, undoes: str | None, claim: Claimed | None) -> TakingBack | str:
    """What becomes of other changes with one that takes one back; or why that is not to be taken back so.

    A change is taken back once: where that was taken back in its turn, by its claim, it is for what made the change
    again to be taken back. So there is one name for it at any time, whoever asks.
    """
    ctx.at("claim.chain")
    links = await links_of(ctx.store, ctx.at, undoes)
    fault = chain_fault(links)
    if claim is not None and claim.state is ClaimState.UNDONE:
        fault = "it was taken back, and that was taken back in its turn meanwhile"
    return f"{fault}; look at what an undo would do now" if fault else taking_back(links)


async def landings_since(ctx: EngineContext, claim: Claimed) -> int | None:
    """What has landed on the keys of a change that stands, if another recorded effect changed one of them after it did;
    None if none did."""
    if claim.state is not ClaimState.DONE or not claim.keys:
        return None
    # Before the chain: what lands in between is not among these, so that the begin commit finds more than was seen.
    ctx.at("claim.leases")
    leases = await ctx.store.leases(claim.keys)
    if not changed_since(claim, leases) or not changed_since(await as_it_stands(ctx, claim), leases):
        return None
    return landings_on(claim.keys, leases)


async def as_it_stands(ctx: EngineContext, claim: Claimed) -> Claimed:
    """A change that stands, with the tokens under which its keys became what they are by it: what was taken back and is
    there again has not been changed by that."""
    made = await made_by(ctx, claim)
    tokens = {key: token for one in made for key, token in zip(one.keys, one.tokens, strict=True)}
    return msgspec.structs.replace(claim, keys=tuple(tokens), tokens=tuple(tokens.values()))


async def made_by(ctx: EngineContext, claim: Claimed) -> tuple[Claimed, ...]:
    """A change that stands and, where it was taken back and is there again, whatever has made it again: the last of
    them is what there is to take back."""
    path = [claim]
    # Returning: what has made the change again is just being taken back. Until it is, the change stands by that.
    while (undo := await _undo_of(ctx, path[-1])) is not None and undo.state in _TAKEN_BACK:
        again = await _undo_of(ctx, undo)
        if again is None or again.state is not ClaimState.DONE:
            break
        path.append(again)
    return tuple(path)


async def was_undone_before(ctx: EngineContext, claim: Claimed, record: int) -> bool:
    """Whether a change did not stand any more when a record was written."""
    undone, link = False, await _undo_of(ctx, claim)
    while link is not None and link.state in LANDED and link.record is not None and link.record < record:
        undone, link = not undone, await _undo_of(ctx, link)
    return undone


async def _undo_of(ctx: EngineContext, claim: Claimed) -> Claimed | None:
    """What took a change back, under the name that it has now or had then."""
    for name in dict.fromkeys((claim.name, claim.first_name)):
        undoes = f"{name}.{claim.generation}"
        ctx.at("undo.chain")
        found = await ctx.store.claim(undo_name(ctx.digest, undoes))
        if found is not None:
            return await _among_generations(ctx, found.request, undoes) if found.is_lock else found
    return None


async def _among_generations(ctx: EngineContext, name: str, undoes: str) -> Claimed | None:
    """Of the generations of a claim that took a change back."""
    ctx.at("undo.generations")
    newest = await ctx.store.claim(name)
    for generation in range(0 if newest is None else newest.generation, 0, -1):
        one = await claim_by_key(ctx.store, ctx.at, f"{name}.{generation}")
        if one is not None and await undoes_of(ctx.store, ctx.at, one) == undoes:
            return one
    return None
