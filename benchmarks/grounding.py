"""How well unsupported figures are found: answers with evidence, labelled by hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from interlock.answers.grounding import Source, ground

DATA = Path(__file__).parent / "grounding"


def rows() -> list[dict[str, Any]]:
    """Every labelled answer."""
    files = sorted(DATA.glob("*.jsonl"))
    return [
        json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines() if line.strip()
    ]


def measure() -> dict[str, Counter[str]]:
    """By kind of answer: those rightly and wrongly held back, those wrongly let through, and the same for claims."""
    found: dict[str, Counter[str]] = {}
    for item in rows():
        sources = [Source(given["id"], given["value"]) for given in item["evidence"]]
        grounded = ground(item["answer"], [*sources, Source("question", item["question"], echo=True)])
        held, wanted = [claim.text for claim in grounded.unsupported], item["unsupported"]
        into = found.setdefault(item["kind"], Counter())
        into["answers"] += 1
        into["claims"] += len(grounded.claims)
        into["held"] += bool(held) and bool(wanted)
        into["false alarm"] += bool(held) and not wanted
        into["missed"] += bool(wanted) and not held
        into["found"] += sum(any(_same(text, other) for other in held) for text in wanted)
        into["not found"] += sum(not any(_same(text, other) for other in held) for text in wanted)
        into["wrongly"] += sum(not any(_same(text, other) for other in wanted) for text in held)
    return found


def _same(one: str, other: str) -> bool:
    return one in other or other in one


def rates(counts: Counter[str]) -> dict[str, float]:
    """Precision and recall over answers and over claims."""
    return {
        "precision": counts["held"] / max(1, counts["held"] + counts["false alarm"]),
        "recall": counts["held"] / max(1, counts["held"] + counts["missed"]),
        "claim precision": counts["found"] / max(1, counts["found"] + counts["wrongly"]),
        "claim recall": counts["found"] / max(1, counts["found"] + counts["not found"]),
    }


def table() -> tuple[str, Counter[str]]:
    """By kind and in all."""
    text = "| kind of answer | answers | rightly held back | wrongly held back | wrongly let through |\n"
    text += "|---|---|---|---|---|\n"
    total: Counter[str] = Counter()
    for kind, counts in measure().items():
        total += counts
        text += f"| {kind} | {counts['answers']} | {counts['held']} | {counts['false alarm']} | {counts['missed']} |\n"
    text += f"| **all** | {total['answers']} | {total['held']} | {total['false alarm']} | {total['missed']} |\n"
    return text, total
