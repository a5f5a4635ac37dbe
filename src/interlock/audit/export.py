"""Records for other people's tools: JSONL that can be verified without us, CSV for a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from interlock.ports import Ledger, Query
from interlock.records import Stored
from interlock.values import Json

FORMAT = "interlock-ledger/1"
_CSV = ("id", "time", "actor", "tool", "outcome", "rule", "reason", "error", "message", "attempts", "duration_ms",
        "turn", "call", "arguments", "summary", "deviates")  # fmt: skip


class Writable(Protocol):
    """Where an export goes."""

    def write(self, text: str, /) -> Any:
        """Take some of it."""
        ...


async def export_jsonl(ledger: Ledger, query: Query, out: Writable) -> int:
    """Every record as it is stored, one to a line, then every checkpoint; the number of records."""
    # A filtered export breaks every chain: it says so, and the verifier does not try.
    whole = query == Query()
    _line(out, {"format": FORMAT, "ledger": ledger.identity.ledger, "complete": whole})
    count = 0
    async for record in ledger.records(query):
        _line(out, record)
        count += 1
    if whole:
        for checkpoint in await ledger.checkpoints():
            _line(out, {"checkpoint": checkpoint})
    return count


async def export_csv(ledger: Ledger, query: Query, out: Writable) -> int:
    """The columns people look at, one record to a row; the number of records."""
    writer = csv.DictWriter(out, _CSV, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    return await _write_rows(ledger.records(query), writer)


async def _write_rows(records: AsyncIterator[Stored], writer: csv.DictWriter[str]) -> int:
    count = 0
    async for record in records:
        row = as_row(record)
        row["arguments"] = msgspec.json.encode(row["arguments"]).decode()
        row["deviates"] = ", ".join(record.content().deviates)
        writer.writerow({key: _harmless(value) for key, value in row.items()})
        count += 1
    return count


def as_row(record: Stored) -> dict[str, Json]:
    """A record as one flat, readable row."""
    content = record.content()
    verdict, problem = content.verdict, content.problem
    return {
        "id": record.id,
        "time": datetime.fromtimestamp(record.at_us / 1e6, UTC).isoformat(timespec="milliseconds"),
        "kind": record.kind,
        "actor": record.actor,
        "principal": content.principal,
        "tool": record.tool,
        "outcome": record.status,
        "decision": None if verdict is None else verdict.decision.value,
        "rule": None if verdict is None else verdict.rule,
        "policy_version": None if verdict is None else verdict.policy_version,
        "reason": None if verdict is None else verdict.reason,
        "rewrites": [] if verdict is None else msgspec.to_builtins(verdict.rewrites),
        "error": None if problem is None else problem.reason,
        "message": None if problem is None else problem.message,
        "attempts": len(content.attempts),
        "duration_ms": content.duration_us / 1000,
        "turn": record.turn,
        "run": content.run,
        "parent": content.parent,
        "call": record.call,
        "ticket": content.ticket,
        "mode": content.mode.value,
        "arguments": content.arguments,
        "arguments_digest": content.arguments_digest,
        "value": content.value,
        "value_digest": content.value_digest,
        "summary": content.summary,
        "repeats": content.repeats,
        "deviates": [] if content.change is None else list(content.change.deviates),
        "hash": record.hash,
        "lane": record.lane,
    }


def _line(out: Writable, value: Any) -> None:
    out.write(msgspec.json.encode(value).decode())
    out.write("\n")


def _harmless(value: Json) -> Json:
    """Text that a spreadsheet would take for a formula is given a leading quote."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
