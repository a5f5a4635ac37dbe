"""What grounding costs: a result of 1 MB read once, and drafts of 20 kB held against it, in CPU and beside a yardstick.

A draft is checked more than once in a turn, and its results are read once: both are measured apart. The yardstick is
`json.loads` of the same bytes, in the same rounds, so that a busy machine slows both.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from statistics import median

from interlock.answers.grounding import Source, default_vocabulary, ground
from interlock.answers.grounding.kept_evidence import KeptEvidence
from interlock.config import TextLimits

THINGS = ("Thing", "Plank", "Brick", "Spool", "Latch")
ROWS = 9_000
SENTENCES = 302
LIMITS = TextLimits(max_evidence_chars=3_000_000)
_ROWS = [
    {
        "id": f"item-{number:05}",
        "name": f"Thing {number}",
        "count": number * 7 % 991,
        "price": round(number * 1.37, 2),
        "status": "open" if number % 3 else "closed",
        "note": "short text about it",
    }
    for number in range(ROWS)
]
DRAFT = "".join(
    f"Thing {number} is in stock today, has a count of {number * 7 % 991} and costs ${round(number * 1.37, 2)}. "
    for number in range(1, SENTENCES + 1)  # of the first there are none in stock
)
WRONG = DRAFT.replace("costs $1", "costs $9")


def _cpu_ms(work: Callable[[], object]) -> float:
    gc.collect()
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


def _round(thing: str, encoded: bytes) -> dict[str, float]:
    # Other names each time: what a vocabulary has read before it remembers, and a new result is new.
    rows = [{**row, "name": str(row["name"]).replace("Thing", thing)} for row in _ROWS]
    words, kept, sources = default_vocabulary(), KeptEvidence(), [Source("record 1", {"value": {"rows": rows}})]

    def check(draft: str) -> None:
        found = ground(draft.replace("Thing", thing), sources, words, LIMITS, None, kept)
        assert found.unchecked == "", found.unchecked
        assert bool(found.unsupported) == (draft is WRONG)

    return {
        "json_ms": _cpu_ms(lambda: json.loads(encoded)),
        "read_ms": _cpu_ms(lambda: kept.read(sources, words, LIMITS.max_evidence_chars)),
        "first_draft_ms": _cpu_ms(lambda: check(DRAFT)),
        "draft_ms": _cpu_ms(lambda: check(DRAFT)),
        "wrong_draft_ms": _cpu_ms(lambda: check(WRONG)),
    }


def measure() -> dict[str, float]:
    """Medians over rounds in which everything is measured once."""
    encoded = json.dumps(_ROWS).encode()
    rounds = [_round(thing, encoded) for thing in THINGS]
    return {name: median(one[name] for one in rounds) for name in rounds[0]}


if __name__ == "__main__":
    cost = measure()
    for name, value in cost.items():
        print(f"{name}: {value:.1f} ms, {value / cost['json_ms']:.1f} of json.loads")
