"""Where Argo searches: a SearXNG server, or a folder of files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import httpx
import msgspec

from interlock.errors import ConfigError, Permanent
from interlock.tools.egress import Egress, raise_for_status
from interlock_argo.reading.readable import TEXT_FILES, title_of
from interlock_argo.settings import Settings

_SNIPPET = 300
_MOST_FILES = 5_000
_LONGEST_FILE = 2_000_000
_EVERYWHERE = ("0.0.0.0/0", "::/0")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One result of a search."""

    title: str
    snippet: str
    url: str = ""
    """To be read by web_access."""
    file: str = ""
    """To be read by read_file."""


class Search(Protocol):
    """Somewhere to search."""

    async def find(self, query: str, most: int) -> list[Found]:
        """What fits best, best first."""
        ...


class SearxngSearch:
    """The JSON API of a SearXNG server (its setting `search.formats` has to have `json`)."""

    def __init__(self, address: str, timeout_s: float) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"[web] searxng is the address of a server, such as http://127.0.0.1:8888, not {address!r}"
            )
        self._address, self._timeout_s = address.rstrip("/"), timeout_s
        # Whoever set it up has named it, so it may stand in any network; nothing else is reached.
        self._egress = Egress(hosts=(parts.hostname,), schemes=(parts.scheme,), networks=_EVERYWHERE)

    async def find(self, query: str, most: int) -> list[Found]:
        async with self._egress.client(timeout=self._timeout_s) as client:
            answer = await client.get(f"{self._address}/search", params={"q": query, "format": "json"})
        rows = _rows_of(raise_for_status(answer))
        found = [_read_row(row) for row in rows if isinstance(row, dict)]
        return [one for one in found if one.url][:most]


def _rows_of(answer: httpx.Response) -> list[object]:
    try:
        rows = answer.json()["results"]
    except (ValueError, KeyError, TypeError):
        raise Permanent(
            "the search server gave no JSON with results; SearXNG needs `formats: [html, json]` in its settings"
        ) from None
    return rows if isinstance(rows, list) else []


def _read_row(row: dict[str, object]) -> Found:
    title, snippet, url = (str(row.get(name) or "") for name in ("title", "content", "url"))
    return Found(title=title[:_SNIPPET], snippet=snippet[:_SNIPPET], url=url)


class FolderSearch:
    """Files of a folder, by how many words of the query they have; it needs no network."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        if not self._folder.is_dir():
            raise ConfigError(f"[web] folder: {folder} is no folder")

    async def find(self, query: str, most: int) -> list[Found]:
        return await asyncio.to_thread(self._find, query, most)

    def _find(self, query: str, most: int) -> list[Found]:
        words = {word for word in query.casefold().split() if len(word) > 2}
        ranked: list[tuple[float, str, Found]] = []
        files = sorted(path for path in self._folder.rglob("*") if path.suffix.lower() in TEXT_FILES and path.is_file())
        for path in files[:_MOST_FILES]:
            if path.stat().st_size > _LONGEST_FILE:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            folded = text.casefold()
            there = [word for word in words if word in folded]
            if there:
                place = max(0, folded.find(there[0]) - _SNIPPET // 3)
                snippet = " ".join(text[place : place + _SNIPPET].split())
                found = Found(title=title_of(text) or path.name, snippet=snippet, file=str(path))
                ranked.append((-len(there) / len(words), str(path), found))
        return [found for _score, _path, found in sorted(ranked, key=lambda item: item[:2])[:most]]


def open_search(settings: Settings) -> Search | None:
    """As the settings say; None if nothing is set up."""
    web = settings.web
    if web.searxng:
        return SearxngSearch(web.searxng, web.timeout_s)
    return FolderSearch(web.folder) if web.folder else None
