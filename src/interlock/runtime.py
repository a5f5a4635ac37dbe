"""`Runtime`: tools, policy and store put together. Open it, call tools, close it."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from interlock.errors import ConfigError
from interlock.principals import check_name, check_vouched, default_principal
from interlock.values import Budget, Call, Json, Lock, Mode, Outcome
from interlock.wrong_values import refuse_unknown, require_all, require_methods

if TYPE_CHECKING:  # what a runtime is made of is loaded when one is opened
    import asyncio
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from interlock.assembly import Sources
    from interlock.config import Settings
    from interlock.engine import EngineContext, Observer
    from interlock.engine.context import ToolBinding
    from interlock.policy import ListSource, Pack, PolicySource
    from interlock.ports import Clock, Faults, Ids, Store
    from interlock.tools import Tool

_APPLY = Mode.APPLY  # looked up once: on Python 3.11 a member of an enum costs as much as a call
_LONGEST_NAME = 200
_LONGEST_GIVEN = 1000
"""Characters of a name that a program gives: of an actor, a turn, a run, a call, a piece of evidence."""
_LOOK_AGAIN_S = 0.01
_MOST_NAMES = 1000
_NAMES = frozenset(
    ("principal", "on_behalf_of", "turn", "run", "parent", "ticket", "plan", "call_id", "root_turn", "found_in")
)
_SEVERAL: dict[str, tuple[type, str]] = {
    "evidence": (str, "texts"),
    "offered": (str, "names of tools"),
    "constants": (str, "names of arguments"),
    "locks": (Lock, "what `runtime.lock` gives"),
    "budgets": (Budget, "budgets (interlock.values.Budget)"),
}
"""Details that are several, and of what."""
_METHODS = {
    "clock": (("now_us", "monotonic", "sleep"), "an object with the methods now_us, monotonic and sleep"),
    "ids": (("new", "uniform"), "an object with the methods new and uniform"),
    "faults": (("at",), "an object with the method at"),
}
"""Parts of which only the methods matter."""


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
    withheld: dict[str, str]
    locks: tuple[Lock, ...]
    budgets: tuple[Budget, ...]
    root_turn: str | None
    question: str | None
    constants: tuple[str, ...]
    found_in: str | None


class Parts(TypedDict, total=False):
    """What may be replaced, for tests and for other clocks."""

    clock: Clock
    ids: Ids
    faults: Faults
    observers: tuple[Observer, ...]
    lists: Mapping[str, ListSource]
    packs: Pack | Iterable[Pack]
    principal: str
    """Who calls, by the program's own word (default: the account that it runs under)."""


