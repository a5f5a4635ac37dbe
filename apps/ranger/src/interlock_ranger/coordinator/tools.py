"""The Recovery Coordinator's own tool."""

from __future__ import annotations

from interlock import Result, Tool, tool
from interlock_ranger.coordinator.triage import Triage, triaged
from interlock_ranger.evidence import Today
from interlock_ranger.fires import Fires


def coordinator_tools(fires: Fires, today: Today) -> tuple[Tool, ...]:
    """The tools over these fires."""

    @tool(effect="read")
    def portfolio_triage() -> Result[Triage]:
        """Which of the fires on file needs attention first: score, its parts, whether the order depends on weights."""
        return triaged(tuple(fires.all.values()), today)

    return (portfolio_triage,)
