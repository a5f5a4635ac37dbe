"""Observation first: what a shadow run would have done, held against what people then did, rule by rule."""

from __future__ import annotations

from collections import Counter
from typing import Any

from interlock_catalog.app import opened
from interlock_catalog.settings import Loaded


async def agreement(loaded: Loaded, run: str | None) -> dict[str, Any]:
    """For each check and each family, how often people did the same, did something else, or have done nothing yet."""
    by_rule: dict[str, Counter[str]] = {}
    by_family: dict[str, Counter[str]] = {}
    async with opened(loaded) as shop:
        for item in await shop.runtime.shadow(run=run):
            family = (item.turn or "").partition("/")[2]
            for tag in item.evidence or ("(none)",):
                by_rule.setdefault(tag, Counter())[item.verdict] += 1
            by_family.setdefault(family, Counter())[item.verdict] += 1
    ready = sorted(name for name, found in by_family.items() if set(found) == {"agrees"})
    return {
        "rules": {name: dict(found) for name, found in sorted(by_rule.items())},
        "families": {name: dict(found) for name, found in sorted(by_family.items())},
        "ready": ready,
    }
