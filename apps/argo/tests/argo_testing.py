"""What tests of Argo share: pages that are served on loopback, and an open Argo."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from interlock import Outcome, Runtime
from interlock_argo.app import build_app
from interlock_argo.memory.home import MemoryHome
from interlock_argo.settings import Settings

ARTICLE = (
    "<html><head><title>{title}</title></head><body><nav>Home About</nav><article><h1>{title}</h1>"
    "<p>{text}</p><p>This page is part of a small collection about bridges and is kept for everybody who likes to"
    " read about them at length, in the evening or on a train.</p></article></body></html>"
)
PAGES = {
    "/bridge": ("Tamar Bridge", "The Tamar Bridge opened in October 1961 and is 642 metres long."),
    "/ferry": ("Torpoint Ferry", "The Torpoint Ferry crosses the Tamar every ten minutes on weekdays."),
    "/tunnel": ("Old tunnel", "The old tunnel under the river was closed in 1998 after a flood."),
    "/private/diary": ("Diary", "Nobody but its owner is to read this diary about bridges."),
}


class LocalWeb:
    """A server with a few pages, and what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                outer.answer(self)

            def log_message(self, *_parts: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        """One request."""
        parts = urlsplit(to.path)
        if parts.path == "/robots.txt":
            _send(to, 200, "text/plain", b"User-agent: *\nDisallow: /private/\n")
        elif parts.path == "/search":
            self._search(to, parse_qs(parts.query)["q"][0])
        elif parts.path in PAGES:
            title, text = PAGES[parts.path]
            _send(to, 200, "text/html; charset=utf-8", ARTICLE.format(title=title, text=text).encode())
        elif parts.path == "/moved":
            _send(to, 302, "text/plain", b"", location="/bridge")
        elif parts.path == "/inside":
            _send(to, 302, "text/plain", b"", location="http://169.254.169.254/latest/meta-data")
        elif parts.path == "/round":
            _send(to, 302, "text/plain", b"", location="/round")
        elif parts.path == "/huge":
            _send(to, 200, "text/plain", b"x" * 5_000_000)
        elif parts.path == "/picture":
            _send(to, 200, "image/png", b"\x89PNG")
        else:
            _send(to, 404, "text/plain", b"nothing here")

    def _search(self, to: BaseHTTPRequestHandler, query: str) -> None:
        words = query.casefold().split()
        found = [
            {"title": title, "url": f"{self.address}{path}", "content": text}
            for path, (title, text) in PAGES.items()
            if any(word in f"{title} {text}".casefold() for word in words if len(word) > 3)
        ]
        _send(to, 200, "application/json", json.dumps({"query": query, "results": found}).encode())


def _send(to: BaseHTTPRequestHandler, status: int, kind: str, body: bytes, **headers: str) -> None:
    to.send_response(status)
    to.send_header("content-type", kind)
    to.send_header("content-length", str(len(body)))
    for name, value in headers.items():
        to.send_header(name, value)
    to.end_headers()
    to.wfile.write(body)


@contextmanager
def serve_web() -> Iterator[LocalWeb]:
    """A small web for as long as the block runs."""
    web = LocalWeb()
    thread = threading.Thread(target=web.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        web.server.shutdown()
        web.server.server_close()
        thread.join()


class OpenArgo:
    """Argo with a runtime over it, as an async context manager."""

    def __init__(self, settings: Settings, store: str = "memory://") -> None:
        self.home = MemoryHome(settings)
        self.app = build_app(settings, self.home)
        assert self.app.policy is not None
        self.runtime = Runtime.open(store, policy=self.app.policy, tools=self.app.tools)
        self._made = 0

    async def call(self, tool: str, arguments: dict[str, Any], question: str = "", actor: str = "argo") -> Outcome:
        """One call of a tool, for a question."""
        self._made += 1
        asked: Any = {"question": question} if question else {}
        return await self.runtime.call(tool, arguments, actor=actor, call_id=f"call-{self._made}", **asked)

    async def __aenter__(self) -> OpenArgo:
        await self.runtime.__aenter__()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.runtime.close()
        await self.home.close()
