"""One normaliser: whatever way a model writes its calls, well-formed or not, they become the same proposals."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interlock.models.messages import Proposal, ToolCard
from interlock.models.schema_types import types_of
from interlock.values import Json

MOST = 16
"""How many calls one reply may propose."""
_TAGGED = re.compile(r"<(tool_call|function_call|tool_use)\b[^>]*>(.*?)(?:</\1>|\Z)", re.S | re.I)
_FENCED = re.compile(r"```(?:json|xml|tool_call|tool_code)?\s*\n?(.*?)(?:```|\Z)", re.S | re.I)
_FUNCTION = re.compile(r"<function[=\s]+(?:name=)?[\"']?([\w.\-]+)[\"']?\s*>(.*?)(?:</function>|\Z)", re.S | re.I)
_PARAMETER = re.compile(
    r"<parameter[=\s]+(?:name=)?[\"']?([\w.\-]+)[\"']?\s*>(.*?)(?:</parameter>|(?=<parameter)|\Z)", re.S | re.I
)
_NAME_KEYS = ("name", "tool", "function", "tool_name", "function_name")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "input", "params")
_LONGEST = 100_000
_MOST_OBJECTS = 64


def parse_native(calls: Sequence[Any], tools: Sequence[ToolCard]) -> tuple[Proposal, ...]:
    """Calls as OpenAI-style servers give them: a function with a name and arguments as text or object."""
    found = []
    for call in calls:
        function = call.get("function", call) if isinstance(call, Mapping) else {}
        name = next((str(function[key]) for key in _NAME_KEYS if isinstance(function.get(key), str)), "")
        given: Json = next((function[key] for key in _ARGUMENT_KEYS if key in function), {})
        identity = str(call.get("id") or "") if isinstance(call, Mapping) else ""
        found.append(Proposal(name or "(no name)", _arguments(given, name, tools), identity))
    return tuple(found)


def parse_text(text: str, tools: Sequence[ToolCard]) -> tuple[tuple[Proposal, ...], str]:
    """Calls in a text, and what is left of the text: JSON, XML or a batch, in tags, fences or bare."""
    text = text[:_LONGEST]
    found: list[Proposal] = []
    for pattern, group in ((_TAGGED, 2), (_FENCED, 1)):
        for match in reversed(list(pattern.finditer(text))):
            inside = [*_xml(match[group], tools), *_json(match[group], tools)]
            if inside:
                found = inside + found
                text = text[: match.start()] + text[match.end() :]
            elif pattern is _TAGGED:
                found.insert(0, _unreadable(match[group], tools))
                text = text[: match.start()] + text[match.end() :]
    functions = list(_FUNCTION.finditer(text))
    if functions:
        found += _xml(text, tools)
        text = _FUNCTION.sub("", text)
    if not found:
        bare, text = _bare(text, tools)
        found += bare
    return tuple(found), text.strip()


def _xml(text: str, tools: Sequence[ToolCard]) -> list[Proposal]:
    found = []
    for function in _FUNCTION.finditer(text):
        given = {match[1]: match[2].strip("\n") for match in _PARAMETER.finditer(function[2])}
        if not given and function[2].strip().startswith("{"):
            found.append(Proposal(function[1], _arguments(function[2], function[1], tools)))
        else:
            found.append(Proposal(function[1], _typed(given, function[1], tools)))
    return found


def _json(text: str, tools: Sequence[ToolCard]) -> list[Proposal]:
    return [proposal for value in _values(text) for proposal in _from_value(value, tools)]


def _bare(text: str, tools: Sequence[ToolCard]) -> tuple[list[Proposal], str]:
    """Objects in running text count as calls only if they name a tool that exists, or are a batch."""
    names = {tool.name for tool in tools}
    found: list[Proposal] = []
    for at, end in reversed(_objects(text)[:_MOST_OBJECTS]):
        inside = [p for value in _values(text[at:end]) for p in _from_value(value, tools)]
        calls = [p for p in inside if p.tool in names or len(inside) > 1 or '"tool_calls"' in text[at:end]]
        if calls:
            found = calls + found
            text = text[:at] + text[end:]
    return found, text


def _objects(text: str) -> list[tuple[int, int]]:
    """Where the outermost objects of a text begin and end; one that does not end is none. In one pass."""
    found, depth, start, quote, skip = [], 0, 0, False, False
    for at, c in enumerate(text):
        if skip:
            skip = False
        elif quote:
            skip, quote = c == "\\", c != '"'
        elif c == '"':
            quote = depth > 0
        elif c == "{":
            start, depth = (at if depth == 0 else start), depth + 1
        elif c == "}" and depth:
            depth -= 1
            if depth == 0:
                found.append((start, at + 1))
    return found


def _from_value(value: Json, tools: Sequence[ToolCard]) -> Iterator[Proposal]:
    if isinstance(value, list):
        for item in value:
            yield from _from_value(item, tools)
    if not isinstance(value, dict):
        return
    batch = value.get("tool_calls", value.get("calls"))
    if isinstance(batch, list):
        for item in batch:
            yield from _from_value(item, tools)
        return
    inner = value.get("function")
    if isinstance(inner, dict):
        yield from parse_native([value], tools)
        return
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    if name is not None:
        given: Json = next((value[key] for key in _ARGUMENT_KEYS if key in value), {})
        identity = value.get("id")
        yield Proposal(name, _arguments(given, name, tools), identity if isinstance(identity, str) else "")


def _unreadable(text: str, tools: Sequence[ToolCard]) -> Proposal:
    """A call that cannot be read: the contract will refuse it, and say so to the model."""
    name = next((tool.name for tool in tools if tool.name in text), "(unreadable)")
    return Proposal(name, {"unreadable": text.strip()[:200]})


def _arguments(given: Json, name: str, tools: Sequence[ToolCard]) -> Json:
    if isinstance(given, str):
        values = _values(given)
        if not values and given.strip():
            return {"unreadable": given.strip()[:200]}
        given = values[0] if values else {}
    return given if given is not None else {}


def _values(text: str) -> list[Json]:
    """The JSON values that stand one after another in a text; small faults are forgiven."""
    text = text.strip()
    for read in (_strictly, _forgiving):
        found = read(text)
        if found:
            return found
    return []


def _strictly(text: str) -> list[Json]:
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text):
        while at < len(text) and text[at] in " \t\r\n,;":
            at += 1
        if at >= len(text):
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):  # also a number of thousands of digits
            return []
        found.append(value)
    return [value for value in found if isinstance(value, dict | list)]


def _forgiving(text: str) -> list[Json]:
    """Trailing commas, single quotes, Python's words, a missing end, words around the object."""
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        return []
    body = text[start:]
    body = body[: _end_of_object(body, 0)]
    for candidate in (body, _closed(body)):
        plain = re.sub(r",\s*([}\]])", r"\1", candidate)
        for read in (json.loads, ast.literal_eval):
            try:
                value = read(plain)
            except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                continue
            if isinstance(value, dict | list) and _is_json(value):
                return [value]
    return []


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _end_of_object(text: str, start: int) -> int:
    depth, quote, skip = 0, "", False
    for at in range(start, len(text)):
        c = text[at]
        if skip:
            skip = False
        elif quote:
            skip, quote = c == "\\", "" if c == quote else quote
        elif c == '"':
            quote = c
        elif c in "{[":
            depth += 1
        elif c in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(text)


def _closed(text: str) -> str:
    """A text that breaks off, with the quotes and brackets that it left open."""
    opened, quote, skip = [], "", False
    for c in text:
        if skip:
            skip = False
        elif quote:
            skip, quote = c == "\\", "" if c == quote else quote
        elif c == '"':
            quote = c
        elif c in "{[":
            opened.append("}" if c == "{" else "]")
        elif c in "}]" and opened:
            opened.pop()
    return text + quote + "".join(reversed(opened))


def _typed(given: dict[str, str], name: str, tools: Sequence[ToolCard]) -> dict[str, Json]:
    """XML has only texts: what the tool's schema says is something else is read as that, where it can be."""
    tool = next((tool for tool in tools if tool.name == name), None)
    properties = {} if tool is None else tool.parameters.get("properties", {})
    return {key: _as_declared(value, properties.get(key, {})) for key, value in given.items()}


def _as_declared(value: str, schema: Json) -> Json:
    kinds = types_of(schema)
    if not kinds or "string" in kinds:
        return value
    try:
        read = json.loads(value.strip())
    except (ValueError, RecursionError):
        lower = value.strip().lower()
        return {"true": True, "false": False, "none": None, "null": None}.get(lower, value)
    return read
