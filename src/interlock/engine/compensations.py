"""What takes a change back and is made once ever: it is the same change when somebody makes it by hand."""

from __future__ import annotations

from interlock.changes import ClaimName, compensation_name
from interlock.engine.context import EngineContext
from interlock.engine.undo_chain import links_of, undoes_of
from interlock.openings import undo_name
from interlock.state import Claimed, ClaimState
from interlock.tools import Tool
from interlock.values import Json

_NOT_MADE = (ClaimState.FAILED, ClaimState.UNDONE)


async def once_ever_name(
    ctx: EngineContext, tool: Tool, keys: tuple[str, ...], arguments: Json, undoes: str
) -> ClaimName | None:
    """What a compensation is called that is made once ever, whoever asks; None where it goes by what it takes back.

    It does so, too, where it makes a change of its own chain again, as that is marked to stand again with it, and where
    an undo has gone by that name before.
    """
    name = compensation_name(ctx.digest, tool, keys, arguments, undoes)
    if name is None:
        return None
    ctx.at("claim.compensation")
    known = await ctx.store.claim(undo_name(ctx.digest, undoes))
    links = await links_of(ctx.store, ctx.at, undoes)
    again = any(link.claim is not None and link.claim.first_name == name.name for link in links)
    return None if again or (known is not None and not known.is_lock) else name


async def made_for_another(ctx: EngineContext, claim: Claimed, undoes: str) -> bool:
    """Whether a claim is that of another call than the one that takes this change back: by hand, or by another undo."""
    return await undoes_of(ctx.store, ctx.at, claim) != undoes


async def made_already(
    ctx: EngineContext, tool: Tool, keys: tuple[str, ...], arguments: Json, undoes: str
) -> str | None:
    """Why a compensation would not be made: it is made once ever, and stands, or may. None where it would be."""
    name = await once_ever_name(ctx, tool, keys, arguments, undoes)
    ctx.at("claim.compensated")
    claim = None if name is None else await ctx.store.claim(name.name)
    if claim is None or claim.state in _NOT_MADE or not await made_for_another(ctx, claim, undoes):
        return None
    return why_not_again(tool.name, claim)


def why_not_again(tool: str, claim: Claimed) -> str:
    """The sentence for whoever wants to take a change back by what was made already."""
    number = claim.record or claim.intent
    return (
        f"{tool!r} is made once ever, and a call of it with the same arguments was made before (record {number}):"
        " it is not made again, and this change is not marked as taken back"
    )
