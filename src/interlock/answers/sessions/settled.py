"""`Settled`: what the conversation has settled about one call, as values that the requirement is bound by."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from interlock.answers.requirements import AllOf, AnyOf, NamedEntity, Need, Requirement
from interlock.values import Json, Value


class Settled(Value, frozen=True):
    """What the conversation has settled about one call."""

    tool: str
    """Empty: whichever tool the agent calls that is asked in this turn."""
    arguments: dict[str, Json] = {}
    """Its arguments, as far as they are settled; None: to be left out."""
    remembered: dict[str, Json] = {}
    """Arguments of the call before it, which hold where the question says nothing else."""
    binds: tuple[str, ...] = ()
    """The settled arguments without which a call is not the one that was asked for."""

    @property
    def bound(self) -> dict[str, Json]:
        """The arguments by which a call is bound, and what they have to be."""
        return {name: self.arguments[name] for name in self.binds if _can_be_bound(self.arguments.get(name))}

    @property
    def where(self) -> str:
        """The condition that a call has to fulfil, over its arguments."""
        # JSON texts and lists are literals of CEL too.
        return " && ".join(f"args[{_literal(name)}] == {_literal(value)}" for name, value in self.bound.items())

    def is_about(self, entity: NamedEntity) -> bool:
        """Whether the call that is settled is one about something that the question names."""
        return any(
            value in (item if isinstance(item := self.bound.get(name), list) else (item,))
            for name, value in entity.values
        )

    def describe(self) -> str:
        """The call in one line, with the arguments that a model has to be told."""
        said = {name: value for name, value in self.arguments.items() if value is not None}
        return describe_call(self.tool, said)


def describe_call(tool: str, arguments: dict[str, Json]) -> str:
    """A call in one line: ids, closed values and figures alone, each as JSON, so that no text can pass for more."""
    shown = ", ".join(f"{name}={_literal(value)[:200]}" for name, value in arguments.items())
    return f"{tool}({shown})" if tool else shown


def bind_settled(requirement: Requirement, settled: Sequence[Settled]) -> Requirement:
    """The requirement, met only by calls with what is settled; where a tool is settled twice, by both calls."""
    match requirement:
        case Need(tool=tool):
            own = [item for item in settled if item.tool == tool and item.where]
            return _bind_need(requirement, own) if own else requirement
        case AnyOf(parts=parts):
            return replace(requirement, parts=tuple(bind_settled(part, settled) for part in parts))
        case AllOf(parts=parts, in_order=in_order):
            bound = [bind_settled(part, settled) for part in parts]
            # What is bound once more, as a turn goes on, is needed no more often for that.
            return replace(requirement, parts=tuple(bound if in_order else dict.fromkeys(_flatten(bound))))


def _bind_need(need: Need, settled: Sequence[Settled]) -> Requirement:
    """A leaf with what is settled; what the question names besides is needed as well, in calls of its own."""
    apart = [entity for entity in need.about if _is_bound(entity, settled)]
    free = tuple(entity for entity in need.about if entity not in apart)
    others = tuple(entity for entity in apart if not any(item.is_about(entity) for item in settled))
    conditions = dict.fromkeys(item.where for item in settled)
    needs = [replace(need, where=_join(need.where, condition), about=free) for condition in conditions]
    needs += [replace(need, about=others)] if others else []
    return needs[0] if len(needs) == 1 else AllOf(parts=tuple(needs))


def _is_bound(entity: NamedEntity, settled: Sequence[Settled]) -> bool:
    """Whether an argument that stands for something is settled, to that or to something else."""
    return not entity.elsewhere and any(name in item.bound for item in settled for name, _value in entity.values)


def _flatten(parts: Sequence[Requirement]) -> Iterator[Requirement]:
    for part in parts:
        yield from part.parts if isinstance(part, AllOf) and part.parts and not part.in_order else (part,)


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
