"""Observation first: what a shadow run would have done, compared with what people then did, rule by rule."""

from __future__ import annotations

from collections import Counter
from typing import Any

from interlock_catalog.app import open_app
from interlock_catalog.checks.issues import ROLES
from interlock_catalog.confidence import Tally, shipped_calibration, tally_decisions
from interlock_catalog.runner.records import open_run_store
from interlock_catalog.runner.work_items import RunTurn
from interlock_catalog.settings import Loaded

OWN = "own"
"""The verdict for what the autopilot went on to do itself: that it agrees with itself says nothing."""


async def build_shadow_report(loaded: Loaded, run: str | None) -> dict[str, Any]:
    """For each rule and each family, how often people did the same, did something else, or have done nothing yet."""
    by_rule: dict[str, Counter[str]] = {}
    by_family: dict[str, Counter[str]] = {}
    if run is not None:
        async with open_run_store(loaded.settings) as runs:
            await runs.get(run)  # a mistyped one is not there, which is not the same as nothing to compare
    async with open_app(loaded) as app:
        for item in await app.runtime.operations.shadow(run=run):
            verdict = OWN if item.by in ROLES else item.verdict
            turn = RunTurn.parse(item.turn or "")
            # What a person planned beside every run is of no family.
            family = "" if turn is None else turn.work.text
            for tag in item.evidence or ("(none)",):
                by_rule.setdefault(tag, Counter())[verdict] += 1
            by_family.setdefault(family, Counter())[verdict] += 1
        decisions = await tally_decisions(app.runtime)
    ready = sorted(name for name, found in by_family.items() if set(found) == {"agrees"})
    return {
        "rules": {name: dict(found) for name, found in sorted(by_rule.items())},
        "families": {name: dict(found) for name, found in sorted(by_family.items())},
        "ready": ready,
        "confidence": _confidence_by_rule(decisions),
    }


def _confidence_by_rule(decisions: dict[str, Tally]) -> dict[str, dict[str, Any]]:
    """What each rule's confidence rests on: planted faults, and people's decisions."""
    planted = shipped_calibration()
    found = {}
    for name, tally in planted.add(decisions).rules.items():
        before, since = planted.rules.get(name, Tally()), decisions.get(name, Tally())
        found[name] = {
            "planted": {"right": before.right, "wrong": before.wrong},
            "people": {"right": since.right, "wrong": since.wrong},
            "confidence": tally.confidence,
        }
    return found
