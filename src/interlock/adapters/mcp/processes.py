"""A server that is started here, and spoken to through its standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any, TextIO, cast

import anyio
from mcp import StdioServerParameters
from mcp.client.stdio import get_default_environment, stdio_client

from interlock.adapters.mcp.answered_errors import HeardReads
from interlock.adapters.mcp.lines import LineReads, LineWrites

_LEAVES_S, _ENDS_S = 2.0, 2.0
"""So long it may take to end once its input has, and then once it was told to."""
_LAST_WORDS_S = 0.5


class _ServerProcess(asyncio.SubprocessProtocol):
    """What asyncio tells of it."""

    def __init__(self, reads: LineReads, writes: LineWrites) -> None:
        self._reads, self._writes = reads, writes
        self.gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        process = cast(asyncio.SubprocessTransport, transport)
        self._writes.follow(cast(asyncio.WriteTransport, process.get_pipe_transport(0)))
        self._reads.follow(cast(asyncio.ReadTransport, process.get_pipe_transport(1)))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._reads.feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self._writes.connection_lost(exc)
            self._end_soon()
        else:
            self._reads.feed_end()

    def _end_soon(self) -> None:
        """What it has written already is read; a child that holds its pipe keeps nobody waiting."""
        asyncio.get_running_loop().call_later(_LAST_WORDS_S, self._reads.feed_end)

    def pause_writing(self) -> None:
        self._writes.pause_writing()

    def resume_writing(self) -> None:
        self._writes.resume_writing()

    def process_exited(self) -> None:
        self.gone.set()
        self._end_soon()


@contextlib.asynccontextmanager
async def run_server(
    started: StdioServerParameters, errors: TextIO, reads: LineReads
) -> AsyncIterator[tuple[Any, Any]]:
    """Start it, and end it and all that it has started with the block."""
    if sys.platform == "win32":  # its pipes and groups are others: the SDK knows them
        async with stdio_client(started, errlog=errors) as (read, write):
            yield HeardReads(read, reads.errors), write
        return
    writes = LineWrites()
    transport, protocol = await asyncio.get_running_loop().subprocess_exec(
        lambda: _ServerProcess(reads, writes),
        started.command,
        *started.args,
        env=get_default_environment() | (started.env or {}),
        cwd=started.cwd,
        stderr=errors,
        start_new_session=True,
    )
    try:
        yield reads, writes
    finally:
        with anyio.CancelScope(shield=True):
            await reads.aclose()
            await writes.aclose()
            await _end(transport, protocol.gone)


async def _end(process: asyncio.SubprocessTransport, gone: asyncio.Event) -> None:
    """First it may leave by itself, then it is told to, then it is ended; its children with it."""
    group = process.get_pid()
    for number, wait_s in ((None, _LEAVES_S), (signal.SIGTERM, _ENDS_S), (signal.SIGKILL, _ENDS_S)):
        if number is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(gone.wait(), wait_s)
            break
    with contextlib.suppress(ProcessLookupError, PermissionError):  # what it has started and left behind
        os.killpg(group, signal.SIGKILL)
    with contextlib.suppress(PermissionError):  # of a child that runs as somebody else
        process.close()
