"""Run records: what was asked, how it went, and what is left for the next run. One document a run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from interlock.errors import NotFound
from interlock.resources import Documents
from interlock_catalog.checks import Issue
from interlock_catalog.roles.desk import Refused
from interlock_catalog.trust import Trust

ORDER = ("ok", "planned", "parked", "denied", "failed", "unknown")


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants a run to do."""

    run: str
    mode: str = "dry_run"
    families: tuple[str, ...] = ()
    """Empty: all of them, those first that the last run left."""
    max_changes: int = 1000
    scout: bool = True
    by: str = ""
    """Who started it: a person, a schedule, an event."""


class FamilyResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one family came out."""

    family: str
    state: str
    """clean, seen (there is something, but nothing to do), planned, ok, waiting (for a person), partial, failed,
    deferred (somebody else is at work there, or it rests) or overflow."""
    counts: dict[str, int] = {}
    """Changes by how they ended."""
    issues: dict[str, int] = {}
    """Issues by severity."""
    left: tuple[Issue, ...] = ()
    """Grave issues that are left for a person."""
    asked: dict[str, int] = {}
    refused: tuple[Refused, ...] = ()
    why: str = ""
    exercises: int = 0


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    id: str
    mode: str
    status: str
    """running, succeeded, partial or failed."""
    by: str = ""
    started: str = ""
    ended: str = ""
    worker: str = ""
    asked_for: tuple[str, ...] = ()
    max_changes: int = 0
    counts: dict[str, int] = {}
    issues: dict[str, int] = {}
    asked: dict[str, int] = {}
    families: tuple[FamilyResult, ...] = ()
    left_over: tuple[str, ...] = ()
    """Families for the next run: locked, or over the cap."""
    trust: Trust | None = None
    """How often each rule had been right when the run began: its confidences stand on this."""

    @property
    def turns(self) -> Iterable[str]:
        """The turns of the ledger that hold what it did."""
        return (turn_of(self.id, result.family) for result in self.families)


def turn_of(run: str, family: str) -> str:
    """The turn in which a run works on a family."""
    return f"{run}/{family}"


def status_of(results: Iterable[FamilyResult], mode: str) -> str:
    """succeeded only if every change is ok (or planned, where nothing else was wanted); else partial or failed."""
    found = list(results)
    wanted = "ok" if mode == "apply" else "planned"
    good = sum(result.counts.get(wanted, 0) for result in found)
    other = {name for result in found for name, count in result.counts.items() if count} - {wanted}
    late = any(result.state in ("deferred", "overflow", "failed") for result in found)
    if not other and not late:
        return "succeeded"
    quiet = other <= {"parked"} and any(result.state in ("clean", "seen", "waiting", "deferred") for result in found)
    return "partial" if good or quiet else "failed"


def now_text() -> str:
    """This moment, for people."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Runs:
    """The records of runs, beside the engine's own tables."""

    def __init__(self, url: str) -> None:
        self._documents = Documents(url, "runs")

    async def put(self, run: Run) -> None:
        """Write one down."""
        await self._documents.write(f"run:{run.id}", msgspec.to_builtins(run))

    async def get(self, run: str) -> Run:
        """One run."""
        found = await self._documents.read_state(f"run:{run}")
        if found is None:
            raise NotFound(f"there is no run {run!r}; see `interlock catalog runs`")
        return msgspec.convert(found.value, Run)

    async def all(self, *, limit: int = 1000) -> list[Run]:
        """The runs, newest first; ids sort by time."""
        found, after = list[Run](), ""
        while True:
            page = await self._documents.page("run:", after=after, limit=500)
            found += [msgspec.convert(item.value, Run) for item in page.values()]
            if len(page) < 500:
                break
            after = next(reversed(page))
        return sorted(found, key=lambda run: run.id, reverse=True)[:limit]

    async def beat(self, worker: str, at: float) -> None:
        """A worker is alive."""
        await self._documents.write(f"worker:{worker}", {"at": at})

    async def beats(self) -> dict[str, float]:
        """When each worker was last heard of."""
        page: dict[str, Any] = await self._documents.page("worker:", limit=500)
        return {key.partition(":")[2]: float(item.value["at"]) for key, item in page.items()}

    async def close(self) -> None:
        """Let go."""
        await self._documents.close()
