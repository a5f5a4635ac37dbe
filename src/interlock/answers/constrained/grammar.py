"""A compact grammar (GBNF) for one forced call: known values where they are known, otherwise only what was said."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from interlock.models.schema_types import types_of
from interlock.values import Json

# Names are rarely longer than six words, and every span is an alternative of the grammar.
_LONGEST_SPAN = 6
_MOST_SPANS = 200  # short spans come first, so a long text loses its long ones
_MOST_WORDS = 2_000
_LONGEST_WORD = 200
"""A longer word is no name, and a pattern of a contract is not tried on it."""
_WORD = re.compile(r"[^\s\"\\]+")  # quotes and backslashes would need two escapes: JSON's and the grammar's
_EDGES = ".,;:!?()[]{}'“”‘’"


def call_grammar(schema: Mapping[str, Json], given: Mapping[str, Sequence[Json]], said: str) -> str:
    """A grammar whose every text is a JSON object of arguments for the schema."""
    parts: list[str] = []
    properties, required = schema.get("properties", {}), set(schema.get("required", ()))
    for name, kind in properties.items():
        known = given.get(name)
        if known is not None and not known:
            continue  # nothing was said about it, and it may be left out
        if known is None and name not in required:
            continue
        value = _literals(known) if known else _free(_follow_reference(kind, schema), said)
        parts.append(f"{_quote(json.dumps(name) + ':')} {value}")
    comma = f" {_quote(',')} "
    return f"root ::= {_quote('{')} {comma.join(parts)} {_quote('}')}" if parts else f"root ::= {_quote('{}')}"


def _follow_reference(kind: Json, schema: Mapping[str, Json]) -> Json:
    """A type that is defined elsewhere in the schema."""
    if not isinstance(kind, dict) or "$ref" not in kind:
        return kind
    return schema.get("$defs", {}).get(kind["$ref"].rpartition("/")[2], kind)


def answer_grammar(lead: str, facts: Sequence[str]) -> str:
    """A grammar whose every text is a choice of the statements: none to two that follow a lead, or one to four."""
    # Bounded, as nothing else would end the answer of a model that goes on repeating itself.
    one = "(" + " | ".join(_quote(fact) for fact in facts) + ")"
    return f'root ::= ("; " {one}){{0,2}} "."' if lead else f'root ::= {one} ("; " {one}){{0,3}} "."'


def _free(kind: Json, said: str) -> str:
    """Text may only be a span of what was said; figures may be any, where none was said."""
    choices = kind.get("enum") if isinstance(kind, dict) else None
    if choices:
        return _literals(choices)
    kinds = types_of(kind)
    if "integer" in kinds:
        # Bounded too: a model may go on writing digits until its tokens are used up.
        return '"-"? [0-9]{1,12}'
    if "number" in kinds:
        return '"-"? [0-9]{1,12} ("." [0-9]{1,6})?'
    if "boolean" in kinds:
        return '("true" | "false")'
    if "array" in kinds:
        inner = _free(kind.get("items", {}), said)
        return f'"[" {inner} ("," {inner}){{0,7}} "]"'
    if "object" in kinds:  # nothing inside is known; the contract says whether that will do
        return '"{}"'
    return _literals(spans(said)) if spans(said) else '"\\"" [^"\\\\]{1,80} "\\""'


def spans(text: str) -> tuple[str, ...]:
    """Runs of up to six words of a text, as they stand there, without punctuation at their edges."""
    words = [match[0].strip(_EDGES) for match in _WORD.finditer(text)]
    words = [word for word in words if 0 < len(word) <= _LONGEST_WORD][:_MOST_WORDS]
    found = [
        " ".join(words[start : start + length])
        for length in range(1, _LONGEST_SPAN + 1)
        for start in range(len(words) - length + 1)
    ]
    return tuple(dict.fromkeys(found))[:_MOST_SPANS]


def _literals(values: Sequence[Json]) -> str:
    written = [_quote(json.dumps(value, ensure_ascii=False)) for value in values]
    return written[0] if len(written) == 1 else f"({' | '.join(written)})"


def _quote(text: str) -> str:
    """A literal of the grammar."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
