"""What a runtime is made of: tools, policy, store and settings put together, once, when one is opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from interlock.changes import KeptStates, Planner, SnapshotReader
from interlock.config import Settings, check_values, heads_folder, parse_mode
from interlock.engine import (
    EngineContext,
    FoldedTurns,
    HaltSwitch,
    Heart,
    OriginIndexes,
    ToolBinding,
    ToolLimits,
)
from interlock.errors import ConfigError
from interlock.metrics.events import log_record, span_observer
from interlock.operations.undo import with_undo
from interlock.policy import ListSource, Pack, Policy, PolicySource, Ruleset, compile_policy, load_policy
from interlock.ports import NOWHERE, Store, SystemClock, SystemIds, digest_of, keyed_digest
from interlock.resilience import Deadlines
from interlock.review import terms_of
from interlock.stores import Witness, open_store
from interlock.tools import Tool
from interlock.tools.registry import Registry, list_tools
from interlock.values import Effect, Mode, Value
from interlock.wrong_values import check_fields, require_kind


class Sources(Value, frozen=True):
    """What calls are governed by, as it was given."""

    policy: Policy
    tools: tuple[Tool, ...]
    settings: Settings
    lists: Mapping[str, ListSource] | None = None
    packs: tuple[Pack, ...] = ()


def read_sources(
    policy: PolicySource, tools: Tool | Iterable[Tool], settings: Settings | None, parts: Mapping[str, Any]
) -> Sources:
    """Read the policy, and check what is handed over beside it."""
    settings, given = _check_settings(settings), tuple(list_tools(tools))
    packs = _list_packs(parts.get("packs", ()))
    return Sources(load_policy(policy, packs=packs), given, settings, parts.get("lists"), packs)


def assemble(
    store: str | Store, sources: Sources, parts: Mapping[str, Any], account: str
) -> tuple[EngineContext, str | None]:
    """Compile the policy, freeze the registry, open the store; beside that, the token that the settings name."""
    settings, faults = sources.settings, parts.get("faults")
    registry, ruleset = _compile(sources)
    lease_us = round(settings.lease_s * 1e6)
    at, opened = NOWHERE if faults is None else faults.at, _open_store(store, settings, parts)
    observers = (log_record, *((span_observer(),) if settings.otel else ()), *parts.get("observers", ()))
    deadlines, token = Deadlines(), _token(settings)
    clock, keyed = parts.get("clock") or SystemClock(), keyed_digest(opened.identity.digest_key)
    digest = partial(digest_of, keyed)
    snapshot_reader = SnapshotReader(digest, faults, deadlines, opened)
    ctx = EngineContext(
        **_governing(sources, registry, ruleset, snapshot_reader, {}),
        store=opened,
        turns=FoldedTurns(opened, keyed, faults),
        origins=OriginIndexes(opened, registry, faults, ruleset.watched),
        clock=clock,
        ids=parts.get("ids") or SystemIds(),
        faults=faults,
        at=at,
        deadlines=deadlines,
        snapshot_reader=snapshot_reader,
        kept_states=KeptStates(),
        threads=ThreadPoolExecutor(settings.threads, thread_name_prefix="interlock-tool"),
        observers=observers,
        repeats=settings.repeats,
        record_bytes=settings.record_bytes,
        keyed=keyed,
        digest=digest,
        halts=HaltSwitch(opened, clock, faults),
        lease_us=lease_us,
        heart=Heart(opened, clock, lease_us, at),
        account=account,
        limits=settings,
    )
    return ctx, token


def reassemble(ctx: EngineContext, sources: Sources) -> EngineContext:
    """The same runtime under another policy or with other tools: for the calls that come from now on."""
    registry, ruleset = _compile(sources)
    governing = _governing(sources, registry, ruleset, ctx.snapshot_reader, ctx.bindings)
    # What was seen is labelled by the tools that there are now, and kept for the rules that there are.
    origins = OriginIndexes(ctx.store, registry, ctx.faults, ruleset.watched)
    return msgspec.structs.replace(ctx, **governing, origins=origins)


def _compile(sources: Sources) -> tuple[Registry, Ruleset]:
    registry = Registry(with_undo(sources.tools)).freeze()
    return registry, compile_policy(sources.policy, registry, sources.lists)


def _governing(
    sources: Sources,
    registry: Registry,
    ruleset: Ruleset,
    snapshot_reader: SnapshotReader,
    before: Mapping[str, ToolBinding],
) -> dict[str, Any]:
    """The parts of a context that hang on policy and tools. A tool that stays keeps what is known of its failures."""
    written, settings = sources.policy, sources.settings
    mode = parse_mode(settings.mode) if settings.mode else written.mode or Mode.DRY_RUN
    bindings = {}
    recalled = frozenset[str]().union(*(tool.recalls for tool in registry))
    for tool in registry:
        old = before.get(tool.name)
        limits = old.limits if old is not None and old.tool is tool else ToolLimits(tool)
        bindings[tool.name] = _binding(tool, ruleset, mode, snapshot_reader, limits, recalled)
    return {
        "registry": registry,
        "ruleset": ruleset,
        "bindings": bindings,
        "budgets": ruleset.budgets,
        "redacted": frozenset().union(*(tool.redact for tool in registry)),
        "review": terms_of(written),
    }


def _list_packs(packs: Pack | Iterable[Pack]) -> tuple[Pack, ...]:
    several = (packs,) if isinstance(packs, Pack) else tuple(packs) if isinstance(packs, Iterable) else (packs,)
    for pack in several:
        require_kind("packs=", pack, Pack, "one interlock.policy.Pack or several")
    return several


def _open_store(store: str | Store, settings: Settings, parts: Mapping[str, Any]) -> Store:
    if isinstance(store, str):
        # Whoever brings a clock brings it for the store as well.
        own_clock = "clock" not in parts
        witness = Witness(heads_folder(settings), Path(settings.anchors))
        return open_store(
            store,
            busy_s=settings.busy_s,
            faults=parts.get("faults"),
            own_clock=own_clock,
            witness=witness,
            payload_key=settings.payload_key,
        )
    if not hasattr(store, "commit"):
        raise ConfigError(f"{store!r} is no store: name one, such as 'sqlite:///interlock.db', or pass an open one")
    return store


def _token(settings: Settings) -> str | None:
    try:
        return Path(settings.token).expanduser().read_text(encoding="utf-8").strip() if settings.token else None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the setting token: {settings.token} cannot be read: {error}") from None


def _binding(
    tool: Tool,
    ruleset: Ruleset,
    mode: Mode,
    snapshot_reader: SnapshotReader,
    limits: ToolLimits,
    recalled: frozenset[str],
) -> ToolBinding:
    changes, rules = tool.effect is not Effect.READ, ruleset.rules(tool.name)
    traces = rules.needs_origins or tool.name in recalled
    return ToolBinding(
        tool=tool,
        rules=rules,
        rates=ruleset.rates(tool.name),
        limits=limits,
        mode=mode if changes else Mode.APPLY,
        planner=Planner(tool, snapshot_reader) if changes else None,
        recalled=tool.name in recalled,
        traces=traces,
        looks_up=changes or traces,
        waits=changes or limits.slots is not None,
        direct=tool.is_async and not tool.wants_context,
    )


def _check_settings(settings: Settings | None) -> Settings:
    if settings is None:
        return Settings()
    if not isinstance(settings, Settings):
        raise ConfigError(f"settings= is interlock.config.Settings, not {type(settings).__name__}")
    check_fields(settings, "Settings")
    check_values(settings, dict.fromkeys(Settings.__struct_fields__, "Settings"))
    return settings
