"""What a condition may name, with its type: `args.*` from the tool's schema, and the facts of the call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from cel_expr_python import cel

from interlock.policy.conditions import Facts, Variable
from interlock.policy.provenance import Origin, Trace, TurnHistory
from interlock.tools import Tool
from interlock.tools.inputs import DECIMAL
from interlock.tools.roles import Role
from interlock.values import Effect, Json, Mode

_TEXTS = cel.Type.List(cel.Type.STRING)
_OPEN = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
_SCALARS = {
    "string": (cel.Type.STRING, "google.protobuf.StringValue"),
    "integer": (cel.Type.INT, "google.protobuf.Int64Value"),
    "number": (cel.Type.DOUBLE, "google.protobuf.DoubleValue"),
    "boolean": (cel.Type.BOOL, "google.protobuf.BoolValue"),
}
_EXACT = (cel.Type.STRING, cel.Type.INT, cel.Type.BOOL)
_MAX_NESTING = 4
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def variables_of(tool: Tool, limits: dict[str, Json], others: Iterable[str] = ()) -> dict[str, Variable]:
    """Every variable that a condition for this tool may name; `others`: the tools whose calls it may look at."""
    arguments = list(_Arguments(tool).variables())
    found = [*_fact_variables(tool), *arguments, *_origin_variables(tool)]
    found.extend(_calls_variable(name) for name in others)
    found.extend(_limit_variable(name, value) for name, value in limits.items())
    return {variable.name: variable for variable in found}


def number_at(tool: Tool, path: str) -> bool:
    """Whether an argument of a tool, or a field in one, is a number (or a list of things that have one there)."""
    schema = tool.input.shown
    kind: dict[str, Json] = schema
    for name in path.split("."):
        kind, _nullable = _resolve(_inside(kind, schema).get("properties", {}).get(name), schema)
    kind = _inside(kind, schema)
    return kind.get("type") in ("number", "integer") or kind.get("format") == DECIMAL


def _inside(kind: dict[str, Json], schema: Json) -> dict[str, Json]:
    """What a list is a list of; anything else is itself."""
    while kind.get("type") == "array":
        kind, _nullable = _resolve(_items_of(kind), schema)
    return kind


def _fact_variables(tool: Tool) -> list[Variable]:
    text, whole, dyn = cel.Type.STRING, cel.Type.INT, cel.Type.DYN
    modes = tuple(mode.value for mode in Mode)
    return [
        _fact("actor", text, lambda f: f.call.actor, where="call.actor"),
        _fact("principal", text, lambda f: f.call.principal, where="call.principal"),
        _fact("on_behalf_of", text, lambda f: f.call.on_behalf_of or ""),
        _fact("tool", text, lambda f: f.call.tool, domain=(tool.name,)),
        _fact("effect", text, lambda _f: tool.effect.value, domain=(tool.effect.value,)),
        _fact("mode", text, lambda f: f.call.mode, domain=modes, where="call.mode"),
        _fact("capabilities", _TEXTS, lambda f: tuple(sorted(f.grant.capabilities))),
        _fact("evidence", _TEXTS, lambda f: tuple(f.call.evidence)),
        Variable(
            name="confidence",
            check=cel.Type("google.protobuf.DoubleValue"),
            run=dyn,
            read=lambda f: f.call.confidence,
        ),
        _fact("turn.id", text, lambda f: f.call.turn or ""),
        _fact("turn.calls", whole, lambda f: f.turn.calls),
        _fact("turn.tools", _TEXTS, lambda f: tuple(f.turn.tools)),
        _fact("turn.untrusted", _TEXTS, lambda f: tuple(f.turn.untrusted)),
        _fact("turn.tainted", cel.Type.BOOL, lambda f: bool(f.turn.untrusted)),
        _fact("plan.risk", text, lambda f: (f.plan.risk if f.plan else None) or ""),
        _fact("plan.diff", text, lambda f: (f.plan.diff if f.plan else None) or ""),
        _fact("plan.keys", _TEXTS, lambda f: tuple(f.plan.keys) if f.plan else ()),
        _fact("plan.before", dyn, lambda f: f.plan.before if f.plan else None),
        _fact("plan.after", dyn, lambda f: f.plan.after if f.plan else None),
    ]


def _origin_variables(tool: Tool) -> Iterator[Variable]:
    """Where the value of each argument came from: true if that holds for everything in it."""
    nowhere = Trace(TurnHistory(), tool)
    truth = cel.Type.BOOL

    def trace(facts: Facts) -> Trace:
        return facts.trace or nowhere

    # A read that leads nowhere has nothing to be asked for, and no value that could be wrong.
    may_be = tool.effect is not Effect.READ or Role.SINK in tool.roles.values()
    yield _tracing("turn.question", cel.Type.STRING, lambda f: trace(f).question)
    yield _tracing("turn.intents", _TEXTS, lambda f: tuple(trace(f).seen.intents))
    yield (
        _fact("turn.asked", truth, lambda _f: True)
        if tool.effect is Effect.READ
        else _tracing("turn.asked", truth, lambda f: trace(f).is_asked(f.arguments))
    )
    yield _tracing("origin.carries", _TEXTS, lambda f: tuple(trace(f).carries(f.arguments)))
    yield _tracing("origin.to_known", truth, lambda f: trace(f).leads_to_known(f.arguments))
    yield (
        _tracing("origin.unknown", _TEXTS, lambda f: tuple(item.field for item in trace(f).suspects(f.arguments)))
        if may_be
        else _fact("origin.unknown", _TEXTS, lambda _f: ())
    )
    for name in tool.input.shown.get("properties", {}):
        if not _IDENTIFIER.fullmatch(name):
            continue

        def all_of(facts: Facts, what: Callable[[Origin], bool], field: str = name) -> bool:
            return all(what(origin) for origin in trace(facts).of(field, facts.arguments.get(field)))

        for said, what in _ORIGINS.items():
            yield _tracing(f"origin.{name}.{said}", truth, partial(all_of, what=what))
        yield _tracing(f"origin.{name}.tools", _TEXTS, partial(_tools, trace, name))
        yield _tracing(f"origin.{name}.links.known", truth, partial(_links_known, trace, name))


def calls_name(tool: str) -> str:
    """The name under which conditions find the calls of a tool: in CEL, names have only letters, digits and '_'."""
    return "turn.calls_of." + re.sub(r"[^A-Za-z0-9]", lambda found: f"_{ord(found[0]):x}_", tool)


def _calls_variable(tool: str) -> Variable:
    kind = cel.Type.List(_OPEN)
    return Variable(
        name=calls_name(tool),
        check=kind,
        run=kind,
        read=lambda facts: list(facts.trace.seen.calls_of(tool)) if facts.trace is not None else [],
        traces=True,
        watches=tool,
    )


def _is_exact(kind: Any) -> bool:
    """Whether values that are equal are the same: texts are read as tuples, which can be looked up."""
    return kind in _EXACT or kind is _TEXTS


def _tracing(name: str, kind: Any, read: Callable[[Facts], Any]) -> Variable:
    return Variable(name=name, check=kind, run=kind, read=read, is_exact=_is_exact(kind), traces=True)


def _tools(trace: Callable[[Facts], Trace], field: str, facts: Facts) -> tuple[str, ...]:
    found = trace(facts).of(field, facts.arguments.get(field))
    return tuple(dict.fromkeys(tool for origin in found for tool in origin.tools))


def _links_known(trace: Callable[[Facts], Trace], field: str, facts: Facts) -> bool:
    return all(origin.known for origin in trace(facts).links(field, facts.arguments.get(field)))


_ORIGINS: dict[str, Callable[[Origin], bool]] = {
    "user": lambda origin: origin.user,
    "whole": lambda origin: origin.whole,
    "sole": lambda origin: origin.sole,
    "pointed": lambda origin: origin.pointed,
    "trusted": lambda origin: origin.trusted,
    "known": lambda origin: origin.known,
}


def _fact(
    name: str, kind: Any, read: Callable[[Facts], Any], *, domain: tuple[Json, ...] | None = None, where: str = ""
) -> Variable:
    return Variable(name=name, check=kind, run=kind, read=read, domain=domain, is_exact=_is_exact(kind), where=where)


def _limit_variable(name: str, value: Json) -> Variable:
    kinds = {bool: cel.Type.BOOL, int: cel.Type.INT, float: cel.Type.DOUBLE, str: cel.Type.STRING}
    read = tuple(value) if isinstance(value, list) else value
    return _fact(f"limits.{name}", kinds.get(type(value), _TEXTS), lambda _f: read, domain=(value,))


class _Arguments:
    """The arguments of one tool as variables: `args.FIELD`, and `args.OBJECT.FIELD` where the object is closed."""

    def __init__(self, tool: Tool) -> None:
        self._schema = tool.input.shown
        self._fills_inner_defaults = tool.input.fills_inner_defaults

    def variables(self) -> Iterator[Variable]:
        """Every property that can be written in a condition at all."""
        return self._of_object((), self._schema)

    def _of_object(self, path: tuple[str, ...], kind: Json) -> Iterator[Variable]:
        required = set(kind.get("required", ()))
        for name, part in kind.get("properties", {}).items():
            if _IDENTIFIER.fullmatch(name):  # others cannot be written in CEL
                has_default = isinstance(part, dict) and part.get("default") is not None
                is_filled = has_default and (self._fills_inner_defaults or not path)
                optional = name not in required and not is_filled
                yield from self._of_property((*path, name), part, optional=optional, has_default=is_filled)

    def _of_property(
        self, path: tuple[str, ...], part: Json, *, optional: bool, has_default: bool
    ) -> Iterator[Variable]:
        """One property: leaves of closed objects one by one, so that a wrong name inside is refused too."""
        kind, nullable = _resolve(part, self._schema)
        nullable = nullable or optional
        # An object that may be null stays whole: a name of a leaf inside it would have no value.
        if kind.get("properties") and not nullable and not _is_open(kind) and len(path) < _MAX_NESTING:
            yield from self._of_object(path, kind)
            return
        check, run = _cel_types(kind, nullable)
        as_float = kind.get("type") == "number"
        is_certain = len(path) == 1 and not as_float and not optional
        yield Variable(
            name=".".join(("args", *path)),
            check=check,
            run=run,
            read=_build_reader(path, as_float),
            domain=_domain_of(kind, nullable),
            is_exact=run in _EXACT,
            is_decimal=kind.get("format") == DECIMAL,
            lists_decimals=_items_of(kind).get("format") == DECIMAL,
            where=f"@{path[0]}" if is_certain else "",
            nullable=nullable,
            has_default=has_default,
        )


def _is_open(kind: dict[str, Json]) -> bool:
    return kind.get("additionalProperties") is True


def _domain_of(kind: dict[str, Json], nullable: bool) -> tuple[Json, ...] | None:
    """The few values that it can have, if they are few."""
    if "enum" in kind:
        values = tuple(kind["enum"])
    elif kind.get("type") == "boolean":
        values = (True, False)
    else:
        return None
    return (*values, None) if nullable else values


def _build_reader(path: tuple[str, ...], as_float: bool) -> Callable[[Facts], Any]:
    def read(facts: Facts) -> Any:
        value: Any = facts.arguments
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return float(value) if as_float and value is not None else value

    if len(path) == 1 and not as_float:
        (only,) = path
        return lambda facts: facts.arguments.get(only)
    return read


def _resolve(part: Json, schema: Json, seen: tuple[str, ...] = ()) -> tuple[dict[str, Json], bool]:
    """Follow references and unwrap 'or null'."""
    if not isinstance(part, dict):
        return {}, False
    if "$ref" in part:
        name = str(part["$ref"]).rsplit("/", 1)[-1]
        target = schema.get("$defs", schema.get("definitions", {})).get(name, {})
        # A recursive model has no end: from its second time on it is any value.
        return ({}, False) if name in seen else _resolve(target, schema, (*seen, name))
    for key in ("anyOf", "oneOf"):
        if key in part:
            options = [option for option in part[key] if not _is_null(option)]
            nullable = len(options) < len(part[key])
            if len(options) != 1:
                return {}, nullable
            kind, inner = _resolve(options[0], schema, seen)
            return kind, nullable or inner
    declared = part.get("type")
    if isinstance(declared, list):
        kinds = [kind for kind in declared if kind != "null"]
        one = {**part, "type": kinds[0]} if len(kinds) == 1 else {}
        return one, "null" in declared
    if "const" in part:
        return {
            "enum": [part["const"]],
            "type": "string" if isinstance(part["const"], str) else None,
            **part,
        }, False
    return part, False


def _items_of(kind: dict[str, Json]) -> dict[str, Json]:
    """The schema of a list's items; empty where it has none."""
    inner = kind.get("items")
    return inner if isinstance(inner, dict) else {}


def _is_null(option: Json) -> bool:
    return isinstance(option, dict) and option.get("type") == "null"


def _cel_types(kind: dict[str, Json], nullable: bool) -> tuple[Any, Any]:
    declared = kind.get("type")
    if isinstance(declared, str) and declared in _SCALARS:
        plain, wrapper = _SCALARS[declared]
        return (cel.Type(wrapper), cel.Type.DYN) if nullable else (plain, plain)
    if nullable:
        return cel.Type.DYN, cel.Type.DYN
    if declared == "array":
        of = _items_of(kind).get("type")
        items = _SCALARS.get(of if isinstance(of, str) else "", (cel.Type.DYN, ""))[0]
        return cel.Type.List(items), cel.Type.List(items)
    if declared == "object":
        return _OPEN, _OPEN
    return cel.Type.DYN, cel.Type.DYN
