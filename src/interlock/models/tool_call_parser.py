"""One normaliser: whatever way a model writes its calls, well-formed or not, they become the same proposals."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from interlock.models.messages import Proposal, ToolCard
from interlock.models.schema_types import types_of
from interlock.values import Json

MAX_PROPOSALS = 16
"""How many calls one reply may propose."""
_MAX_CHARACTERS = 100_000  # far above what a model writes at once; bounds what a hostile one can make us read
_MAX_OBJECTS = 64

# With `\Z` as an alternative a pattern matches from wherever it starts, so no text is gone over twice; for the same
# reason the attributes of a tag stop at the next `<`.
_TAGGED = re.compile(r"<(tool_call|function_call|tool_use)\b[^<>]*>(.*?)(?:</\1>|\Z)", re.S | re.I)
_FENCED = re.compile(r"```(?:json|xml|tool_call|tool_code)?\s*\n?(.*?)(?:```|\Z)", re.S | re.I)
_FUNCTION = re.compile(r"<function[=\s]+(?:name=)?[\"']?([\w.\-]+)[\"']?\s*>(.*?)(?:</function>|\Z)", re.S | re.I)
_PARAMETER = re.compile(
    r"<parameter[=\s]+(?:name=)?[\"']?([\w.\-]+)[\"']?\s*>(.*?)(?:</parameter>|(?=<parameter)|\Z)", re.S | re.I
)
_NAME_KEYS = ("name", "tool", "function", "tool_name", "function_name")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "input", "params")

_STRING = r'"(?:[^"\\]+|\\.)*+("?)'  # its group is empty where the text ends first; possessive, so it never goes back
_STRING_OR_BRACKET = re.compile(rf"{_STRING}|[{{}}\[\]]", re.S)
_QUOTE = re.compile("['\"]")
_TO_ITS_END = {"'": re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL), '"': re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)}
_STRING_OR_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.S)
_CLOSING = {"{": "}", "[": "]"}


def parse_native(calls: Sequence[Any]) -> tuple[Proposal, ...]:
    """Calls as OpenAI-style servers give them: a function with a name and arguments as text or object."""
    return tuple(_read_native(call) if isinstance(call, Mapping) else Proposal("(no name)", {}, "") for call in calls)


def parse_text(text: str, tools: Sequence[ToolCard]) -> tuple[tuple[Proposal, ...], str]:
    """Calls in a text, and what is left of the text: JSON, XML or a batch, in tags, fences or bare.

    Of a text of more than 100,000 characters no call is made: where it begins like one, that is refused in a sentence.
    """
    if len(text) > _MAX_CHARACTERS:  # not read in part: half of a call is another call
        return _refuse_long(text, tools)
    found: list[Proposal] = []
    # Tags before fences, as a fence may stand inside a tag; bare objects only where neither was found.
    for pattern, group in ((_TAGGED, 2), (_FENCED, 1)):
        for match in reversed(list(pattern.finditer(text))):  # from the end, so that the places of earlier matches stay
            inside = [*_find_xml(match[group], tools), *_find_json(match[group])]
            if not inside and (pattern is _TAGGED or _is_half_a_call(match[group], tools)):
                inside = [_refuse(match[group], tools)]
            if inside:
                found = inside + found
                text = text[: match.start()] + text[match.end() :]
    in_xml = _find_xml(text, tools)
    if in_xml:
        found += in_xml
        text = _FUNCTION.sub("", text)
    if not found:
        found, text = _find_bare(text, tools)
    return tuple(found), text.strip()


def _find_xml(text: str, tools: Sequence[ToolCard]) -> list[Proposal]:
    found = []
    for function in _FUNCTION.finditer(text):
        given = {match[1]: match[2].strip("\n") for match in _PARAMETER.finditer(function[2])}
        if not given and function[2].strip().startswith("{"):
            found.append(Proposal(function[1], _read_arguments(function[2])))
        else:
            found.append(Proposal(function[1], _read_parameters(given, function[1], tools)))
    return found


def _find_json(text: str) -> list[Proposal]:
    return [proposal for value in _read_values(text) for proposal in _find_calls(value)]


def _find_bare(text: str, tools: Sequence[ToolCard]) -> tuple[list[Proposal], str]:
    """Objects in running text count as calls only if they name a tool that exists, or are a batch."""
    names = {tool.name for tool in tools}
    found: list[Proposal] = []
    closed = [group for group in _scan_brackets(text, "{") if group.is_closed]
    for group in reversed(closed[:_MAX_OBJECTS]):
        written = text[group.start : group.end]
        inside = _find_json(written)
        # Examples and data in prose are objects too, and have to stay text.
        calls = [p for p in inside if p.tool in names or len(inside) > 1 or '"tool_calls"' in written]
        if calls:
            found = calls + found
            text = text[: group.start] + text[group.end :]
    return found, text


def _find_calls(value: Json) -> Iterator[Proposal]:
    """One call, a list of them or a batch, in order. A loop, since a model can nest deeper than Python may recurse."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            batch = value.get("tool_calls", value.get("calls"))
            if isinstance(batch, list):
                value = batch
            elif isinstance(value.get("function"), dict) or _name_in(value):
                yield _read_native(value)
        if isinstance(value, list):
            waiting.extend(reversed(value))


def _read_native(call: Mapping[str, Json]) -> Proposal:
    inner = call.get("function")
    function = inner if isinstance(inner, dict) else call
    given: Json = next((function[key] for key in _ARGUMENT_KEYS if key in function), {})
    identity = call.get("id")
    call_id = str(identity) if isinstance(identity, str | int) else ""
    # A call without a name is proposed all the same: its refusal is recorded, and the model hears of it.
    return Proposal(_name_in(function) or "(no name)", _read_arguments(given), call_id)


