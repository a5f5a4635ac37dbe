"""`make bench-ranger`: 60 questions a specialist with gold on the embedded model; writes docs/ranger-quality.md.

The judge (benchmarks/judging.py) reads the ledger's file and shares no code with the turn layer. The clock stands at
the day for which the gold was written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

from interlock import Runtime
from interlock.answers import Answers, App, run_turn
from interlock.answers.constrained import constrain
from interlock.models import open_model
from interlock_ranger.agents import SPECIALISTS
from interlock_ranger.app import build_app

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))  # the judge is that of the library's benchmarks

from judging import calls_of, numbers, untraced, wilson  # noqa: E402

DAY = date(2026, 11, 15)
PAGES = {
    "questions.jsonl": ROOT / "docs" / "ranger-quality.md",
    "blind.jsonl": ROOT / "docs" / "ranger-blind.md",
}
GUIDE = ROOT / "docs" / "ranger.md"
BEGIN, END = "<!-- measured by make bench-ranger -->", "<!-- end -->"
ANSWERED = ("verified", "rendered", "conversation")
"""Statuses of an answer that a user was given as true."""


def load_rows(name: str) -> list[dict[str, Any]]:
    """The rows of a file of questions."""
    text = (HERE / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def informative_arguments(app: App, tool: str, arguments: Any) -> dict[str, Any]:
    """Arguments without those that say nothing: unset, or at their default."""
    schema = next(item for item in app.tools if item.name == tool).input.schema["properties"]
    said = {k: sorted(v) if _is_list_of_texts(v) else v for k, v in arguments.items() if v is not None and v != []}
    return {k: v for k, v in said.items() if v != schema.get(k, {}).get("default")}


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def is_same_call(app: App, tool: str, made: Any, gold: dict[str, Any]) -> bool:
    """Whether a call is the one that the question needs; a fire that is implied by a part of it may be named, too."""
    own, want = informative_arguments(app, tool, made), informative_arguments(app, tool, gold)
    part = any(k in want for k in ("trail_id", "sector_id", "stand_id", "plot_id", "near"))
    return own == want or (part and {k: v for k, v in own.items() if k != "fire_id"} == want)


def judge(
    app: App, row: dict[str, Any], status: str, answer: str, calls: list[tuple[str, str, Any, Any]]
) -> dict[str, Any]:
    """What became of one question."""
    answered = status in ANSWERED
    done = [(tool, arguments) for tool, state, arguments, _ in calls if state == "ok"]
    if row["kind"] == "chat":
        wrong = answered and bool(done)
        right = answered and not wrong
    elif row.get("asks"):
        wrong, right = answered and bool(done), status == "asked"
    elif row.get("nothing"):
        wrong = answered and bool(done)
        right = not done and any(state == "no_data" for _, state, _, _ in calls)
    else:
        right = (
            answered
            and bool(done)
            and all(t == row["tool"] and is_same_call(app, t, a, row["arguments"]) for t, a in done)
        )
        wrong = answered and bool(done) and not right
    shown = {abs(n) for n in numbers(answer)}
    return {
        "status": status,
        "person": status in ("escalated", "blocked", "waiting"),
        "right": right,
        "wrong": wrong,
        "leaked": sorted(untraced(answer, row["q"], calls)) if answered else [],
        "figures": right and bool(row["figures"]) and all(abs(float(n)) in shown for n in row["figures"]),
        "calls": [(tool, state, arguments) for tool, state, arguments, _ in calls],
    }


async def ask_all(app: App, rows: list[dict[str, Any]], folder: Path, model_name: str) -> list[dict[str, Any]]:
    """Every question to its agent."""
    file, model, done = folder / "ranger.db", constrain(open_model(model_name)), []
    async with Runtime.open(f"sqlite:///{file}", policy=app.policy or "", tools=app.tools) as runtime:
        answers = Answers(runtime)
        for n, row in enumerate(rows, 1):
            started = time.perf_counter()
            async with answers.turn(row["q"], agent=app.agent(row["agent"])) as turn:
                result = await run_turn(turn, model)
            took = time.perf_counter() - started
            verdict = judge(app, row, result.status.value, result.answer, calls_of(file, turn.id))
            done.append({**row, **verdict, "seconds": took, "answer": result.answer, "outcome": result.outcome.value})
            mark = "✓" if verdict["right"] else "✗" if verdict["wrong"] else "·"
            print(f"{n}/{len(rows)} {mark} {result.outcome.value:<12} {took:5.1f} s  {row['q'][:80]}", flush=True)
    await model.close()
    return done


def count_routes(app: App) -> tuple[int, int]:
    """How many held-out questions the coordinator routes right, without a model."""
    rows, right = load_rows("routes.jsonl"), 0
    sorter = app.agent("coordinator").classifier()
    wanted = {"": set(), "briefing": set(SPECIALISTS)}
    for row in rows:
        found = sorter.classify(row["q"])
        tools = {leaf.tool for leaf in _leaves(found.requirement)}
        right += tools == wanted.get(row["route"], {row["route"]})
    return right, len(rows)


def _leaves(requirement: Any) -> list[Any]:
    return [requirement] if hasattr(requirement, "tool") else [leaf for p in requirement.parts for leaf in _leaves(p)]


def rate(rows: list[dict[str, Any]], key: str) -> str:
    """How many of the rows."""
    return wilson(sum(bool(row[key]) for row in rows), len(rows))


def render_report(rows: list[dict[str, Any]], routed: tuple[int, int], name: str) -> str:
    """The report."""
    need = [row for row in rows if row["kind"] != "chat"]
    talk = [row for row in rows if row["kind"] == "chat"]
    with_figures = [row for row in need if row["right"] and row["figures"] is not None and _has_gold(row)]
    text = [
        "# RANGER on the embedded model",
        "",
        "Written by `make bench-ranger` (`apps/ranger/benchmarks/run.py`); do not edit. "
        f"{len(rows)} questions, {len(rows) // len(SPECIALISTS)} for each specialist, with gold tool, arguments and"
        f" figures (`apps/ranger/benchmarks/{name}`); SmolLM2-135M (4 bits, one thread); the clock at"
        f" {DAY.isoformat()}. The judge reads the ledger's file and shares no code with the turn layer. Rates with 95 %"
        " Wilson intervals.",
        "",
        "| | measured | must |",
        "|---|---|---|",
        f"| settled without a person | {wilson(sum(not r['person'] for r in rows), len(rows))} | ≥ 99 % |",
        f"| wrong but verified, of questions that need a tool | {rate(need, 'wrong')} | ≤ 5 % |",
        f"| answers with a figure that no result has | {sum(bool(r['leaked']) for r in rows)} | 0 |",
        f"| right: tool and arguments; asked or nothing on file where that is right | {rate(need, 'right')} | – |",
        f"| of the right ones: all gold figures shown | {rate(with_figures, 'figures')} | – |",
        f"| chat answered without a tool | {rate(talk, 'right')} | – |",
        f"| coordinator routes right (held out, no model) | {wilson(*routed)} | – |",
        f"| seconds for each question | {sum(r['seconds'] for r in rows) / max(1, len(rows)):.1f} | – |",
        "",
        "| right, by agent and kind | " + " | ".join(KINDS) + " | wrong |",
        "|---|" + "---|" * (len(KINDS) + 1),
    ]
    for agent in SPECIALISTS:
        own = [row for row in rows if row["agent"] == agent]
        cells = [f"{sum(r['right'] for r in own if r['kind'] == k)}/{sum(r['kind'] == k for r in own)}" for k in KINDS]
        text.append(f"| {agent} | " + " | ".join(cells) + f" | {sum(r['wrong'] for r in own)} |")
    ends: dict[str, int] = {}
    for row in rows:
        ends[row["status"]] = ends.get(row["status"], 0) + 1
    text += ["", "Ends: " + ", ".join(f"{name} {count}" for name, count in sorted(ends.items())) + ".", ""]
    return "\n".join(text)


KINDS = ("plain", "paraphrase", "misspelled", "ambiguous", "unknown", "chat")


def _has_gold(row: dict[str, Any]) -> bool:
    return row["kind"] in ("plain", "paraphrase", "misspelled")


def publish() -> None:
    """The report's tables between the marks in docs/ranger.md, so that the guide shows what was measured."""
    tables = PAGES["questions.jsonl"].read_text(encoding="utf-8").partition("\n| |")[2]
    guide = GUIDE.read_text(encoding="utf-8")
    before, _, rest = guide.partition(BEGIN)
    _, _, after = rest.partition(END)
    GUIDE.write_text(f"{before}{BEGIN}\n\n| |{tables.rstrip()}\n\n{END}{after}", encoding="utf-8")


async def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only every n-th question; the page is not written")
    parser.add_argument("--agent", choices=SPECIALISTS, help="only one specialist; the page is not written")
    parser.add_argument("--model", default="local", help="another model; the page is not written")
    parser.add_argument("--questions", default="questions.jsonl", choices=PAGES, help="which of the two sets")
    given = parser.parse_args()
    logging.getLogger("interlock").setLevel(logging.ERROR)
    app = build_app(today=lambda: DAY)
    rows = [row for row in load_rows(given.questions) if given.agent in (None, row["agent"])][:: given.every]
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
        done = await ask_all(app, rows, Path(folder), given.model)
    text = render_report(done, count_routes(app), given.questions)
    print(text)
    for row in done:
        if row["wrong"] or row["leaked"] or row["person"] or not row["right"]:
            keys = ("q", "kind", "tool", "arguments", "calls", "status", "leaked", "wrong")
            print("look:", json.dumps({key: row[key] for key in keys}, ensure_ascii=False))
    if given.every == 1 and given.agent is None and given.model == "local":
        PAGES[given.questions].write_text(text, encoding="utf-8")
        publish()
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
