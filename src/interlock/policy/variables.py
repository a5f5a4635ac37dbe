"""What a condition may name, with its type: `args.*` from the tool's schema, and the facts of the call."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from cel_expr_python import cel

from interlock.tools import Tool
from interlock.values import Call, Grant, Json, Mode, Plan, TurnView

_TEXTS = cel.Type.List(cel.Type.STRING)
_OPEN = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
_SCALARS = {
    "string": (cel.Type.STRING, "google.protobuf.StringValue"),
    "integer": (cel.Type.INT, "google.protobuf.Int64Value"),
    "number": (cel.Type.DOUBLE, "google.protobuf.DoubleValue"),
    "boolean": (cel.Type.BOOL, "google.protobuf.BoolValue"),
}
_MAX_NESTING = 4
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Facts(msgspec.Struct, frozen=True, gc=False):
    """A snapshot: everything that a decision may depend on."""

    call: Call
    arguments: dict[str, Json]
    grant: Grant
    turn: TurnView = TurnView()
    plan: Plan | None = None


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A name in conditions: its type when checked, its type when run, how to read it, and its few values if few."""

    name: str
    check: Any
    run: Any
    read: Callable[[Facts], Any]
    domain: tuple[Json, ...] | None = None
    nullable: bool = False
    where: str = ""
    """The attribute of the facts that it is; or the argument, if it starts with '@'; or empty: only `read` knows."""


def variables_of(tool: Tool, limits: dict[str, Json]) -> dict[str, Variable]:
    """Every variable that a condition for this tool may name."""
    found = {variable.name: variable for variable in _facts(tool)}
    schema = tool.input.schema
    _arguments((), schema, (schema, tool.input.fills_inner_defaults), found)
    for name, value in limits.items():
        found[f"limits.{name}"] = _limit(name, value)
    return found


def _facts(tool: Tool) -> list[Variable]:
    text, whole, dyn = cel.Type.STRING, cel.Type.INT, cel.Type.DYN
    return [
        Variable(name="actor", check=text, run=text, read=lambda f: f.call.actor, where="call.actor"),
        Variable(name="principal", check=text, run=text, read=lambda f: f.call.principal, where="call.principal"),
        _fact("on_behalf_of", text, lambda f: f.call.on_behalf_of or ""),
        _fact("tool", text, lambda f: f.call.tool, (tool.name,)),
        _fact("effect", text, lambda _f: tool.effect.value, (tool.effect.value,)),
        Variable(
            name="mode",
            check=text,
            run=text,
            read=lambda f: f.call.mode,
            domain=tuple(mode.value for mode in Mode),
            where="call.mode",
        ),
        _fact("capabilities", _TEXTS, lambda f: sorted(f.grant.capabilities)),
        _fact("evidence", _TEXTS, lambda f: list(f.call.evidence)),
        Variable(
            name="confidence",
            check=cel.Type("google.protobuf.DoubleValue"),
            run=dyn,
            read=lambda f: f.call.confidence,
        ),
        _fact("turn.id", text, lambda f: f.call.turn or ""),
        _fact("turn.calls", whole, lambda f: f.turn.calls),
        _fact("turn.tools", _TEXTS, lambda f: list(f.turn.tools)),
        _fact("turn.untrusted", _TEXTS, lambda f: list(f.turn.untrusted)),
        _fact("turn.tainted", cel.Type.BOOL, lambda f: bool(f.turn.untrusted)),
        _fact("plan.risk", text, lambda f: (f.plan.risk if f.plan else None) or ""),
        _fact("plan.diff", text, lambda f: (f.plan.diff if f.plan else None) or ""),
        _fact("plan.keys", _TEXTS, lambda f: list(f.plan.keys if f.plan else ())),
        _fact("plan.before", dyn, lambda f: f.plan.before if f.plan else None),
        _fact("plan.after", dyn, lambda f: f.plan.after if f.plan else None),
    ]


def _fact(name: str, kind: Any, read: Callable[[Facts], Any], domain: tuple[Json, ...] | None = None) -> Variable:
    return Variable(name=name, check=kind, run=kind, read=read, domain=domain)


def _limit(name: str, value: Json) -> Variable:
    kinds = {bool: cel.Type.BOOL, int: cel.Type.INT, float: cel.Type.DOUBLE, str: cel.Type.STRING}
    return _fact(f"limits.{name}", kinds.get(type(value), _TEXTS), lambda _f: value, (value,))


def _arguments(path: tuple[str, ...], kind: Json, whole: tuple[Json, bool], found: dict[str, Variable]) -> None:
    """Declare every property of an object that can be written in a condition at all.

    `whole` is the tool's schema, and whether its contract fills in the defaults of inner objects too.
    """
    required = set(kind.get("required", ()))
    for name, part in kind.get("properties", {}).items():
        if _IDENTIFIER.fullmatch(name):
            filled = isinstance(part, dict) and part.get("default") is not None and (whole[1] or not path)
            _argument((*path, name), part, whole, name not in required and not filled, found)


def _argument(
    path: tuple[str, ...], part: Json, whole: tuple[Json, bool], optional: bool, found: dict[str, Variable]
) -> None:
    """Declare one property: leaves of closed objects one by one, so that a wrong name inside is refused too."""
    kind, nullable = _resolve(part, whole[0])
    nullable = nullable or optional
    properties = kind.get("properties")
    if properties and not nullable and kind.get("additionalProperties") is not True and len(path) < _MAX_NESTING:
        _arguments(path, kind, whole, found)
        return
    check, run = _types(kind, nullable)
    domain = tuple(kind["enum"]) if "enum" in kind else (True, False) if kind.get("type") == "boolean" else None
    if domain is not None and nullable:
        domain = (*domain, None)
    name = ".".join(("args", *path))
    as_float = kind.get("type") == "number"
    certain = len(path) == 1 and not as_float and not optional
    where = f"@{path[0]}" if certain else ""
    found[name] = Variable(
        name=name, check=check, run=run, read=_reader(path, as_float), domain=domain, where=where, nullable=nullable
    )


def _reader(path: tuple[str, ...], as_float: bool) -> Callable[[Facts], Any]:
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


def _is_null(option: Json) -> bool:
    return isinstance(option, dict) and option.get("type") == "null"


def _types(kind: dict[str, Json], nullable: bool) -> tuple[Any, Any]:
    declared = kind.get("type")
    if isinstance(declared, str) and declared in _SCALARS:
        plain, wrapper = _SCALARS[declared]
        return (cel.Type(wrapper), cel.Type.DYN) if nullable else (plain, plain)
    if nullable:
        return cel.Type.DYN, cel.Type.DYN
    if declared == "array":
        inner = kind.get("items")
        of = inner.get("type") if isinstance(inner, dict) else None
        items = _SCALARS.get(of if isinstance(of, str) else "", (cel.Type.DYN, ""))[0]
        return cel.Type.List(items), cel.Type.List(items)
    if declared == "object":
        return _OPEN, _OPEN
    return cel.Type.DYN, cel.Type.DYN
