"""The servers that `interlock.toml` names, and their tools as they were pinned: `[mcp.NAME]`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import mcp_types as types
import msgspec

from interlock.adapters.mcp.pins import PinsFile
from interlock.adapters.mcp.readings import reading_tools
from interlock.adapters.mcp.secrets import read_secret
from interlock.adapters.mcp.terms import ServerTerms, profile_names
from interlock.adapters.mcp.tools import tools_of
from interlock.adapters.mcp.upstream import ServerAddress, Upstream
from interlock.config import SERVERS
from interlock.errors import ConfigError
from interlock.tools import Tool

PINS = "interlock.mcp.json"
"""The file of pins, beside the settings."""


class McpServers:
    """Servers, each started when it is first needed, and their tools: what was pinned is what is offered."""

    def __init__(self, terms: Mapping[str, ServerTerms], folder: Path | None) -> None:
        self.terms = dict(terms)
        where = folder or Path()
        self.pins = PinsFile() if folder is None else PinsFile.read(folder / PINS)
        self.upstreams = {name: make_upstream(name, one, where, self.pins) for name, one in self.terms.items()}

    @property
    def tools(self) -> list[Tool]:
        """The tools of all of them; `ConfigError` for a server that nobody has looked at yet."""
        found: list[Tool] = []
        for name, upstream in self.upstreams.items():
            if name not in self.pins.servers:
                raise ConfigError(
                    f"nobody has looked at the tools of the MCP server {name!r}; run interlock mcp pin {name}"
                )
            found += [*tools_of(upstream, self.pins.tools_of(name), self.terms[name]), *reading_tools(upstream)]
        return found

    @property
    def offered(self) -> dict[str, types.Tool]:
        """The tools as they were pinned, by what they are called here."""
        return {
            said.name_of(name, one.name): one for name, said in self.terms.items() for one in self.pins.tools_of(name)
        }

    async def start(self) -> dict[str, str]:
        """Start all of them; why some could not be."""
        ended = await asyncio.gather(*(one.start() for one in self.upstreams.values()), return_exceptions=True)
        named = zip(self.upstreams, ended, strict=True)
        return {name: str(error) for name, error in named if isinstance(error, Exception)}

    async def close(self) -> None:
        """End them."""
        await asyncio.gather(*(one.close() for one in self.upstreams.values()), return_exceptions=True)


def check_terms(written: Mapping[str, Any]) -> dict[str, ServerTerms]:
    """What a settings file says of servers, by their names."""
    terms: dict[str, ServerTerms] = {}
    for name, one in written.items():
        try:
            terms[name] = msgspec.convert(one, ServerTerms)
        except (msgspec.ValidationError, ConfigError) as error:
            raise ConfigError(f"[{SERVERS}.{name}]: {error}") from None
    for name, one in terms.items():
        check_server(name, one)
    return terms


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
    address: ServerAddress
    if terms.command:
        split = [one.partition("=") for one in terms.env]
        env = {variable: read_secret(name, where or variable) for variable, _, where in split}
        address = {"command": terms.command, "cwd": str((folder / terms.cwd).resolve()), "env": env}
    else:
        headers = {header: read_secret(name, where) for header, where in terms.headers.items()}
        address = {"url": terms.url, "headers": headers, "sse": terms.sse}
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
