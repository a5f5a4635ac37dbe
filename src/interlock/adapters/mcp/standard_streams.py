"""The gateway's own standard input and output, for a client that has started it, or a person at a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TextIO, cast

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from interlock.adapters.mcp.lines import LineReads, LineWrites
from interlock.errors import ConfigError

_AT_ONCE = 65_536
_WAITING_BYTES = 1024 * 1024
"""So much may wait to be written before nobody writes on."""
_LAST_WORDS_S = 2.0


class _Input(asyncio.Protocol):
    def __init__(self, reads: LineReads) -> None:
        self._reads = reads

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._reads.follow(cast(asyncio.ReadTransport, transport))

    def data_received(self, data: bytes) -> None:
        self._reads.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._reads.feed_end()


class _ThreadInput:
    """What is read by a thread: a terminal, a file. Nothing can end a read that waits, so nobody waits for it."""

    def __init__(self, source: Callable[[], bytes], reads: LineReads) -> None:
        self._source, self._reads, self._loop = source, reads, asyncio.get_running_loop()
        self._may = threading.Event()
        self._may.set()
        reads.follow(self)
        threading.Thread(target=self._read, name="mcp input", daemon=True).start()

    def pause_reading(self) -> None:
        self._may.clear()

    def resume_reading(self) -> None:
        self._may.set()

    def _read(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            while self._may.wait():
                try:
                    data = self._source()
                except (OSError, ValueError):
                    data = b""
                if not data:
                    self._loop.call_soon_threadsafe(self._reads.feed_end)
                    return
                self._loop.call_soon_threadsafe(self._reads.feed, data)


class _ThreadOutput:
    """What is written by a thread, one thing after the other."""

    def __init__(self, target: Callable[[bytes], None], writes: LineWrites) -> None:
        self._target, self._writes, self._loop = target, writes, asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._waiting, self._closing = 0, False
        self._thread = threading.Thread(target=self._write, name="mcp output", daemon=True)
        self._thread.start()
        writes.follow(self)

    def write(self, data: bytes) -> None:
        self._waiting += len(data)
        if self._waiting > _WAITING_BYTES:
            self._writes.pause_writing()
        self._queue.put(data)

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._queue.put(b"")

    def _count_down(self, size: int) -> None:
        self._waiting -= size
        if self._waiting <= _WAITING_BYTES:
            self._writes.resume_writing()

    def _write(self) -> None:
        error: Exception | None = None
        while data := self._queue.get():
            try:
                self._target(data)
            except (OSError, ValueError) as caught:
                error = caught
                break
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._count_down, len(data))
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._writes.connection_lost, error)


@contextlib.asynccontextmanager
async def open_standard_streams(out: TextIO | None) -> AsyncIterator[tuple[LineReads, LineWrites]]:
    """Both, as streams of messages. While they are open nobody else reads standard input."""
    writes = LineWrites()
    reads = LineReads("the client", refuse=partial(_refuse, writes))
    given, taken = sys.stdin, out or sys.stdout
    if given is None or taken is None:
        raise ConfigError("there is no standard input or output to serve MCP over; serve it with --http instead")
    source, target = _descriptor(given), _descriptor(taken)
    with contextlib.ExitStack() as stack:
        if source is None or target is None:  # streams that somebody else has put in their place
            _ThreadInput(lambda: given.readline().encode(), reads)
            _ThreadOutput(partial(_write_text, taken), writes)
        else:
            await _take_over((source, target), taken, (reads, writes), stack)
        try:
            yield reads, writes
        finally:
            await _last_words(writes)


async def _take_over(
    found: tuple[int, int], taken: TextIO, streams: tuple[LineReads, LineWrites], stack: contextlib.ExitStack
) -> None:
    """Read and write the descriptors themselves, on the loop where that can be done."""
    (source, target), (reads, writes) = found, streams
    # asyncio takes what comes in on a socket that is both for its end.
    are_pipes = _is_pipe(source) and _is_pipe(target) and not os.path.sameopenfile(source, target)
    incoming, outgoing = _own_input(source, stack), _own_output(taken)
    for fd in (incoming, outgoing) if sys.platform != "win32" else ():
        # Shared with whoever has started us, who finds them as they were.
        stack.callback(os.set_blocking, fd, os.get_blocking(fd))
        os.set_blocking(fd, True)
    if are_pipes:
        await _connect_pipes((incoming, outgoing), reads, writes, stack)
    else:
        _ThreadInput(partial(os.read, incoming, _AT_ONCE), reads)
        _ThreadOutput(partial(_write_all, outgoing), writes)


async def _refuse(writes: LineWrites, line: bytes) -> None:
    answer = answer_to_damaged(line)
    if answer is not None:
        with contextlib.suppress(anyio.ClosedResourceError):
            await writes.send(SessionMessage(answer))


async def _last_words(writes: LineWrites) -> None:
    """What was answered goes out, if anybody reads it soon."""
    with anyio.CancelScope(shield=True), contextlib.suppress(TimeoutError):
        await writes.aclose()
        await asyncio.wait_for(writes.ended.wait(), _LAST_WORDS_S)


async def _connect_pipes(
    ours: tuple[int, int], reads: LineReads, writes: LineWrites, stack: contextlib.ExitStack
) -> None:
    loop, (incoming, outgoing) = asyncio.get_running_loop(), ours
    reader, _ = await loop.connect_read_pipe(lambda: _Input(reads), os.fdopen(os.dup(incoming), "rb", 0))
    stack.callback(reader.close)
    writer, _ = await loop.connect_write_pipe(lambda: writes, os.fdopen(os.dup(outgoing), "wb", 0))
    stack.callback(writer.close)
    writes.follow(writer)


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _write_text(stream: TextIO, data: bytes) -> None:
    stream.write(data.decode())
    stream.flush()


def answer_to_damaged(line: bytes) -> types.JSONRPCError | None:
    """What JSON-RPC says to a line that is no message: that it cannot be read, or that it is no request; nothing to
    what is an answer, whose id is that of a question of ours."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        problem = types.ErrorData(code=types.PARSE_ERROR, message="this line is no JSON")
        return types.JSONRPCError(jsonrpc="2.0", id=None, error=problem)
    if isinstance(said, dict) and "method" not in said and ("result" in said or "error" in said):
        return None
    number = said.get("id") if isinstance(said, dict) and isinstance(said.get("method"), str) else None
    problem = types.ErrorData(code=types.INVALID_REQUEST, message="this is no message of JSON-RPC 2.0")
    is_number = isinstance(number, int) and not isinstance(number, bool)
    known = number if is_number or (isinstance(number, str) and number.isprintable()) else None
    return types.JSONRPCError(jsonrpc="2.0", id=known, error=problem)


def _descriptor(stream: TextIO) -> int | None:
    try:
        return int(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return None


def _is_pipe(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def _own_input(fd: int, stack: contextlib.ExitStack) -> int:
    """What the client writes; for whatever else runs here, standard input is empty meanwhile.

    It is not closed, nor is the output: a thread may wait for it still, and must not read or write what is opened under
    its number later.
    """
    own = os.dup(fd)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), fd)
    stack.callback(os.dup2, own, fd)
    return own


def _own_output(out: TextIO) -> int:
    out.flush()
    return os.dup(out.fileno())
