"""Tools as text, for models that take no native tools: one of three ways to write a call, with an example of it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from interlock.models.messages import ToolCard
from interlock.values import Json

WAYS = ("json", "xml", "batch")


def describe_tools(tools: Sequence[ToolCard], way: str = "json") -> str:
    """The tools with their parameters, and how to call one."""
    if not tools:
        return ""
    lines = [
        f"{tool.name}({_describe_parameters(tool.parameters)}): {_take_first_line(tool.description)}" for tool in tools
    ]
    return "Tools:\n" + "\n".join(f"- {line}" for line in lines) + "\n\n" + _describe_call(tools[0], way)


def _describe_parameters(schema: dict[str, Json]) -> str:
    required = set(schema.get("required", ()))
    return ", ".join(
        f"{name}{'' if name in required else '?'}: {_describe_type(part)}"
        for name, part in schema.get("properties", {}).items()
    )


def _describe_type(part: Json) -> str:
    if not isinstance(part, dict):
        return "any"
    if "enum" in part:
        return "|".join(json.dumps(item) for item in part["enum"])
    kinds = [str(inner.get("type", "any")) for inner in part.get("anyOf", ()) if isinstance(inner, dict)]
    return "|".join(kinds) or str(part.get("type", "any"))


def _take_first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _describe_call(tool: ToolCard, way: str) -> str:
    names = list(tool.parameters.get("properties", {}))[:1]
    if way == "xml":
        inner = "".join(f"<parameter={name}>value</parameter>" for name in names)
        return f"To call a tool, write only:\n<tool_call><function={tool.name}>{inner}</function></tool_call>"
    arguments = dict.fromkeys(names, "value")
    if way == "batch":
        one = json.dumps({"plan": "what for", "tool_calls": [{"tool": tool.name, "args": arguments}]})
        return f"To call tools, write only one JSON object:\n{one}"
    return f"To call a tool, write only:\n{json.dumps({'name': tool.name, 'arguments': arguments})}"
