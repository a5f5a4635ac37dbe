"""A proxy that is put in front of the server and goes wrong on purpose: before the effect, after it, slowly, half way."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

KINDS = ("429", "500 before", "500 after", "drop", "cut", "slow")


class FaultyProxy:
    """Passes requests on; so many of them go wrong in one of these ways."""

    def __init__(self, port: int, share: float, seed: int = 1, slow_s: float = 0.2) -> None:
        self.port = 0
        self.counts: Counter[str] = Counter()
        self._upstream = port
        self._share = share
        self._slow_s = slow_s
        self._chance = random.Random(seed)
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        open_then = dict(self._open)
        for task in open_then:
            task.cancel()
        await asyncio.gather(*open_then, return_exceptions=True)
        # Their sockets are gone when this has been awaited, and not when somebody comes by to collect them.
        await asyncio.gather(*(writer.wait_closed() for writer in open_then.values()), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            while (request := await _message(reader)) is not None:
                if not await self._one(request, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # whoever was connected is gone, or the test is over
        finally:
            writer.close()
            del self._open[task]

    async def _one(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        kind = self._chance.choice(KINDS) if self._chance.random() < self._share else "fine"
        self.counts[kind] += 1
        if kind in ("429", "500 before"):
            writer.write(_answer(429 if kind == "429" else 500))
            await writer.drain()
            return True
        answer = await self._forward(request)
        if kind == "slow":
            await asyncio.sleep(self._slow_s)
        if kind == "drop":
            return False
        if kind == "cut":
            writer.write(answer[: max(40, len(answer) // 2)])
            await writer.drain()
            return False
        writer.write(_answer(500) if kind == "500 after" else answer)
        await writer.drain()
        return True

    async def _forward(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        try:
            writer.write(request)
            await writer.drain()
            return await _message(reader) or _answer(502)
        finally:
            writer.close()


async def _message(reader: asyncio.StreamReader) -> bytes | None:
    """One HTTP message with its body; None at the end of the connection."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = await reader.readline()
        if not line:
            return None
        head += line
    length = next(
        (int(part.partition(b":")[2]) for part in head.split(b"\r\n") if part.lower().startswith(b"content-length:")), 0
    )
    return head + (await reader.readexactly(length) if length else b"")


def _answer(status: int) -> bytes:
    body = b'{"detail": "on purpose"}'
    retry = b"Retry-After: 0\r\n" if status == 429 else b""
    head = b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n" % (
        status,
        retry,
        len(body),
    )
    return head + body
