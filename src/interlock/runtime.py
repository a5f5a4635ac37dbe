"""`Runtime`: puts the parts together, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypedDict, Unpack

from interlock.changes import Planner, Sight
from interlock.config import Settings, default_principal
from interlock.engine import Desk, Engine, Gate, Halts, Observer, World, holding
from interlock.errors import ConfigError
from interlock.grounding import Source
from interlock.intents import Classified, Classifier
from interlock.metrics import log_record, span_observer
from interlock.modes import WorkMode
from interlock.operations import (
    Change,
    Compared,
    Entry,
    Planned,
    Recovered,
    Step,
    apply_set,
    compare,
    halt,
    journal,
    lift,
    plan_set,
    recover,
    replay_all,
    replay_steps,
    resume,
    sweep,
    undo_all,
    undo_steps,
    with_undo,
)
from interlock.operations import Desk as People
from interlock.policy import ListSource, Policy, Ruleset, compile_policy, load_policy
from interlock.ports import Clock, Faults, Ids, Store, SystemClock, SystemIds, digest_of, keyed_digest
from interlock.registry import Registry
from interlock.requirements import Requirement, need
from interlock.resilience import Deadlines
from interlock.review import Terms
from interlock.schema import Tool
from interlock.standing import TicketState, Which
from interlock.stores import open_store
from interlock.turn import Agent, Asked, Turn, TurnResult
from interlock.turn.answers import decide_any, fetched, reopened
from interlock.values import Budget, Call, Effect, Hold, Json, Mode, Outcome

Done = tuple[Step, Outcome | None]
"""A step of an undo or replay, and how its call ended; None where there was no call to make."""
_LONGEST_NAME = 200
_LOOK_AGAIN_S = 0.01
_MOST_NAMES = 1000
_NAMES = ("principal", "on_behalf_of", "turn", "run", "parent", "ticket", "plan", "call_id", "trail")


class CallDetails(TypedDict, total=False):
    """What a caller may say beside tool, arguments and actor."""

    principal: str
    on_behalf_of: str | None
    turn: str | None
    run: str | None
    parent: str | None
    mode: Mode | str | None
    evidence: tuple[str, ...]
    confidence: float | None
    ticket: str | None
    plan: str | None
    call_id: str
    offered: tuple[str, ...]
    holds: tuple[Hold, ...]
    budgets: tuple[Budget, ...]
    trail: str | None


class TurnDetails(TypedDict, total=False):
    """What a caller may say about a turn beside the question and the agent."""

    requires: Requirement | str
    """What the answer needs, where the caller knows better than the agent's intents."""
    principal: str
    on_behalf_of: str
    parent: str
    run: str
    mode: Mode | str
    work: WorkMode
    """A way of working: budgets, phases with their tools, when to stop."""
    given: Sequence[Source | int]
    """Earlier records (their numbers) and chunks of text that the answer may rest on."""


class Parts(TypedDict, total=False):
    """What may be replaced, for tests and for other clocks."""

    clock: Clock
    ids: Ids
    faults: Faults
    observers: tuple[Observer, ...]
    lists: Mapping[str, ListSource]