class Runtime:
    """Governed tools on a store. Open it, call it, close it (or use it as an async context manager)."""

    def __init__(self, context: EngineContext, sources: Sources, principal: str, token: str | None = None) -> None:
        from interlock.engine import Engine
        from interlock.operations import Operations
        from interlock.operations.late_recovery import LateRecovery

        self.principal = principal
        """Who calls, where a call does not say."""
        self._engine = Engine(context)
        self._sources = sources
        self._replacing: asyncio.Lock | None = None
        self._known_actors: set[str] = set()
        self.operations = Operations(self._engine, principal, token)
        """Undo, replay, recover, plan sets, journal, tickets and halts."""
        self._late = LateRecovery(context, self.operations.recover)

    @property
    def context(self) -> EngineContext:
        """The parts it is put together from, for what is built on it."""
        return self._engine.context

    @classmethod
    def open(
        cls,
        store: str | Store = "sqlite:///interlock.db",
        *,
        policy: PolicySource,
        tools: Tool | Iterable[Tool],
        settings: Settings | None = None,
        **parts: Unpack[Parts],
    ) -> Runtime:
        """Compile the policy against the tools, freeze the registry, open the store."""
        _refuse_odd_parts(parts)
        from interlock.assembly import assemble, read_sources  # the engine and all below it, loaded only now

        sources = read_sources(policy, tools, settings, parts)
        ctx, token = assemble(store, sources, parts, default_principal())
        return cls(ctx, sources, _principal(ctx, token, parts), token)

    def call(
        self, tool: str, arguments: Json, *, actor: str, **details: Unpack[CallDetails]
    ) -> Coroutine[Any, Any, Outcome]:
        """Take one call through the path (contract, policy, budget, effect, record): await it."""
        given: dict[str, Any] = details  # type: ignore[assignment]
        context = self._engine.context
        try:
            known, binding = actor in self._known_actors, context.bindings.get(tool)
        except TypeError:  # a list, say, which is no name: it is refused below
            known, binding = False, None
        if given or not known:
            _refuse_odd_details(given, binding)
            refuse_odd_names(given, self, actor, *given.get("evidence", ()))
            if not known:
                context.ruleset.named.check_actor(actor)
                if len(self._known_actors) < _MOST_NAMES:
                    self._known_actors.add(actor)
            if given.get("mode") is not None:
                from interlock.config import parse_mode

                given["mode"] = parse_mode(given["mode"])
            else:
                given.pop("mode", None)
        if binding is None:
            if not isinstance(tool, str):
                name = getattr(tool, "name", None) or next(iter(context.bindings), "lookup")
                raise ConfigError(f"a tool is called by its name, such as {name!r}, not by {type(tool).__name__}")
            if len(tool) > _LONGEST_NAME or not tool.isprintable():
                tool = ascii(tool)[:_LONGEST_NAME]
        if given:
            call_id = given.pop("call_id", None)
            given["id_is_ours"], call_id = call_id is None, call_id or context.ids.new()
            given.setdefault("mode", Mode.APPLY if binding is None else binding.mode)
            call = Call(call_id, tool, arguments, actor, given.pop("principal", None) or self.principal, **given)
        else:
            mode = _APPLY if binding is None else binding.mode
            call = Call(context.ids.new(), tool, arguments, actor, self.principal, True, mode, mode is _APPLY)
        return self._engine.run(call, context)

    def tools(self, *, capability: str | None = None, actor: str | None = None) -> tuple[Tool, ...]:
        """The tools that need a capability, and that an actor has been granted all of."""
        grant = None if actor is None else self.context.ruleset.grant(actor)
        return self.context.registry.list(capability=capability, grant=grant)

    async def replace_policy(self, policy: PolicySource, *, by: str | None = None) -> str:
        """Put another policy in place of the one there is, for every call from now on; its version.

        Calls that are under way end under the old one. A policy that is not in order is refused, and changes nothing.
        The ledger says who has replaced which version by which.
        """
        from interlock.policy import load_policy

        return await self._replace({"policy": load_policy(policy, packs=self._sources.packs)}, by)

    async def replace_tools(
        self, tools: Tool | Iterable[Tool], *, policy: PolicySource | None = None, by: str | None = None
    ) -> str:
        """Put other tools in place of those there are, with another policy if they need one; as `replace_policy`."""
        from interlock.policy import load_policy
        from interlock.tools.registry import list_tools

        changed: dict[str, Any] = {"tools": tuple(list_tools(tools))}
        if policy is not None:
            changed["policy"] = load_policy(policy, packs=self._sources.packs)
        return await self._replace(changed, by)

    async def _replace(self, changed: Mapping[str, Any], by: str | None) -> str:
        import asyncio

        import msgspec

        from interlock.assembly import reassemble
        from interlock.operations.replacements import record_replacement

        self._replacing = self._replacing or asyncio.Lock()
        async with self._replacing:
            sources = msgspec.structs.replace(self._sources, **changed)
            before, after = self.context, await asyncio.to_thread(reassemble, self.context, sources)
            # First the record: nothing is governed by what the ledger does not know.
            await record_replacement(self.operations.writer(by), before.ruleset, after.ruleset)
            self._engine.context, self._sources = after, sources
            self._known_actors.clear()
        return after.ruleset.version

    @property
    def store(self) -> Store:
        """Where everything is remembered."""
        return self.context.store

    def lock(self, *keys: str, wait_s: float = 0.0) -> AbstractAsyncContextManager[tuple[Lock, ...]]:
        """Lock keys (RESOURCE/KEY) over several calls, which are given `locks=`; `Locked` if somebody else has them."""
        from interlock.engine import hold_locks

        for key in keys:
            _refuse_odd_key(key)
        if type(wait_s) not in (int, float) or not wait_s >= 0:
            raise ConfigError(f"wait_s is a number of seconds, 0 or more, not {wait_s!r:.80}")
        return hold_locks(self.context, keys, call=self.context.ids.new(), wait_s=wait_s)

    async def close(self) -> None:
        """Take no more calls, wait for those that are running (each has its deadline), then let go."""
        import asyncio

        await self._late.close()
        self._engine.closed = True
        while self._engine.running:  # noqa: ASYNC110 - calls may run on other loops, which an Event cannot serve
            await asyncio.sleep(_LOOK_AGAIN_S)
        await asyncio.to_thread(self.context.heart.close)
        await self.context.store.close()
        self.context.threads.shutdown(wait=False, cancel_futures=True)

    async def __aenter__(self) -> Runtime:
        if any(binding.planner is not None for binding in self.context.bindings.values()):
            await self.operations.recover()
            await self._late.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _principal(ctx: EngineContext, token: str | None, parts: Parts) -> str:
    """Who calls: a service by its token, whoever the program says, or the account that it runs under."""
    if token is not None:
        from interlock.review.identity import authenticate

        trusted, ledger = ctx.review.everywhere.keys, ctx.store.identity.ledger
        return authenticate(token, trusted=trusted, ledger=ledger, now_us=ctx.clock.now_us())
    given = parts.get("principal")
    if given is None:
        return default_principal()
    check_vouched(given, default_principal())
    ctx.ruleset.named.refuse_respelled(given)
    return given


