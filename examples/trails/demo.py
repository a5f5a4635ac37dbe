"""`make demo`: a handful of governed calls, then the ledger and its verification."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from interlock import Runtime
from interlock.cli.call import show
from interlock.cli.main import main as interlock

HERE = Path(__file__).parent

CALLS: list[tuple[str, str, dict[str, Any], str]] = [
    ("allowed", "classify_damage", {"trail_id": "waldo-lake-3536"}, "trail-assessor"),
    ("arguments refused", "classify_damage", {"trail_id": "Waldo Lake", "seson": "winter"}, "trail-assessor"),
    (
        "denied by a rule",
        "classify_damage",
        {"trail_id": "waldo-lake-3536", "season": "winter"},
        "trail-assessor",
    ),
    ("no such tool", "clasify_damage", {"trail_id": "waldo-lake-3536"}, "trail-assessor"),
    ("clamped", "search_reports", {"query": "waldo", "top_k": 500}, "trail-assessor"),
    ("times out", "weather_history", {"station": "cedar-creek"}, "burn-analyst"),
    ("retried", "burn_severity", {"fire": "cedar-creek-2022"}, "burn-analyst"),
    ("waits for a person", "crew_contact", {"crew": "Hotshots", "phone": "555-0100"}, "coordinator"),
    ("nothing on file", "classify_damage", {"trail_id": "betty-lake-3664"}, "trail-assessor"),
]


CLOSE = {"trail_id": "waldo-lake-3536", "closed": True, "reason": "41.5 downed trees a mile"}
CHANGES = [("a change, planned", "dry_run"), ("the same, made", "apply"), ("the same again: once is enough", "apply")]


async def calls(folder: Path) -> None:
    """Make the calls."""
    out = Console(highlight=False)
    sys.path.insert(0, str(folder.resolve()))
    tools = import_module("trails").TOOLS
    runtime = Runtime.open(f"sqlite:///{folder / 'trails.db'}", policy=folder / "policy.toml", tools=tools)
    async with runtime:
        for title, name, arguments, actor in CALLS:
            out.rule(f"[bold]{title}[/]", align="left", style="dim")
            out.print(f"[dim]{actor} →[/] {name} {arguments}")
            show(await runtime.call(name, arguments, actor=actor))
        for title, mode in CHANGES:
            out.rule(f"[bold]{title}[/]", align="left", style="dim")
            out.print(f"[dim]trail-assessor →[/] set_closure {CLOSE} [dim]mode={mode}[/]")
            show(await runtime.call("set_closure", CLOSE, actor="trail-assessor", turn="demo", run="demo", mode=mode))


QUESTIONS = ["How bad is the damage at Waldo Lake?", "Could we open the lake trail in spring?", "thanks, that helps!"]


def ask() -> int:
    """Questions to the embedded model: it may only say what the tools returned."""
    folder = Path(".demo/district")
    shutil.copytree(HERE.parent / "district", folder, ignore=shutil.ignore_patterns("__pycache__", "*.db*"))
    code = 0
    for question in QUESTIONS:
        Console(highlight=False).rule(f"[bold]interlock ask district {question!r}[/]", align="left", style="dim")
        code = max(code, interlock(["ask", "district", question, "--config", str(folder / "interlock.toml")]))
    return code


RANGER = "Which trails near Waldo Lake should stay closed this winter, and why?"


def ask_ranger(folder: Path) -> int:
    """A question to the reference application: the coordinator, a specialist, a table, a map."""
    Console(highlight=False).rule(f"[bold]interlock ask ranger {RANGER!r}[/]", align="left", style="dim")
    return interlock(["ask", "ranger", RANGER, "--store", f"sqlite:///{folder}/ranger.db"])


def clean_catalog(folder: Path) -> int:
    """The other reference application: two families of a faulty catalog, looked at, mended, and put back."""
    home = ["--home", str(folder / "catalog")]
    families = ["--family", "good-morning", "--family", "sit-up"]
    code = interlock(["catalog", "init", *home])
    for command in (
        ["run", *families, "--html", str(folder / "catalog.html")],
        ["enable", "--all"],
        ["run", "--apply", *families],
    ):
        Console(highlight=False).rule(f"[bold]interlock catalog {' '.join(command)}[/]", align="left", style="dim")
        code = max(code, interlock(["catalog", *command, *home]))
    return code


def main() -> int:
    """Everything, in a folder of its own."""
    logging.getLogger("interlock").setLevel(logging.CRITICAL)  # the outcomes are printed anyway
    folder = Path(".demo")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("__pycache__", "demo.py", "*.db*"))
    asyncio.run(calls(folder))
    config = ["--config", str(folder / "interlock.toml")]
    code = 0
    undo = ["undo", "--run", "demo", "--yes"]
    for command in (undo, ["audit", "show"], ["metrics"], ["audit", "anchor"], ["audit", "verify"]):
        Console(highlight=False).rule(f"[bold]interlock {' '.join(command)}[/]", align="left", style="dim")
        code = max(code, interlock([*command, *config]))
    code = max(code, ask(), ask_ranger(folder), clean_catalog(folder))
    Console(highlight=False).print(
        f"\n[dim]ledger: {folder}/trails.db; try: cd {folder} && ../.venv/bin/interlock policy test cases.toml[/]",
        soft_wrap=True,  # so that it can be copied
    )
    return code


if __name__ == "__main__":
    raise SystemExit(main())
