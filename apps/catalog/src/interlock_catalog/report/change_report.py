"""The change report of a run, from its record and the ledger: per family what, why, on what evidence, how risky."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from interlock import Runtime
from interlock.operations import Entry
from interlock_catalog.contracts import Json
from interlock_catalog.runner.record import FamilyResult, Run, turn_of

_DONE = {"done": "ok", "open": "unknown"}


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


class FamilyReport(msgspec.Struct, frozen=True):
    """One family."""

    result: FamilyResult
    changes: tuple[Change, ...]


class Report(msgspec.Struct, frozen=True):
    """One run."""

    run: Run
    families: tuple[FamilyReport, ...]


async def gathered(runtime: Runtime, run: Run) -> Report:
    """The report of a run; families in which there is nothing to tell are left out."""
    families = []
    for result in run.families:
        entries = [entry async for entry in runtime.operations.journal(turn=turn_of(run.id, result.family))]
        changes = tuple(_change(entry) for entry in once(entries))
        if changes or result.refused or result.left or result.why:
            families.append(FamilyReport(result, changes))
    return Report(run, tuple(families))


def once(entries: list[Entry]) -> Iterator[Entry]:
    """Each change once, as it stands: what was tried again counts as it came out."""
    last = {entry.idempotency_key or str(entry.record): entry for entry in reversed(entries)}
    yield from reversed(last.values())


def _change(entry: Entry) -> Change:
    arguments = entry.arguments if isinstance(entry.arguments, dict) else {}
    return Change(
        op=entry.op_type,
        status=_DONE.get(entry.status, entry.status),
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
        differences=tuple(differences(entry.before, entry.after)),
    )


def differences(before: Json, after: Json) -> Iterator[Difference]:
    """The fields that differ, document by document."""
    for key in sorted({*(before or {}), *(after or {})}):
        yield from _fields(key, "", (before or {}).get(key), (after or {}).get(key))


def _fields(key: str, path: str, old: Json, new: Json) -> Iterator[Difference]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            yield from _fields(key, f"{path}.{name}" if path else name, old.get(name), new.get(name))
    else:
        yield Difference(key, path or "(whole)", old, new)
