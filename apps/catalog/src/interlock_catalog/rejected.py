"""The repair list: what a run refused, exported for people, mended there, and handed in again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from interlock.errors import ConfigError
from interlock_catalog.app import opened
from interlock_catalog.pipeline.carry import SERVICE
from interlock_catalog.report.gather import once
from interlock_catalog.runner.ids import new_run
from interlock_catalog.runner.record import Run, Runs
from interlock_catalog.settings import Loaded

_MENDABLE = ("invariant", "contract", "schema", "invalid_arguments")
"""Refusals of a payload, as against those of a policy that does not want the change at all."""


async def exported(loaded: Loaded, run: str | None, file: Path) -> int:
    """Write what a run refused to a file, a line each; how many there are."""
    runs = Runs(loaded.url("engine"))
    try:
        found = await _run(runs, run)
    finally:
        await runs.close()
    lines: list[dict[str, Any]] = []
    async with opened(loaded) as shop:
        for result in found.families:
            lines += [
                {"tool": r.tool, "arguments": r.arguments, "reason": r.reason, "family": result.family}
                for r in result.refused
            ]
            entries = [e async for e in shop.runtime.operations.journal(turn=f"{found.id}/{result.family}")]
            lines += [
                {
                    "tool": entry.op_type,
                    "actor": entry.actor,
                    "arguments": entry.arguments,
                    "evidence": list(entry.evidence),
                    "confidence": entry.confidence,
                    "reason": entry.reason,
                    "family": result.family,
                }
                for entry in once(entries)
                if entry.status == "denied" and entry.rule in _MENDABLE
            ]
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return len(lines)


async def _run(runs: Runs, name: str | None) -> Run:
    if name is not None:
        return await runs.get(name)
    found = await runs.all(limit=1)
    if not found:
        raise ConfigError("there has been no run yet")
    return found[0]


async def submitted(loaded: Loaded, file: Path, mode: str) -> dict[str, Any]:
    """Hand in every line of a file as a call; how each came out."""
    items = _read(file)
    run = new_run()
    done = []
    async with opened(loaded) as shop:
        changing = {tool.name for tool in shop.parts.tools if tool.effect.value != "read"}
        for number, item in enumerate(items, 1):
            tool = str(item.get("tool"))
            if tool not in changing:
                reason = f"{tool!r} is a report, not a change; write the change that it led to"
                done.append({"line": number, "tool": tool, "status": "refused", "reason": reason})
                continue
            outcome = await shop.runtime.call(
                tool,
                item.get("arguments"),
                actor=str(item.get("actor") or "person"),
                principal=SERVICE,
                run=run,
                turn=f"{run}/repairs",
                mode=mode,
                evidence=(*(item.get("evidence") or ()), "repair:person"),
                confidence=item.get("confidence"),
            )
            done.append({"line": number, "tool": tool, "status": outcome.status.value, "reason": outcome.summary})
    return {"run": run, "items": done}


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such file; export one first") from None
    except ValueError as error:
        raise ConfigError(f"{file}: every line is a JSON object: {error}") from None
    if not all(isinstance(item, dict) for item in found):
        raise ConfigError(f"{file}: every line is a JSON object with tool and arguments")
    return found
