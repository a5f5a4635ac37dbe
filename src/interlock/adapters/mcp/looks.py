"""The state behind a server, looked at and put back with its own tools: so that its writes have a plan and an undo."""

from __future__ import annotations

import asyncio
import os
import stat
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path

import mcp_types as types
import msgspec

from interlock.adapters.mcp.key_parts import KeyParts
from interlock.adapters.mcp.results import text_of, value_of
from interlock.adapters.mcp.templates import fill, gaps_in, has_fields
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

    def __init__(
        self, name: str, upstream: Upstream, terms: ToolTerms, schema: Mapping[str, Json] | None = None
    ) -> None:
        self.name = name
        self._upstream = upstream
        self._terms = terms
        self._parts = parts_of(terms, schema)

    def is_of(self, terms: ToolTerms, schema: Mapping[str, Json] | None = None) -> bool:
        """Whether these terms look at the same thing in the same way."""
        mine, theirs = (self._terms, self._parts), (terms, parts_of(terms, schema))
        return _ways(*mine) == _ways(*theirs) and self._terms.timeout_s == terms.timeout_s

    async def read_state(self, key: str) -> Json:
        """What there is under a key; None if the server says that there is nothing."""
        assert self._terms.look is not None
        if self._terms.paths and self._upstream.is_local:
            await asyncio.to_thread(_refuse_another_folder, key)
        found = await self._call(self._terms.look, {}, key, changes=False)
        if found.is_error and self._terms.absent and self._terms.absent in text_of(found):
            if self._removes_files and os.path.lexists(key):
                raise Permanent(
                    f"{self._upstream.name} says that there is no {key}, and there is: nobody knows which is so"
                )
            return None
        called = str(self._terms.look[_TOOL])
        state = value_of(self._upstream.name, called, found)
        if isinstance(state, str) and self._wants_fields:
            state = _as_object(state)
        if self._terms.paths and self._upstream.is_local:
            _refuse_another_file(key)
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
        return {**values, "key": key, **self._parts.read(key)}

    @property
    def _wants_fields(self) -> bool:
        """Whether the terms speak of parts of a state, which then has to have some."""
        steps = (*self._terms.steps("put_back"), *self._terms.steps("remove"))
        return bool(self._terms.take) or any(has_fields(step) for step in steps)

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


def _as_object(text: str) -> Json:
    """What a server without structured content has written as JSON; the text, where it is none."""
    try:
        found: Json = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return found if isinstance(found, dict | list) else text


def _refuse_another_file(path: str) -> None:
    """What a server follows or spells in another way is not the file that the path names: undo would look elsewhere."""
    if os.path.islink(path):
        raise Permanent(f"{path} is a link: name the file that it leads to, which could be put back")
    if not os.path.lexists(path) and os.path.isdir(os.path.dirname(path)):
        raise Permanent(f"{path} is there under another spelling of its name: give the one that a listing shows")


def _refuse_another_folder(path: str) -> None:
    """A folder that is there under another spelling of its name is where the server would write, and undo not look."""
    above, name = os.path.split(path)
    above, name = os.path.split(above)
    while above and not os.path.lexists(above):
        above, name = os.path.split(above)
    try:
        there = [one for one in os.listdir(above or os.curdir) if one != name and _plain(one) == _plain(name)]
    except OSError:
        return
    if there and not os.path.lexists(os.path.join(above, name)):
        raise Permanent(f"{path}: the folder {name} is there under another spelling: give the one that a listing shows")


def _plain(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def refuse_lost_characters(server: str, arguments: Mapping[str, Json]) -> None:
    """What stands for bytes that are no text, and could not be told from them when it is looked at again."""
    if _holds(arguments, _NO_TEXT):
        raise Permanent(f"{server}: it holds U+FFFD, which stands for bytes that are no text: that could not be undone")


def _remove_as_shown(path: Path, shown: Json) -> None:
    if not os.path.lexists(path):
        raise Permanent(f"{path} is not there under this name, and the server shows it: it is left alone")
    if not stat.S_ISREG(path.lstat().st_mode):
        raise Permanent(f"{path} is no file, but a link or a folder: it is left alone")
    if path.read_bytes() != (shown.encode() if isinstance(shown, str) else None):
        raise Permanent(f"{path} is not what the server shows of it: it is left alone")
    path.unlink()


def key_of(terms: ToolTerms, schema: Mapping[str, Json]) -> Callable[[Mapping[str, Json]], tuple[str, ...]]:
    """The keys of a call of a tool; paths are spelled in one way."""
    assert terms.key is not None
    templates = (terms.key,) if isinstance(terms.key, str) else terms.key
    parts = [KeyParts(template, schema) for template in templates]

    def keys(arguments: Mapping[str, Json]) -> tuple[str, ...]:
        found = [one.make(arguments) for one in parts]
        return tuple(_one_spelling(path) for path in found) if terms.paths else tuple(found)

    return keys


def parts_of(terms: ToolTerms, schema: Mapping[str, Json] | None) -> KeyParts:
    """How a key is read; of one of several it is not said which it is."""
    return KeyParts(terms.key if isinstance(terms.key, str) else None, schema)


def _one_spelling(path: str) -> str:
    if not os.path.isabs(path):
        raise Refusal(f"{path!r} is taken from a folder that the server chooses: give the whole path, from the root")
    return f"/{os.path.normpath(path).lstrip('/')}" if os.sep == "/" else os.path.normpath(path)


def _ways(terms: ToolTerms, parts: KeyParts) -> Json:
    """How state is looked at and put back, whatever its key is called."""
    keys: Json = parts.same_as if parts.gaps else ["{key}"]
    given: Json = [terms.look, terms.take, terms.absent, [*terms.steps("put_back")], [*terms.steps("remove")], keys]
    names = dict.fromkeys(parts.gaps if parts.is_whole else (), "{key}")
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
