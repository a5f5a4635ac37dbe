"""A tool's whole contract as plain values, for people and for scripts."""

from __future__ import annotations

from collections.abc import Callable
from enum import EnumMeta
from typing import Any

import msgspec

from interlock.tools import Tool
from interlock.tools.effects import KeyOf, KeyTemplate
from interlock.tools.known_values import KnownValues, names_of_values


def describe_contract(tool: Tool) -> dict[str, Any]:
    """Everything that a tool says about itself; a function is told by its name."""
    return {
        **tool.manifest(),
        "returns": tool.output.schema,
        "effect": tool.effect.value,
        "key": _describe_key(tool.key),
        "resource": None if tool.resource is None else tool.resource.name,
        "locks": _describe_key(tool.locks),
        "once_per": tool.once_per,
        "repeatable": tool.repeatable,
        "idempotent": tool.idempotent,
        "simulate": tool.simulate is not None,
        "invariants": _describe_function(tool.invariants),
        "probe": _describe_function(tool.probe),
        "compensate": None if tool.compensate is None else tool.compensate.tool,
        "review_when": tool.review_when,
        "says": list(tool.says),
        "operator": tool.operator,
        "capabilities": sorted(tool.capabilities),
        "trust": tool.trust.value,
        "labels": {
            "own": sorted(tool.labels.own),
            "outsiders": sorted(tool.labels.outsiders),
            "free": sorted(tool.labels.free),
            "others": tool.labels.default.value,
        },
        "roles": {name: role.value for name, role in tool.roles.items()},
        "recalls": sorted(tool.recalls),
        "refusals": [kind.__name__ for kind in tool.refusals],
        "redact": sorted(tool.redact),
        "known_values": {field: _describe_values(known) for field, known in tool.known_values.items()},
        "egress": _describe_egress(tool.egress),
        "timeout_s": tool.timeout_s,
        "deadline_s": tool.deadline_s,
        "retry": msgspec.to_builtins(tool.retry),
        "cost_usd": tool.limits.cost_usd,
        "limits": msgspec.to_builtins(tool.limits),
    }


def _describe_key(key: KeyOf | None) -> str | None:
    return key.text if isinstance(key, KeyTemplate) else _describe_function(key)


def _describe_function(function: Callable[..., Any] | None) -> str | None:
    if function is None:
        return None
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{getattr(function, '__module__', '?')}:{name}"


def _describe_values(known: KnownValues) -> dict[str, list[str]] | str:
    """The values with the names each goes by; a function that looks for them is only named."""
    if callable(known) and not isinstance(known, EnumMeta):
        return _describe_function(known) or ""
    return {value: list(names[1:]) for value, names in names_of_values(known, "").items()}


def _describe_egress(egress: object | None) -> dict[str, list[str]] | None:
    if egress is None:
        return None
    options = ("hosts", "schemes", "networks")
    return {option: [str(item) for item in getattr(egress, option, ())] for option in options}
