"""What it costs that rules ask where arguments came from: turns of ten calls, and a long one with large results.

TRACED has a rule on origins; BOTH asks beside that whether the user has asked for it.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from statistics import median
from typing import Any

from interlock import Runtime, Tool, tool

TURNS, CALLS, ROUNDS = 40, 10, 5
LONG = 1_000
RESULT_BYTES = 10_000
"""So that a thousand calls return ten megabytes."""
ASKS = "turn.calls > 1000000"
RULES = [
    {"id": "all", "tools": ["*"], "decision": "allow"},
    {"id": "turn", "tools": ["*"], "decision": "deny", "when": ASKS},
]
PLAIN: dict[str, Any] = {"version": 1, "mode": "apply", "rule": RULES}
TRACED: dict[str, Any] = {**PLAIN, "use": [{"pack": "provenance", "tools": ["*"]}]}
BOTH: dict[str, Any] = {**PLAIN, "use": [*TRACED["use"], {"pack": "unasked", "tools": ["*"]}]}
QUESTION = "Send each of them a mail"


def _tools(filler: str) -> list[Tool]:
    @tool(effect="read")
    async def look(key: str) -> dict[str, str]:
        """Look somebody up."""
        return {"id": key, "name": f"Name {key}", "email": f"{key}@firm.example", "text": filler}

    @tool(effect="send", repeatable=True)
    async def send_mail(to: str, body: str) -> bool:
        """Send a mail."""
        return True

    return [look, send_mail]


async def _play(policy: dict[str, Any], turns: int, calls: int, filler: str) -> list[float]:
    """Processor seconds of each call: half of them look somebody up, and half write to whom was found."""
    took = []
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
        async with Runtime.open(f"sqlite:///{folder}/l.db", policy=policy, tools=_tools(filler)) as runtime:
            for turn in range(turns):
                for number in range(calls):
                    key = f"k{turn}x{number - number % 2}"
                    name, given = ("look", {"key": key}) if number % 2 == 0 else ("send_mail", _mail(key))
                    started = time.process_time()
                    outcome = await runtime.call(name, given, actor="a", turn=f"t{turn}", question=QUESTION)
                    took.append(time.process_time() - started)
                    assert outcome.ok, outcome
    return took


def _mail(key: str) -> dict[str, str]:
    return {"to": f"{key}@firm.example", "body": "See you there."}


def measure() -> dict[str, float]:
    """Microseconds of the processor for a call, traced and not, and late in a long turn beside early in it."""
    filler = "Some words about it, and more of them. " * 5
    rounds = [
        {name: sum(asyncio.run(_play(policy, TURNS, CALLS, filler))) / (TURNS * CALLS) * 1e6 for name, policy in both}
        for both in [(("plain", PLAIN), ("traced", TRACED), ("both", BOTH))] * ROUNDS
    ]
    words = "One word is like another here, and none of them leads anywhere at all. "
    long = asyncio.run(_play(BOTH, 1, LONG, words * (RESULT_BYTES // len(words))))
    found = {name: median(one[name] for one in rounds) for name in ("plain", "traced", "both")}
    found["ratio"] = median(one["traced"] / one["plain"] for one in rounds)
    found["ratio of both"] = median(one["both"] / one["plain"] for one in rounds)
    return found | {"early": median(long[50:250]) * 1e6, "late": median(long[-200:]) * 1e6}


if __name__ == "__main__":
    print(measure())
