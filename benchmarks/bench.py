"""`make bench`: every figure in docs/benchmarks.md, measured in one run and written by this script."""

from __future__ import annotations

import asyncio
import platform
import sqlite3
import sys
from importlib.metadata import version
from pathlib import Path

import calls
import durable
import effects
import long_turns
import slow_disk
import start
import traced_calls
import whole_resources

DOCS = Path(__file__).parent.parent / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

Written by `make bench` (`benchmarks/bench.py`); do not edit. Medians over interleaved rounds in one run: CPU time for
the rows of calls (over five processes, as memory layout alone moves a row by some percent), wall time for the durable
ones. Compare ratios, not microseconds; a ratio of durable rows is the median of the rounds' own ratios, and need not be
the quotient of the two columns beside it. Ratios move with the machine: `make bench-against REV` puts this tree beside
an earlier one of its own.

Measured with Python {python} on {machine}, SQLite {sqlite}; pydantic-ai-slim {pai}, langchain-core {lc},
agent-governance-toolkit {agt}.

| measured | ours | theirs | ratio | must | |
|---|---|---|---|---|---|
"""

TAIL = """
The governed read is the whole path on the memory store: strict contract, ten rules on the called tool of which one is
true and reported, a budget reserved and settled, a hash-chained record. The tool and its 64 calls in rotation are the
same for every row (`benchmarks/calls.py`). Peers run ungoverned, except agent-governance-toolkit, which has one rule.

Conditions are pure, so the answers for values seen lately are kept (`docs/design/policy.md`). The row "no decision
kept" gives every call values that were never seen before, so that all ten conditions are evaluated in CEL each time.
Modules that are loaded before the rounds are kept from the garbage collector (`gc.freeze`), for every library alike.

What a turn has recorded is folded once and carried on (`docs/design/turns.md`). The rows of long turns are CPU time
of calls that all differ, with a rule that looks at the turn, around the 10,000th and the 100th call of one
(`benchmarks/long_turns.py`). Those of traced calls are CPU time, too: half of them look somebody up, and half write to
whom was found, under the pack `provenance`, with `unasked` beside it, or under neither (`benchmarks/traced_calls.py`).

The governed write is one at a time. Two bare commits (the column "theirs") are what the disk alone takes; the rest of
ours is work around it: planning, two records, claim and lease rows, two hops to the writer's thread. That work is the
same on every disk, so the ratio is a statement about the disk: where a flush is acknowledged from a cache in a tenth
of a millisecond, two commits cost less than the work; the longer a flush takes, the nearer the ratio comes to one. The
rows below it add the same time to every flush of both sides (`benchmarks/slow_disk.py`).

Two bare loops stand beside the appends, because what "bare" means decides the ratio: one writes the rows that we write
(eleven columns), the other only their bodies into one column. The bound is held against the first.

