"""Whether answers leave that should, and only those: labelled drafts, each through a turn of its own.

A domain is a folder with `domain.json` (tools, and scenarios: a question, and calls with what they returned) and
`drafts.jsonl` (answers to those questions, right ones and wrong ones of each kind). The tools are real tools that
return what the scenario says, behind a policy that refuses or parks what the scenario says is refused or parked; the
draft leaves if the turn ends as verified.

    python benchmarks/drafts.py [FOLDER] [--show KIND] [--held]
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from interlock import Runtime
from interlock.answers import Again, Agent, Answers, TurnStatus
from interlock.answers.grounding import Source
from interlock.answers.requirements import need
from interlock.errors import NotFound, Permanent
from interlock.models import Proposal
from interlock.policy import parse_policy
from interlock.tools import Tool

DATA = Path(__file__).parent / "drafts"
RIGHT = "right"
_WORDS_OF_A_NAME = 3
_LEFT, _HELD, _TOLD = "left", "held", "told"
"""Told: the turn ends with words of its own, whatever the draft says: a call waits for a person, or failed."""


class Domain:
    """The tools and scenarios of one folder, and the drafts that were written for them."""

    def __init__(self, folder: Path) -> None:
        described = json.loads((folder / "domain.json").read_text(encoding="utf-8"))
        self.name: str = described["domain"]
        self.purpose: str = described["purpose"]
        self.tools: list[dict[str, Any]] = described["tools"]
        self.scenarios: dict[str, dict[str, Any]] = {one["id"]: one for one in described["scenarios"]}
        self._know_all_ids()
        lines = (folder / "drafts.jsonl").read_text(encoding="utf-8").splitlines()
        self.drafts: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]

    def _know_all_ids(self) -> None:
        """A list of known values that lacks an id which a scenario calls would refuse the call."""
        for tool in self.tools:
            for argument, known in tool.get("known_values", {}).items():
                calls = [
                    call for one in self.scenarios.values() for call in one["calls"] if call["tool"] == tool["name"]
                ]
                for call in calls:
                    if argument in call["args"] and call["status"] != "no_data":
                        known.setdefault(call["args"][argument], _own_name(call["args"][argument], call.get("result")))

    def agent(self) -> Agent:
        """The agent whose drafts they are."""
        names = tuple(one["name"] for one in self.tools)
        return Agent(name=self.name, tools=names, purpose=self.purpose, semantic=False, deadline_s=60)

    async def end(self, scenario: Mapping[str, Any], draft: str) -> tuple[str, str]:
        """How a turn ends whose calls are those of a scenario and whose answer is this: what, and why."""
        calls = scenario["calls"]
        replay = _Replay(calls)
        policy = parse_policy(_policy(calls))
        tools = [replay.make_tool(one) for one in self.tools]
        async with Runtime.open("memory://", policy=policy, tools=tools) as runtime:
            reads = {one["name"] for one in self.tools if one["effect"] == "read"}
            done = [call["tool"] for call in calls if call["tool"] in reads and call["status"] == "ok"]
            mode = "dry_run" if any(call["status"] == "planned" for call in calls) else "apply"
            answers = Answers(runtime)
            requires = need(done[-1] if done else calls[-1]["tool"], no_data=True)
            asked: dict[str, Any] = {"requires": requires, "mode": mode, "given": previews(calls)}
            async with answers.turn(scenario["question"], agent=self.agent(), **asked) as turn:
                for number, call in enumerate(calls):
                    await turn.propose([Proposal(tool=call["tool"], arguments=call["args"], id=f"call-{number}")])
                ended = await turn.finish(draft)
                if isinstance(ended, Again):
                    await turn.finish(None, no_reply="the labelled draft was the only one")
                    return _HELD, ended.prompt
                if ended.status is TurnStatus.VERIFIED and draft.strip() in ended.answer:
                    return _LEFT, ""
                told = ended.status not in (TurnStatus.VERIFIED, TurnStatus.RENDERED, TurnStatus.ESCALATED)
                return (_TOLD if told else _HELD), f"{ended.status}: {ended.reason}"


def _own_name(known: str, result: Any) -> str:
    """What a thing is called by its own record, as in a list that had it: its id, its first words."""
    words = [value for value in result.values() if isinstance(value, str)] if isinstance(result, dict) else []
    return ", ".join(dict.fromkeys((known, *words[:_WORDS_OF_A_NAME])))


class _Replay:
    """Tools that return what a scenario says, call after call."""

    def __init__(self, calls: list[dict[str, Any]]) -> None:
        self._waiting = list(calls)

    def make_tool(self, spec: Mapping[str, Any]) -> Any:
        name = spec["name"]

        async def body(_arguments: dict[str, Any]) -> Any:
            call = next(one for one in self._waiting if one["tool"] == name)
            self._waiting.remove(call)
            match call["status"]:
                case "no_data":
                    raise NotFound(call.get("reason", "nothing on file"))
                case "failed":
                    raise Permanent(call.get("reason", "the service did not do it"))
                case "unknown":
                    raise RuntimeError("the connection was cut while the answer was awaited")
            return call.get("result", {})

        properties = {one: {"type": kind} for one, kind in spec["args"].items()}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        described = spec["description"]
        # A write would need a resource that can be read back; what leaves as an answer is the same for a send.
        effect = "read" if spec["effect"] == "read" else "send"
        return Tool.from_schema(name, body, schema=schema, effect=effect, description=described, **_options(spec))


def previews(calls: list[dict[str, Any]]) -> list[Source]:
    """What a scenario says of calls that were not made: a preview, an order number. The caller hands it in."""
    return [
        Source(f"preview {number}", call["result"])
        for number, call in enumerate(calls)
        if call["status"] in ("planned", "parked", "unknown") and call.get("result")
    ]


def _options(spec: Mapping[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if "known_values" in spec:
        options["known_values"] = spec["known_values"]
    if spec.get("untrusted"):
        options["trust"] = "untrusted"
    if spec["effect"] != "read":
        options["key"] = lambda arguments: json.dumps(dict(arguments), sort_keys=True, default=str)
    for name in ("says", "fields"):
        if spec.get(name) and name in Tool.__struct_fields__:
            options[name] = spec[name]
    return options


def _policy(calls: list[dict[str, Any]]) -> str:
    """Everything is allowed but what the scenario says is refused or waits for a person."""
    mode = "dry_run" if any(call["status"] == "planned" for call in calls) else "apply"
    text = f'version = 1\nmode = "{mode}"\n[review]\nvouched = ["user"]\n'
    text += '[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'
    for number, call in enumerate(calls):
        decision = {"denied": "deny", "parked": "review"}.get(call["status"])
        if decision is not None:
            reason = json.dumps(call.get("reason", "a rule refuses it"))
            text += (
                f'[[rule]]\nid = "r{number}"\ntools = ["{call["tool"]}"]\ndecision = "{decision}"\nreason = {reason}\n'
            )
            same = [one for one in calls if one["tool"] == call["tool"] and one["status"] != call["status"]]
            if same:
                where = " && ".join(f"args.{key} == {json.dumps(value)}" for key, value in call["args"].items())
                text += f"when = {json.dumps(where)}\n"
    return text


def read_domains(folder: Path) -> Iterator[Domain]:
    """The domains below a folder, by name."""
    for file in sorted(folder.glob("*/domain.json")):
        yield Domain(file.parent)


async def measure(folder: Path, *, show: str = "", held: bool = False) -> dict[str, Counter[str]]:
    """How the drafts of each kind end; `show`: print those of a kind that end wrongly, with the reason."""
    found: dict[str, Counter[str]] = {}
    for domain in read_domains(folder):
        for draft in domain.drafts:
            kind = draft["kind"]
            ended, why = await domain.end(domain.scenarios[draft["scenario"]], draft["text"])
            found.setdefault(kind, Counter())[ended] += 1
            wrong = ended == _HELD if kind == RIGHT else ended == _LEFT
            if show in (kind, "all") and (wrong or held):
                print(f"{domain.name} {draft['scenario']} {kind} {ended}: {draft['text']}\n    {why[:400]}")
    return found


def table(sets: Mapping[str, dict[str, Counter[str]]]) -> str:
    """What becomes of the drafts of each set, as a table: kinds of draft in lines."""
    kinds = sorted({kind for found in sets.values() for kind in found}, key=lambda kind: (kind != RIGHT, kind))
    head = "".join(f" {name}: drafts | left | held | told |" for name in sets)
    lines = [f"| kind of draft |{head}", f"|---|{'---|' * 4 * len(sets)}"]
    for kind in kinds:
        cells = [found.get(kind, Counter()) for found in sets.values()]
        counts = "".join(f" {one.total()} | {one[_LEFT]} | {one[_HELD]} | {one[_TOLD]} |" for one in cells)
        lines.append(f"| {kind.replace('_', ' ')} |{counts}")
    return "\n".join(lines) + "\n"


def totals(found: Mapping[str, Counter[str]]) -> dict[str, int]:
    """Right drafts and those of them that were held; wrong ones and those of them that left."""
    wrong = sum((counts for kind, counts in found.items() if kind != RIGHT), Counter[str]())
    right = found.get(RIGHT, Counter[str]())
    return {"right": right.total(), "held": right[_HELD], "wrong": wrong.total(), "left": wrong[_LEFT]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    parser.add_argument(
        "--show", default="", metavar="KIND", help="print the drafts of a kind (or all) that end wrongly"
    )
    parser.add_argument("--held", action="store_true", help="with --show: also those that end rightly")
    given = parser.parse_args()
    found = asyncio.run(measure(given.folder, show=given.show, held=given.held))
    for kind, counts in sorted(found.items(), key=lambda item: item[0] != RIGHT):
        print(f"{kind:16} {counts.total():5}  left {counts[_LEFT]:4}  held {counts[_HELD]:4}  told {counts[_TOLD]:4}")
    total = totals(found)
    print(f"right held {total['held']}/{total['right']}, wrong left {total['left']}/{total['wrong']}")


if __name__ == "__main__":
    main()
