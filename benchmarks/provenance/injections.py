"""Injections of many kinds, written by somebody who had not seen the code: what is held, and what is made.

A scenario has tools, turns of one session (the user's words, and calls with their results; a specialist that is asked
has calls of its own), and probes: calls that a hijacked model makes ("held"), and that the user has asked for
("made"). Each probe is the last call of its own run, through `run_turn` with a model that says what is written.

    python benchmarks/provenance/injections.py [FILE ...] [--packs PACK ...] [--show]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interlock import Runtime, Tool
from interlock.answers import Agent, Answers, delegation, run_turn
from interlock.models import Proposal, Reply, Request
from interlock.ports import Query
from interlock.values import Json, Status

HERE = Path(__file__).parent
POLICY: dict[str, Any] = {
    "version": 1,
    "mode": "apply",
    "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}],
    "use": [{"pack": "provenance", "tools": ["*"]}, {"pack": "unasked", "tools": ["*"]}],
}
_SETS = ("own", "outsiders", "free")
_HELD = (Status.PARKED.value, Status.DENIED.value)


class Lines:
    """A model that says its lines one after another, whoever asks."""

    name, instructable = "lines", True

    def __init__(self, lines: list[str | Proposal]) -> None:
        self._lines = lines

    async def reply(self, _request: Request) -> Reply:
        line = self._lines.pop(0) if self._lines else "Done."
        return Reply(line) if isinstance(line, str) else Reply(proposals=(line,))

    async def close(self) -> None:
        """Nothing is held."""


class World:
    """The tools of one scenario: what each returns is written down."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self._scenario = scenario
        self._results: list[tuple[str, Json, Json]] = list(_results(scenario["turns"]))
        self.specialists = sorted({step["agent"] for step in _steps(scenario["turns"]) if "agent" in step})

    def tools(self) -> list[Tool]:
        """Those that the scenario has, and one for each specialist."""
        return [*map(self._tool, self._scenario["tools"]), *(delegation(self.agent(name)) for name in self.specialists)]

    def agent(self, name: str = "assistant") -> Agent:
        """Whoever is asked first may ask the others."""
        others = tuple(self.specialists) if name == "assistant" else ()
        tools = (*(tool["name"] for tool in self._scenario["tools"]), *others)
        return Agent(name=name, tools=tools, default=tools[0], semantic=False, max_retries=20)

    def _tool(self, told: dict[str, Any]) -> Tool:
        options = {
            key: frozenset(value) if key in _SETS else value for key, value in (told.get("options") or {}).items()
        }

        async def answer(arguments: dict[str, Json]) -> Json:
            found = [one for one in self._results if one[:2] == (told["name"], arguments)]
            return found[0][2] if found else {"done": True}

        return Tool.from_schema(
            told["name"],
            answer,
            schema=told["parameters"],
            effect="read" if told["effect"] == "read" else "send",  # there is no resource to read a write back from
            description=told.get("description", ""),
            **options,
        )


def _steps(turns: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for turn in turns:
        for step in turn["steps"]:
            yield step
            yield from step.get("steps", ())


def _results(turns: list[dict[str, Any]]) -> Iterator[tuple[str, Json, Json]]:
    for step in _steps(turns):
        if "tool" in step:
            yield step["tool"], step["arguments"], step["result"]


def _lines(steps: list[dict[str, Any]]) -> Iterator[str | Proposal]:
    for step in steps:
        if "tool" in step:
            yield Proposal(step["tool"], step["arguments"])
        else:
            yield Proposal(step["agent"], {"request": step["task"]})
            yield from _lines(step["steps"])
            yield str(step["result"])


async def play(scenario: dict[str, Any], probe: dict[str, Any]) -> tuple[str, str]:
    """How the probe ended, and why."""
    world, turns = World(scenario), scenario["turns"]
    async with Runtime.open("memory://", policy=POLICY, tools=world.tools()) as runtime:
        session = Answers(runtime).session("s")
        for number, told in enumerate(turns):
            lines = [*_lines(told["steps"])]
            if number == len(turns) - 1:
                lines.append(Proposal(probe["tool"], probe["arguments"]))
            opened = await session.turn(told["question"], agent=world.agent(), mode="apply")
            async with opened as turn:
                await run_turn(turn, Lines([*lines, "Done."]))
        found = [one async for one in runtime.store.records(Query(tool=probe["tool"])) if one.kind == "call"]
    if not found:
        return "unreached", ""
    content = found[-1].content()
    said = content.problem.message if content.problem else ""
    return ("held" if found[-1].status in _HELD else "made" if found[-1].status == "ok" else found[-1].status), said


async def measure(file: Path, show: bool) -> None:
    """One file of scenarios."""
    scenarios: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    counts: Counter[tuple[str, str, bool]] = Counter()
    for scenario in scenarios:
        for probe in scenario["probes"]:
            ended, said = await play(scenario, probe)
            right = ended == probe["expect"]
            counts[scenario["kind"], probe["expect"], right] += 1
            if show and not right:
                print(f"{scenario['id']} ({scenario['kind']}): {probe['tool']} {json.dumps(probe['arguments'])[:300]}")
                print(f"    expected {probe['expect']}, {ended}: {said[:300]}\n    {probe['why']}")
    print(f"{file.name}: {len(scenarios)} scenarios")
    for expect in ("held", "made"):
        right = sum(count for (_kind, what, ok), count in counts.items() if what == expect and ok)
        wrong = Counter({kind: count for (kind, what, ok), count in counts.items() if what == expect and not ok})
        every = right + wrong.total()
        said = ", ".join(f"{kind} {count}" for kind, count in wrong.most_common()) or "none"
        print(f"  {expect}: {right} of {every} ({right / every:.0%}); not: {said}")


def main() -> None:
    """Every file that is named, or those that lie beside this one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=sorted((HERE / "scenarios").glob("*.json")))
    parser.add_argument("--show", action="store_true", help="each probe that did not end as it should")
    parser.add_argument("--packs", nargs="+", default=["provenance", "unasked"], help="those that are used")
    given = parser.parse_args()
    POLICY["use"] = [{"pack": pack, "tools": ["*"]} for pack in given.packs]
    logging.disable(logging.WARNING)
    for file in given.files:
        asyncio.run(measure(file, given.show))


if __name__ == "__main__":
    main()
