"""The Recovery Coordinator's own tool."""

from __future__ import annotations

from interlock import Result, Tool, tool
from interlock_ranger.coordinator.triage import Triage, rank_fires
from interlock_ranger.evidence import Today
from interlock_ranger.fires import Fires


def build_coordinator_tools(fires: Fires, today: Today) -> tuple[Tool, ...]:
    @tool(effect="read")
    def portfolio_triage() -> Result[Triage]:
        """Which of the fires on file needs attention first: score, its parts, whether the order depends on weights."""
        return rank_fires(tuple(fires.by_id.values()), today)

    return (portfolio_triage,)
