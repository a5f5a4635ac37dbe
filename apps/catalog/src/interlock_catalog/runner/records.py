"""Run records: what was requested, how it went, and what is left for the next run. One document a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec

from interlock.errors import NotFound
from interlock.resources import Documents
from interlock_catalog.checks import Issue
from interlock_catalog.confidence import Calibration
from interlock_catalog.counts import format_count
from interlock_catalog.document_keys import DocumentKey, DocumentKind, name_of
from interlock_catalog.roles.context import Rejection
from interlock_catalog.runner.work_items import RunTurn, WorkItem
from interlock_catalog.sessions import name_sessions
from interlock_catalog.settings import Settings

STATUS_ORDER = ("ok", "planned", "parked", "denied", "failed", "unknown")
_PAGE = 500


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants a run to do."""

    run: str
    mode: str = "dry_run"
    families: tuple[str, ...] = ()
    """Empty: all of them, those first that the last run left."""
    max_changes: int = 1000
    scout: bool = True
    by: str = ""
    """Who started it: a person, a schedule, an event."""


class ForeseenChange(msgspec.Struct, frozen=True):
    """A change that comes after one which is not made yet: what, on which document, how sure, and on what evidence."""

    op: str
    target: str
    confidence: float
    evidence: tuple[str, ...]


class FamilyResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one family came out."""

    family: str
    """Its slug; for what belongs to no family, the text of that work."""
    state: str
    """clean, seen (there is something, but nothing to do), planned, ok, waiting (for a person), partial, failed,
    deferred (somebody else is at work there, or it rests) or overflow (over the cap of the run)."""
    counts: dict[str, int] = {}
    """Changes by how they ended."""
    issues: dict[str, int] = {}
    """Issues by severity."""
    unresolved: tuple[Issue, ...] = ()
    """Severe issues that are left for a person."""
    model_calls: dict[str, int] = {}
    rejected: tuple[Rejection, ...] = ()
    reason: str = ""
    """Why nothing, or not everything, was done."""
    exercises: int = 0
    model_answers: dict[str, int] = {}
    """By role: how often a reply of the model could be used."""
    model_replies: dict[str, int] = {}
    """By role: how often it replied, whatever it said."""
    foreseen: tuple[ForeseenChange, ...] = ()
    """Approvals that are decided once the changes before them are made."""
    crashed: bool = False
    """Whether the work broke down, as against work that was done and whose changes were refused."""

    @property
    def is_worth_retrying(self) -> bool:
        """Whether another try may come out better: it broke down, or a change failed that nobody had refused."""
        return self.crashed or bool(self.counts.get("failed"))

    @property
    def work(self) -> WorkItem:
        """What the result is about."""
        return WorkItem.parse(self.family)


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    id: str
    mode: str
    status: str
    """running, succeeded, waiting (for people, and nothing else), partial, failed or degraded (see `status_of`)."""
    by: str = ""
    started: str = ""
    ended: str = ""
    worker: str = ""
    requested: tuple[str, ...] = ()
    """The families that were asked for; empty: all."""
    max_changes: int = 0
    counts: dict[str, int] = {}
    issues: dict[str, int] = {}
    model_calls: dict[str, int] = {}
    families: tuple[FamilyResult, ...] = ()
    left_over: tuple[str, ...] = ()
    """Families for the next run: locked, or over the cap."""
    calibration: Calibration | None = None
    """How often each rule had been right when the run began: its confidences rest on this."""

    @property
    def family_results(self) -> tuple[FamilyResult, ...]:
        """Those of families: beside them, a run works on what belongs to none."""
        return tuple(result for result in self.families if result.work.is_family)

    @property
    def degradation(self) -> str:
        """Why the run is degraded; '' if it is not."""
        return describe_degradation(self.families)

    @property
    def turns(self) -> Iterable[str]:
        """The turns of the ledger that hold what it did."""
        return (RunTurn(self.id, result.work).text for result in self.families)


def describe_degradation(results: Sequence[FamilyResult]) -> str:
    """Why a run cannot be relied on, whatever it did: families crashed, or the model was of no use; '' if neither."""
    families = [result for result in results if result.work.is_family]
    crashed = [result for result in families if result.crashed]
    others = [result for result in results if result.crashed and not result.work.is_family]
    found = []
    if crashed:
        how_many = f"{len(crashed)} of {format_count(len(families), 'family', 'families')}"
        found.append(f"{how_many} crashed ({crashed[0].family}: {crashed[0].reason})")
    found += [f"the work on {result.work.kind.value} crashed ({result.reason})" for result in others]
    return "; ".join([*found, *_describe_model(results)])


def _describe_model(results: Sequence[FamilyResult]) -> Iterator[str]:
    """A model that was asked in vain. Whether it was silent or useless is told apart: only silence is an outage."""
    calls = sum(count for result in results for count in result.model_calls.values())
    if not calls or any(count for result in results for count in result.model_answers.values()):
        return
    replies = sum(count for result in results for count in result.model_replies.values())
    asked = f"the model was asked {format_count(calls, 'time')} and"
    if not replies:
        yield f"{asked} never answered"
    else:
        reason = next((item.reason for result in results for item in result.rejected), "no choice of what was offered")
        yield f"{asked} answered {format_count(replies, 'time')}, never with anything that could be used ({reason})"


def status_of(results: Iterable[FamilyResult], mode: str) -> str:
    """succeeded only if every change is ok (or planned, where nothing else was wanted); else what was wrong.

    A run that is degraded says so first: what it did not even look at cannot be told from its changes.
    """
    found = list(results)
    if describe_degradation(found):
        return "degraded"
    wanted = "ok" if mode == "apply" else "planned"
    good = sum(result.counts.get(wanted, 0) for result in found)
    other = {name for result in found for name, count in result.counts.items() if count} - {wanted}
    late = any(result.state in ("deferred", "overflow", "failed") for result in found)
    if not other and not late:
        return "succeeded"
    if other <= {"parked"} and not late:
        return "waiting"
    # Where all that is left waits for a person, or for its turn, nothing went wrong: partial, and not failed.
    quiet = other <= {"parked"} and any(result.state in ("clean", "seen", "waiting", "deferred") for result in found)
    return "partial" if good or quiet else "failed"


def format_now() -> str:
    """This moment, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


