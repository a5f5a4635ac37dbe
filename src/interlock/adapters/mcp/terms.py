"""What an operator says of a server and of its tools: in `interlock.toml`, by a shipped profile, or in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

import mcp_types as types
import msgspec

from interlock.adapters.mcp.lines import MOST_BYTES
from interlock.adapters.mcp.templates import gaps_in
from interlock.canonical import did_you_mean
from interlock.config import SERVERS
from interlock.errors import ConfigError
from interlock.toml_text import parse_toml
from interlock.values import Effect, Json

_LONGEST_S = 86_400
_LARGEST_ANSWER = 16 * 1024 * 1024
_WILD = frozenset("*?[")
_TOOL, _FILE = "tool", "file"
_KEY, _STATE, _NOW = "key", "state", "now"


class ToolTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of a tool, or of all whose names fit a pattern."""

    effect: str = ""
    """read, write or send; where nothing is said, a send, or what a trusted server says."""
    timeout_s: float = 60.0
    max_bytes: int = _LARGEST_ANSWER
    """Of its answer: a larger one fails the call, and is not cut."""
    idempotent: bool = False
    """The server does the same thing once for one `interlock/idempotency-key` in `_meta`."""
    repeatable: bool = False
    key: str | tuple[str, ...] | None = None
    """What a write changes, as a template over its arguments."""
    paths: bool = False
    """Its keys are whole paths of files, from the root: others a server takes from a folder of its own choice."""
    resource: str = ""
    """What its keys are called by, behind the name of the server (default: the tool that looks at them)."""
    look: dict[str, Json] | None = None
    """How to see the state of a key: a tool of the server, and its arguments."""
    take: str = ""
    """The field of what it returns that is the state (default: all of it)."""
    absent: str = ""
    """What stands in the error of that tool where there is nothing under the key."""
    put_back: tuple[dict[str, Json], ...] | dict[str, Json] = ()
    """How to make the state of a key what it was: one call, or several in their order."""
    remove: tuple[dict[str, Json], ...] | dict[str, Json] = ()
    """How to make it so that there is nothing: calls of the server's tools, or `{ file = "{key}" }`, a file here."""
    becomes: Json = None
    """What the state of its key will be, as a template over its arguments, where that can be said beforehand."""

    def __post_init__(self) -> None:
        if self.effect and self.effect not in tuple(Effect):
            raise ConfigError(f"effect is {', '.join(Effect)}, not {self.effect!r}")
        if not 0 < self.timeout_s < _LONGEST_S:
            raise ConfigError(
                f"timeout_s is a number of seconds above 0 and below {_LONGEST_S:,}, not {self.timeout_s}"
            )

        if not 0 < self.max_bytes <= MOST_BYTES:
            raise ConfigError(f"max_bytes is above 0 and at most {MOST_BYTES:,}, not {self.max_bytes:,}")

    def steps(self, which: str) -> tuple[dict[str, Json], ...]:
        """`put_back` or `remove`, as steps."""
        given = getattr(self, which)
        return (given,) if isinstance(given, dict) else tuple(given)


class ServerTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server: how it is reached, and what is said of it."""

    command: tuple[str, ...] = ()
    url: str = ""
    sse: bool = False
    """Its address speaks only the older transport, with events in one stream."""
    env: tuple[str, ...] = ()
    """Variables that are handed on to its command: names, or `NAME=keyring:SERVICE/USER`."""
    headers: dict[str, str] = {}
    """Headers of requests to its address, and where their values are: a variable's name, or `keyring:SERVICE/USER`."""
    cwd: str = ""
    """The folder that its command runs in, from the folder of the settings (default: that folder)."""
    prefix: str | None = None
    """What the names of its tools and prompts begin with here (default: its name and `_`)."""
    trusted: bool = False
    """What it says of itself and what it returns is believed."""
    roots: bool | None = None
    """Whether it is told the folders of its clients (default: yes, unless the profile says no)."""
    profile: str = ""
    """The terms of a server that is known: one of `PROFILES`."""
    tools: dict[str, ToolTerms] = {}
    """By name or pattern; what is said here goes before what the profile says, however exactly that names a tool."""
    written: dict[str, dict[str, Json]] = {}
    """The same as it stands in the settings: a table without an `effect` leaves the rest to the profile."""

    def name_of(self, server: str, tool: str) -> str:
        """What a tool of the server is called here."""
        return f"{server}_{tool}" if self.prefix is None else f"{self.prefix}{tool}"

    @property
    def hears_roots(self) -> bool:
        """Whether it is told the folders of its clients."""
        return (not self.profile or profile_hears_roots(self.profile)) if self.roots is None else self.roots

    def terms_of(self, tool: str) -> ToolTerms:
        """What is said of a tool: by the operator, beside the profile unless an effect is said; then in its place."""
        known = _fitting(tool, read_profile(self.profile)) if self.profile else None
        named = _fitting(tool, self.tools)
        if named is None or known is None:
            return (named or known or ("", ToolTerms()))[1]
        (pattern, own), (_, profile) = named, known
        if own.effect or not profile.effect:
            return own
        written = self.written.get(pattern) or _not_usual(own)
        try:
            return msgspec.convert({**msgspec.to_builtins(profile), **written}, ToolTerms)
        except msgspec.ValidationError as error:
            raise ConfigError(
                f"{tool}: what {pattern!r} says does not go with the profile {self.profile}: {error}"
            ) from None