Start is CPU time of whole processes with bytecode on disk, medians of interleaved runs (`benchmarks/start.py`).
"""


def row(name: str, ours: str, theirs: str, ratio: float, must: tuple[str, float] | None) -> str:
    """One line of the table; `must` is ('≤' or '≥', bound)."""
    if must is None:
        return f"| {name} | {ours} | {theirs} | {ratio:.2f} | – | |\n"
    sign, bound = must
    holds = ratio <= bound if sign == "≤" else ratio >= bound
    return f"| {name} | {ours} | {theirs} | {ratio:.2f} | {sign} {bound:g} | {'✓' if holds else '✗'} |\n"


def call_rows(found: dict[str, float]) -> str:
    """The rows of calls."""
    us = {name: f"{value:.1f} µs" for name, value in found.items()}
    ours = found["governed"]
    return "".join(
        [
            row("governed read vs Pydantic AI `ToolManager.handle_call`", us["governed"], us["pydantic_ai"],
                ours / found["pydantic_ai"], ("≤", 1.0)),
            row("the same vs LangChain `StructuredTool.ainvoke`", us["governed"], us["langchain"],
                ours / found["langchain"], ("≤", 0.2)),
            row("the same vs agent-governance-toolkit `govern()`", us["governed"], us["toolkit"],
                ours / found["toolkit"], ("≤", 0.5)),
            row("with 40 more rules on other tools vs without", us["governed_40"], us["governed"],
                found["governed_40"] / ours, ("≤", 1.1)),
            row("no decision kept vs Pydantic AI `ToolManager.handle_call`", us["fresh"], us["pydantic_ai"],
                found["fresh"] / found["pydantic_ai"], None),
        ]
    )  # fmt: skip


def durable_rows() -> str:
    """The rows of stores and verification."""
    print("appends to SQLite, 64 callers …", flush=True)
    found = asyncio.run(durable.appends())
    name = "ledger appends to SQLite, 64 callers, synchronous=FULL, vs a bare group-commit loop"
    ours, bare, least = found["ours"], found["bare"], found["one_column"]
    rows = row(f"{name} writing the same rows", f"{ours:,.0f}/s", f"{bare:,.0f}/s", ours / bare, ("≥", 0.6))
    rows += row("the same vs a bare loop writing one column", f"{ours:,.0f}/s", f"{least:,.0f}/s", ours / least, None)
    print("audit verify of 1,000,000 records …", flush=True)
    seen = durable.verification()
    rate = seen["records"] / seen["seconds"]
    rows += row(
        "`audit verify` of 1,000,000 records, per second", f"{rate:,.0f}/s", "100,000/s", rate / 1e5, ("≥", 1.0)
    )
    late, early = seen["late_mib"], seen["early_mib"]
    name = "its memory at most vs after 50,000 records"
    rows += row(name, f"{late:.0f} MiB", f"{early:.0f} MiB", late / early, ("≤", 1.1))
    return rows


def start_rows() -> str:
    """The rows of what it costs to start."""
    print("import and start …", flush=True)
    took = start.measure()
    python, pydantic, ours = took[start.PYTHON], took[start.PYDANTIC], took[start.INTERLOCK]
    loaded = ours - python
    rows = row(
        f"`{start.INTERLOCK}`, without the start of Python, vs 150 ms", f"{loaded:.0f} ms", "150 ms",
        loaded / 150, ("≤", 1.0)
    )  # fmt: skip
    rows += row("the same vs `import pydantic`", f"{loaded:.0f} ms", f"{pydantic - python:.0f} ms",
                loaded / (pydantic - python), None)  # fmt: skip
    for name in ("interlock --help", "interlock --version"):
        rows += row(f"`{name}`, with the start of Python, vs 250 ms", f"{took[name]:.0f} ms", "250 ms",
                    took[name] / 250, ("≤", 1.0))  # fmt: skip
    sdks = durable.model_sdks()
    return rows + f"\n`{start.INTERLOCK}` loads {'no model SDK' if not sdks else ', '.join(sdks)}.\n"


def turn_rows() -> str:
    """The rows of calls in a long turn."""
    print("the 10,000th call of a turn …", flush=True)
    rows = ""
    for store, took in long_turns.measure().items():
        late, early = f"{took['long']:.1f} µs", f"{took['short']:.1f} µs"
        name = f"the 10,000th call in a turn vs the 100th, each depending on its turn ({store})"
        rows += row(name, late, early, took["long"] / took["short"], ("≤", 1.5))
    return rows


def traced_rows() -> str:
    """The rows of calls whose arguments are traced."""
    print("calls whose arguments are traced …", flush=True)
    found = traced_calls.measure()
    took = {name: round(figure, 1) for name, figure in found.items()}
    rows = row("a call whose rules ask where its arguments came from vs without, in turns of 10 (SQLite)",
               f"{took['traced']} µs", f"{took['plain']} µs", found["ratio"], ("≤", 1.15))  # fmt: skip
    rows += row("the same with rules that also ask whether the user has asked for it",
                f"{took['both']} µs", f"{took['plain']} µs", found["ratio of both"], ("≤", 1.2))  # fmt: skip
    late, early = took["late"], took["early"]
    name = "the last of 1,000 such calls with 10 MB of results vs the first ones"
    return rows + row(name, f"{late} µs", f"{early} µs", late / early, ("≤", 1.5))


def effect_rows() -> str:
    """The rows of governed writes."""
    print("governed writes, their crowd, their duplicates, their undo …", flush=True)
    found = effects.measure()
    us = {name: f"{found[name] * 1e6:,.0f} µs" for name in ("first", "again", "bare")}
    rows = row("governed write (claim, intent, outcome; SQLite FULL), one at a time, vs two bare fsynced commits",
               us["first"], us["bare"], found["write_ratio"], ("≤", 1.6))  # fmt: skip
    for flush_us in (1000, 2000):
        slow = slow_disk.measure(flush_us)
        name = f"the same where a flush takes {flush_us // 1000} ms longer (added to both)"
        ours, bare = f"{slow['ours'] * 1e6:,.0f} µs", f"{slow['bare'] * 1e6:,.0f} µs"
        rows += row(name, ours, bare, slow["ratio"], ("≤", 1.6))
    commits = found["crowd_commits"]
    rows += row("commits for each of 64 concurrent writes on distinct keys, vs one commit each",
                f"{commits:.3f}", "1", commits, ("≤", 0.15))  # fmt: skip
    crowd, alone = found["crowd_rate"], found["alone_rate"]
    rows += row("their throughput vs one at a time", f"{crowd:,.0f}/s", f"{alone:,.0f}/s", crowd / alone, None)
    rows += row("duplicate delivery answered from the claim, vs a first delivery", us["again"], us["first"],
                found["again_ratio"], ("≤", 0.6))  # fmt: skip
    kept = whole_resources.measure()
    rows += row("what a change of one of 10,000 rows without a key adds to the ledger, vs the first, which keeps all",
                f"{kept['later']:,.0f} B", f"{kept['first']:,.0f} B",
                kept["later"] / kept["first"], ("≤", 0.01))  # fmt: skip
    made, undone = f"{found['made']:.2f} s", f"{found['undone']:.2f} s"
    return rows + row("undo of a run of 1,000 changes, vs performing it", undone, made, found["undo_ratio"], ("≤", 2.5))


def main() -> int:
    """Measure, print and write."""
    print("calls, interleaved …", flush=True)
    found, spread = calls.measure()
    table = call_rows(found) + turn_rows() + traced_rows() + effect_rows() + durable_rows() + start_rows()
    table += f"\nThe first ratio in each of the five processes: {', '.join(f'{ratio:.2f}' for ratio in spread)}.\n"
    names = ("pydantic-ai-slim", "langchain-core", "agent-governance-toolkit")
    pai, lc, agt = (version(name) for name in names)
    head = HEAD.format(python=platform.python_version(), machine=f"{platform.machine()} {platform.system()}",
                       sqlite=sqlite3.sqlite_version, pai=pai, lc=lc, agt=agt)  # fmt: skip
    DOCS.write_text(head + table + TAIL, encoding="utf-8")
    print(table)
    print(f"written to {DOCS.relative_to(Path.cwd()) if DOCS.is_relative_to(Path.cwd()) else DOCS.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
