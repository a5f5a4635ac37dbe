"""The state behind a server, looked at and put back with its own tools: so that its writes have a plan and an undo."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import mcp_types as types

from interlock.adapters.mcp.results import text_of, value_of
from interlock.adapters.mcp.templates import fill, gaps_in
from interlock.adapters.mcp.terms import ToolTerms
from interlock.adapters.mcp.upstream import Upstream, link_to
from interlock.canonical import Refusal
from interlock.errors import ConfigError, Permanent
from interlock.values import Context, Json

_TOOL, _FILE = "tool", "file"
_NO_TEXT = "\ufffd"
"""What stands for bytes that are no text: put back, they would not be what they were."""


class ServerState:
    """Keyed state of a server, for tools whose terms say how it is looked at."""

    def __init__(self, name: str, upstream: Upstream, terms: ToolTerms) -> None:
        self.name = name
        self._upstream = upstream
        self._terms = terms
        gaps = gaps_in(terms.key) if isinstance(terms.key, str) else set()
        self._called = {"key", *gaps}
        """What a key is called in templates."""

    def is_of(self, terms: ToolTerms) -> bool:
        """Whether these terms look at the same thing in the same way."""
        mine, theirs = self._terms, terms
        return _ways(mine) == _ways(theirs) and mine.timeout_s == theirs.timeout_s

    async def read_state(self, key: str) -> Json:
        """What there is under a key; None if the server says that there is nothing."""
        assert self._terms.look is not None
        found = await self._call(self._terms.look, {}, key, changes=False)
        if found.is_error and self._terms.absent and self._terms.absent in text_of(found):
            if self._removes_files and os.path.lexists(key):
                raise Permanent(
                    f"{self._upstream.name} says that there is no {key}, and there is: nobody knows which is so"
                )
            return None
        called = str(self._terms.look[_TOOL])
        state = value_of(self._upstream.name, called, found)
        if self._terms.take:
            state = fill(f"{{state.{self._terms.take}}}", {"state": state})
        if _holds(state, _NO_TEXT):
            raise Permanent(
                f"{self._upstream.name}: {key} is no text that {called} could show, and could not be put back"
            )
        self._refuse_without_way_back(key, state)
        return state

    def _refuse_without_way_back(self, key: str, state: Json) -> None:
        """What is put back with fields that the look does not show could not be put back: said before it is changed."""
        values = self._values({"state": state, "now": state}, key)
        try:
            for step in self._terms.steps("put_back"):
                fill({name: item for name, item in step.items() if name != _TOOL}, values)
        except ConfigError as error:
            look = self._terms.look or {}
            raise Permanent(f"{self.name}: {key} could not be put back: {error} in what {look[_TOOL]} shows") from None

    async def restore(self, key: str, state: Json, context: Context | None = None) -> None:
        """Make it what it was, or nothing (None), step by step."""
        del context
        which = "remove" if state is None else "put_back"
        steps = self._terms.steps(which)
        if not steps:
            raise ConfigError(f"{self.name}: nothing says how {key} is removed (remove = …)")
        needs_now = any("now" in gaps_in(step) for step in steps)
        values: dict[str, Json] = {"state": state, "now": await self.read_state(key) if needs_now else None}
        for step in steps:
            if _FILE in step:
                await self._remove_file(str(fill(step[_FILE], self._values(values, key))), key)
                continue
            found = await self._call(step, values, key, changes=True)
            value_of(self._upstream.name, str(step[_TOOL]), found)

    async def _call(
        self, step: Mapping[str, Json], values: Mapping[str, Json], key: str, *, changes: bool
    ) -> types.CallToolResult:
        template = {name: item for name, item in step.items() if name != _TOOL}
        arguments = fill(template, self._values(values, key))
        timeout_s, link = self._terms.timeout_s, await link_to(self._upstream)
        return await link.call_tool(str(step[_TOOL]), arguments, changes=changes, timeout_s=timeout_s)

    def _values(self, values: Mapping[str, Json], key: str) -> dict[str, Json]:
        return {**values, **dict.fromkeys(self._called, key)}

    @property
    def _removes_files(self) -> bool:
        return self._upstream.is_local and any(_FILE in step for step in self._terms.steps("remove"))

    async def _remove_file(self, path: str, key: str) -> None:
        """Remove a file here that the server has made: one that it shows as it is, and no link to another."""
        if not self._upstream.is_local:
            raise ConfigError(f"{self.name}: {path} is on another machine, and cannot be removed from here")
        shown = await self.read_state(key)
        if shown is not None:
            await asyncio.to_thread(_remove_as_shown, Path(path), shown)


def _remove_as_shown(path: Path, shown: Json) -> None:
    if not stat.S_ISREG(path.lstat().st_mode):
        raise Permanent(f"{path} is no file, but a link or a folder: it is left alone")
    if path.read_bytes() != (shown.encode() if isinstance(shown, str) else None):
        raise Permanent(f"{path} is not what the server shows of it: it is left alone")
    path.unlink()


def key_of(terms: ToolTerms) -> str | Callable[[Mapping[str, Json]], tuple[str, ...]]:
    """The key of a tool: its template, or of several, or of paths, which are spelled in one way, a function."""
    assert terms.key is not None
    if isinstance(terms.key, str) and not terms.paths:
        return terms.key
    templates = (terms.key,) if isinstance(terms.key, str) else terms.key

    def keys(arguments: Mapping[str, Json]) -> tuple[str, ...]:
        found = [str(fill(template, arguments)) for template in templates]
        return tuple(_one_spelling(path) for path in found) if terms.paths else tuple(found)

    return keys


def _one_spelling(path: str) -> str:
    if not os.path.isabs(path):
        raise Refusal(f"{path!r} is taken from a folder that the server chooses: give the whole path, from the root")
    return os.path.normpath(path)


def _ways(terms: ToolTerms) -> Json:
    """How state is looked at and put back, whatever its key is called."""
    given = [terms.look, terms.take, terms.absent, list(terms.steps("put_back")), list(terms.steps("remove"))]
    gaps = gaps_in(terms.key) if isinstance(terms.key, str) else set()
    names = dict.fromkeys(gaps, "{key}")
    return _rename(given, {f"{{{name}}}": key for name, key in names.items()})


def _rename(value: Json, names: Mapping[str, str]) -> Json:
    if isinstance(value, Mapping):
        return {key: _rename(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rename(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def _holds(value: Json, character: str) -> bool:
    if isinstance(value, Mapping):
        return any(_holds(item, character) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_holds(item, character) for item in value)
    return isinstance(value, str) and character in value
