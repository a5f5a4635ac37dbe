"""`make bench-enforcement`: questions with gold on the embedded model, tier by tier; writes docs/enforcement.md.

The judge reads the ledger's file with sqlite3 and compares it with what is written beside each question; it uses
nothing of the turn layer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "examples" / "district"), str(ROOT / "benchmarks")]

import district  # noqa: E402
from interlock import Runtime  # noqa: E402
from interlock.answers import (  # noqa: E402
    Answers,
    Proposal,
)
from interlock.answers.constrained import constrain  # noqa: E402
from interlock.answers.runner import (  # noqa: E402
    card,
    result_text,
    run_turn,
)
from interlock.models import Message, Model, Request  # noqa: E402
from interlock.models.local import LocalModel  # noqa: E402
from judging import calls_of, numbers, untraced, wilson  # noqa: E402

DOCS = ROOT / "docs" / "enforcement.md"


def questions() -> list[dict[str, Any]]:
    """Every question with its gold."""
    text = (HERE / "questions.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def right_call(row: dict[str, Any], calls: list[tuple[str, str, Any, Any]]) -> bool:
    """Whether the one call that the question needs succeeded, and no other tool did."""
    done = [(tool, arguments) for tool, status, arguments, _ in calls if status == "ok"]
    if not done:
        return False
    return all(tool == row["tool"] and without_defaults(arguments) == row["arguments"] for tool, arguments in done)


def without_defaults(arguments: Any) -> Any:
    """Arguments without those that say nothing: an unset sector, the default season."""
    return {k: v for k, v in arguments.items() if v is not None and not (k == "season" and v == "summer")}


def judge(row: dict[str, Any], status: str, answer: str, calls: list[tuple[str, str, Any, Any]]) -> dict[str, bool]:
    """What became of one question."""
    out = status in ("verified", "rendered", "conversation")
    gold = dict(row, arguments={k: v for k, v in row["arguments"].items() if not (k == "season" and v == "summer")})
    if row["kind"] == "chat":
        wrong = out and any(state == "ok" for _, state, _, _ in calls)
        right = out and not wrong
    elif row.get("asks"):
        wrong, right = out, status == "asked"
    elif row.get("nothing"):
        wrong, right = out, status == "tool_failed"
    else:
        right = out and right_call(gold, calls)
        wrong = out and not right
    leaked = out and bool(untraced(answer, row["q"], calls))
    figures = [float(n) for n in row["figures"]]
    return {
        "written": status in ("verified", "conversation"),
        "rendered": status == "rendered",
        "asked": status == "asked",
        "tool_failed": status == "tool_failed",
        "person": status in ("escalated", "blocked", "waiting"),
        "timeout": status == "timed_out",
        "right": right,
        "wrong": wrong,
        "leaked": leaked,
        "figures": bool(figures) and right and all(n in numbers(answer) for n in figures),
    }


async def full(model: Model, rows: list[dict[str, Any]], folder: Path, name: str) -> list[dict[str, Any]]:
    """The product as it is: classifier, ladder, grounding."""
    file = folder / f"{name}.db"
    runtime = Runtime.open(f"sqlite:///{file}", policy=district.APP.policy or "", tools=district.TOOLS)
    done, answers = [], Answers(runtime)
    async with runtime:
        for n, row in enumerate(rows, 1):
            started = time.perf_counter()
            async with answers.turn(row["q"], agent=district.AGENT) as turn:
                result = await run_turn(turn, model)
            took = time.perf_counter() - started
            verdict = judge(row, result.status.value, result.answer, calls_of(file, turn.id))
            done.append({**row, **verdict, "seconds": took, "answer": result.answer, "outcome": result.outcome.value})
            mark = "✓" if verdict["right"] else "✗" if verdict["wrong"] else "·"
            print(
                f"{name} {n}/{len(rows)} {mark} {result.outcome.value:<12} {took:5.1f} s  {row['q'][:70]}", flush=True
            )
    return done


async def bare(model: LocalModel, rows: list[dict[str, Any]], folder: Path, tier: str) -> list[dict[str, Any]]:
    """What the model does without us: tools and, in the second tier, instructions as text; retries in the third."""
    file = folder / f"{tier}.db"
    runtime = Runtime.open(f"sqlite:///{file}", policy=district.APP.policy or "", tools=district.TOOLS)
    cards, agent = tuple(map(card, district.TOOLS)), district.AGENT
    done, answers = [], Answers(runtime)
    async with runtime:
        for n, row in enumerate(rows, 1):
            started = time.perf_counter()
            async with answers.turn(row["q"], agent=agent) as turn:
                told = agent.purpose if tier == "auto" else turn.instructions
                messages = [Message("user", row["q"])]
                answer = ""
                for _ in range(4 if tier == "retry" else 2):
                    reply = await model.reply(Request(told, tuple(messages), cards))
                    if reply.proposals:
                        outcomes = await turn.propose([Proposal(p.tool, p.arguments) for p in reply.proposals[:3]])
                        messages += [Message("tool", result_text(o), (), o.tool) for o in outcomes]
                        continue
                    answer = reply.text
                    called = any(state == "ok" for _, state, _, _ in calls_of(file, turn.id))
                    if tier != "retry" or called or row["kind"] == "chat":
                        break
                    messages.append(Message("user", f"You have to call a tool first. {row['q']}"))
                turn.result = None
            took = time.perf_counter() - started
            calls = calls_of(file, turn.id)
            verdict = judge(row, "verified", answer, calls)
            done.append({**row, **verdict, "seconds": took, "answer": answer})
            print(
                f"{tier} {n}/{len(rows)} {'✓' if verdict['right'] else '✗'} {took:5.1f} s  {row['q'][:70]}", flush=True
            )
    return done


HEAD = """# Enforcement on the embedded model

