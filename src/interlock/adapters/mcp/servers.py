"""The servers that `interlock.toml` names, and their tools as they were pinned: `[mcp.NAME]`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

import mcp_types as types
import msgspec

from interlock.adapters.mcp.address import ServerAddress
from interlock.adapters.mcp.pins import PinsFile
from interlock.adapters.mcp.readings import reading_tools
from interlock.adapters.mcp.secrets import read_secrets
from interlock.adapters.mcp.terms import (
    ServerTerms,
    ToolTerms,
    profile_names,
    refuse_unknown_tools,
)
from interlock.adapters.mcp.tools import tools_of
from interlock.adapters.mcp.upstream import Upstream
from interlock.canonical import did_you_mean
from interlock.config import SERVERS
from interlock.errors import ConfigError
from interlock.operations.undo import UNDO
from interlock.tools import Tool

T = TypeVar("T", bound=msgspec.Struct)
_OURS = "written"
"""Of the terms of a server: not for settings, as it is how these stand there."""
PINS = "interlock.mcp.json"
"""The file of pins, beside the settings."""


class McpServers:
    """Servers, each started when it is first needed, and their tools: what was pinned is what is offered.

    One that cannot be used as the settings have it is `left_out`, and the others are there without it.
    """

    def __init__(self, terms: Mapping[str, ServerTerms], folder: Path | None) -> None:
        self.pins = PinsFile() if folder is None else PinsFile.read(folder / PINS)
        self.terms: dict[str, ServerTerms] = {}
        self.upstreams: dict[str, Upstream] = {}
        self.tools: list[Tool] = []
        self.left_out: dict[str, str] = {}
        """Servers that are not used, and why."""
        for name, one in terms.items():
            upstream = make_upstream(name, one, folder or Path(), self.pins)
            try:
                made = self._tools_of(upstream, one)
                self._refuse_taken(made)
            except ConfigError as error:
                self.left_out[name] = str(error)
                continue
            self.terms[name], self.upstreams[name] = one, upstream
            self.tools += made

    def _tools_of(self, upstream: Upstream, terms: ServerTerms) -> list[Tool]:
        name = upstream.name
        if name not in self.pins.servers:
            raise ConfigError(f"nobody has looked at its tools; run interlock mcp pin {name}")
        pinned = self.pins.tools_of(name)
        refuse_unknown_tools(name, terms, [one.name for one in pinned])
        return [*tools_of(upstream, pinned, terms), *reading_tools(upstream)]

    def _refuse_taken(self, made: list[Tool]) -> None:
        taken = {tool.name for tool in self.tools}
        for name in (tool.name for tool in made):
            if name in taken:
                raise ConfigError(f"another server has a tool {name!r} already: give one of the two another prefix")
            if name.startswith(UNDO):
                raise ConfigError(f"{name!r} is the name of what takes changes back: give the server a prefix")

    @property
    def offered(self) -> dict[str, types.Tool]:
        """The tools as they were pinned, by what they are called here."""
        return {
            said.name_of(name, one.name): one for name, said in self.terms.items() for one in self.pins.tools_of(name)
        }

    @property
    def owners(self) -> dict[str, Upstream]:
        """The server of each tool, by what that is called here."""
        return {
            said.name_of(name, one.name): self.upstreams[name]
            for name, said in self.terms.items()
            for one in self.pins.tools_of(name)
        }

    async def start(self) -> dict[str, str]:
        """Start all of them; why some could not be."""
        ended = await asyncio.gather(*(one.start() for one in self.upstreams.values()), return_exceptions=True)
        named = zip(self.upstreams, ended, strict=True)
        return self.left_out | {name: str(error) for name, error in named if isinstance(error, Exception)}

    async def close(self) -> None:
        """End them."""
        await asyncio.gather(*(one.close() for one in self.upstreams.values()), return_exceptions=True)


def check_terms(written: Mapping[str, Any]) -> dict[str, ServerTerms]:
    """What a settings file says of servers, by their names."""
    terms: dict[str, ServerTerms] = {}
    for name, one in written.items():
        where = f"{SERVERS}.{name}"
        said = dict(one) if isinstance(one, dict) else one
        tools = said.pop("tools", {}) if isinstance(said, dict) else {}
        if not isinstance(tools, dict):
            raise ConfigError(f"[{where}]: what is said of a tool stands in a table of its own: [{where}.tools.NAME]")
        own = {tool: _convert(f"{where}.tools.{tool}", these, ToolTerms) for tool, these in tools.items()}
        terms[name] = msgspec.structs.replace(_convert(where, said, ServerTerms), tools=own, written=tools)
    for name, one in terms.items():
        check_server(name, one)
    return terms


def _convert(where: str, given: Any, kind: type[T]) -> T:
    """What a table says; where it names something that there is not, with what there is."""
    known = [field for field in kind.__struct_fields__ if field != _OURS]
    for key in given if isinstance(given, dict) else ():
        if key not in known:
            way_on = did_you_mean(key, known) or f"; there are {', '.join(known)}"
            raise ConfigError(f"[{where}]: there is no setting {key!r}{way_on}")
    try:
        return msgspec.convert(given, kind)
    except (msgspec.ValidationError, ConfigError) as error:
        raise ConfigError(f"[{where}]: {error}") from None


def check_server(name: str, terms: ServerTerms) -> None:
    """Refuse what cannot be a server."""
    if not name.isascii() or not name.replace("-", "_").isidentifier() or len(name) > 32:
        raise ConfigError(f"{name!r} cannot be the name of an MCP server: letters, digits, '_' and '-', at most 32")
    if bool(terms.command) == bool(terms.url):
        raise ConfigError(f"[{SERVERS}.{name}] has a command that starts the server, or its url: one of them")
    if terms.sse and not terms.url:
        raise ConfigError(f"[{SERVERS}.{name}]: sse is said of an address, and the server is started by a command")
    texts = [*terms.command, terms.url, terms.cwd, terms.prefix or ""]
    if any("\0" in text for text in texts):
        raise ConfigError(f"[{SERVERS}.{name}] holds a NUL, which no command, address or folder can")
    if terms.profile and terms.profile not in profile_names():
        raise ConfigError(f"[{SERVERS}.{name}]: there is no profile {terms.profile!r}; see interlock mcp profile")


def make_upstream(name: str, terms: ServerTerms, folder: Path, pins: PinsFile | None = None) -> Upstream:
    """The connection to a server, not started yet."""
    address: ServerAddress = {"secrets": lambda: read_secrets(name, wanted), "roots": terms.hears_roots}
    if terms.command:
        split = [one.partition("=") for one in terms.env]
        wanted = {variable: where or variable for variable, _, where in split}
        address |= {"command": terms.command, "cwd": str((folder / terms.cwd).resolve())}
    else:
        wanted = terms.headers
        address |= {"url": terms.url, "sse": terms.sse}
    return Upstream(name, pins=pins, **address)


def describe(terms: ServerTerms) -> str:
    """How a server is reached, for people."""
    return terms.url or " ".join(terms.command)


def as_toml(name: str, given: Mapping[str, Any]) -> str:
    """A table of a server as it is written into a settings file."""
    lines = [f"[{SERVERS}.{name}]"]
    for key, value in given.items():
        if isinstance(value, dict) and value:
            pairs = ", ".join(f"{_toml_text(name)} = {_toml_text(item)}" for name, item in value.items())
            lines.append(f"{key} = {{ {pairs} }}")
        elif value:
            lines.append(f"{key} = {_toml_text(value)}")
    return "\n".join(lines) + "\n"


def _toml_text(value: Any) -> str:
    """What JSON writes is TOML, but for one character that it leaves as it is."""
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


def without_table(text: str, name: str) -> str:
    """A settings file without the tables of a server; comments above the next table stay."""
    kept: list[str] = []
    gone: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        head = line.split("#")[0].strip()
        if head.startswith("["):
            table = head.strip("[] ")
            inside = table == f"{SERVERS}.{name}" or table.startswith(f"{SERVERS}.{name}.")
            comments = list(takewhile(lambda one: not one.split("#")[0].strip(), reversed(gone)))
            kept += [] if inside else reversed(comments)
            gone = []
        (gone if inside else kept).append(line)
    return "".join(kept)
