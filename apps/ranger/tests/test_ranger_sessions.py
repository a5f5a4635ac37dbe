"""A conversation with RANGER: a question goes on from the one before, also through the coordinator."""

from __future__ import annotations

import pytest

from interlock import Runtime
from interlock.answers import Answers, App, TurnStatus
from interlock.answers.constrained import constrain
from interlock.ports import Query
from interlock.testing import FirstChoice


async def calls(runtime: Runtime) -> list[dict[str, str]]:
    found = [record async for record in runtime.store.records(Query(tool="evaluate_closure")) if record.kind == "call"]
    return [record.content().arguments for record in found]


@pytest.mark.parametrize("agent", ["trail_assessor", "coordinator"])
async def test_and_in_spring(agent: str, app: App, runtime: Runtime) -> None:
    session, model = Answers(runtime).session("s"), constrain(FirstChoice())
    who = app.agent(agent)
    await session.ask("Should the Waldo Lake trail stay closed in winter?", agent=who, model=model)
    second = await session.ask("and in spring?", agent=who, model=model)
    assert second.status in (TurnStatus.VERIFIED, TurnStatus.RENDERED)
    winter, spring = await calls(runtime)
    assert (winter["season"], spring["season"]) == ("winter", "spring")
    assert spring["trail_id"] == winter["trail_id"]
    assert "spring" in second.answer
