"""Observation first: what a shadow run would have done, held against what people then did, and what that is worth."""

from __future__ import annotations

from collections import Counter
from typing import Any

from interlock_catalog.app import opened
from interlock_catalog.settings import Loaded
from interlock_catalog.trust import Seen, by_itself, decided, measured

OWN = "own"
"""What the autopilot went on to do itself: that it agrees with itself says nothing."""


async def agreement(loaded: Loaded, run: str | None) -> dict[str, Any]:
    """For each check and each family, how often people did the same, did something else, or have done nothing yet."""
    by_rule: dict[str, Counter[str]] = {}
    by_family: dict[str, Counter[str]] = {}
    async with opened(loaded) as shop:
        for item in await shop.runtime.operations.shadow(run=run):
            verdict = OWN if by_itself(item.with_whom) else item.verdict
            family = (item.turn or "").partition("/")[2]
            for tag in item.evidence or ("(none)",):
                by_rule.setdefault(tag, Counter())[verdict] += 1
            by_family.setdefault(family, Counter())[verdict] += 1
        people = await decided(shop.runtime)
    ready = sorted(name for name, found in by_family.items() if set(found) == {"agrees"})
    return {
        "rules": {name: dict(found) for name, found in sorted(by_rule.items())},
        "families": {name: dict(found) for name, found in sorted(by_family.items())},
        "ready": ready,
        "confidence": _confidences(people),
    }


def _confidences(people: dict[str, Seen]) -> dict[str, dict[str, Any]]:
    """What each rule's confidence rests on: planted faults, and people's decisions."""
    planted = measured()
    every = planted.adding(people)
    found = {}
    for name, seen in every.rules.items():
        before, since = planted.rules.get(name, Seen()), people.get(name, Seen())
        found[name] = {
            "planted": {"right": before.right, "wrong": before.wrong},
            "people": {"right": since.right, "wrong": since.wrong},
            "confidence": seen.sure,
        }
    return found
