"""Addresses at which something goes wrong: redirects, refusals, delays, lies about the type, broken and huge pages."""

import gzip
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import urljoin

from web_articles import overview
from web_page import Page, page_text
from web_pdf import write_pdf
from web_topics import DATA, Topic, load_toml, topic_named


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An address, how its page is made when it is asked for, and what a search engine has noted about it.

    Without a title the engine reads the page itself; with an empty one it does not know the page."""

    url: str
    make: Callable[[], Page]
    title: str | None = None
    blurb: str = ""


def _entry(page: Page, title: str | None = None, blurb: str = "") -> Entry:
    return Entry(url=page.url, make=lambda: page, title=title, blurb=blurb)


def _redirects(raw: dict[str, Any]) -> Iterator[Entry]:
    """Each step but the last leads to the next; a step without a host belongs to the host before it."""
    steps: list[str] = raw["steps"]
    here = steps[0]
    for number, step in enumerate(steps[1:]):
        moved = b"<html><head><title>Moved</title></head><body><p>Moved.</p></body></html>"
        headers = MappingProxyType({"Location": step})
        page = Page(url=here, status=raw["status"], body=moved, headers=headers, redirect_to=step)
        yield _entry(page, "" if number else raw["title"], "" if number else raw["blurb"])
        here = urljoin(here, step)


def _maze(raw: dict[str, Any]) -> Iterator[Entry]:
    steps = [f"{raw['host']}{number}" for number in range(raw["hops"] + 1)]
    yield from _redirects({**raw, "steps": steps, "status": 302})
    yield _entry(Page(url=steps[-1], body=b"<html><body><p>You are out of the maze.</p></body></html>"), "")


def _refusal(raw: dict[str, Any]) -> Entry:
    text = f"<html><head><title>{raw['status']}</title></head><body><h1>Error {raw['status']}</h1></body></html>"
    headers = {"Retry-After": raw["retry_after"]} if "retry_after" in raw else {}
    page = Page(url=raw["url"], status=raw["status"], body=text.encode(), headers=MappingProxyType(headers))
    return _entry(page, raw["title"], raw["blurb"])


def _copy(topic: Topic, url: str) -> Page:
    return replace(overview(topic), url=url)


def _robots(raw: dict[str, Any]) -> Iterator[Entry]:
    """The rules of a host, and pages that it would serve although its rules forbid them."""
    rules = Page(url=f"{raw['host']}/robots.txt", content_type="text/plain", body=raw["text"].encode())
    yield _entry(rules, "")
    for slug in raw["topics"]:
        yield _entry(_copy(topic_named(slug), f"{raw['host']}{raw['folder']}{slug}"))


def _retype(kind: str) -> Callable[[Page], Page]:
    return lambda page: replace(page, content_type=kind)


def _change_body(change: Callable[[bytes], bytes]) -> Callable[[Page], Page]:
    return lambda page: replace(page, body=change(page.body))


def _recode(name: str, told: str) -> Callable[[Page], Page]:
    def change(page: Page) -> Page:
        text = page.body.decode().replace('<meta charset="utf-8">', "").replace("<h1>", "<h1>Ærø – ", 1)
        return replace(page, body=text.encode(name, errors="xmlcharrefreplace"), content_type=told)

    return change


def _as_pdf(page: Page) -> Page:
    return replace(page, body=write_pdf("Reprint", (page_text(page),)))


def _deep(body: bytes) -> bytes:
    return body.replace(b"<article>", b"<div>" * 3000 + b"<article>", 1)


def _refresh(body: bytes) -> bytes:
    return body.replace(b"</title>", b'</title><meta http-equiv="refresh" content="0;url=http://192.168.1.1/">', 1)


RECIPES: Mapping[str, Callable[[Page], Page]] = MappingProxyType(
    {
        "pdf_as_html": _as_pdf,
        "html_as_pdf": _retype("application/pdf"),
        "html_as_octets": _retype("application/octet-stream"),
        "html_as_image": _retype("image/png"),
        "no_type": _retype(""),
        "latin_one": _recode("latin-1", "text/html; charset=iso-8859-1"),
        "utf_sixteen": _recode("utf-16", "text/html"),
        "wrong_charset": _recode("latin-1", "text/html; charset=utf-8"),
        "attachment": lambda page: replace(page, headers=MappingProxyType({"Content-Disposition": "attachment"})),
        "unclosed": _change_body(
            lambda body: body.replace(b"</p>", b"").replace(b"</li>", b"").replace(b"</div>", b"")
        ),
        "cut_off": _change_body(lambda body: body[: body.index(b"</article>") - 40]),
        "deep": _change_body(_deep),
        "open_comment": _change_body(lambda body: body.replace(b"<h2>References", b"<!-- <h2>References", 1)),
        "open_script": _change_body(lambda body: body.replace(b"</article>", b"<script>var a = '<p>';</article>", 1)),
        "null_bytes": _change_body(lambda body: body.replace(b" the ", b" the\x00 ")),
        "bad_bytes": _change_body(lambda body: body.replace(b" of ", b" \xff\xfe\xc3of ")),
        "empty": _change_body(lambda body: b""),
        "refresh_inside": _change_body(_refresh),
        "broken_pdf": lambda page: replace(
            _as_pdf(page), body=_as_pdf(page).body[:700], content_type="application/pdf"
        ),
    }
)


def _odd(raw: dict[str, Any]) -> Entry:
    topic = topic_named(raw["topic"])
    page = RECIPES[raw["recipe"]](_copy(topic, raw["url"]))
    return _entry(page, f"{topic.name}, reprint", f"Reprint of the article on {topic.name}, a {topic.kind}.")


def _huge_page(raw: dict[str, Any]) -> Page:
    """Made anew each time it is asked for and kept by nobody."""
    start, end = overview(topic_named(raw["topic"])).body.split(b"</article>")
    line = b"<p>And so the archive goes on, line after line, and nothing further is said in any of them.</p>\n"
    count = raw["megabytes"] * 1_000_000 // len(line)
    if not raw["packed"]:
        return Page(url=raw["url"], body=start + line * count + b"</article>" + end)
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream:
        stream.write(start + line * count + b"</article>" + end)
    return Page(url=raw["url"], body=packed.getvalue(), headers=MappingProxyType({"Content-Encoding": "gzip"}))


def _huge(raw: dict[str, Any]) -> Entry:
    name = topic_named(raw["topic"]).name
    title, blurb = f"Everything on {name}", f"All that was ever written about {name}, in one page."
    return Entry(url=raw["url"], make=lambda: _huge_page(raw), title=title, blurb=blurb)


def trouble() -> Iterator[Entry]:
    """All such addresses."""
    raw = load_toml(DATA / "trouble.toml")
    for redirect in raw["redirect"]:
        yield from _redirects(redirect)
    for maze in raw["maze"]:
        yield from _maze(maze)
    yield from map(_refusal, raw["status"])
    for slow in raw["slow"]:
        yield _entry(replace(_copy(topic_named(slow["topic"]), slow["url"]), delay_s=slow["delay_s"]))
    for robots in raw["robots"]:
        yield from _robots(robots)
    yield from map(_odd, raw["odd"])
    yield from map(_huge, raw["huge"])
