"""The local web on loopback: every invented host is this machine, and a search like SearXNG's is beside it."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).parent / "local_web"))

import local_web

_INVENTED = re.compile(r"https?://([\w.-]+\.example)(?::\d+)?(?=[/?#\s\"'<>]|$)")
_LONGEST_DELAY_S = 20.0
_PIECE = 65_536


class LocalWeb:
    """A server of invented pages, and what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._stopped = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            do_POST = do_GET  # noqa: N815 - the name that the base class looks for

            def log_message(self, *_parts: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.search = f"http://127.0.0.1:{self.port}"

    async def resolve(self, host: str, _port: int) -> list[str]:
        """Every invented host is here; no other name is known."""
        return ["127.0.0.1"] if host.endswith(".example") or host == "127.0.0.1" else []

    def here(self, url: str) -> str:
        """An invented address as it can be fetched from this server."""
        return _INVENTED.sub(lambda found: f"http://{found[1]}:{self.port}", url)

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        """One request: of the search, or for a page."""
        host, parts = to.headers.get("host", "").partition(":")[0], urlsplit(to.path)
        if host == "127.0.0.1" and parts.path == "/search":
            query = parse_qs(parts.query).get("q", [""])[0]
            rows = [{**row, "url": self.here(row["url"])} for row in map(dict, local_web.search(query))]
            _send(to, 200, {"content-type": "application/json"}, json.dumps({"query": query, "results": rows}).encode())
            return
        self.asked.append(f"{host}{to.path}")
        pages = local_web.pages()
        found = next((pages[url] for s in ("https", "http") if (url := f"{s}://{host}{to.path}") in pages), None)
        if found is None:
            _send(to, 404, {"content-type": "text/plain"}, b"there is no such page")
            return
        self._stopped.wait(min(found.delay_s, _LONGEST_DELAY_S))
        headers = {"content-type": found.content_type, **dict(found.headers)}
        if found.redirect_to:
            headers["location"] = self.here(found.redirect_to)
        _send(to, found.status, headers, found.body)

    def stop(self) -> None:
        self._stopped.set()
        self.server.shutdown()
        self.server.server_close()


def _send(to: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes) -> None:
    try:
        to.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                to.send_header(name, value)
        to.send_header("content-length", str(len(body)))
        to.end_headers()
        for start in range(0, len(body), _PIECE):
            to.wfile.write(body[start : start + _PIECE])
    except OSError:  # whoever asked has had enough
        time.sleep(0)


@contextmanager
def serve_local_web() -> Iterator[LocalWeb]:
    """The local web for as long as the block runs."""
    web = LocalWeb()
    thread = threading.Thread(target=web.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        web.stop()
        thread.join()