def profile_hears_roots(name: str) -> bool:
    """Whether a server that is known is told the folders of its clients."""
    return bool(parse_toml(profile_text(name)).get("roots", True))


def profile_names() -> tuple[str, ...]:
    """The servers that are known."""
    found = (file.name for file in files("interlock.adapters.mcp").joinpath("profiles").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


def profile_text(name: str) -> str:
    """A profile as it is written."""
    if name not in profile_names():
        raise ConfigError(f"there is no profile {name!r}; there are {', '.join(profile_names())}")
    return files("interlock.adapters.mcp").joinpath("profiles", f"{name}.toml").read_text(encoding="utf-8")


@cache
def read_profile(name: str) -> dict[str, ToolTerms]:
    """The terms of the tools of a server that is known."""
    return msgspec.convert(parse_toml(profile_text(name))["tools"], dict[str, ToolTerms])


def _fitting(name: str, terms: Mapping[str, ToolTerms]) -> tuple[str, ToolTerms] | None:
    """What is said of a tool by its name, or else by the longest pattern that fits it."""
    fitting = [pattern for pattern in terms if pattern == name or fnmatchcase(name, pattern)]
    best = max(fitting, key=lambda one: (one == name, len(one)), default=None)
    return None if best is None else (best, terms[best])


def _not_usual(terms: ToolTerms) -> dict[str, Json]:
    usual: dict[str, Json] = msgspec.to_builtins(ToolTerms())
    return {name: value for name, value in msgspec.to_builtins(terms).items() if value != usual[name]}


def refuse_unknown_tools(server: str, terms: ServerTerms, names: Sequence[str]) -> None:
    """What is said of a tool that there is not was meant for another one; a pattern may fit none."""
    for pattern in terms.tools:
        if pattern not in names and not _WILD.intersection(pattern):
            way_on = did_you_mean(pattern, names) or f"; there are {', '.join(sorted(names))}"
            raise ConfigError(f"[{SERVERS}.{server}.tools.{pattern}]: no tool of that name is pinned{way_on}")


def refuse_odd_terms(where: str, terms: ToolTerms, offered: Mapping[str, types.Tool]) -> None:
    """A write has to say what it changes, how that is looked at, and how it is put back; with tools that there are."""
    if terms.effect != Effect.WRITE:
        given = [name for name in ("look", "put_back", "remove", "becomes") if getattr(terms, name)]
        if given:
            raise ConfigError(f'{where}: {", ".join(given)} is for a write: say effect = "write"')
        return
    if not terms.key or terms.look is None or not terms.put_back:
        raise ConfigError(
            f"{where} cannot be a write: it needs key, look and put_back (how to look at what it changes, and how to"
            ' put that back); else say effect = "send"'
        )
    own = {_KEY, *gaps_in(terms.key)} if isinstance(terms.key, str) else {_KEY}
    for what, steps, known in (
        ("look", (terms.look,), own),
        ("put_back", terms.steps("put_back"), {*own, _STATE, _NOW}),
        ("remove", terms.steps("remove"), {*own, _NOW}),
    ):
        for step in steps:
            _refuse_odd_step(f"{where}: {what}", step, offered, known)


def _refuse_odd_arguments(where: str, step: Mapping[str, Json], called: types.Tool) -> None:
    """A step that its tool would not take is found before it is needed."""
    schema, given = called.input_schema, [name for name in step if name != _TOOL]
    known = schema.get("properties", {})
    odd = next((name for name in given if name not in known), None)
    if odd is not None and known:
        way_on = did_you_mean(odd, known) or f"; there are {', '.join(known)}"
        raise ConfigError(f"{where}: {called.name} takes no {odd!r}{way_on}")
    missing = [name for name in schema.get("required", ()) if name not in given]
    if missing:
        raise ConfigError(f"{where}: {called.name} needs {', '.join(missing)}, too")


def _refuse_odd_step(where: str, step: Mapping[str, Json], offered: Mapping[str, types.Tool], known: set[str]) -> None:
    called = step.get(_TOOL)
    is_file = where.endswith("remove") and set(step) == {_FILE} and isinstance(step[_FILE], str)
    if not isinstance(called, str) and not is_file:
        raise ConfigError(f'{where}: a step is {{ tool = "NAME", … }} with the arguments of that tool')
    if called is not None and called not in offered:
        raise ConfigError(f"{where}: the server has no tool {called!r}")
    if called is not None:
        _refuse_odd_arguments(where, step, offered[called])
    unknown = gaps_in({name: item for name, item in step.items() if name != _TOOL}) - known
    if unknown:
        gaps = ", ".join(f"{{{name}}}" for name in sorted(known))
        raise ConfigError(f"{where}: nothing fills the gap {{{min(unknown)}}}; there are {gaps}")
