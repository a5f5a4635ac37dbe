"""What a runtime is made of: tools, policy, store and settings put together, once, when one is opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from interlock.changes import Planner, SnapshotReader
from interlock.config import Settings, check_values, heads_folder, parse_mode
from interlock.engine import (
    EngineContext,
    FoldedTurns,
    HaltSwitch,
    Heart,
    OriginIndexes,
    ToolBinding,
    ToolLimits,
    labels_in,
)
from interlock.errors import ConfigError
from interlock.metrics.events import log_record, span_observer
from interlock.operations.undo import with_undo
from interlock.policy import Pack, Policy, PolicySource, Ruleset, compile_policy, load_policy
from interlock.ports import NOWHERE, Store, SystemClock, SystemIds, digest_of, keyed_digest
from interlock.resilience import Deadlines
from interlock.review import terms_of
from interlock.stores import Witness, open_store
from interlock.tools import Tool
from interlock.tools.registry import Registry, list_tools
from interlock.values import Effect, Mode
from interlock.wrong_values import check_fields, require_kind


def assemble(
    store: str | Store,
    policy: PolicySource,
    tools: Tool | Iterable[Tool],
    settings: Settings | None,
    parts: Mapping[str, Any],
    account: str,
) -> tuple[EngineContext, str | None]:
    """Compile the policy, freeze the registry, open the store; beside that, the token that the settings name."""
    settings = _check_settings(settings)
    registry = Registry(with_undo(list_tools(tools))).freeze()
    written = _read_policy(policy, parts.get("packs", ()))
    ruleset = compile_policy(written, registry, parts.get("lists"))
    faults, lease_us = parts.get("faults"), round(settings.lease_s * 1e6)
    at, opened = NOWHERE if faults is None else faults.at, _open_store(store, settings, parts)
    observers = (log_record, *((span_observer(),) if settings.otel else ()), *parts.get("observers", ()))
    deadlines, token = Deadlines(), _token(settings)
    clock, keyed = parts.get("clock") or SystemClock(), keyed_digest(opened.identity.digest_key)
    digest = partial(digest_of, keyed)
    snapshot_reader = SnapshotReader(digest, faults, deadlines, opened)
    mode = parse_mode(settings.mode) if settings.mode else written.mode or Mode.DRY_RUN
    ctx = EngineContext(
        registry=registry,
        ruleset=ruleset,
        store=opened,
        turns=FoldedTurns(opened, keyed, faults),
        origins=OriginIndexes(opened, labels_in(registry), faults),
        bindings={tool.name: _binding(tool, ruleset, mode, snapshot_reader) for tool in registry},
        budgets=ruleset.budgets,
        clock=clock,
        ids=parts.get("ids") or SystemIds(),
        faults=faults,
        at=at,
        deadlines=deadlines,
        snapshot_reader=snapshot_reader,
        threads=ThreadPoolExecutor(settings.threads, thread_name_prefix="interlock-tool"),
        observers=observers,
        repeats=settings.repeats,
        record_bytes=settings.record_bytes,
        redacted=frozenset().union(*(tool.redact for tool in registry)),
        keyed=keyed,
        digest=digest,
        halts=HaltSwitch(opened, clock, faults),
        lease_us=lease_us,
        heart=Heart(opened, clock, lease_us, at),
        review=terms_of(written),
        account=account,
        limits=settings,
    )
    return ctx, token


def _read_policy(policy: PolicySource, packs: Pack | Iterable[Pack]) -> Policy:
    several = (packs,) if isinstance(packs, Pack) else tuple(packs) if isinstance(packs, Iterable) else (packs,)
    for pack in several:
        require_kind("packs=", pack, Pack, "one interlock.policy.Pack or several")
    return load_policy(policy, packs=several)


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


def _binding(tool: Tool, ruleset: Ruleset, mode: Mode, snapshot_reader: SnapshotReader) -> ToolBinding:
    changes = tool.effect is not Effect.READ
    return ToolBinding(
        tool=tool,
        rules=ruleset.rules(tool.name),
        rates=ruleset.rates(tool.name),
        limits=ToolLimits(tool),
        mode=mode if changes else Mode.APPLY,
        planner=Planner(tool, snapshot_reader) if changes else None,
    )


def _check_settings(settings: Settings | None) -> Settings:
    if settings is None:
        return Settings()
    if not isinstance(settings, Settings):
        raise ConfigError(f"settings= is interlock.config.Settings, not {type(settings).__name__}")
    check_fields(settings, "Settings")
    check_values(settings, dict.fromkeys(Settings.__struct_fields__, "Settings"))
    return settings