GOOD_STATUSES = frozenset({"succeeded", "waiting"})
"""Nothing went wrong: what is left waits for people, who have their tickets."""
BAD_STATUSES = frozenset({"failed", "degraded"})
"""Somebody has to look: the webhook stays silent, and `health` counts it."""


class RunStore:
    """The records of runs, beside the engine's own tables."""

    def __init__(self, url: str) -> None:
        self._documents = Documents(url, "runs")

    async def put(self, run: Run) -> None:
        await self._documents.write(DocumentKey(DocumentKind.RUN, run.id).text, msgspec.to_builtins(run))

    async def get(self, run: str) -> Run:
        """One run; NotFound if there is none of that id."""
        found = await self._documents.read_state(DocumentKey(DocumentKind.RUN, run).text)
        if found is None:
            raise NotFound(f"there is no run {run!r}")
        return msgspec.convert(found.value, Run)

    async def all(self, *, limit: int = 1000) -> list[Run]:
        """The runs, newest first; ids sort by time."""
        # Pages come oldest first, and the newest are wanted: all have to be read.
        found, after = list[Run](), ""
        while True:
            page = await self._documents.page(DocumentKind.RUN.prefix, after=after, limit=_PAGE)
            found += [msgspec.convert(item.value, Run) for item in page.values()]
            if len(page) < _PAGE:
                break
            after = next(reversed(page))
        return sorted(found, key=lambda run: run.id, reverse=True)[:limit]

    async def newest(self) -> Run | None:
        """The last run that was started."""
        return next(iter(await self.all(limit=1)), None)

    async def record_heartbeat(self, worker: str, at: float) -> None:
        """A worker is alive."""
        await self._documents.write(DocumentKey(DocumentKind.WORKER, worker).text, {"at": at})

    async def heartbeats(self) -> dict[str, float]:
        """When each worker was last heard of."""
        page: dict[str, Any] = await self._documents.page(DocumentKind.WORKER.prefix, limit=_PAGE)
        return {name_of(key): float(item.value["at"]) for key, item in page.items()}

    async def close(self) -> None:
        await self._documents.close()


@asynccontextmanager
async def open_run_store(settings: Settings, executor: str = "") -> AsyncIterator[RunStore]:
    """The records of the runs of a catalog."""
    store = RunStore(name_sessions(settings.engine, executor))
    try:
        yield store
    finally:
        await store.close()
