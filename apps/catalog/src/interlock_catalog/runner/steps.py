"""The steps of a run, each of which can be repeated: which families, one family, the searches, and the end."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import assert_never

import msgspec

from interlock.errors import ConfigError, Locked, ToolError
from interlock.state import ChangeFilter, ClaimState, TicketState
from interlock_catalog.app import AppContext
from interlock_catalog.backends import iterate_pages
from interlock_catalog.checks.issues import SEVERITIES, Issue
from interlock_catalog.confidence import Calibration, tally_decisions
from interlock_catalog.counts import format_count
from interlock_catalog.document_keys import exercise_key, name_of
from interlock_catalog.enabled import read_changeable
from interlock_catalog.family_reader import read_family
from interlock_catalog.journal_entries import UndoneChange, find_undone, latest_entries
from interlock_catalog.pipeline.execute import Execution, ExecutionOptions, Stop, call_id_of, execute_operations
from interlock_catalog.pipeline.family import FamilyPlan, plan_family
from interlock_catalog.pipeline.orphans import find_orphan_aliases, find_orphan_exercises
from interlock_catalog.planning.ops import Op
from interlock_catalog.resource import family_lock
from interlock_catalog.roles.context import Rejection, RoleContext
from interlock_catalog.runner.records import (
    FamilyResult,
    ForeseenChange,
    Run,
    RunRequest,
    RunStore,
    format_now,
    status_of,
)
from interlock_catalog.runner.work_items import ORPHANS, SEARCHES, RunTurn, WorkItem, WorkKind
from interlock_catalog.snapshot import Snapshot

_POLL_S = 0.5
_STATUS_OF_ENTRY = {"done": "ok", "undone": "ok", "open": "unknown"}
Progress = Callable[[int, int, str], None]
"""Is told how many families are done, of how many, and which was the last."""


class _BegunRun(msgspec.Struct, frozen=True):
    """What a run knows from its beginning: its calibration, and the changes that people had taken back by then."""

    run: str = ""
    calibration: Calibration | None = None
    undone: tuple[UndoneChange, ...] = ()


class RunSteps:
    """The steps of runs, over one catalog, ledger and model."""

    def __init__(self, app: AppContext, runs: RunStore, worker: str = "", on_progress: Progress | None = None) -> None:
        self.app = app
        self.runs = runs
        self.worker = worker
        self._on_progress = on_progress
        self._total = 0
        self._done = 0
        self._begun = _BegunRun()

    async def begin(self, request: RunRequest) -> list[WorkItem]:
        """Write the run down, and say what it works on, in order."""
        await self.runs.put(
            Run(
                id=request.run,
                mode=request.mode,
                status="running",
                by=request.by,
                started=format_now(),
                worker=self.worker,
                requested=request.families,
                max_changes=request.max_changes,
                # Kept with the run: a process that goes on with it has to be as sure as the one that began it.
                calibration=self.app.calibration.add(await tally_decisions(self.app.runtime)),
            )
        )
        work = await self._choose_work(request)
        self._total, self._done = len(work), 0
        return work

    async def _choose_work(self, request: RunRequest) -> list[WorkItem]:
        # Whoever names families wants those alone; orphans and searches are about the whole catalog.
        if request.families:
            return [WorkItem.parse(text) for text in request.families]
        # Read now and not when it was requested: a schedule may be older than what is enabled.
        changeable = read_changeable(self.app.loaded) if request.mode == "apply" else None
        every = [slug for slug in await self._list_families() if changeable is None or slug in changeable]
        first = [family for family in await self._left_over(request) if family in set(every)]
        rest = [family for family in every if family not in set(first)]
        families = [WorkItem.of_family(slug) for slug in (*first, *rest)]
        if changeable is not None:
            return families
        return [*families, ORPHANS, *([SEARCHES] if request.scout else [])]

    async def _list_families(self) -> list[str]:
        pages = iterate_pages(self.app.backend.families)
        return [name_of(key) async for page in pages for key in page]

    async def _left_over(self, request: RunRequest) -> tuple[str, ...]:
        """What the last finished run of this mode could not do."""
        # Of the same mode only: what a dry run could not plan says nothing about what is left to apply.
        earlier = [run for run in await self.runs.all(limit=50) if run.id != request.run and run.mode == request.mode]
        return next((run.left_over for run in earlier if run.ended), ())

    async def work_on(self, request: RunRequest, work: WorkItem) -> FamilyResult:
        """Work on one family under its lock; whatever goes wrong is a result, not an exception."""
        try:
            turn = RunTurn(request.run, work).text
            context = self.app.role_context(turn, request.run, (await self._read_begun(request)).calibration)
            result = await self._work(context, request, work)
        except Locked as error:
            result = FamilyResult(family=work.text, state=Stop.DEFERRED.value, reason=str(error))
        except Exception as error:  # noqa: BLE001 - a model is somebody else's: one family must not end the run
            why = f"{type(error).__name__}: {error}"
            result = FamilyResult(family=work.text, state="failed", reason=why, crashed=True)
        self._done += 1
        if self._on_progress is not None:
            self._on_progress(self._done, max(self._total, self._done), work.text)
        return result

    async def _read_begun(self, request: RunRequest) -> _BegunRun:
        """What the run began with, whichever process began it."""
        if self._begun.run != request.run:
            calibration = (await self.runs.get(request.run)).calibration
            undone = [change async for change in find_undone(self.app.runtime)]
            self._begun = _BegunRun(request.run, calibration, tuple(undone))
        return self._begun

    async def _work(self, context: RoleContext, request: RunRequest, work: WorkItem) -> FamilyResult:
        match work.kind:
            case WorkKind.FAMILY:
                return await self._work_on_family(context, request, work.family)
            case WorkKind.ORPHANS:
                return await self._work_on_orphans(context, request)
            case WorkKind.SEARCHES:
                return await self._work_on_searches(context, request)
            case WorkKind.REJECTED:
                raise ConfigError("what was rejected is submitted by a person, with `catalog rejected FILE --submit`")
            case _:
                assert_never(work.kind)

    async def _work_on_family(self, context: RoleContext, request: RunRequest, name: str) -> FamilyResult:
        async with self.app.runtime.lock(family_lock(name), wait_s=self.app.lock_wait_s) as locks:
            # In this order: what a dead process began here is settled, then the family is read as that left it.
            await self._recover_turn(context)
            snapshot = await self._read_snapshot(context, name)
            plan = await self.plan(context, snapshot)
            # Left out here and not in the plan, which has to be the same for the same snapshot.
            undone = await self._find_undone_calls(request, plan.ops)
            withheld = undone | await self._calls_with_ticket()
            done = await execute_operations(context, plan.ops, self._options(request), locks, withheld)
            result = await self._build_result(context, request, plan, done)
            changes = format_count(len(undone), "change")
            reason = f"{changes} that a person took back: not proposed again" if undone else ""
            return msgspec.structs.replace(result, exercises=len(snapshot.exercises), reason=reason)

    async def plan(self, context: RoleContext, family: Snapshot) -> FamilyPlan:
        """What should be done about a family; nothing is done yet."""
        return await plan_family(context, family)

    def _options(self, request: RunRequest) -> ExecutionOptions:
        return ExecutionOptions(mode=request.mode, max_changes=request.max_changes, wait_s=self.app.lock_wait_s)

    async def _recover_turn(self, context: RoleContext) -> None:
        """Wait until no change of this turn is in doubt: a dead process may have begun one, its lease has to expire."""
        runtime, end = self.app.runtime, time.monotonic() + self.app.lock_wait_s
        while True:
            await runtime.operations.recover()
            claims = await runtime.store.claims(ChangeFilter(turn=context.turn))
            doubtful = [claim for claim in claims if claim.state in (ClaimState.OPEN, ClaimState.UNKNOWN)]
            if not doubtful or time.monotonic() > end:
                return
            await asyncio.sleep(_POLL_S)

    async def _find_undone_calls(self, request: RunRequest, ops: Iterable[Op]) -> set[str]:
        """The operations that a person has taken back, and that would begin with the same documents again."""
        undone = (await self._read_begun(request)).undone
        found = set[str]()
        for change in (change for call in map(call_id_of, ops) for change in undone if change.call == call):
            now = await self.app.backend.read_many(change.before or ())
            states = {key: now[key].value if key in now else None for key in change.before or ()}
            if change.before is None or states == change.before:
                found.add(change.call)
        return found

    async def _calls_with_ticket(self) -> set[str]:
        """The operations that wait for a person, or that one has denied: they are not asked about again."""
        states = (TicketState.OPEN, TicketState.DENIED)
        return {ticket.call for state in states for ticket in await self.app.runtime.store.tickets(state)}

    async def _read_snapshot(self, context: RoleContext, name: str) -> Snapshot:
        """The family as it is, read through the gate; what was read before a crash is read again."""
        outcome = await context.call("open_family", {"family_slug": name}, actor="analyst")
        found = self.app.snapshots.take(context.turn, name)
        if found is None and outcome.ok:  # the call was answered from the record of the process that died
            return await read_family(self.app.backend, name)
        if found is None:
            raise ToolError(outcome.summary)
        return found

    async def _work_on_orphans(self, context: RoleContext, request: RunRequest) -> FamilyResult:
        """Aliases without a target belong to no family: each is fixed under the lock of its new target's family."""
        stops, issues = set[Stop](), list[Issue]()
        async for issue in find_orphan_exercises(self.app.backend):
            issues.append(issue)
        async for orphan in find_orphan_aliases(self.app.backend, context.calibration):
            issues.append(orphan.issue)
            wanted = not request.families or orphan.family in request.families
            if orphan.family is not None and orphan.op is not None and wanted:
                stops |= await self._execute_alone(context, request, orphan.family, orphan.op)
        unresolved = tuple(issue for issue in issues if issue.suggestion is None)
        plan = FamilyPlan(family=ORPHANS.text, issues=tuple(issues), unresolved=unresolved)
        return await self._build_result(context, request, plan, Execution(max(stops, default=None)))

    async def _work_on_searches(self, context: RoleContext, request: RunRequest) -> FamilyResult:
        """What people searched for in vain."""
        from interlock_catalog.roles.scout import scout_searches

        stops, rejected = set[Stop](), list[Rejection]()
        async for finding in scout_searches(context, self.app.backend):
            if finding.rejection is not None:
                rejected.append(finding.rejection)
            if finding.op is not None and finding.family is not None:
                stops |= await self._execute_alone(context, request, finding.family, finding.op)
        plan = FamilyPlan(family=SEARCHES.text, rejected=tuple(rejected), model_calls=dict(context.model_calls))
        return await self._build_result(context, request, plan, Execution(max(stops, default=None)))

    async def _execute_alone(self, context: RoleContext, request: RunRequest, family: str, op: Op) -> set[Stop]:
        """One operation under the lock of its family; why it was left, if it was."""
        try:
            async with self.app.runtime.lock(family_lock(family), wait_s=self.app.lock_wait_s) as locks:
                withheld = await self._find_undone_calls(request, [op]) | await self._calls_with_ticket()
                stop = (await execute_operations(context, [op], self._options(request), locks, withheld)).stop
        except Locked:
            stop = Stop.DEFERRED
        return set() if stop is None else {stop}

    async def _build_result(
        self, context: RoleContext, request: RunRequest, plan: FamilyPlan, done: Execution
    ) -> FamilyResult:
        """How it came out, by what the ledger says was done in this turn: also by a process that died."""
        entries = [entry async for entry in self.app.runtime.operations.journal(turn=context.turn)]
        counts = Counter(_STATUS_OF_ENTRY.get(entry.status, entry.status) for entry in latest_entries(entries))
        stop = done.stop
        if stop is not None:
            counts.pop("denied", None)  # it is left for later, not denied
        severities = Counter(issue.severity for issue in plan.issues)
        has_findings = bool(plan.issues or plan.rejected)
        return FamilyResult(
            family=plan.family,
            state=_state_of(counts, request.mode, has_findings=has_findings) if stop is None else stop.value,
            counts=dict(counts),
            issues={name: severities[name] for name in reversed(SEVERITIES) if severities[name]},
            unresolved=plan.unresolved,
            model_calls=plan.model_calls,
            model_replies=dict(context.model_replies),
            model_answers=dict(context.model_answers),
            rejected=plan.rejected,
            foreseen=tuple(_foresee(op) for op in done.foreseen),
        )

    async def end(self, request: RunRequest, results: list[FamilyResult]) -> Run:
        """Write down how the run went."""
        before = await self.runs.get(request.run)
        counts: Counter[str] = Counter()
        issues: Counter[str] = Counter()
        model_calls: Counter[str] = Counter()
        for result in results:
            counts.update(result.counts)
            issues.update(result.issues)
            model_calls.update(result.model_calls)
        run = msgspec.structs.replace(
            before,
            status=status_of(results, request.mode),
            ended=format_now(),
            worker=self.worker or before.worker,
            counts=dict(counts),
            issues=dict(issues),
            model_calls=dict(model_calls),
            families=tuple(results),
            # What is no family is in every run over the whole catalog anyway.
            left_over=tuple(r.family for r in results if r.state in set(Stop) and r.work.is_family),
        )
        await self.runs.put(run)
        return run


def _foresee(op: Op) -> ForeseenChange:
    target = exercise_key(op.arguments["exercise_id"])
    return ForeseenChange(op.tool, target, op.confidence, tuple(item.text for item in op.evidence))


def _state_of(counts: Counter[str], mode: str, *, has_findings: bool) -> str:
    if not counts:
        return "seen" if has_findings else "clean"
    wanted = "ok" if mode == "apply" else "planned"
    if set(counts) == {wanted}:
        return wanted
    if set(counts) <= {wanted, "parked"} and counts["parked"]:
        return "waiting"
    return "partial" if counts[wanted] else "failed"
