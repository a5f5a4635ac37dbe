"""`Settled`: what the conversation has settled about one call, as values that the requirement is bound by."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec.structs import replace

from interlock.answers.requirements import AllOf, AnyOf, Need, Requirement
from interlock.values import Json, Value


class Settled(Value, frozen=True):
    """What the conversation has settled about one call."""

    tool: str
    """Empty: whichever tool the agent calls that is asked in this turn."""
    arguments: dict[str, Json] = {}
    """Its arguments, as far as they are settled; None: to be left out."""
    carried: dict[str, Json] = {}
    """Arguments of the call before it, which hold where the question says nothing else."""
    binds: tuple[str, ...] = ()
    """The settled arguments without which a call is not the one that was asked for."""

    @property
    def where(self) -> str:
        """The condition that a call has to fulfil, over its arguments."""
        wanted = {name: self.arguments[name] for name in self.binds if _can_be_bound(self.arguments.get(name))}
        # JSON texts and lists are literals of CEL too.
        return " && ".join(f"args[{_literal(name)}] == {_literal(value)}" for name, value in wanted.items())

    def describe(self) -> str:
        """The call in one line, with the arguments that a model has to be told."""
        said = {name: value for name, value in self.arguments.items() if value is not None}
        return describe_call(self.tool, said)


def describe_call(tool: str, arguments: dict[str, Json]) -> str:
    """A call in one line: ids, closed values and figures alone, each as JSON, so that no text can pass for more."""
    shown = ", ".join(f"{name}={_literal(value)[:200]}" for name, value in arguments.items())
    return f"{tool}({shown})" if tool else shown


def bind(requirement: Requirement, settled: Sequence[Settled]) -> Requirement:
    """The requirement, met only by calls with what is settled; where a tool is settled twice, by both calls."""
    match requirement:
        case Need(tool=tool, where=where):
            conditions = list(dict.fromkeys(s.where for s in settled if s.tool == tool and s.where))
            needs = [replace(requirement, where=_join(where, condition)) for condition in conditions]
            return (needs[0] if len(needs) == 1 else AllOf(parts=tuple(needs))) if needs else requirement
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return replace(requirement, parts=tuple(bind(part, settled) for part in parts))


def find_settled(need: Need, settled: Sequence[Settled]) -> Settled | None:
    """What is settled about the call that one leaf of a requirement asks for."""
    return next((s for s in settled if s.tool == need.tool and s.where in need.where), None)


def _join(one: str, other: str) -> str:
    if not one or one == other or other in one:
        return one or other
    return f"({one}) && {other}"


def _can_be_bound(value: Json) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(item, str) and "\0" not in item and _is_whole(item) for item in items)


def _is_whole(text: str) -> bool:
    """Whether a text can be written down: half of an emoji cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _literal(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
