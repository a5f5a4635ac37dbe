"""Pages of the web: robots.txt is asked, each redirect is looked at before it is followed."""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

import httpx
import msgspec

from interlock.errors import Forbidden, Permanent
from interlock.tools.egress import Egress, Resolve, raise_for_status
from interlock_argo.reading.readable import Readable, read_content
from interlock_argo.settings import Settings

AGENT = "interlock-argo"
_MOST_HOPS = 5
_MOST_HOSTS = 500


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page as it was read."""

    url: str
    """Where it was found in the end."""
    title: str
    text: str


class Pages:
    """Fetches pages; what robots.txt of a host says is kept for as long as this lives."""

    def __init__(self, settings: Settings, *, resolve: Resolve | None = None) -> None:
        security, self._web = settings.security, settings.web
        self.egress = Egress(
            resolve=resolve,
            hosts=security.web_allowed_hosts,
            schemes=security.web_allowed_schemes,
            networks=security.web_allowed_networks,
            wire_bytes=self._web.page_bytes,
            body_bytes=4 * self._web.page_bytes,
        )
        self._robots: dict[str, RobotFileParser] = {}

    async def read(self, url: str) -> Page:
        """The page behind an address, with the text that people read on it."""
        headers = {"user-agent": f"{AGENT}/0.1"}
        async with self.egress.client(timeout=self._web.timeout_s, follow_redirects=False, headers=headers) as client:
            answer = await self._follow(client, url)
        kind, address = answer.headers.get("content-type", "text/html"), str(answer.url)
        found: Readable = await asyncio.to_thread(read_content, answer.content, kind, address)
        return Page(url=address, title=found.title or address, text=found.text)

    async def _follow(self, client: httpx.AsyncClient, url: str) -> httpx.Response:
        for _hop in range(_MOST_HOPS + 1):
            await self._ask_robots(client, url)
            answer = await client.get(url)
            if not answer.has_redirect_location:
                return raise_for_status(answer)
            url = urljoin(str(answer.url), answer.headers["location"])
        raise Permanent(f"it leads from page to page more than {_MOST_HOPS} times")

    async def _ask_robots(self, client: httpx.AsyncClient, url: str) -> None:
        if not self._web.robots:
            return
        parts = urlsplit(url)
        host = f"{parts.scheme}://{parts.netloc}"
        rules = self._robots.get(host)
        if rules is None:
            rules = await _read_robots(client, f"{host}/robots.txt")
            if len(self._robots) >= _MOST_HOSTS:
                self._robots.clear()
            self._robots[host] = rules
        if not rules.can_fetch(AGENT, url):
            raise Forbidden(f"robots.txt of {parts.hostname} does not allow to read {parts.path or '/'}")


async def _read_robots(client: httpx.AsyncClient, address: str) -> RobotFileParser:
    """What a host allows; one that has no such file allows everything, one that fails to give it nothing (RFC 9309)."""
    rules = RobotFileParser(address)
    answer = await client.get(address, follow_redirects=True)
    said = answer.text.splitlines() if answer.status_code < 400 else []
    rules.parse(["User-agent: *", "Disallow: /"] if answer.status_code >= 500 else said)
    return rules
