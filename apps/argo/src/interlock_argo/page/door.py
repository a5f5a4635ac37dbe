"""Who may come in: a browser of this machine that was given the link, and no page of another site."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENTER = "/enter"
_STATIC = "/static/"
_SAFE = ("GET", "HEAD")
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_NO_LINK = "This page opens by the link that `interlock argo serve` has printed; each link is good for one browser."


class Door:
    """Stands before the page: the host that is asked for, where a form comes from, and the key of the browser."""

    def __init__(self, app: ASGIApp, host: str, say_link: Callable[[str], None]) -> None:
        self._app, self._host, self._say_link = app, host, say_link
        self._cookie = f"argo-{host.rpartition(':')[2]}"  # two pages of one machine are two
        self._code = ""
        self._keys: set[str] = set()

    def open_link(self) -> None:
        """Say a link that lets one browser in."""
        self._code = secrets.token_urlsafe(24)
        self._say_link(f"http://{self._host}{ENTER}?code={self._code}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":  # the server's own beginning and end
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refuse(scope)
        await (refused or self._app)(scope, receive, send_guarded)

    def _refuse(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if headers.get("host") != self._host:  # a name of somebody else's that leads here
            return PlainTextResponse(f"this is http://{self._host}, and answers to no other name", 421)
        if scope["method"] not in _SAFE and headers.get("origin") != f"http://{self._host}":
            return PlainTextResponse(
                f"a form of another site is not taken: the header Origin has to be http://{self._host}", 403
            )
        if scope["path"] == ENTER and scope["method"] == "GET":  # one that only looks (HEAD) does not use it up
            return self._let_in(scope)
        if scope["path"].startswith(_STATIC) or self._has_key(headers):
            return None
        return PlainTextResponse(_NO_LINK, 403)

    def _let_in(self, scope: Scope) -> Response:
        (code,) = parse_qs(scope["query_string"].decode("ascii", "replace")).get("code", [""])[:1]
        if not self._code or not secrets.compare_digest(code.encode(), self._code.encode()):
            return PlainTextResponse(f"That link was used already, or is of another start. {_NO_LINK}", 403)
        key = secrets.token_urlsafe(32)
        self._keys.add(key)
        response = RedirectResponse("/", 303)
        response.set_cookie(self._cookie, key, httponly=True, samesite="strict")
        self.open_link()  # for the next browser: this one is worth nothing any more
        return response

    def _has_key(self, headers: Headers) -> bool:
        return cookie_parser("; ".join(headers.getlist("cookie"))).get(self._cookie) in self._keys
