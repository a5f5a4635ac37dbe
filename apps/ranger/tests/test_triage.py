"""Triage: one formula, documented, with its sensitivity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_ranger.coordinator.triage import score_parts, weighted_score
from interlock_ranger.rules import get_rule
from ranger_parts import Call

PHASES = ("active", "baer_assessment", "baer_implementation", "in_restoration")


def test_the_score_by_hand() -> None:
    """40 % of 24.3 + 25 % of 100 log10(127,311) / 6 + 35 % of 60."""
    parts = score_parts(127_311, 24.3, "baer_implementation")
    assert parts["size"] == pytest.approx(85.08, abs=0.01)
    assert weighted_score(parts, get_rule("coordinator.triage").values["weights"]) == pytest.approx(
        0.4 * 24.3 + 0.25 * 85.08 + 0.35 * 60, abs=0.01
    )


@given(st.floats(1, 1e6), st.floats(1, 1e6), st.floats(0, 100), st.floats(0, 100), st.sampled_from(PHASES))
def test_larger_and_more_severe_is_never_less_urgent(a: float, b: float, c: float, d: float, phase: str) -> None:
    weights = get_rule("coordinator.triage").values["weights"]
    small, large = sorted((a, b))
    mild, severe = sorted((c, d))
    assert weighted_score(score_parts(small, mild, phase), weights) <= weighted_score(
        score_parts(large, severe, phase), weights
    )
    assert 0 <= weighted_score(score_parts(large, severe, phase), weights) <= 100


def test_phases_are_ordered() -> None:
    assert [score_parts(1000, 10, phase)["urgency"] for phase in PHASES] == [100, 85, 60, 30]


async def test_the_order_of_the_fires_and_how_firm_it_is(call: Call) -> None:
    found = (await call("portfolio_triage")).value
    assert [f["fire_id"] for f in found["fires"]] == ["cedar-creek-2022", "bootleg-2021"]
    assert found["fires"][0]["score"] > found["fires"][1]["score"]
    assert found["order_holds"] is True
    assert sum(found["weights"].values()) == pytest.approx(1)