def _name_in(function: Mapping[str, Json]) -> str:
    return next((function[key] for key in _NAME_KEYS if isinstance(function.get(key), str)), "")


def _is_half_a_call(text: str, tools: Sequence[ToolCard]) -> bool:
    first = next(_scan_brackets(text, "{["), None)
    is_cut = first is not None and first.missing is None and not text[: first.start].strip()
    return is_cut and any(tool.name in text for tool in tools)


def _refuse(text: str, tools: Sequence[ToolCard]) -> Proposal:
    """A call that cannot be read: the contract will refuse it, and say so to the model."""
    name = next((tool.name for tool in tools if tool.name in text), "(unreadable)")
    return Proposal(name, {"unreadable": text.strip()[:200]})


def _refuse_long(text: str, tools: Sequence[ToolCard]) -> tuple[tuple[Proposal, ...], str]:
    beginning = text[:_MAX_CHARACTERS]
    fenced = _FENCED.search(beginning)
    tagged = _TAGGED.search(beginning) or _FUNCTION.search(beginning)
    if tagged is None and not _is_half_a_call(beginning if fenced is None else fenced[1], tools):
        return (), text  # an answer, whose length is the turn's concern
    said = f"a reply of {len(text):,} characters, of which at most {_MAX_CHARACTERS:,} are read for calls: write less"
    return (Proposal(_refuse(beginning, tools).tool, {"unreadable": said}),), ""


def _read_arguments(given: Json) -> Json:
    if isinstance(given, str):
        values = _read_values(given)
        if not values and given.strip():
            return {"unreadable": given.strip()[:200]}
        given = values[0] if values else {}
    return given if given is not None else {}


def _read_values(text: str) -> list[Json]:
    """The JSON values that stand one after another in a text; small faults are forgiven."""
    text = text.strip()
    # Nothing is forgiven in a part of a text: the half that was read would be another value.
    return _read_strictly(text) or ([] if len(text) > _MAX_CHARACTERS else _read_forgivingly(text))


def _read_strictly(text: str) -> list[Json]:
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


def _read_forgivingly(text: str) -> list[Json]:
    """The first value in a text, despite trailing commas, single quotes, Python's words, no end, words around it."""
    first = next(_scan_brackets(text, "{["), None)
    if first is None:
        return []
    rest, body = text[first.start :], text[first.start : first.end]
    # The rest as it stands comes first: only Python's reader sees that a bracket between single quotes is none.
    for source in dict.fromkeys((rest, body, body + (first.missing or ""))):
        without_commas = _STRING_OR_LAST_COMMA.sub(lambda match: match[1] or "", source)
        for read, written in ((json.loads, without_commas), (_read_literal, source)):
            try:
                value = read(written)
            except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                continue
            if isinstance(value, dict | list) and _is_json(value):
                return [value]
    return []


def _read_literal(text: str) -> Any:
    """A literal of Python. One with an f-string is none, and Python takes the square of its length to find that out."""
    at = 0
    while (quote := _QUOTE.search(text, at)) is not None:
        if "f" in text[max(0, quote.start() - 2) : quote.start()].lower():
            raise ValueError("an f-string is no literal")
        end = _TO_ITS_END[quote[0]].match(text, quote.end())
        if end is None:
            break
        at = end.end()
    return ast.literal_eval(text)


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)  # literal_eval also makes sets, bytes and tuples as keys
    except (TypeError, ValueError, RecursionError):
        return False
    return True


class _Brackets(NamedTuple):
    """An outermost pair of brackets, or the first one that is not closed with the rest of the text."""

    start: int
    end: int
    missing: str | None
    """What closes it; None where the text breaks off within a value, which nobody can finish but the model."""

    @property
    def is_closed(self) -> bool:
        return self.missing == ""


def _scan_brackets(text: str, kinds: str) -> Iterator[_Brackets]:
    """Where brackets of these kinds stand, outermost ones only; one pass over the text, brackets in strings skipped."""
    opening, at = re.compile(f"[{re.escape(kinds)}]"), 0
    while (first := opening.search(text, at)) is not None:
        brackets = _scan_one(text, first.start(), kinds)
        yield brackets
        at = brackets.end


def _scan_one(text: str, start: int, kinds: str) -> _Brackets:
    missing: list[str] = []
    for token in _STRING_OR_BRACKET.finditer(text, start):
        mark = token[0]
        if mark in kinds:
            missing.append(_CLOSING[mark])
        elif mark == missing[-1]:
            missing.pop()
            if not missing:
                return _Brackets(start, token.end(), "")
        elif mark[0] == '"' and not token[1]:
            return _Brackets(start, len(text), None)
    # A number at the very end may be the beginning of a longer one (1 of 1000), and a comma announces more.
    is_finished = text.rstrip()[-1:] in ('"', "'", "}", "]")
    return _Brackets(start, len(text), "".join(reversed(missing)) if is_finished else None)


def _read_parameters(given: dict[str, str], name: str, tools: Sequence[ToolCard]) -> dict[str, Json]:
    """XML has only texts: what the tool's schema says is something else is read as that, where it can be."""
    tool = next((tool for tool in tools if tool.name == name), None)
    properties = {} if tool is None else tool.parameters.get("properties", {})
    return {key: _read_declared(value, properties.get(key, {})) for key, value in given.items()}


def _read_declared(value: str, schema: Json) -> Json:
    kinds = types_of(schema)
    if not kinds or "string" in kinds:  # "007" of a text stays what it is
        return value
    try:
        read = json.loads(value.strip())
    except (ValueError, RecursionError):
        lower = value.strip().lower()
        return {"true": True, "false": False, "none": None, "null": None}.get(lower, value)
    return read
