"""What a turn must have done before its answer may leave: tools, all or any of them, in order, with which arguments.

A requirement is data, and whether it is met is a fold over the calls of one turn: only what succeeded counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from msgspec.structs import replace

from interlock.errors import ConfigError
from interlock.reasons import Reason
from interlock.values import FieldProblem, Json, Mode, Status, Value, name_some, shorten
from interlock.wrong_values import require_kind

_SHOWN = 4
# Reached its tool and failed there; a denied or malformed call may still be made better by the model.
_RAN = (Status.FAILED, Status.UNKNOWN)
_RULES = frozenset(
    {
        Reason.DENIED,
        Reason.HALTED,
        Reason.INVARIANT,
        Reason.COOLDOWN,
        Reason.BUDGET_EXHAUSTED,
        Reason.RATE_LIMITED,
        Reason.WITHHELD,
    }
)
"""What was decided against a call, whatever it is asked for with."""


class NamedEntity(Value, frozen=True):
    """Something on file that a question names, and the values of arguments that stand for it."""

    name: str
    """As it is called in the question."""
    values: tuple[tuple[str, str], ...]
    """Arguments and ids; one of them is enough, as a name may fit several."""
    elsewhere: bool = False
    """Known to tools of other agents alone: whoever is asked in this turn has to look it up."""


class Need(Value, frozen=True, tag="need"):
    """One successful call of a tool; where the question names something, calls about all that it names."""

    tool: str
    where: str = ""
    """A condition in CEL over `args`, the arguments of the call."""
    no_data: bool = False
    """Whether "nothing on file" is an answer too."""
    about: tuple[NamedEntity, ...] = ()
    """What the question names: a call about something else does not count."""


class AllOf(Value, frozen=True, tag="all_of"):
    """Every part; `in_order`: each after the one before it."""

    parts: tuple[Need | AllOf | AnyOf, ...]
    in_order: bool = False


class AnyOf(Value, frozen=True, tag="any_of"):
    """One of the parts."""

    parts: tuple[Need | AllOf | AnyOf, ...]


Requirement = Need | AllOf | AnyOf
_MEANT = "the name of a tool, or what need, all_of and any_of give"
NOTHING = AllOf(parts=())
"""Conversation: no tool is needed."""


class CallSeen(Value, frozen=True):
    """One call of the turn, as far as requirements look at it."""

    record: int
    tool: str
    status: Status
    actor: str = ""
    arguments: Json = None
    mode: Mode = Mode.APPLY
    reason: Reason | None = None
    message: str = ""
    fields: tuple[FieldProblem, ...] = ()
    """The arguments that were wrong."""
    ran: bool = False
    """Whether the tool itself was reached."""
    changes: bool = False
    """Whether it changes the world: then that it was done is the answer."""
    ticket: str | None = None
    repeats: int | None = None
    """The record that answered it, if the same call was made before."""
    refused: bool = False
    """Whether a person was asked, and said no."""

    @property
    def forbidden(self) -> bool:
        """Whether a person or a rule has said no: proposing the same again would bring the same."""
        return self.refused or (self.status is Status.DENIED and self.reason in _RULES)


def need(tool: str, *, where: str = "", no_data: bool = False) -> Need:
    """One successful call of a tool, with arguments that satisfy a condition such as `args.season == "winter"`."""
    require_kind("a requirement", tool, str, _MEANT)
    require_kind("where=", where, str, "a condition over args, a text")
    if where:
        if "\0" in where:
            raise ConfigError("requirement: a condition over args cannot contain a NUL character")
        _condition(where)
    return Need(tool=tool, where=where, no_data=no_data)


def all_of(*parts: str | Requirement, in_order: bool = False) -> AllOf:
    """All of these, names of tools or requirements."""
    return AllOf(parts=tuple(_part(part) for part in parts), in_order=in_order)


def any_of(*parts: str | Requirement) -> AnyOf:
    """One of these."""
    if not parts:
        raise ConfigError("any_of() of nothing can never be met; name at least one tool")
    return AnyOf(parts=tuple(_part(part) for part in parts))


def _part(part: str | Requirement) -> Requirement:
    return part if isinstance(part, Requirement) else need(part)


def met_at(requirement: Requirement, calls: Sequence[CallSeen], after: int = 0) -> int | None:
    """The place in `calls` after which the requirement was met by those from `after` on; None if it is not."""
    match requirement:
        case Need():
            return _progress(requirement, calls, after)[0]
        case AnyOf(parts=parts):
            ends = [end for part in parts if (end := met_at(part, calls, after)) is not None]
            return min(ends, default=None)
        case AllOf(parts=parts, in_order=in_order):
            end = after
            for part in parts:
                found = met_at(part, calls, end if in_order else after)
                if found is None:
                    return None
                end = max(end, found)
            return end


def find_unmet(requirement: Requirement, calls: Sequence[CallSeen], after: int = 0) -> Requirement | None:
    """What is still missing, as a requirement of its own; None if nothing is."""
    if met_at(requirement, calls, after) is not None:
        return None
    match requirement:
        case Need():
            return replace(requirement, about=_progress(requirement, calls, after)[1])
        case AnyOf(parts=parts):
            return parts[0] if len(parts) == 1 else requirement
        case AllOf(parts=parts, in_order=in_order):
            left: list[Requirement] = []
            end = after
            for part in parts:
                # In order, nothing counts that comes after a gap: it was done before what it should rest on.
                found = None if in_order and left else met_at(part, calls, end if in_order else after)
                if found is None:
                    rest = part if in_order and left else find_unmet(part, calls, end if in_order else after)
                    left.append(rest or part)
                end = max(end, found or end)
            return left[0] if len(left) == 1 else AllOf(parts=tuple(left), in_order=in_order)


def _progress(leaf: Need, calls: Sequence[CallSeen], after: int) -> tuple[int | None, tuple[NamedEntity, ...]]:
    """The place after which a leaf was met, None if it is not; and what it has still to be called about."""
    made, left = False, leaf.about
    for place, call in enumerate(calls):
        if place < after:
            continue
        if call.changes and call.tool != leaf.tool:
            # "Pay ann out of my account": that account is looked at, and ann is what a change is about.
            left = tuple(entity for entity in left if not _names_anywhere(call, entity))
        elif not _has_succeeded(call, leaf):
            continue
        made = made or satisfies(call, leaf)
        left = tuple(entity for entity in left if not _covers(call, entity, leaf))
        if made and not left:
            return place + 1, ()
    return None, left


def _covers(call: CallSeen, entity: NamedEntity, leaf: Need) -> bool:
    """Whether a call is about something: of the tool itself, or of whoever else was asked."""
    return (entity.elsewhere or (call.tool == leaf.tool and _fits(call, leaf))) and is_about(call, entity)


def _names_anywhere(call: CallSeen, entity: NamedEntity) -> bool:
    """Whether a call has an entity for one of its arguments, whatever it calls it."""
    given = call.arguments if isinstance(call.arguments, dict) else {}
    return not entity.elsewhere and any(value == item for _, value in entity.values for item in given.values())


def is_about(call: CallSeen, entity: NamedEntity) -> bool:
    """Whether an argument of a call is one of the values that an entity can stand for."""
    given = call.arguments if isinstance(call.arguments, dict) else {}
    return any(
        value in map(str, item if isinstance(item := given.get(name), list) else (item,))
        for name, value in entity.values
    )


def satisfies(call: CallSeen, leaf: Need) -> bool:
    """Whether one call is what one leaf asks for; of several things that it has to be about, one."""
    if call.tool != leaf.tool or not _has_succeeded(call, leaf) or not _fits(call, leaf):
        return False
    own = [entity for entity in leaf.about if not entity.elsewhere]
    return not own or any(is_about(call, entity) for entity in own)


def _has_succeeded(call: CallSeen, leaf: Need) -> bool:
    # In a dry run a plan is all that there can be; nowhere else does it stand for the call.
    planned = call.status is Status.PLANNED and call.mode is Mode.DRY_RUN
    return call.status is Status.OK or planned or (leaf.no_data and call.status is Status.NO_DATA)


def _fits(call: CallSeen, leaf: Need) -> bool:
    return not leaf.where or _holds(leaf.where, call.arguments)


def leaves(requirement: Requirement) -> tuple[Need, ...]:
    """Every tool that is named, once for each place."""
    if isinstance(requirement, Need):
        return (requirement,)
    return tuple(leaf for part in requirement.parts for leaf in leaves(part))


def count_calls(requirement: Requirement) -> int:
    """How many calls a requirement takes, if each is about one thing."""
    return sum(max(1, sum(not entity.elsewhere for entity in leaf.about)) for leaf in leaves(requirement))


def tool_names(missing: Requirement | None) -> tuple[str, ...]:
    """The tools that are missing, each once."""
    return () if missing is None else tuple(dict.fromkeys(leaf.tool for leaf in leaves(missing)))


def sure_values(leaf: Need) -> tuple[tuple[str, str], ...]:
    """Arguments and ids of what a leaf is about, where only one can be meant."""
    return tuple(one.values[0] for one in leaf.about if len(one.values) == 1 and not one.elsewhere)


def next_needs(missing: Requirement) -> tuple[Need, ...]:
    """Which calls would help now: of an order only the first, of a choice all."""
    match missing:
        case Need():
            return (missing,)
        case AllOf(parts=parts, in_order=True):
            return next_needs(parts[0]) if parts else ()
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return tuple(leaf for part in parts for leaf in next_needs(part))


def is_hopeless(missing: Requirement, calls: Sequence[CallSeen], statuses: tuple[Status, ...] = _RAN) -> bool:
    """Whether everything that is missing was tried, and came to nothing in its tool, or was refused."""
    match missing:
        case Need():
            tried = [call for call in calls if _tries(call, missing)]
            # What a rule forbids may be asked for in another way: what came of the last of them counts.
            forbidden = bool(tried) and tried[-1].forbidden
            return forbidden or any(call.refused or (call.ran and call.status in statuses) for call in tried)
        case AnyOf(parts=parts):
            return all(is_hopeless(part, calls, statuses) for part in parts)
        case AllOf(parts=parts, in_order=in_order):
            # In order only the first counts: a later one may have failed because it came too early.
            return any(is_hopeless(part, calls, statuses) for part in (parts[:1] if in_order else parts))


def _tries(call: CallSeen, leaf: Need) -> bool:
    """Whether a call, whatever came of it, was meant for a leaf: what failed for another thing says nothing of this."""
    own = [entity for entity in leaf.about if not entity.elsewhere]
    meant = call.tool == leaf.tool and _fits(call, leaf)
    return meant and (not own or any(is_about(call, entity) for entity in own))


def without_entities(requirement: Requirement) -> Requirement:
    """The tools alone, whatever they are to be called about."""
    if isinstance(requirement, Need):
        return replace(requirement, about=())
    return replace(requirement, parts=tuple(without_entities(part) for part in requirement.parts))


def describe_entities(leaf: Need) -> str:
    """What a call has to be about, in words that a model can act on; empty if it may be about anything."""
    if not leaf.about:
        return ""
    return " about " + name_some([_describe_entity(entity) for entity in leaf.about])


def _describe_entity(entity: NamedEntity) -> str:
    if entity.elsewhere:
        return repr(shorten(entity.name))
    return " or ".join(f"{name} {shorten(value)!r}" for name, value in entity.values[:_SHOWN])


def describe(requirement: Requirement) -> str:
    """The requirement in words that a model and a person can act on."""
    match requirement:
        case Need(tool=tool, where=where):
            tail = f" with {where}" if where else ""
            return f"a successful call of {tool}{tail}{describe_entities(requirement)}"
        case AllOf(parts=()):
            return "nothing"
        case AllOf(parts=parts, in_order=in_order):
            return ("; then " if in_order else " and ").join(describe(part) for part in parts)
        case AnyOf(parts=parts):
            return "either " + " or ".join(describe(part) for part in parts)


@lru_cache(maxsize=256)
def _condition(where: str) -> Any:
    # Not type-checked as rules are: a requirement is written without its tool at hand. A wrong name is never true.
    env = cel.NewEnv(variables={"args": cel.Type.DYN})
    try:
        program = env.compile(where)
    except (RuntimeError, TypeError) as error:  # a TypeError for a text that is not valid Unicode
        why = shorten(str(error), 300)
        raise ConfigError(f"requirement: {shorten(where)!r} is no condition over args: {why}") from None
    if program.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
        raise ConfigError(f"requirement: {shorten(where)!r} must be true or false")
    return program


def _holds(where: str, arguments: Json) -> bool:
    """Whether a condition is true of arguments; what cannot be said is not true."""
    # The CEL library ends a text at NUL: it would judge another text than the tool got.
    if _has_nul(arguments):
        return False
    try:
        value = _condition(where).eval(data={"args": arguments})
        return value.type() == cel.Type.BOOL and value.value() is True
    except (RuntimeError, TypeError, ValueError):  # half of an emoji, a nesting that it cannot hold
        return False


def _has_nul(value: Json) -> bool:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, str) and "\0" in value:
            return True
    return False
