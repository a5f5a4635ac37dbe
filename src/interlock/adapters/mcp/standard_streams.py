"""The gateway's own standard input and output, for a client that has started it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import AsyncIterator
from typing import Any, TextIO, cast

import anyio
from mcp.server.stdio import stdio_server

from interlock.adapters.mcp.lines import LineReads, LineWrites


class _Input(asyncio.Protocol):
    def __init__(self, reads: LineReads) -> None:
        self._reads = reads

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._reads.follow(cast(asyncio.ReadTransport, transport))

    def data_received(self, data: bytes) -> None:
        self._reads.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._reads.feed_end()


@contextlib.asynccontextmanager
async def open_standard_streams(out: TextIO | None) -> AsyncIterator[tuple[Any, Any]]:
    """Both, as streams of messages. While they are open nobody else reads standard input."""
    if not (_is_pipe(sys.stdin) and _is_pipe(out or sys.stdout)) or _is_one(sys.stdin, out or sys.stdout):
        async with stdio_server(stdout=None if out is None else anyio.wrap_file(out)) as streams:
            yield streams
        return
    reads, writes = LineReads("the client"), LineWrites()
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        incoming, outgoing = _own_input(stack), _own_output(out or sys.stdout, stack)
        reader, _ = await loop.connect_read_pipe(lambda: _Input(reads), incoming)
        writer, _ = await loop.connect_write_pipe(lambda: writes, outgoing)
        writes.follow(writer)
        try:
            yield reads, writes
        finally:
            reader.close()
            writer.close()


def _is_pipe(stream: Any) -> bool:
    if sys.platform == "win32":
        return False
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _is_one(one: Any, other: Any) -> bool:
    """Whether both are one socket: asyncio's pipes take what comes in on it for its end."""
    return os.path.sameopenfile(one.fileno(), other.fileno())


def _own_input(stack: contextlib.ExitStack) -> Any:
    """What the client writes; for whatever else runs here, standard input is empty meanwhile."""
    fd = sys.stdin.fileno()
    own = os.dup(fd)
    stack.callback(os.close, own)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), fd)
    stack.callback(os.dup2, own, fd)
    stack.callback(os.set_blocking, own, True)
    return os.fdopen(os.dup(own), "rb", buffering=0)


def _own_output(out: TextIO, stack: contextlib.ExitStack) -> Any:
    out.flush()
    own = os.dup(out.fileno())
    stack.callback(os.close, own)
    stack.callback(os.set_blocking, own, True)  # it is shared with whoever has started us
    return os.fdopen(os.dup(own), "wb", buffering=0)
