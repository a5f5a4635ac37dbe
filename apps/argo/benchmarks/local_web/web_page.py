"""One page of the local web, and the text that a reader would take from its bytes."""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from types import MappingProxyType
from urllib.parse import urlsplit

from web_pdf import pdf_text

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
SKIPPED = frozenset({"script", "style", "template"})
VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])
BLOCKS = frozenset(
    [
        "p",
        "div",
        "li",
        "td",
        "th",
        "tr",
        "h1",
        "h2",
        "h3",
        "h4",
        "dt",
        "dd",
        "title",
        "section",
        "article",
        "nav",
        "footer",
        "header",
        "table",
        "br",
        "caption",
    ]
)


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a server would answer for one address; nothing here decides what a reader makes of it."""

    url: str
    status: int = 200
    content_type: str = "text/html; charset=utf-8"
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    delay_s: float = 0.0
    redirect_to: str | None = None


class _Reader(HTMLParser):
    """Collects the title and all the text, hidden or not: the search index is as gullible as a real one."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = ""
        self.skipped = 0
        self.in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in SKIPPED:
            self.skipped += 1
        if tag in BLOCKS:
            self.parts.append("\n")
        self.in_title = self.in_title or tag == "title"

    def handle_endtag(self, tag: str) -> None:
        if tag in SKIPPED and self.skipped:
            self.skipped -= 1
        if tag in BLOCKS:
            self.parts.append("\n")
        if tag == "title":
            self.in_title = False

    def handle_data(self, data: str) -> None:
        if self.in_title:
            self.title += data
        elif not self.skipped:
            self.parts.append(data)


def one_line(text: str) -> str:
    """Joins all white space, so that a sentence is found however the page broke it."""
    return re.sub(r"\s+", " ", text).strip()


def _lines(text: str) -> str:
    """One line for each block of a text, without the empty ones."""
    return "\n".join(line for line in map(one_line, text.split("\n")) if line)


def html_parts(markup: str) -> tuple[str, str]:
    """The title and the text of a piece of HTML, well-formed or not, one line for each block."""
    reader = _Reader()
    reader.feed(markup.replace("\n", " "))
    reader.close()
    return one_line(reader.title), _lines("".join(reader.parts))


def _is_markup(text: str) -> bool:
    return "<html" in text[:2000].lower() or "<rss" in text[:2000]


def page_parts(page: Page) -> tuple[str, str]:
    """The title and the text of a page in lines. The bytes decide, since some pages lie about their type."""
    if page.body.startswith(b"%PDF"):
        lines = pdf_text(page.body)
        return one_line(lines.split("\n\n")[0]), "\n".join(map(one_line, lines.split("\n\n")))
    text = page.body.decode("utf-8", errors="replace")
    if _is_markup(text):
        return html_parts(text)
    return (text.split("\n", 1)[0].lstrip("# "), _lines(text))


def listed_parts(page: Page) -> tuple[str, str]:
    """The title and the text that a search engine keeps: what stands in the main part, if there is one."""
    title, text = page_parts(page)
    main = re.search(rb"<main>.*</main>", page.body, re.DOTALL)
    return title, html_parts(main[0].decode("utf-8", errors="replace"))[1] if main else text


def page_text(page: Page) -> str:
    """The text alone, in one line."""
    return one_line(page_parts(page)[1])


def registrable_domain(url: str) -> str:
    """The part of the host that somebody has to register; here always the last two labels."""
    host = urlsplit(url).hostname or ""
    return ".".join(host.split(".")[-2:])


def escape(text: str) -> str:
    """Text as it stands in HTML and in the double-quoted values of attributes."""
    return html.escape(text, quote=True)
