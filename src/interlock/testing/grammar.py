"""A model that does nothing but choose: it writes the first text that its grammar admits."""

from __future__ import annotations

import json
import re

from interlock.models.messages import Reply, Request

_TOKEN = re.compile(r'\s*("(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|\{\d+,\d+\}|[()|?])')


class FirstChoice:
    """In place of the embedded model, where a test must not depend on what that would choose."""

    name, instructable = "first choice", False

    async def reply(self, request: Request) -> Reply:
        """The first text of the grammar; a greeting where there is none."""
        return Reply(first_text(request.grammar) if request.grammar else "hello")

    async def close(self) -> None:
        """Nothing is held."""


def first_text(grammar: str) -> str:
    """The text of a grammar (GBNF with one rule) that takes every first alternative, and as few repeats as it may."""
    tokens = _TOKEN.findall(grammar.removeprefix("root ::="))
    text, end = _sequence(tokens, 0)
    if end != len(tokens):
        raise ValueError(f"not a grammar of one rule: {grammar[:80]}")
    return text


def _sequence(tokens: list[str], at: int) -> tuple[str, int]:
    """One sequence of parts, and where it ends; the alternatives after it are passed over."""
    said = ""
    while at < len(tokens) and tokens[at] not in ")|":
        part, at = _part(tokens, at)
        if at < len(tokens) and tokens[at] == "?":
            part, at = "", at + 1
        elif at < len(tokens) and tokens[at].startswith("{"):
            part, at = part * int(tokens[at][1:].partition(",")[0]), at + 1
        said += part
    while at < len(tokens) and tokens[at] == "|":
        _other, at = _sequence(tokens, at + 1)
    return said, at


def _part(tokens: list[str], at: int) -> tuple[str, int]:
    if tokens[at] == "(":
        inner, at = _sequence(tokens, at + 1)
        return inner, at + 1
    if tokens[at].startswith("["):
        return ("0" if tokens[at].startswith("[0") else "x"), at + 1
    return str(json.loads(tokens[at])), at + 1
