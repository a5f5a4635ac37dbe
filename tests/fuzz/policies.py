"""Policy files that were fine until somebody or something had a go at them, and calls under what is left of them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from interlock import Outcome, Runtime, tool
from interlock.errors import InterlockError
from interlock.policy import parse_policy
from tests.fuzz.target import Target, mutated

_ROOT = Path(__file__).parent.parent.parent
_PAGES = "".join((_ROOT / "docs" / name).read_text() for name in ("policy.md", "changes.md", "configuration.md"))
_TEXTS = [
    *(file.read_text() for file in sorted(_ROOT.glob("examples/*/policy.toml"))),
    *(text for text in re.findall(r"```toml\n(.*?)```", _PAGES, re.DOTALL) if "version" in text),
    'version = 1\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n',
    'version = 1\n[[rule]]\nid = "a"\ntools = ["look"]\ndecision = "allow"\nwhen = "args.place.size() < 9 && args.n > 1"\n',
]
_FRAGMENTS = [
    "[[rule]]\n", "[review]\n", "[[budget]]\n", 'when = "', "args.", "args.place.matches('(a+)+$')", "size(", "((((((((",
    "[0].map(x, [0].map(y, x))", "9999999999999999999999", "1d", "-1", "nan", "inf", "true", "{}", "[]", '""', '"*"', "'''",
    "decision = ", "tools = ", "version = 2\n", "per = ", "window = ", "not ", " || true", "\\u0000", "has(args.x)", "=", ".",
]  # fmt: skip


@tool(effect="read")
async def look(place: str, n: int = 3) -> str:
    return place * n


def read(text: str) -> None:
    """A policy under which a call has an outcome, or a sentence that says what is wrong."""
    try:
        policy = parse_policy(text, "policy.toml")
        runtime = Runtime.open("memory://", policy=policy, tools=[look])
    except InterlockError:
        return
    assert isinstance(asyncio.run(_call(runtime)), Outcome)


async def _call(runtime: Runtime) -> Outcome:
    async with runtime:
        return await runtime.call("look", {"place": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}, actor="ann")


TARGET = Target("policies", mutated(_TEXTS, _FRAGMENTS), read)
