"""The change report of a run, from its record and the ledger: per family what, why, on what evidence, how risky."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from interlock import Runtime
from interlock.operations import Entry
from interlock_catalog.contracts import Json
from interlock_catalog.journal_entries import latest_entries
from interlock_catalog.runner.records import FamilyResult, Run
from interlock_catalog.runner.work_items import RunTurn

_STATUS_OF_ENTRY = {"done": "ok", "open": "unknown"}
_LEFT = ("deferred", "overflow")
"""States of families of which the rest was left for a later run: what was refused there for now was not denied."""
STOPPED = ("denied", "parked", "failed", "unknown", *_LEFT)
"""Statuses of changes that were not made: a report says why."""


class Difference(msgspec.Struct, frozen=True):
    """One field of one document, before and after."""

    key: str
    field: str
    before: Json
    after: Json


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change, made or proposed."""

    op: str
    status: str
    actor: str
    targets: tuple[str, ...]
    why: str
    evidence: tuple[str, ...]
    confidence: float | None
    risk: str
    rule: str
    reason: str
    ticket: str | None
    record: int
    differences: tuple[Difference, ...]
    deviates: tuple[str, ...] = ()
    """Documents that became something else than was planned."""


class FamilyReport(msgspec.Struct, frozen=True):
    """One family: its result, and each change."""

    result: FamilyResult
    changes: tuple[Change, ...]


class ChangeReport(msgspec.Struct, frozen=True):
    """One run, family by family."""

    run: Run
    families: tuple[FamilyReport, ...]


async def build_report(runtime: Runtime, run: Run) -> ChangeReport:
    """The report of a run; families in which there is nothing to tell are left out."""
    families = []
    for result in run.families:
        entries = [entry async for entry in runtime.operations.journal(turn=RunTurn(run.id, result.work).text)]
        changes = tuple(_build_change(entry, result) for entry in latest_entries(entries))
        if changes or result.rejected or result.unresolved or result.foreseen or result.reason:
            families.append(FamilyReport(result, changes))
    return ChangeReport(run, tuple(families))


def _build_change(entry: Entry, result: FamilyResult) -> Change:
    arguments = entry.arguments if isinstance(entry.arguments, dict) else {}
    status = _STATUS_OF_ENTRY.get(entry.status, entry.status)
    return Change(
        op=entry.op_type,
        status=result.state if status == "denied" and result.state in _LEFT else status,
        actor=entry.actor,
        targets=entry.target_ids,
        why=str(arguments.get("justification", "")),
        evidence=entry.evidence,
        confidence=entry.confidence,
        risk=entry.risk or "",
        rule=entry.rule,
        reason=entry.reason,
        ticket=entry.ticket,
        record=entry.record,
        differences=tuple(find_differences(entry.before, entry.after)),
        deviates=entry.deviates,
    )


def find_differences(before: Json, after: Json) -> Iterator[Difference]:
    """The fields that differ, document by document."""
    for key in sorted({*(before or {}), *(after or {})}):
        yield from _differences_at(key, "", (before or {}).get(key), (after or {}).get(key))


def _differences_at(key: str, path: str, old: Json, new: Json) -> Iterator[Difference]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            yield from _differences_at(key, f"{path}.{name}" if path else name, old.get(name), new.get(name))
    else:
        yield Difference(key, path or "(whole)", old, new)
