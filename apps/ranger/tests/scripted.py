"""A competent model for tests and `adk eval`: it makes the calls that a plan has for a question, then says the results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from interlock.models import Message, Proposal, Reply, Request

PLANS = Path(__file__).parent / "plans.json"
"""For each agent, questions with the calls that answer them; a delegation's request is a question of its own."""


def plans() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """The calls for every question of every agent."""
    read = json.loads(PLANS.read_text(encoding="utf-8"))
    return {case["q"]: [(c["name"], c["args"]) for c in case["calls"]] for own in read.values() for case in own}


class Competent:
    """Works from the question and the results alone."""

    name = "competent"
    instructable = True

    def __init__(self) -> None:
        self._plans = plans()

    async def reply(self, request: Request) -> Reply:
        """The planned calls; once they have answered, their summaries."""
        asked = next(m.text for m in reversed(request.messages) if m.role == "user" and m.text in self._plans)
        start = max(n for n, m in enumerate(request.messages) if m.text == asked)
        results = [m for m in request.messages[start:] if m.role == "tool"]
        if not results and self._plans[asked]:
            return Reply(proposals=tuple(Proposal(tool, args) for tool, args in self._plans[asked]))
        return Reply("\n".join(summary(m) for m in results) or "Good morning! How can I help you?")

    async def close(self) -> None:
        """Nothing is held."""


def summary(message: Message) -> str:
    """What a result says of itself: an agent's answer, a tool's summary, or why there is none."""
    value = message.result.get("value")
    if isinstance(value, dict) and "answer" in value:
        return str(value["answer"])
    if isinstance(value, str):  # an agent of ADK answers with its text
        return value
    said = str(message.result.get("summary") or message.result.get("reason") or "")
    return f"According to {message.tool}: {said}" if message.result.get("trust") == "untrusted" else said
