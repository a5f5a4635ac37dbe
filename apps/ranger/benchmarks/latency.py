"""How long each tool takes, without a model: on the shipped fires and on a large one; writes docs/ranger-latency.md."""

from __future__ import annotations

import asyncio
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

from interlock import Runtime
from interlock_ranger.app import DATA, build_app
from interlock_ranger.fires import Fires

HERE = Path(__file__).parent
DOCS = HERE.parents[2] / "docs" / "ranger-latency.md"
ROUNDS = 15
MUST_MS = {"shipped": 50.0, "large": 2000.0}


def calls_for(fire: str) -> dict[str, dict[str, Any]]:
    """One call of each tool."""
    whole: dict[str, Any] = {"fire_id": fire}
    return {
        "classify_damage": whole,
        "evaluate_closure": {**whole, "season": "winter"},
        "prioritize_trails": {**whole, "budget_usd": 200_000},
        "assess_severity": whole,
        "classify_mtbs": whole,
        "validate_boundary": whole,
        "recommend_methodology": whole,
        "estimate_volume": whole,
        "assess_salvage": whole,
        "analyze_csv_data": {"file": f"{fire}/trees.csv", "group_by": "species"},
        "search_regulatory_documents": {"query": "may we salvage in a wilderness"},
        "decide_pathway": {"action": "salvage_harvest", "acres": 240.0},
        "generate_documentation_checklist": {"pathway": "EA", "action": "salvage_harvest"},
        "estimate_compliance_timeline": {"pathway": "EIS"},
        "portfolio_triage": {},
    }


async def measure(fires: Fires, fire: str) -> dict[str, tuple[float, float]]:
    """First call and median of later ones in milliseconds, each a governed call with its record, by tool."""
    app = build_app(fires, today=lambda: date(2026, 11, 15))
    found = {}
    async with Runtime.open("memory://", policy=app.policy or "", tools=app.tools) as runtime:
        for tool, arguments in calls_for(fire).items():
            took = []
            for _ in range(ROUNDS):
                started = time.perf_counter()
                outcome = await runtime.call(tool, arguments, actor="operator")
                took.append(1000 * (time.perf_counter() - started))
                if not outcome.ok:
                    raise SystemExit(f"{tool}: {outcome.problem}")
            found[tool] = (took[0], statistics.median(took[1:]))
    return found


def main() -> int:
    """Measure, print, write."""
    logging.getLogger("interlock").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="ranger-large-") as folder:
        subprocess.run([sys.executable, HERE.parent / "scripts" / "make_fixtures.py", "--large", folder], check=True)
        large = asyncio.run(measure(Fires(Path(folder)), "large-2024"))
    small = asyncio.run(measure(Fires(DATA), "cedar-creek-2022"))
    lines = [
        "# How long RANGER's tools take",
        "",
        "Written by `make bench-ranger` (`apps/ranger/benchmarks/latency.py`); do not edit. Milliseconds of a governed"
        " call with its record in memory: the first (rasters and the embedding model are loaded then), and the median"
        f" of {ROUNDS - 1} more. The large fire has 1,000 sectors, 500 trails and 20,000 trees.",
        "",
        "| tool | shipped: first | median (must ≤ 50) | large: first | median (must ≤ 2,000) |",
        "|---|---|---|---|---|",
    ]
    for tool in small:
        lines.append(
            f"| {tool} | {small[tool][0]:.1f} | {small[tool][1]:.1f} | {large[tool][0]:.1f} | {large[tool][1]:.1f} |"
        )
    slow = [t for t in small if small[t][1] > MUST_MS["shipped"] or max(large[t]) > MUST_MS["large"]]
    lines += ["", f"Over the limit: {', '.join(slow) or 'none'}.", ""]
    text = "\n".join(lines)
    print(text)
    DOCS.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
