"""What a run rejected: exported for people, corrected by hand, and submitted again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from interlock.errors import ConfigError
from interlock_catalog.app import AppContext, open_app
from interlock_catalog.contracts import Json
from interlock_catalog.evidence import Evidence
from interlock_catalog.journal_entries import latest_entries
from interlock_catalog.pipeline.execute import SERVICE
from interlock_catalog.runner.ids import new_run_id
from interlock_catalog.runner.records import FamilyResult, Run, open_run_store
from interlock_catalog.runner.work_items import REJECTED, RunTurn
from interlock_catalog.settings import Loaded
from interlock_catalog.text_files import read_json_lines

_SHOWN = 10
_CORRECTABLE = ("invariant", "contract", "schema", "invalid_arguments")
"""Rules that deny a payload for what it holds, as against those of a policy that does not want the change at all."""


async def export_rejected(loaded: Loaded, run: str | None, file: Path) -> int:
    """Write what a run rejected to a file, a line each; how many there are."""
    async with open_run_store(loaded.settings) as runs:
        found = await runs.get(run) if run is not None else await runs.newest()
    if found is None:
        raise ConfigError("there has been no run yet")
    lines: list[dict[str, Json]] = []
    async with open_app(loaded) as app:
        for result in found.families:
            lines += await _rejected_lines(app, found, result)
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return len(lines)


async def _rejected_lines(app: AppContext, run: Run, result: FamilyResult) -> list[dict[str, Json]]:
    """What was rejected before it became a call, and what the gate denied."""
    lines: list[dict[str, Json]] = [
        {"tool": item.tool, "arguments": item.arguments, "reason": item.reason, "family": result.family}
        for item in result.rejected
    ]
    entries = [entry async for entry in app.runtime.operations.journal(turn=RunTurn(run.id, result.work).text)]
    for entry in latest_entries(entries):
        if entry.status == "denied" and entry.rule in _CORRECTABLE:
            lines.append(
                {
                    "tool": entry.op_type,
                    "actor": entry.actor,
                    "arguments": entry.arguments,
                    "evidence": list(entry.evidence),
                    "confidence": entry.confidence,
                    "reason": entry.reason,
                    "family": result.family,
                }
            )
    return lines


async def submit_rejected(loaded: Loaded, file: Path, mode: str) -> dict[str, Any]:
    """Submit every line of a file as a call; how each came out."""
    items, run = _read_lines(file), new_run_id()
    async with open_app(loaded) as app:
        done = [{"line": number, **await _submit(app, run, item, mode)} for number, item in items.items()]
    return {"run": run, "items": done}


async def _submit(app: AppContext, run: str, item: dict[str, Any], mode: str) -> dict[str, str]:
    tool = str(item.get("tool"))
    if not any(known.name == tool and known.effect.value != "read" for known in app.tools):
        reason = f"{tool!r} is a report, not a change; write the change that it led to"
        return {"tool": tool, "status": "rejected", "reason": reason}
    outcome = await app.runtime.call(
        tool,
        item.get("arguments"),
        actor=str(item.get("actor") or "person"),
        principal=SERVICE,
        run=run,
        turn=RunTurn(run, REJECTED).text,
        mode=mode,
        # That a person had a hand in it is on record, whatever the line itself says.
        evidence=(*(item.get("evidence") or ()), Evidence("correction", "person").text),
        confidence=item.get("confidence"),
    )
    return {"tool": tool, "status": outcome.status.value, "reason": outcome.summary}


def _read_lines(file: Path) -> dict[int, dict[str, Any]]:
    """What is to be submitted, by the numbers of their lines."""
    try:
        found = dict(read_json_lines(file, "every line is a JSON object"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such file; export one first") from None
    # All of them before the first is submitted: half a file cannot be taken back by mending the other half.
    faults = [f"line {number}: {fault}" for number, item in found.items() if (fault := _find_fault(item))]
    if faults:
        raise ConfigError(f"{file}: {'; '.join(faults[:_SHOWN])}; nothing was submitted")
    return found


def _find_fault(item: Any) -> str | None:
    """What no call can be made of; what is wrong with the change itself, its contract says."""
    if not isinstance(item, dict):
        return "it is a JSON object with tool and arguments"
    sure, evidence = item.get("confidence"), item.get("evidence") or []
    if sure is not None and (type(sure) not in (int, float) or not 0 <= sure <= 1):
        return f"confidence is a number between 0 and 1, not {sure!r}"
    if not isinstance(evidence, list) or not all(isinstance(text, str) and text.isprintable() for text in evidence):
        return "evidence is a list of printable texts"
    actor = item.get("actor") or "person"
    if not isinstance(actor, str) or not actor.isprintable():
        return "actor is printable text"
    return None
