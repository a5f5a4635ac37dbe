"""A process that counts effects in a durable store of its own: whatever Interlock says, this is what happened."""

from __future__ import annotations

import socket
import socketserver
import sqlite3
import subprocess
import sys
from pathlib import Path


class Counter:
    """The other side of the wire."""

    def __init__(self, port: int) -> None:
        self.port = port

    def add(self, key: str) -> None:
        """An effect: durable when this returns."""
        self._ask(f"add {key}")

    def count(self, key: str) -> int:
        """How often an effect landed."""
        return int(self._ask(f"count {key}"))

    def put(self, key: str, body: str) -> None:
        """A write: counted, and its state kept, in one transaction."""
        self._ask(f"put {key} {body}")

    def set(self, key: str, body: str) -> None:
        """Put a state back ('-': none): not counted."""
        self._ask(f"set {key} {body}")

    def get(self, key: str) -> str:
        """The state of a key, '-' if there is none."""
        return self._ask(f"get {key}")

    def _ask(self, line: str) -> str:
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(f"{line}\n".encode())
            return connection.makefile().readline().strip()


def start(folder: Path) -> tuple[subprocess.Popen[str], Counter]:
    """The process, and a client for it."""
    command = [sys.executable, __file__, str(folder / "effects.db")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Counter(int(process.stdout.readline()))


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        word, _, key = self.rfile.readline().decode().strip().partition(" ")
        store = sqlite3.connect(sys.argv[1], timeout=30)
        store.execute("PRAGMA synchronous = FULL")
        key, _, body = key.partition(" ")
        if word == "add" or word == "put" or word == "set":
            with store:
                if word != "set":
                    store.execute("INSERT INTO effects VALUES (?)", (key,))
                if word != "add":
                    store.execute("INSERT OR REPLACE INTO states VALUES (?, ?)", (key, body))
            self.wfile.write(b"ok\n")
        elif word == "get":
            row = store.execute("SELECT body FROM states WHERE key = ?", (key,)).fetchone()
            self.wfile.write(f"{row[0] if row else '-'}\n".encode())
        else:
            (found,) = store.execute("SELECT count(*) FROM effects WHERE key = ?", (key,)).fetchone()
            self.wfile.write(f"{found}\n".encode())
        store.close()


def _serve() -> None:
    store = sqlite3.connect(sys.argv[1])
    store.execute("CREATE TABLE IF NOT EXISTS effects (key TEXT)")
    store.execute("CREATE TABLE IF NOT EXISTS states (key TEXT PRIMARY KEY, body TEXT)")
    store.commit()
    store.close()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    _serve()
