"""The calls of one reply, in order: reads side by side, changes one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from interlock.engine import ToolBinding
from interlock.models.messages import Proposal
from interlock.values import Effect, Outcome

Make = Callable[[Proposal], Awaitable[Outcome]]


async def make_calls(proposals: Sequence[Proposal], bindings: Mapping[str, ToolBinding], make: Make) -> list[Outcome]:
    """Make them; refusals are among the outcomes."""
    done: list[Outcome] = []
    reads: list[Proposal] = []
    for proposal in proposals:
        writer = bindings.get(proposal.tool)
        if writer is None or writer.tool.effect is Effect.READ:
            reads.append(proposal)
            continue
        done += await _together(reads, make)  # what was asked before a change sees the world before it
        reads = []
        done.append(await make(proposal))
    return done + await _together(reads, make)


async def _together(proposals: Sequence[Proposal], make: Make) -> list[Outcome]:
    if len(proposals) < 2:
        return [await make(proposal) for proposal in proposals]
    return list(await asyncio.gather(*map(make, proposals)))
