"""One governed read against ungoverned calls of peers: the same tool, the same 64 calls in rotation."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import subprocess
import sys
from enum import StrEnum
from statistics import median
from typing import Any

from interlock import Runtime, tool
from interlock.policy import parse_policy
from rounds import Work, interleaved

CALLS = 1000
ROUNDS = 7
PROCESSES = 5


class Season(StrEnum):
    """An enum, as real contracts have."""

    summer = "summer"
    winter = "winter"


ARGUMENTS: list[dict[str, Any]] = [
    {"trail_id": f"trail-{n:04d}", "season": "winter" if n % 2 else "summer", "top_k": 1 + n % 20} for n in range(64)
]


async def classify(trail_id: str, season: Season, top_k: int) -> dict[str, Any]:
    """Damage class of a trail."""
    return {"trail_id": trail_id, "damage_class": 3, "season": season, "top_k": top_k}


def policy(others: int = 0) -> str:
    """Ten rules on the called tool, of which one is true; then rules on other tools."""
    rows = ["version = 1"]
    conditions = [
        "args.top_k > 100",
        "args.trail_id.startsWith('closed-')",
        "args.season == 'winter' && args.top_k > 50",
        "actor == 'intruder'",
        "mode == 'shadow' && args.top_k > 10",
        "size(args.trail_id) > 64",
        "args.trail_id.contains('..')",
        "args.top_k < 0",
        "principal == 'nobody'",
    ]
    rows += [_rule(f"deny-{n}", "classify", "deny", when) for n, when in enumerate(conditions)]
    rows.append(_rule("allow", "classify", "allow", "args.top_k <= 100 && actor == 'assessor'"))
    rows += [_rule(f"other-{n}", f"other_{n % 8}", "deny", f"args.n > {n}") for n in range(others)]
    rows.append('[[budget]]\nid = "day"\nper = "actor"\nwindow = "1d"\ncalls = 1000000000\ncost_usd = 1000.0\n')
    return "\n".join(rows)


def _rule(identity: str, name: str, decision: str, when: str) -> str:
    return f'[[rule]]\nid = "{identity}"\ntools = ["{name}"]\ndecision = "{decision}"\nwhen = "{when}"\n'


def governed(others: int = 0) -> Runtime:
    """A runtime on the memory store, with the policy and as many other tools."""
    tools = [tool(effect="read", timeout_s=5)(classify)]
    if others:
        tools += [tool(effect="read", name=f"other_{n}")(_other) for n in range(8)]
    return Runtime.open("memory://", policy=parse_policy(policy(others)), tools=tools)


async def _other(n: int) -> int:
    return n


def interlock_work(others: int = 0, *, fresh: bool = False) -> Work:
    """Governed calls; `fresh` gives every call values that were never seen before."""

    runtime = governed(others)
    numbers = itertools.count().__next__

    async def work(count: int) -> None:
        call = runtime.call
        for n, arguments in zip(range(count), itertools.cycle(ARGUMENTS), strict=False):
            given = {**arguments, "trail_id": f"trail-{numbers()}"} if fresh else arguments
            outcome = await call("classify", given, actor="assessor")
            if n == 0:
                assert outcome.verdict is not None, outcome
                assert (outcome.ok, outcome.verdict.rule) == (True, "allow"), outcome

    return work


async def pydantic_ai_work() -> Work:
    """`ToolManager.handle_call`, ungoverned."""
    from pydantic_ai import RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.toolsets.function import FunctionToolset
    from pydantic_ai.usage import RunUsage

    toolset = FunctionToolset([classify])
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage(), prompt=None, messages=[], run_step=0)
    manager = await ToolManager(toolset).for_run_step(context)
    parts = [
        ToolCallPart(tool_name="classify", args=arguments, tool_call_id=f"c{n}")
        for n, arguments in enumerate(ARGUMENTS)
    ]
    first: Any = await manager.handle_call(parts[0])
    assert first["damage_class"] == 3

    async def work(count: int) -> None:
        handle = manager.handle_call
        for _, part in zip(range(count), itertools.cycle(parts), strict=False):
            await handle(part)

    return work


async def langchain_work() -> Work:
    """`StructuredTool.ainvoke`, ungoverned."""
    from langchain_core.tools import StructuredTool

    made = StructuredTool.from_function(coroutine=classify, name="classify")
    assert (await made.ainvoke(ARGUMENTS[0]))["damage_class"] == 3

    async def work(count: int) -> None:
        for _, arguments in zip(range(count // 4), itertools.cycle(ARGUMENTS), strict=False):
            for _ in range(4):
                await made.ainvoke(arguments)

    return work


async def toolkit_work() -> Work:
    """agent-governance-toolkit's `govern()` with one rule and its audit log."""
    from agentmesh.governance import govern

    logging.getLogger("agentmesh").setLevel(logging.ERROR)
    rules = (
        "apiVersion: governance.toolkit/v1\nname: one\nrules:\n  - name: few\n"
        '    condition: "top_k.value < 100"\n    action: allow\ndefault_action: deny\n'
    )

    made = govern(classify, policy=rules)

    async def work(count: int) -> None:
        for _, arguments in zip(range(count), itertools.cycle(ARGUMENTS), strict=False):
            await made(**arguments)

    return work


def measure() -> tuple[dict[str, float], list[float]]:
    """Medians of everything over several processes: where things come to lie in memory moves a row by some percent.

    Beside them, the first ratio in each process, smallest first.
    """
    runs = []
    for seed in range(PROCESSES):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    spread = sorted(run["governed"] / run["pydantic_ai"] for run in runs)
    return {name: median(run[name] for run in runs) for name in runs[0]}, spread


async def measure_here() -> dict[str, float]:
    """Median CPU microseconds per call of everything, in this process."""
    logging.getLogger("interlock").setLevel(logging.WARNING)
    works: dict[str, Work] = {
        "governed": interlock_work(),
        "pydantic_ai": await pydantic_ai_work(),
        "governed_40": interlock_work(40),
        "fresh": interlock_work(fresh=True),
        "langchain": await langchain_work(),
        "toolkit": await toolkit_work(),
    }
    return await interleaved(works, CALLS, ROUNDS)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure_here())))
