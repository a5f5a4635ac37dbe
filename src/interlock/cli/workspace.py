"""What a command that calls tools works on: the tools, the policy and the runtime that the settings name."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from interlock.cli.ledger import refuse_no_ledger
from interlock.cli.options import load_command_settings
from interlock.cli.output import notes, sanitize
from interlock.config import Loaded
from interlock.errors import ConfigError
from interlock.operations.undo import with_undo
from interlock.policy import Pack, Ruleset, compile_policy, load_policy
from interlock.runtime import Runtime
from interlock.tools import Tool
from interlock.tools.registry import Registry

if TYPE_CHECKING:
    from interlock.adapters.mcp.servers import McpServers

T = TypeVar("T")


def find_servers(loaded: Loaded) -> McpServers | None:
    """The MCP servers that the settings name; None where they name none, and the SDK need not be there."""
    if not loaded.servers:
        return None
    from interlock.adapters.mcp.servers import McpServers, check_terms

    found = McpServers(check_terms(loaded.servers), loaded.folder)
    for name, why in found.left_out.items():
        notes().print(f"[yellow]the MCP server {sanitize(name)} is left out[/]: {sanitize(why)}")
    return found


def load_tools(loaded: Loaded, servers: McpServers | None = None) -> tuple[Tool, ...]:
    """Import the tools that the settings name, and those of the MCP servers as they were pinned."""
    servers = find_servers(loaded) if servers is None else servers
    found: list[Tool] = []
    for name in loaded.settings.tools:
        value = import_named(loaded, "tools", name, "TOOLS")
        several = [value] if isinstance(value, Tool) else value
        if not isinstance(several, list | tuple):
            raise ConfigError(f"tools: {name!r} is neither a Tool nor a list of Tools")
        found.extend(several)
    found += [] if servers is None else servers.tools
    return tuple(Registry(with_undo(found)))


def load_packs(loaded: Loaded) -> tuple[Pack, ...]:
    """Import the policy packs that the settings name."""
    return import_all(loaded, loaded.settings.packs, "packs", Pack)


def import_all(loaded: Loaded, names: Sequence[str], setting: str, kind: type[T]) -> tuple[T, ...]:
    """Everything that a setting names, each of them one of its kind, which it is called after if no name is given."""
    found = [import_named(loaded, setting, name, kind.__name__.upper()) for name in names]
    for name, value in zip(names, found, strict=True):
        if not isinstance(value, kind):
            raise ConfigError(f"{setting}: {name!r} is no {kind.__name__}")
    return tuple(found)


def import_named(loaded: Loaded, setting: str, name: str, otherwise: str) -> Any:
    """What `module:NAME` names, looked for beside the settings file too; `otherwise` is the NAME if there is none."""
    folder = str(loaded.folder.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # `interlock` is a script: unlike python -m it does not look in the current folder
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute or otherwise)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{setting}: {name!r} cannot be imported: {error}; write module:NAME") from None
    except SystemExit as error:  # a script without a guard; its exit code is not ours
        said = f"it ends the process ({error.code!r}) when it is imported"
        raise ConfigError(f"{setting}: {name!r} cannot be imported: {said}; put that under a __main__ guard") from None
    except Exception as error:  # noqa: BLE001 - a module of somebody else may fail in any way
        raise ConfigError(f"{setting}: {name!r} cannot be imported: {error}") from None


def load_ruleset(loaded: Loaded) -> tuple[Ruleset, dict[str, Tool]]:
    """The compiled policy and the tools by name."""
    tools = load_tools(loaded)
    if not tools:
        raise ConfigError('no tools are known; set tools = ["module:TOOLS"] in interlock.toml, or pass --tools')
    policy = load_policy(loaded.settings.policy, packs=load_packs(loaded))
    return compile_policy(policy, tools), {tool.name: tool for tool in tools}


@asynccontextmanager
async def open_runtime(given: argparse.Namespace, *, enter: bool = True, exists: bool = True) -> AsyncIterator[Runtime]:
    """The runtime that the settings name; with `enter`, what dead processes left behind is settled first."""
    async with open_with_servers(given, enter=enter, exists=exists) as (runtime, _servers):
        yield runtime


@asynccontextmanager
async def open_with_servers(
    given: argparse.Namespace, *, enter: bool = True, exists: bool = True
) -> AsyncIterator[tuple[Runtime, McpServers | None]]:
    """The same, with the MCP servers that the settings name."""
    loaded = load_command_settings(given)
    settings = loaded.settings
    if exists:
        refuse_no_ledger(settings)
    servers = find_servers(loaded)
    runtime = Runtime.open(
        settings.store,
        policy=settings.policy,
        tools=load_tools(loaded, servers),
        settings=settings,
        packs=load_packs(loaded),
    )
    try:
        yield await runtime.__aenter__() if enter else runtime, servers
    finally:
        await runtime.close()
        if servers is not None:
            await servers.close()
