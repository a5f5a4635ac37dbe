"""Who writes a briefing: no language model, but a plan of which tools to ask, on the same turns and the same path."""

from __future__ import annotations

from typing import Any

from interlock.models import Message, Proposal, Reply, Request
from interlock_ranger.agents import SPECIALISTS
from interlock_ranger.records import Fire

_TITLES = {
    "burn_analyst": "Burn",
    "trail_assessor": "Trails",
    "cruising_assistant": "Timber",
    "nepa_advisor": "Compliance",
}
"""The specialists in the order in which they are asked, and the title of what each answers."""
_REQUESTS = {
    "burn_analyst": "How high is the burn severity of {name}?",
    "trail_assessor": "Should the trails of {name} stay closed?",
    "cruising_assistant": "How much timber volume is on {name}?",
    "nepa_advisor": "Which NEPA pathway does salvage on {name} need?",
}


class BriefingPlanner:
    """A model that proposes what the briefing needs, and answers with what the results say of themselves."""

    name = "briefing plan"
    instructable = True

    def __init__(self, fire: Fire, season: str | None) -> None:
        self._fire = fire
        self._calls = plan_calls(fire, season)

    async def reply(self, request: Request) -> Reply:
        """The calls of the agent that is asked; once they have answered, their summaries."""
        results = [message for message in request.messages if message.role == "tool"]
        names = {card.name for card in request.tools}
        # Whose turn it is can be told by the tools on offer: only the coordinator has the four specialists.
        if names >= set(SPECIALISTS):
            if not results:
                return Reply(proposals=tuple(self._delegate(name) for name in _TITLES))
            return Reply("\n\n".join(f"{_TITLES[m.tool]}\n{_summary(m)}" for m in results if m.tool in _TITLES))
        if not results:
            return Reply(proposals=tuple(call for call in self._calls if call.tool in names))
        # Two tools that find nothing on file may say it in the same words.
        return Reply("\n".join(dict.fromkeys(map(_summary, results))))

    def _delegate(self, name: str) -> Proposal:
        return Proposal(name, {"request": _REQUESTS[name].format(name=self._fire.facts.name)})

    async def close(self) -> None:
        """Nothing is held."""


def plan_calls(fire: Fire, season: str | None) -> tuple[Proposal, ...]:
    """The calls of a briefing: every domain, and NEPA for the two actions that follow a fire."""
    whole: dict[str, Any] = {"fire_id": fire.id}
    closure = whole if season is None else {**whole, "season": season}
    # Wilderness and roadless land is not for salvage, so a pathway is asked for on the rest alone.
    undesignated = sum(stand.acres for stand in fire.stands.values() if stand.designation == "none")
    return (
        Proposal("assess_severity", whole),
        Proposal("classify_mtbs", whole),
        Proposal("validate_boundary", whole),
        Proposal("classify_damage", whole),
        Proposal("evaluate_closure", closure),
        Proposal("estimate_volume", whole),
        Proposal("assess_salvage", whole),
        Proposal("decide_pathway", {**whole, "action": "salvage_harvest", "acres": float(undesignated)}),
        # The tool requires acres, and no exclusion for trail repair has a limit of them.
        Proposal("decide_pathway", {**whole, "action": "trail_repair", "acres": 0.0}),
    )


def _summary(message: Message) -> str:
    """What a result says of itself: a specialist's answer, a tool's summary, or why there is none."""
    value = message.result.get("value")
    if isinstance(value, dict) and "answer" in value:
        return str(value["answer"])
    return str(message.result.get("summary") or message.result.get("reason") or "")
