"""`Runtime`: puts the parts together, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, TypedDict, Unpack

from interlock.config import Settings, default_principal
from interlock.engine import Desk, Engine, Gate, Journal, NoJournal, Observer, ReadJournal, World
from interlock.errors import ConfigError
from interlock.metrics import log_record, span_observer
from interlock.policy import ListSource, Policy, Ruleset, compile_policy, load_policy
from interlock.ports import Clock, Faults, Ids, Store, SystemClock, SystemIds, keyed_digest
from interlock.registry import Registry
from interlock.resilience import Deadlines
from interlock.schema import Tool
from interlock.stores import open_store
from interlock.values import Call, Effect, Json, Mode, Outcome

JOURNALS: Mapping[Effect, Journal] = {
    Effect.READ: ReadJournal(),
    Effect.WRITE: NoJournal(),
    Effect.SEND: NoJournal(),
}
_LONGEST_NAME = 200
_LOOK_AGAIN_S = 0.01
_MOST_NAMES = 1000
_NAMES = ("principal", "on_behalf_of", "turn", "run", "parent", "ticket", "call_id")


class CallDetails(TypedDict, total=False):
    """What a caller may say beside tool, arguments and actor."""

    principal: str
    on_behalf_of: str | None
    turn: str | None
    run: str | None
    parent: str | None
    mode: Mode | str
    evidence: tuple[str, ...]
    confidence: float | None
    ticket: str | None
    call_id: str


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
        registry = Registry(tools).freeze()
        written = policy if isinstance(policy, Policy) else load_policy(policy)
        ruleset = compile_policy(written, registry, parts.get("lists"))
        faults = parts.get("faults")
        opened = open_store(store, busy_s=settings.busy_s, faults=faults) if isinstance(store, str) else store
        observers = (log_record, *((span_observer(),) if settings.otel else ()), *parts.get("observers", ()))
        world = World(
            registry=registry,
            ruleset=ruleset,
            store=opened,
            desks={tool.name: _desk(tool, ruleset) for tool in registry},
            budgets=ruleset.budgets,
            clock=parts.get("clock") or SystemClock(),
            ids=parts.get("ids") or SystemIds(),
            faults=faults,
            deadlines=Deadlines(),
            threads=ThreadPoolExecutor(settings.threads, thread_name_prefix="interlock-tool"),
            observers=observers,
            repeats=settings.repeats,
            record_bytes=settings.record_bytes,
            redacted=frozenset().union(*(tool.redact for tool in registry)),
            keyed=keyed_digest(opened.identity.digest_key),
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
            if "mode" in given:
                given["mode"] = Mode(given["mode"])
        if tool not in self._world.desks and (len(tool) > _LONGEST_NAME or not tool.isprintable()):
            tool = ascii(tool)[:_LONGEST_NAME]
        if given:
            call_id = given.pop("call_id", None) or self._world.ids.new()
            call = Call(call_id, tool, arguments, actor, given.pop("principal", None) or self._principal, **given)
        else:
            call = Call(self._world.ids.new(), tool, arguments, actor, self._principal, True)
        return self._engine.run(call)

    def list(self, *, capability: str | None = None, actor: str | None = None) -> tuple[Tool, ...]:
        """The tools that need a capability, and that an actor has been granted all of."""
        grant = None if actor is None else self._world.ruleset.grant(actor)
        return self._world.registry.list(capability=capability, grant=grant)

    @property
    def store(self) -> Store:
        """Where everything is remembered."""
        return self._world.store

    async def close(self) -> None:
        """Take no more calls, wait for those that are running (each has its deadline), then let go."""
        self._engine.closed = True
        while self._engine.running:  # noqa: ASYNC110 - calls may run on other loops, which an Event cannot serve
            await asyncio.sleep(_LOOK_AGAIN_S)
        await self._world.store.close()
        self._world.threads.shutdown(wait=False, cancel_futures=True)

    async def __aenter__(self) -> Runtime:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _desk(tool: Tool, ruleset: Ruleset) -> Desk:
    journal = JOURNALS[tool.effect]
    return Desk(
        tool=tool,
        rules=ruleset.rules(tool.name),
        rates=ruleset.rates(tool.name),
        journal=journal,
        gate=Gate(tool),
        impossible=journal.refusal(tool),
    )


def _refuse_odd_names(actor: str, details: dict[str, Any]) -> None:
    """Names come from the application, not from a model: one that cannot be written down is the caller's error."""
    names = [actor, *(value for key, value in details.items() if key in _NAMES and value is not None)]
    for name in (*names, *details.get("evidence", ())):
        if not isinstance(name, str) or not name.isprintable() or not name:
            raise ConfigError(f"{name!r} cannot be the name of an actor, turn or call: use printable text")