def refuse_odd_names(details: Mapping[str, Any], runtime: Runtime, *more: object) -> None:
    """Names come from the application, not from a model: one that cannot be written down is the caller's error.

    For whom a program calls is its own word; what only the system or a token can say is not.
    """
    named = runtime.context.ruleset.named
    for name in (*more, *[value for key, value in details.items() if key in _NAMES and value is not None]):
        if isinstance(name, str) and 0 < len(name) <= _LONGEST_GIVEN and name.isprintable():
            continue
        if isinstance(name, str) and len(name) > _LONGEST_GIVEN:
            raise ConfigError(
                f"{name[:40]!r}… has {len(name):,} characters and cannot be the name of an actor, turn or call:"
                f" at most {_LONGEST_GIVEN:,} are written down"
            )
        raise ConfigError(f"{name!r:.80} cannot be the name of an actor, turn or call: use printable text")
    if details.get("principal") is not None:
        check_vouched(details["principal"], runtime.principal)
        named.refuse_respelled(details["principal"])
    if details.get("on_behalf_of") is not None:
        check_name(details["on_behalf_of"])
        named.refuse_respelled(details["on_behalf_of"])


def _refuse_odd_parts(parts: Mapping[str, Any]) -> None:
    """What is handed to `open` beside tools and policy would otherwise fail where it is first used, or not at all."""
    refuse_unknown("Runtime.open", parts, Parts.__annotations__)
    for name, (methods, meant) in _METHODS.items():
        if parts.get(name) is not None:
            require_methods(f"{name}=", parts[name], methods, meant)
    lists = {} if parts.get("lists") is None else parts["lists"]
    if not isinstance(lists, Mapping) or not all(callable(source) for source in lists.values()):
        raise ConfigError(f"lists= is a dict of functions that return the values of a list, not {lists!r:.80}")
    observers = parts.get("observers", ())
    if not isinstance(observers, list | tuple) or not all(callable(item) for item in observers):
        raise ConfigError("observers= is a list of functions of a record and its number")


def _refuse_odd_key(key: object) -> None:
    resource, _, name = key.partition("/") if isinstance(key, str) and key.isprintable() else ("", "", "")
    if not resource or not name:
        raise ConfigError(f"a lock is of a key RESOURCE/KEY, such as 'shelf/a', not {key!r:.80}")


def _refuse_odd_details(details: dict[str, Any], binding: ToolBinding | None) -> None:
    """What a caller says beside tool, arguments and actor; a list becomes the tuple that it stands for."""
    if not details.keys() <= CallDetails.__annotations__.keys():
        refuse_unknown("Runtime.call", details, CallDetails.__annotations__)
    confidence = details.get("confidence")
    if confidence is not None and (type(confidence) not in (int, float) or not 0 <= confidence <= 1):
        raise ConfigError(f"confidence is a number between 0 and 1, not {confidence!r}")
    for name in details.keys() & _SEVERAL.keys():
        kind, meant = _SEVERAL[name]
        details[name] = require_all(f"{name}=", details[name], kind, meant)
    withheld = details.get("withheld", {})
    if not isinstance(withheld, dict) or not all(type(text) is str for pair in withheld.items() for text in pair):
        raise ConfigError(f"withheld= is a dict of names of tools, each with why, not {withheld!r:.80}")
    if binding is not None and details.get("constants"):
        known = binding.tool.roles
        refuse_unknown(f"constants=: {binding.tool.name}", details["constants"], known)
