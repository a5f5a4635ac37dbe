"""Both ends of a real HTTP exchange: a server process that counts what it did, and a proxy that cuts at a byte."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

Side = Literal["request", "answer"]
_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER of no seconds: the other side hears a reset, not an end
CHANGES = (b"POST ", b"PUT ", b"DELETE ")


class CountingServer:
    """A process of its own: whatever Interlock says, its file holds what was done."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "effects"
        self.file.touch()
        command = [sys.executable, __file__, str(self.file)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def count(self, name: str) -> int:
        """How often it was done."""
        return self.file.read_text().splitlines().count(name)

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class CuttingProxy:
    """Passes connections on; of an exchange that changes something, so many bytes of one side and then no more."""

    def __init__(self, port: int) -> None:
        self.seen: dict[Side, int] = {"request": 0, "answer": 0}
        """The bytes of the last exchange that changes something."""
        self.url = ""
        self._port = port
        self._cut: tuple[Side, int] | None = None
        self._times = 0
        self._reset = False

    def cut(self, side: Side, after: int, *, times: int = 1_000, reset: bool = False) -> None:
        """Cut so many exchanges after so many bytes, with an end of the stream or with a reset."""
        self._cut, self._times, self._reset = (side, after), times, reset

    def heal(self) -> None:
        """Pass everything on again."""
        self._cut = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[CuttingProxy]:
        """Listen on a port of its own."""
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()

    async def _pass_on(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        server, out = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            while head := await _read_head(client):
                whole = head + await client.readexactly(_length(head))
                if not await self._exchange(whole, server, out, back):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client went away
        finally:
            if self._reset and self._cut is not None:
                back.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            out.close()
            back.close()

    async def _exchange(
        self, request: bytes, server: asyncio.StreamReader, out: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> bool:
        """One request and its answer; whether the connection is still whole."""
        changes = request.startswith(CHANGES)
        side, after = self._cut if changes and self._cut is not None and self._times > 0 else (None, 0)
        self._times -= side is not None
        if side == "request":
            out.write(request[:after])
            out.write_eof()
            await server.read()  # until the server is done with it: what it counts, it has counted
            return False
        out.write(request)
        head = await _read_head(server)
        answer = head + await server.readexactly(_length(head))
        if changes:
            self.seen = {"request": len(request), "answer": len(answer)}
        back.write(answer if side is None else answer[:after])
        await back.drain()
        return side is None


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


def _length(head: bytes) -> int:
    lines = head.lower().split(b"\r\n")
    return next((int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")), 0)


class _Handler(BaseHTTPRequestHandler):
    """Pays, and keeps documents; both only once the whole request is there."""

    protocol_version = "HTTP/1.1"
    keyed: dict[str, dict[str, Any]] = {}
    documents: dict[str, tuple[int, Any]] = {}

    def do_POST(self) -> None:
        """A payment: once for each idempotency key, if there is one."""
        body = self._body()
        if body is None:
            return
        key = self.headers.get("Idempotency-Key")
        if key is None or key not in self.keyed:
            _note(body["order"])
            self.keyed[key or ""] = {"paid": body["order"]}
        self._answer(200, {"paid": body["order"]})

    def do_PUT(self) -> None:
        """A document, at the version that it is asked for at."""
        body, name = self._body(), self.path.rpartition("/")[2]
        if body is None:
            return
        version, _old = self.documents.get(name, (0, None))
        wanted = self.headers.get("If-Match")
        if (wanted is not None and wanted != f'"{version}"') or (self.headers.get("If-None-Match") and version):
            self._answer(412, {"now": version})
            return
        _note(name)
        self.documents[name] = (version + 1, body)
        self._answer(200, body, version + 1)

    def do_GET(self) -> None:
        """A document with its version."""
        version, body = self.documents.get(self.path.rpartition("/")[2], (0, None))
        self._answer(200 if version else 404, body, version)

    def _body(self) -> Any:
        length = int(self.headers.get("Content-Length", 0))
        text = self.rfile.read(length)
        return json.loads(text) if len(text) == length else None  # else it was cut: nothing is done

    def _answer(self, status: int, body: Any, version: int = 0) -> None:
        text = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            if version:
                self.send_header("ETag", f'"{version}"')
            self.end_headers()
            self.wfile.write(text)
        except ConnectionError:
            pass  # whoever asked is gone

    def log_message(self, format: str, *_arguments: Any) -> None:
        """Silent."""


def _note(name: str) -> None:
    with open(sys.argv[1], "a") as out:
        out.write(f"{name}\n")


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as running:
        print(running.server_address[1], flush=True)
        running.serve_forever()
