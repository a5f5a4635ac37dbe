"""What a model is told of the session: typed values, never the words of an earlier turn."""

from __future__ import annotations

import json
from collections.abc import Sequence

from interlock.answers.asked import Asked
from interlock.answers.sessions.settled import describe_call
from interlock.answers.sessions.when import clock_time

_SHOWN = 3


def describe_session(asked: Asked, now_us: int) -> str:
    """What was called before in the session, and what is settled of this question; empty where there is nothing."""
    lines = []
    earlier = asked.earlier[-_SHOWN:]
    if earlier:
        calls = [
            f"{describe_call(call.tool, call.arguments)} at {clock_time(call.at_us, now_us)}, record {call.record}"
            for call in reversed(earlier)
        ]
        lines.append(f"Earlier in this session, the last call first: {'; '.join(calls)}.")
    settled = [item.describe() for item in asked.settled if any(v is not None for v in item.arguments.values())]
    if settled:
        what = "What was asked back is answered" if asked.reply is not None else "This question goes on from there"
        lines.append(f"{what}: it is about {_join(settled)}.")
    if asked.units:
        lines.append(f"The answer is wanted in {_join([json.dumps(unit) for unit in asked.units])}.")
    return "\n".join(lines)


def _join(items: Sequence[str]) -> str:
    return " and ".join(items)