Written by `make bench-enforcement` (`benchmarks/enforcement/run.py`); do not edit. {n} questions to the example
application `examples/district`, each with gold tool, arguments and figures beside it
(`benchmarks/enforcement/questions.jsonl`): plain and indirect questions, misspelled, ambiguous and unknown names, and
{chat} lines of chat. The model is SmolLM2-135M (4 bits, one thread). The judge reads the ledger's file and shares no
code with the turn layer. Rates with 95 % Wilson intervals.
"""


def table(tiers: dict[str, list[dict[str, Any]]]) -> str:
    """The tiers side by side."""
    titles = {
        "auto": "AUTO only",
        "instructions": "+ instructions",
        "retry": "+ retry",
        "full": "+ force, known values, grounding (the product)",
    }
    lines = ["| of questions that need a tool | " + " | ".join(titles[name] for name in tiers) + " |"]
    lines.append("|---|" + "---|" * len(tiers))
    need = {name: [row for row in rows if row["kind"] != "chat"] for name, rows in tiers.items()}
    for key, title in (
        ("right", "right (tool and arguments; asked or nothing on file where that is right)"),
        ("written", "an answer of the model leaves, verified by us in the last tier only"),
        ("rendered", "the results themselves leave (rendered)"),
        ("asked", "asked back"),
        ("tool_failed", "nothing on file, or the tool failed: said so"),
        ("person", "a person is needed"),
        ("wrong", "**wrong but left** (wrong tool or arguments for the question)"),
        ("leaked", "**leaked** (a figure that stands in no result)"),
    ):
        cells = [wilson(sum(row[key] for row in rows), len(rows)) for rows in need.values()]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    shows = ("plain", "indirect", "misspelled")
    plain = {name: [row for row in rows if row["right"] and row["kind"] in shows] for name, rows in need.items()}
    cells = [wilson(sum(row["figures"] for row in rows), len(rows)) for rows in plain.values()]
    lines.append("| of the right ones with gold figures: all of them shown | " + " | ".join(cells) + " |")
    cells = [f"{sum(row['seconds'] for row in rows) / max(1, len(rows)):.1f}" for rows in tiers.values()]
    lines.append("| seconds for each question | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def report(tiers: dict[str, list[dict[str, Any]]], n: int, chat: int) -> str:
    """The page."""
    rows = tiers["full"]
    need = [row for row in rows if row["kind"] != "chat"]
    lines = [HEAD.format(n=n, chat=chat), table(tiers), ""]
    settled = sum(not row["person"] for row in rows)
    wrong = sum(row["wrong"] for row in need)
    talk = [row for row in rows if row["kind"] == "chat"]
    lines += [
        "The first three tiers are what the model does when it is only shown tools, told what to do, or told again;"
        f" they were run on every third question ({len(tiers['auto'])} of them).",
        "",
        "| the product | measured | must |",
        "|---|---|---|",
        f"| settled without a person | {wilson(settled, len(rows))} | ≥ 99 % |",
        f"| wrong but verified | {wilson(wrong, len(need))} | ≤ 5 % |",
        f"| leaked | {sum(row['leaked'] for row in rows)} | 0 |",
        f"| chat answered without a tool | {wilson(sum(row['right'] for row in talk), len(talk))} | – |",
        "",
        "By kind, right in the product: "
        + ", ".join(
            f"{kind} {wilson(sum(r['right'] for r in rows if r['kind'] == kind), sum(r['kind'] == kind for r in rows))}"
            for kind in dict.fromkeys(row["kind"] for row in rows)
        )
        + ".",
        "",
    ]
    return "\n".join(lines)


async def main() -> int:
    """Run the tiers, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only every n-th question")
    parser.add_argument("--only", choices=("full",), help="only the product's tier; the page is not written")
    given = parser.parse_args()
    logging.getLogger("interlock").setLevel(logging.ERROR)
    rows = questions()[:: given.every]
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
        tiers: dict[str, list[dict[str, Any]]] = {}
        if given.only is None:
            told = LocalModel(instructable=True)
            for tier in ("auto", "instructions", "retry"):
                tiers[tier] = await bare(told, rows[::3], Path(folder), tier)
        tiers["full"] = await full(constrain(LocalModel()), rows, Path(folder), "full")
    page = report(tiers, len(rows), sum(row["kind"] == "chat" for row in rows)) if given.only is None else table(tiers)
    print(page)
    for row in tiers["full"]:
        if row["wrong"] or row["leaked"] or row["person"]:
            print("look:", {key: row[key] for key in ("q", "kind", "tool", "arguments", "answer", "outcome", "leaked")})
    if given.only is None and given.every == 1:
        DOCS.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
