"""A read that is delivered again in other words: the same one, if its arguments are equal by value."""

from __future__ import annotations

from interlock.canonical import Refusal
from interlock.changes import request_digest
from interlock.engine.context import Accepted, EngineContext
from interlock.engine.recorded_values import recorded_arguments
from interlock.records import Stored
from interlock.tools import Tool
from interlock.tools.inputs import Parsed


async def is_same_read(ctx: EngineContext, accepted: Accepted, record: Stored) -> bool:
    """Whether a record answers a read with these values, as the types of the contract compare them.

    Not where that cannot be told: its arguments were clamped, and it holds a digest of those that were asked for; they
    are redacted, and what lay beside it was deleted; or the contract does not take them any more.
    """
    content, tool = record.content(), accepted.binding.tool
    if content.asked_digest is not None:
        return False
    arguments = await recorded_arguments(ctx, record, content)
    if arguments is None:
        return False
    try:
        before = tool.input.parse(arguments)
    except Refusal:
        return False
    return _by_value(ctx, tool, before) == _by_value(ctx, tool, accepted.parsed)


def _by_value(ctx: EngineContext, tool: Tool, parsed: Parsed) -> str:
    return request_digest(ctx.digest, tool.name, (), parsed.by_value())
