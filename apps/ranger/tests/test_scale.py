"""A fire of 1,000 sectors, 500 trails and 20,000 trees: everything still answers, and nothing is cut silently."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Runtime
from interlock_ranger.app import build_app
from interlock_ranger.fires import Fires
from ranger_parts import TODAY

SCRIPT = Path(__file__).parent.parent / "scripts" / "make_fixtures.py"
LARGE = {"fire_id": "large-2024"}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Fires:
    folder = tmp_path_factory.mktemp("large")
    subprocess.run([sys.executable, SCRIPT, "--large", folder], check=True, timeout=200)
    return Fires(folder)


@pytest.fixture
async def wide(large: Fires) -> AsyncIterator[Runtime]:
    app = build_app(large, today=lambda: TODAY)
    async with Runtime.open("memory://", policy=app.policy or "", tools=app.tools) as runtime:
        yield runtime


def test_it_is_as_large_as_it_says(large: Fires) -> None:
    fire = large.by_id["large-2024"]
    assert (len(fire.sectors), len(fire.trails)) == (1000, 500)
    assert sum(len(plot.trees) for plot in fire.plots.values()) == 20_000
    assert sum(sector.acres for sector in fire.sectors.values()) == 500_000


@pytest.mark.parametrize(
    ("tool", "arguments", "total", "listed"),
    [
        ("assess_severity", LARGE, ("sector_count", 1000), "sectors"),
        ("classify_mtbs", LARGE, ("acres", 500_000), "classes"),
        ("validate_boundary", LARGE, ("sector_acres", 500_000), "issues"),
        ("classify_damage", LARGE, ("trail_count", 500), "trails"),
        ("evaluate_closure", {**LARGE, "season": "winter"}, ("trail_count", 500), "trails"),
        ("prioritize_trails", {**LARGE, "budget_usd": 2_000_000}, ("budget_usd", 2_000_000), "trails"),
        ("estimate_volume", LARGE, ("trees_tallied", 20_000), "stands"),
        ("assess_salvage", LARGE, ("fire_id", "large-2024"), "stands"),
        ("recommend_methodology", LARGE, ("fire_id", "large-2024"), "stands"),
        ("portfolio_triage", {}, ("order_holds", True), "fires"),
    ],
)
async def test_every_tool_answers_in_full_or_says_how_much_it_lists(
    wide: Runtime, tool: str, arguments: dict[str, Any], total: tuple[str, object], listed: str
) -> None:
    found = await wide.call(tool, arguments, actor="operator")
    assert found.ok, found.problem
    assert found.value[total[0]] == total[1]
    assert len(found.value[listed]) <= 60
