"""What every command starts from: settings, tools, policy, store."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from interlock.answers.app import App
from interlock.config import Loaded, Settings, default_key_file, load_settings
from interlock.errors import ConfigError
from interlock.operations.undo import with_undo
from interlock.policy import Ruleset, compile_policy, load_policy
from interlock.ports import Store
from interlock.runtime import Runtime
from interlock.stores import open_store
from interlock.tools import Tool
from interlock.tools.registry import Registry

_AGO = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def add_common(parser: argparse.ArgumentParser) -> None:
    """Options that every command takes."""
    group = parser.add_argument_group("settings")
    group.add_argument("--config", metavar="FILE", help="settings file (default: interlock.toml, if there is one)")
    group.add_argument("--store", metavar="URL", help="memory://, sqlite:///FILE or postgresql://…")
    group.add_argument("--policy", metavar="FILE", help="the policy")
    group.add_argument("--tools", metavar="MODULE:NAME", action="append", help="where tools are found (repeatable)")
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")


def settings_of(given: argparse.Namespace) -> Loaded:
    """The settings for one command."""
    named = {
        "store": given.store,
        "policy": given.policy,
        "tools": tuple(given.tools) if given.tools else None,
    }
    return load_settings(given.config, given=named)


def load_tools(loaded: Loaded) -> tuple[Tool, ...]:
    """Import the tools that the settings name."""
    found: list[Tool] = []
    for name in loaded.settings.tools:
        value = _imported(loaded, "tools", name, "TOOLS")
        several = [value] if isinstance(value, Tool) else value
        if not isinstance(several, list | tuple):
            raise ConfigError(f"tools: {name!r} is neither a Tool nor a list of Tools")
        found.extend(several)
    return tuple(Registry(with_undo(found)))


def load_apps(loaded: Loaded) -> tuple[App, ...]:
    """Import the applications that the settings name."""
    found = [_imported(loaded, "apps", name, "APP") for name in loaded.settings.apps]
    for name, value in zip(loaded.settings.apps, found, strict=True):
        if not isinstance(value, App):
            raise ConfigError(f"apps: {name!r} is no interlock.answers.App")
    return tuple(found)


def _imported(loaded: Loaded, setting: str, name: str, otherwise: str) -> Any:
    folder = str(loaded.folder.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute or otherwise)
    except Exception as error:  # noqa: BLE001 - a module of somebody else may fail in any way
        raise ConfigError(f"{setting}: {name!r} cannot be imported: {error}; write module:NAME") from None


def load_ruleset(loaded: Loaded) -> tuple[Ruleset, dict[str, Tool]]:
    """The compiled policy and the tools by name."""
    tools = load_tools(loaded)
    if not tools:
        raise ConfigError('no tools are known; set tools = ["module:TOOLS"] in interlock.toml, or pass --tools')
    return compile_policy(load_policy(loaded.settings.policy), tools), {tool.name: tool for tool in tools}


@asynccontextmanager
async def opened_store(settings: Settings) -> AsyncIterator[Store]:
    """The store that the settings name; a file that is not there is not made just to look into it."""
    _refuse_no_ledger(settings)
    store = open_store(settings.store, busy_s=settings.busy_s)
    try:
        yield store
    finally:
        await store.close()


def _refuse_no_ledger(settings: Settings) -> None:
    if settings.store.startswith("sqlite:///"):
        path = Path(settings.store.removeprefix("sqlite:///").partition("?")[0])
        if not path.exists():
            raise ConfigError(f"{path}: there is no ledger yet; make a call first, or name another with --store")


@asynccontextmanager
async def opened_runtime(
    given: argparse.Namespace, *, enter: bool = True, exists: bool = True
) -> AsyncIterator[Runtime]:
    """The runtime that the settings name; with `enter`, what dead processes left behind is settled first."""
    loaded = settings_of(given)
    settings = loaded.settings
    if exists:
        _refuse_no_ledger(settings)
    runtime = Runtime.open(settings.store, policy=settings.policy, tools=load_tools(loaded), settings=settings)
    try:
        yield await runtime.__aenter__() if enter else runtime
    finally:
        await runtime.close()


def parse_time(text: str | None) -> int | None:
    """A time that somebody wrote, in microseconds: a date, a date and time, or so long ago."""
    if text is None:
        return None
    try:
        if _AGO.fullmatch(text):
            found = datetime.now(UTC) - timedelta(seconds=parse_duration(text))
        else:
            found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ConfigError(f"{text!r} is not a time; write 2026-01-31, 2026-01-31T12:00:00Z or 2h") from None
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1e6)


def parse_duration(text: str) -> float:
    """A stretch of time that somebody wrote: 30s, 15m, 12h, 7d."""
    found = _AGO.fullmatch(text)
    if found is None:
        raise ConfigError(f"{text!r} is not a stretch of time; write 30s, 15m, 12h or 7d")
    return float(int(found[1]) * _UNITS[found[2]])


def key_file(settings: Settings, given: str | None) -> Path:
    """The file of the signing key."""
    return Path(given or settings.audit_key or default_key_file()).expanduser()
