"""Calling the function behind a tool in a unit test: its contract holds, and nothing else of the gate does."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from interlock.canonical import Refusal
from interlock.errors import ContractError
from interlock.reasons import Reason
from interlock.tools import Tool, read_result
from interlock.values import Context

CONTEXT = Context(call_id="test", actor="tester", attempt=1)
"""What a tool that asks for its context gets, unless the test passes another."""
_NOT_AS_PROMISED = (Reason.BAD_RESULT, Reason.TOO_LARGE)


def call_ungoverned(tool: Tool, /, *positional: Any, **arguments: Any) -> Any:
    """Call the function of a tool as it would be called without `@tool`; await it if the tool is async.

        assert call_ungoverned(area, width=2.0, height=3.0) == 6.0
        assert await call_ungoverned(look_up, "miller-street") == {"open": True}

    There is no policy, no budget, no retry and no record. Arguments and result have to fit the contract
    (`ContractError` says what does not); what the function returns or raises comes back as it is.
    """
    if not isinstance(tool, Tool):
        raise ContractError(f"{tool!r} is not a Tool; a plain function is called as it is")
    context = next((value for value in arguments.values() if isinstance(value, Context)), CONTEXT)
    given = _name_arguments(tool, positional)
    given |= {name: value for name, value in arguments.items() if not isinstance(value, Context)}
    try:
        parsed = tool.input.parse(to_jsonable_python(given))
    except (Refusal, PydanticSerializationError) as error:
        raise ContractError(f"{tool.name}: {error}") from None
    returned = tool.body(parsed, context)
    return _await_result(tool, returned) if inspect.isawaitable(returned) else _check_result(tool, returned)


def _name_arguments(tool: Tool, positional: tuple[Any, ...]) -> dict[str, Any]:
    names = list(tool.input.schema.get("properties", {}))
    if len(positional) > len(names):
        raise ContractError(f"{tool.name}: {len(positional)} arguments were given, and it takes {len(names)}")
    return dict(zip(names, positional, strict=False))


async def _await_result(tool: Tool, returned: Awaitable[Any]) -> Any:
    return _check_result(tool, await returned)


def _check_result(tool: Tool, value: Any) -> Any:
    problem = read_result(value, tool.output, tool.nothing_is_ok, tool.limits.max_bytes).problem
    if problem is not None and problem.reason in _NOT_AS_PROMISED:
        raise ContractError(f"{tool.name}: {problem.message}")
    return value
