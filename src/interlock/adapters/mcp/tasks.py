"""Tools that a server runs as tasks alone (2025-11-25): begun by one request, and waited for by another."""

from __future__ import annotations

import asyncio
import contextlib

import mcp_types as types
from mcp import MCPError
from mcp.client.session import ClientSession

from interlock.adapters.mcp.under_way import ChangesUnderWay

_ASK_S = 5.0


class TaskLost(Exception):
    """A task was begun, and what became of it is not known: an error about the task is no answer of the call."""


async def call_as_task(
    session: ClientSession, asked: types.CallToolRequestParams, timeout_s: float, under_way: ChangesUnderWay
) -> types.CallToolResult:
    """Begin it, and wait until it has ended: `tasks/result` answers no sooner. One whose time is up is cancelled."""
    until = asyncio.get_running_loop().time() + timeout_s
    beginning = asyncio.create_task(_begin(session, asked, timeout_s))
    try:
        # Who waits may give up before the server says which task it has begun: only then can it be cancelled.
        task = await asyncio.shield(beginning)
    except asyncio.CancelledError:
        under_way.end_with(asyncio.create_task(_cancel_when_begun(session, beginning), name="cancel an MCP task"))
        raise
    left_s = max(0.001, until - asyncio.get_running_loop().time())
    try:
        return await session.send_request(
            types.GetTaskPayloadRequest(params=types.GetTaskPayloadRequestParams(task_id=task)),
            types.CallToolResult,
            request_read_timeout_seconds=left_s,
        )
    except asyncio.CancelledError:
        await _cancel(session, task)
        raise
    except MCPError as error:
        if await _status(session, task) == "failed":
            raise  # the error of the call itself, which is what `tasks/result` answers then
        await _cancel(session, task)
        raise TaskLost(f"nothing is known of how that ended: {error.message}") from None


async def _begin(session: ClientSession, asked: types.CallToolRequestParams, timeout_s: float) -> str:
    """The task that the server has begun; it has some time more to say so than anybody waits for what it does."""
    params = asked.model_copy(update={"task": types.TaskMetadata(ttl=int(timeout_s * 1000))})
    said = params.model_dump(by_alias=True, mode="json", exclude_none=True)
    # The session would hold the answer against what a call answers that is no task: the SDK has their types alone.
    raw = await session._dispatcher.send_raw_request("tools/call", said, {"timeout": timeout_s + _ASK_S})
    return types.CreateTaskResult.model_validate(raw, by_name=False).task.task_id


async def _cancel_when_begun(session: ClientSession, beginning: asyncio.Task[str]) -> None:
    """Cancel a task as soon as it is known which one it is."""
    with contextlib.suppress(MCPError, ValueError, OSError, RuntimeError):  # as where a connection has broken off
        await _cancel(session, await beginning)


async def _status(session: ClientSession, task: str) -> str:
    """How a task stands; empty where the server does not say."""
    asked = types.GetTaskRequest(params=types.GetTaskRequestParams(task_id=task))
    try:
        found = await session.send_request(asked, types.GetTaskResult, request_read_timeout_seconds=_ASK_S)
    except (MCPError, ValueError):
        return ""
    return str(found.status)


async def _cancel(session: ClientSession, task: str) -> None:
    with contextlib.suppress(MCPError, ValueError):
        await session.send_request(
            types.CancelTaskRequest(params=types.CancelTaskRequestParams(task_id=task)),
            types.CancelTaskResult,
            request_read_timeout_seconds=_ASK_S,
        )
