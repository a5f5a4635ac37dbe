"""Who writes a briefing: no language model, but a plan of which tools to ask, on the same turns and the same path."""

from __future__ import annotations

import json
from typing import Any

from interlock.models import Message, Proposal, Reply, Request
from interlock_ranger.agents import SPECIALISTS
from interlock_ranger.fires import Fire

_TITLES = {
    "burn_analyst": "Burn",
    "trail_assessor": "Trails",
    "cruising_assistant": "Timber",
    "nepa_advisor": "Compliance",
}
_REQUESTS = {
    "burn_analyst": "How high is the burn severity of {name}?",
    "trail_assessor": "Should the trails of {name} stay closed?",
    "cruising_assistant": "How much timber volume is on {name}?",
    "nepa_advisor": "Which NEPA pathway does salvage on {name} need?",
}
ORDER = tuple(_TITLES)


class Planner:
    """A model that proposes what the briefing needs, and answers with what the results say of themselves."""

    name = "briefing plan"
    instructable = True

    def __init__(self, fire: Fire, season: str | None) -> None:
        self._fire = fire
        self._plan = plan(fire, season)

    async def reply(self, request: Request) -> Reply:
        """The calls of the agent that is asked; once they have answered, their summaries."""
        results = [message for message in request.messages if message.role == "tool"]
        names = {card.name for card in request.tools}
        if names >= set(SPECIALISTS):
            if not results:
                return Reply(proposals=tuple(self._delegate(name) for name in ORDER))
            return Reply("\n\n".join(f"{_TITLES[m.tool]}\n{_told(m)}" for m in results if m.tool in _TITLES))
        if not results:
            own = [(tool, arguments) for tool, arguments in self._plan if tool in names]
            return Reply(proposals=tuple(Proposal(tool, arguments) for tool, arguments in own))
        return Reply("\n".join(map(_told, results)))

    def _delegate(self, name: str) -> Proposal:
        return Proposal(name, {"request": _REQUESTS[name].format(name=self._fire.facts.name)})

    async def close(self) -> None:
        """Nothing is held."""


def plan(fire: Fire, season: str | None) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The calls of a briefing: every domain, and NEPA for the two actions that follow a fire."""
    whole: dict[str, Any] = {"fire_id": fire.id}
    closure = whole if season is None else {**whole, "season": season}
    open_land = sum(stand.acres for stand in fire.stands.values() if stand.designation == "none")
    return (
        ("assess_severity", whole),
        ("classify_mtbs", whole),
        ("validate_boundary", whole),
        ("classify_damage", whole),
        ("evaluate_closure", closure),
        ("estimate_volume", whole),
        ("assess_salvage", whole),
        ("decide_pathway", {**whole, "action": "salvage_harvest", "acres": float(open_land)}),
        ("decide_pathway", {**whole, "action": "trail_repair", "acres": 0.0}),
    )


def _told(message: Message) -> str:
    """What a result says of itself."""
    given = json.loads(message.text.removesuffix("… (cut)")) if message.text.endswith("}") else {}
    value = given.get("value")
    if isinstance(value, dict) and "answer" in value:
        return str(value["answer"])
    return str(given.get("summary") or given.get("reason") or "")
