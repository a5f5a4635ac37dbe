"""The tools that look outside: searching, reading a page, reading a file."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from pydantic import BaseModel

from interlock import Result, Tool, tool
from interlock.errors import NotAllowed, Permanent
from interlock.tools.paths import open_within
from interlock_argo.memory.home import MemoryHome
from interlock_argo.reading.pages import Page, Pages
from interlock_argo.reading.readable import Readable, read_open_file
from interlock_argo.reading.search import Search
from interlock_argo.settings import Settings

_SHOWN = 4_000
_URL = re.compile(r"https?://[^\s<>\"']+")


class SearchRow(BaseModel):
    """One result of a search: where to read on."""

    title: str
    text: str
    url: str
    file: str


class PageText(BaseModel):
    """A page as it was read; what is not shown is fetched by the ids of its chunks."""

    url: str
    title: str
    text: str
    chunk_ids: list[str]
    characters: int


class FileText(BaseModel):
    """A file as it was read."""

    path: str
    title: str
    text: str
    characters: int


def build_reading_tools(settings: Settings, home: MemoryHome, search: Search | None, pages: Pages) -> tuple[Tool, ...]:
    """The tools, as the settings say."""
    return _search_tool(search), _page_tool(home, pages), _file_tool(settings.security.read_file_roots)


def _search_tool(search: Search | None) -> Tool:
    @tool(effect="read", trust="untrusted", known_values={"query": lambda text: (text,)})
    async def web_search(query: str, max_results: int = 5) -> Result[list[SearchRow]]:
        """Pages about something: titles and snippets, to be read by web_access (or read_file)."""
        if search is None:
            raise Permanent("no search is set up: set searxng or folder under [web] of argo.toml")
        found = await search.find(query, max_results)
        if not found:
            return Result(no_data=True, summary="nothing was found")
        rows = [SearchRow(title=one.title, text=one.snippet, url=one.url, file=one.file) for one in found]
        return Result(value=rows, sources=tuple(row.url or row.file for row in rows))

    return web_search


def _page_tool(home: MemoryHome, pages: Pages) -> Tool:
    @tool(
        effect="read",
        trust="untrusted",
        egress=pages.egress,
        timeout_s=60,
        known_values={"url": lambda text: tuple(_URL.findall(text)) or (text,)},
    )
    async def web_access(url: str) -> Result[PageText]:
        """The text of a page or PDF on the web; it is kept for some days, so that it can be found again."""
        page: Page = await pages.read(url)
        landed = await home.keep_page(page.url, page.title, page.text)
        value = PageText(
            url=page.url,
            title=page.title,
            text=page.text[:_SHOWN],
            chunk_ids=[f"{landed.document}.{place}" for place in range(landed.chunks)],
            characters=len(page.text),
        )
        return Result(value=value, sources=(page.url,))

    return web_access


def _file_tool(roots: tuple[str, ...]) -> Tool:
    @tool(effect="read", trust="untrusted")
    async def read_file(path: str) -> Result[FileText]:
        """The text of a file (text, HTML, PDF) in a folder that may be read."""
        if not roots:
            raise NotAllowed("no folder may be read: set read_file_roots under [security] of argo.toml")
        found = await asyncio.to_thread(_read, path, roots)
        title = found.title or Path(path).name
        value = FileText(path=path, title=title, text=found.text[:_SHOWN], characters=len(found.text))
        return Result(value=value, sources=(path,))

    return read_file


def _read(path: str, roots: tuple[str, ...]) -> Readable:
    with open_within(path, roots, "rb") as file:
        return read_open_file(file, path)