class Runtime:
    """Governed tools on a store. Open it, call it, close it (or use it as an async context manager)."""

    def __init__(self, world: World, principal: str) -> None:
        self._world = world
        self._engine = Engine(world)
        self._principal = principal
        self._known_actors: set[str] = set()
        self._classifiers: dict[Agent, Classifier] = {}

    @classmethod
    def open(
        cls,
        store: str | Store = "sqlite:///interlock.db",
        *,
        policy: str | Path | Policy,
        tools: Iterable[Tool],
        settings: Settings | None = None,
        **parts: Unpack[Parts],
    ) -> Runtime:
        """Compile the policy against the tools, freeze the registry, open the store."""
        settings = settings or Settings()
        registry = Registry(with_undo(tools)).freeze()
        written = policy if isinstance(policy, Policy) else load_policy(policy)
        ruleset = compile_policy(written, registry, parts.get("lists"))
        faults = parts.get("faults")
        opened = open_store(store, busy_s=settings.busy_s, faults=faults) if isinstance(store, str) else store
        observers = (log_record, *((span_observer(),) if settings.otel else ()), *parts.get("observers", ()))
        deadlines = Deadlines()
        clock, keyed = parts.get("clock") or SystemClock(), keyed_digest(opened.identity.digest_key)
        sight = Sight(partial(digest_of, keyed), faults, deadlines)
        mode = Mode(settings.mode) if settings.mode else written.mode or Mode.DRY_RUN
        world = World(
            registry=registry,
            ruleset=ruleset,
            store=opened,
            desks={tool.name: _desk(tool, ruleset, mode, sight) for tool in registry},
            budgets=ruleset.budgets,
            clock=clock,
            ids=parts.get("ids") or SystemIds(),
            faults=faults,
            deadlines=deadlines,
            sight=sight,
            threads=ThreadPoolExecutor(settings.threads, thread_name_prefix="interlock-tool"),
            observers=observers,
            repeats=settings.repeats,
            record_bytes=settings.record_bytes,
            redacted=frozenset().union(*(tool.redact for tool in registry)),
            keyed=keyed,
            halts=Halts(opened, clock, faults),
            lease_us=round(settings.lease_s * 1e6),
            review=Terms(
                round(settings.review_expires_s * 1e6), round(settings.review_escalate_s * 1e6), settings.self_approval
            ),
        )
        return cls(world, settings.principal or default_principal())

    def call(
        self, tool: str, arguments: Json, *, actor: str, **details: Unpack[CallDetails]
    ) -> Coroutine[Any, Any, Outcome]:
        """Take one call through the path (contract, policy, budget, effect, record): await it."""
        given: dict[str, Any] = details  # type: ignore[assignment]
        if given or actor not in self._known_actors:
            _refuse_odd_names(actor, given)
            if len(self._known_actors) < _MOST_NAMES:
                self._known_actors.add(actor)
            if given.get("mode") is not None:
                given["mode"] = Mode(given["mode"])
            else:
                given.pop("mode", None)
        desk = self._world.desks.get(tool)
        if desk is None and (len(tool) > _LONGEST_NAME or not tool.isprintable()):
            tool = ascii(tool)[:_LONGEST_NAME]
        if given:
            call_id = given.pop("call_id", None) or self._world.ids.new()
            given.setdefault("mode", Mode.APPLY if desk is None else desk.mode)
            call = Call(call_id, tool, arguments, actor, given.pop("principal", None) or self._principal, **given)
        else:
            mode = Mode.APPLY if desk is None else desk.mode
            call = Call(self._world.ids.new(), tool, arguments, actor, self._principal, True, mode)
        return self._engine.run(call)

    def turn(self, question: str, *, agent: Agent, **details: Unpack[TurnDetails]) -> Turn:
        """A turn of an agent: `async with runtime.turn(question, agent=agent) as turn`, then call, and finish."""
        requires, mode = details.get("requires"), details.get("mode")
        if requires is None:
            classified = self.classified(agent, question)
        else:
            requirement = need(requires) if isinstance(requires, str) else requires
            classified = Classified(requirement, by="caller", score=1.0)
        asked = Asked(
            id=self._world.ids.new(),
            question=question,
            classified=classified,
            principal=details.get("principal") or self._principal,
            parent=details.get("parent"),
            run=details.get("run"),
            on_behalf_of=details.get("on_behalf_of"),
            mode=None if mode is None else Mode(mode),
            given=tuple(details.get("given", ())),
            work=details.get("work") or agent.work,
        )
        return self._turn(agent, asked)

    async def reopen(self, turn: str, *, agent: Agent, on_behalf_of: str | None = None) -> Turn:
        """Go on with a turn that waited for a person, under a new deadline: what it had done still counts."""
        return self._turn(agent, await reopened(self._world, turn, on_behalf_of))

    async def answer(self, turn: str) -> TurnResult:
        """The result of a turn as it stands now: also after a reviewer released, corrected or rejected it."""
        return await fetched(self._world.store, turn)

    def _turn(self, agent: Agent, asked: Asked) -> Turn:
        strange = [name for name in agent.tools if name not in self._world.desks]
        if strange:
            raise ConfigError(f"agent {agent.name!r} has tools that are not registered: {', '.join(strange)}")
        return Turn(self._world, self.call, agent, asked, self.classified)

    def classified(self, agent: Agent, question: str) -> Classified:
        """Which of an agent's intents a question has, and so what its answer needs."""
        found = self._classifiers.get(agent)
        if found is None:
            found = self._classifiers[agent] = agent.classifier()
        return found.classify(question)

    def list(self, *, capability: str | None = None, actor: str | None = None) -> tuple[Tool, ...]:
        """The tools that need a capability, and that an actor has been granted all of."""
        grant = None if actor is None else self._world.ruleset.grant(actor)
        return self._world.registry.list(capability=capability, grant=grant)

    @property
    def store(self) -> Store:
        """Where everything is remembered."""
        return self._world.store

    def hold(self, *keys: str, wait_s: float = 0.0) -> AbstractAsyncContextManager[tuple[Hold, ...]]:
        """Hold keys (RESOURCE/KEY) over several calls, which are given `holds=`; `Locked` if somebody else does."""
        return holding(self._world, keys, call=self._world.ids.new(), wait_s=wait_s)

    async def resume(self, ticket: str) -> Outcome:
        """Make the call that waits for a ticket; if the ticket does not allow it, the outcome says why."""
        return await resume(self._engine.run, self._world, ticket)

    async def decide(self, ticket: str, *, approve: bool, by: str | None = None, reason: str = "") -> int:
        """Approve or deny a ticket as an authenticated person or service; the id of the decision's record."""
        state = TicketState.APPROVED if approve else TicketState.DENIED
        return await decide_any(self._people(by), self._world.review, ticket, state, reason)

    async def undo_plan(self, which: Which, *, force: bool = False) -> Sequence[Step]:
        """How those changes would be taken back, last change first; nothing is done."""
        return await undo_steps(self._world, which, force=force)

    async def undo(self, which: Which, *, force: bool = False, by: str | None = None) -> Sequence[Done]:
        """Take those changes back, each as a call on the path; None where there is no way back."""
        steps, name = await self.undo_plan(which, force=force), f"undo-{self._world.ids.new()}"
        done = await undo_all(self._engine.run, self._world, steps, by=by or self._principal, name=name)
        return tuple(zip(steps, done, strict=True))

    async def replay_plan(self, run: str) -> Sequence[Step]:
        """What of a run would be made again; nothing is done."""
        return await replay_steps(self._world, run)

    async def replay(self, run: str) -> Sequence[Done]:
        """Make what failed in a run again with its own keys, and what was undone as the next generation."""
        steps = await self.replay_plan(run)
        done = await replay_all(self._engine.run, self._world, steps, principal=self._principal)
        return tuple(zip(steps, done, strict=True))

    async def plan_set(self, changes: Sequence[Change], *, actor: str) -> tuple[Sequence[Planned], Outcome | None]:
        """Plan changes that belong together; beside the plans, the outcome of the first that cannot be planned."""
        return await plan_set(self._engine.run, self._world, changes, by=self._principal, actor=actor)

    async def apply_set(self, name: str, planned: Sequence[Planned], *, actor: str) -> Sequence[Outcome]:
        """Make a planned set, exactly as planned and in order; run again, it goes on where it ended."""
        return await apply_set(self._engine.run, self._world, self._people(None), name, planned, actor=actor)

    def journal(self, which: Which) -> AsyncIterator[Entry]:
        """What was changed, and for a turn also what was planned or refused, with images and evidence."""
        return journal(self._world, which)

    async def shadow(self, *, run: str | None = None, since_us: int | None = None) -> Sequence[Compared]:
        """Shadow plans against what then really happened."""
        return await compare(self._world, run=run, since_us=since_us)

    async def recover(self, *, by: str | None = None) -> tuple[Recovered, ...]:
        """Settle what dead processes left behind, and expire and escalate the tickets that are due."""
        people = self._people(by)
        await sweep(people)
        return await recover(self._world, people)

    async def halt(self, scope: str, *, reason: str = "", by: str | None = None) -> int:
        """Stop a scope (all, tool:NAME, actor:NAME, run:NAME) in every process within a second."""
        number = await halt(self._people(by), scope, reason)
        await self._world.halts.refresh()
        return number

    async def lift(self, scope: str, *, by: str | None = None) -> int:
        """Let a halted scope run again."""
        number = await lift(self._people(by), scope)
        await self._world.halts.refresh()
        return number

    def _people(self, by: str | None) -> People:
        world = self._world
        return People(by or self._principal, world.store, world.clock, world.ids, world.faults)

    async def close(self) -> None:
        """Take no more calls, wait for those that are running (each has its deadline), then let go."""
        self._engine.closed = True
        while self._engine.running:  # noqa: ASYNC110 - calls may run on other loops, which an Event cannot serve
            await asyncio.sleep(_LOOK_AGAIN_S)
        await self._world.store.close()
        self._world.threads.shutdown(wait=False, cancel_futures=True)

    async def __aenter__(self) -> Runtime:
        if any(desk.planner is not None for desk in self._world.desks.values()):
            await self.recover()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _desk(tool: Tool, ruleset: Ruleset, mode: Mode, sight: Sight) -> Desk:
    changes = tool.effect is not Effect.READ
    return Desk(
        tool=tool,
        rules=ruleset.rules(tool.name),
        rates=ruleset.rates(tool.name),
        gate=Gate(tool),
        mode=mode if changes else Mode.APPLY,
        planner=Planner(tool, sight) if changes else None,
    )


def _refuse_odd_names(actor: str, details: dict[str, Any]) -> None:
    """Names come from the application, not from a model: one that cannot be written down is the caller's error."""
    names = [actor, *(value for key, value in details.items() if key in _NAMES and value is not None)]
    for name in (*names, *details.get("evidence", ())):
        if not isinstance(name, str) or not name.isprintable() or not name:
            raise ConfigError(f"{name!r} cannot be the name of an actor, turn or call: use printable text")
