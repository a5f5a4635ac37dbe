"""The steps of a run, each of which can be repeated: which families, one family, the searches, and the end."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

import msgspec

from interlock.errors import Locked, ToolError
from interlock.state import ChangeFilter, ClaimState, TicketState
from interlock_catalog.app import Shop
from interlock_catalog.checks.issues import SEVERITIES, Issue
from interlock_catalog.pipeline.carry import Terms, carry_out, digest
from interlock_catalog.pipeline.family import FamilyPlan, plan_family
from interlock_catalog.pipeline.lost import lost_aliases, strays
from interlock_catalog.reading import read_family
from interlock_catalog.resource import lease_of
from interlock_catalog.roles.desk import Asked
from interlock_catalog.runner.record import FamilyResult, Order, Run, Runs, now_text, status_of, turn_of
from interlock_catalog.snapshot import Snapshot
from interlock_catalog.trust import Trust, decided

LOST = "~lost-aliases"
SEARCHES = "~searches"
_PAGE = 500
_LOOK_AGAIN_S = 0.5
_STATUS = {"done": "ok", "undone": "ok", "open": "unknown"}


class Work:
    """What a run does, with the catalog, the ledger and the model at hand."""

    def __init__(
        self, shop: Shop, runs: Runs, worker: str = "", tell: Callable[[int, int, str], None] | None = None
    ) -> None:
        self.shop = shop
        self.runs = runs
        self.worker = worker
        self._tell = tell
        self._total = 0
        self._done = 0
        self._trusted: tuple[str, Trust | None] = ("", None)

    async def begin(self, order: Order) -> list[str]:
        """Write the run down, and say which families it works on, in order."""
        await self.runs.put(
            Run(
                id=order.run,
                mode=order.mode,
                status="running",
                by=order.by,
                started=now_text(),
                worker=self.worker,
                asked_for=order.families,
                max_changes=order.max_changes,
                trust=self.shop.measured.adding(await decided(self.shop.runtime)),
            )
        )
        found = await self._chosen(order)
        self._total, self._done = len(found), 0
        return found

    async def _chosen(self, order: Order) -> list[str]:
        if order.families:
            return list(order.families)
        every = await self._families()
        first = [family for family in await self._left_over(order) if family in set(every)]
        rest = [family for family in every if family not in set(first)]
        return [*first, *rest, LOST, *([SEARCHES] if order.scout else [])]

    async def _families(self) -> list[str]:
        found, after = list[str](), ""
        while True:
            page = await self.shop.parts.backend.families(after=after, limit=_PAGE)
            found += [key.partition(":")[2] for key in page]
            if len(page) < _PAGE:
                return found
            after = next(reversed(page))

    async def _left_over(self, order: Order) -> tuple[str, ...]:
        """What the last finished run of this mode could not do."""
        earlier = [run for run in await self.runs.all(limit=50) if run.id != order.run and run.mode == order.mode]
        return next((run.left_over for run in earlier if run.ended), ())

    async def family(self, order: Order, name: str) -> FamilyResult:
        """Work on one family under its lease; whatever goes wrong is a result, not an exception."""
        result = await self._worked(order, name)
        self._done += 1
        if self._tell is not None:
            self._tell(self._done, max(self._total, self._done), name)
        return result

    async def _worked(self, order: Order, name: str) -> FamilyResult:
        terms = Terms(order.mode, order.max_changes, self.shop.patience_s)
        try:
            asked = self.shop.asked(turn_of(order.run, name), order.run, await self._trust(order))
            if name == SEARCHES:
                return await self._searches(asked, order, terms)
            if name == LOST:
                return await self._lost(asked, order, terms)
            async with self.shop.runtime.lock(lease_of(name), wait_s=self.shop.patience_s) as locks:
                await self._settled(asked)
                snapshot = await self._read(asked, name)
                plan = await plan_family(asked, snapshot)
                settled = await self._asked_already()
                ops = [op for op in plan.ops if f"op-{digest(op)}" not in settled]
                why = await carry_out(asked, ops, terms, locks)
                return await self._result(asked, order, plan, why, len(snapshot.exercises))
        except Locked as error:
            return FamilyResult(family=name, state="deferred", why=str(error))
        except Exception as error:  # noqa: BLE001 - a model is somebody else's: one family must not end the run
            return FamilyResult(family=name, state="failed", why=f"{type(error).__name__}: {error}")

    async def _trust(self, order: Order) -> Trust | None:
        """How far each rule was trusted when the run began, whichever process began it."""
        if self._trusted[0] != order.run:
            self._trusted = (order.run, (await self.runs.get(order.run)).trust)
        return self._trusted[1]

    async def _settled(self, asked: Asked) -> None:
        """What a dead process has begun in this very piece of work is settled before it is looked at again."""
        runtime, end = self.shop.runtime, time.monotonic() + self.shop.patience_s
        while True:
            await runtime.operations.recover()
            begun = await runtime.store.claims(ChangeFilter(turn=asked.turn))
            doubtful = [claim for claim in begun if claim.state in (ClaimState.OPEN, ClaimState.UNKNOWN)]
            if not doubtful or time.monotonic() > end:
                return
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _asked_already(self) -> set[str]:
        """The operations that wait for a person, or that one has denied: they are not asked about again."""
        states = (TicketState.OPEN, TicketState.DENIED)
        return {ticket.call for state in states for ticket in await self.shop.runtime.store.tickets(state)}

    async def _read(self, asked: Asked, name: str) -> Snapshot:
        """The family as it is, read through the gate; what was read before a crash is read again."""
        outcome = await asked.call("open_family", {"family_slug": name}, actor="analyst")
        found = self.shop.parts.memo.take(asked.turn, name)
        if found is None and outcome.ok:
            return await read_family(self.shop.parts.backend, name)
        if found is None:
            raise ToolError(outcome.summary)
        return found

    async def _lost(self, asked: Asked, order: Order, terms: Terms) -> FamilyResult:
        """Aliases whose target is nowhere belong to no family: each is mended under that of its new target."""
        whys, issues = set[str](), list[Issue]()
        async for issue in strays(self.shop.parts.backend):
            issues.append(issue)
        async for issue, family, op in lost_aliases(self.shop.parts.backend, asked.trust):
            issues.append(issue)
            if family is None or op is None or (order.families and family not in order.families):
                continue
            try:
                async with self.shop.runtime.lock(lease_of(family), wait_s=self.shop.patience_s) as locks:
                    whys.add(await carry_out(asked, [op], terms, locks))
            except Locked:
                whys.add("deferred")
        unmended = tuple(issue for issue in issues if issue.suggestion is None)
        plan = FamilyPlan(LOST, "", tuple(issues), (), (), unmended)
        return await self._result(asked, order, plan, max(whys, default=""), 0)

    async def _searches(self, asked: Asked, order: Order, terms: Terms) -> FamilyResult:
        """What people looked for in vain."""
        from interlock_catalog.roles.scout import scouted

        whys, refused = set[str](), []
        async for family, op, problem in scouted(asked, self.shop.parts.backend):
            if problem is not None:
                refused.append(problem)
            if op is None or family is None:
                continue
            try:
                async with self.shop.runtime.lock(lease_of(family), wait_s=self.shop.patience_s) as locks:
                    whys.add(await carry_out(asked, [op], terms, locks))
            except Locked:
                whys.add("deferred")
        plan = FamilyPlan(SEARCHES, "", (), (), tuple(refused), (), dict(asked.calls))
        return await self._result(asked, order, plan, max(whys, default=""), 0)

    async def _result(self, asked: Asked, order: Order, plan: FamilyPlan, why: str, size: int) -> FamilyResult:
        """How it came out, by what the ledger says was done in this turn."""
        counts: Counter[str] = Counter()
        seen: set[str] = set()
        async for entry in self.shop.runtime.operations.journal(turn=asked.turn):
            if entry.idempotency_key in seen:
                continue
            seen.add(entry.idempotency_key)
            counts[_STATUS.get(entry.status, entry.status)] += 1
        if why in ("overflow", "deferred"):
            counts.pop("denied", None)  # it is left for later, not refused
        severities = Counter(issue.severity for issue in plan.issues)
        return FamilyResult(
            family=plan.family,
            state=why or _state(counts, order.mode, bool(plan.issues or plan.refused)),
            counts=dict(counts),
            issues={name: severities[name] for name in reversed(SEVERITIES) if severities[name]},
            left=plan.left,
            asked=plan.asked,
            refused=plan.refused,
            exercises=size,
        )

    async def end(self, order: Order, results: list[FamilyResult]) -> Run:
        """Write down how the run went."""
        before = await self.runs.get(order.run)
        counts: Counter[str] = Counter()
        issues: Counter[str] = Counter()
        asked: Counter[str] = Counter()
        for result in results:
            counts.update(result.counts)
            issues.update(result.issues)
            asked.update(result.asked)
        run = msgspec.structs.replace(
            before,
            status=status_of(results, order.mode),
            ended=now_text(),
            worker=self.worker or before.worker,
            counts=dict(counts),
            issues=dict(issues),
            asked=dict(asked),
            families=tuple(results),
            left_over=tuple(r.family for r in results if r.state in ("deferred", "overflow") and r.family[0] != "~"),
        )
        await self.runs.put(run)
        return run


def _state(counts: Counter[str], mode: str, issues: bool) -> str:
    if not counts:
        return "seen" if issues else "clean"
    wanted = "ok" if mode == "apply" else "planned"
    if set(counts) == {wanted}:
        return wanted
    if set(counts) <= {wanted, "parked"} and counts["parked"]:
        return "waiting"
    return "partial" if counts[wanted] else "failed"
