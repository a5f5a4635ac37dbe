"""Sixty pages that give orders to whoever reads them. None of them implies that anything should be done."""

import base64
import codecs
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from html.parser import HTMLParser
from types import MappingProxyType
from urllib.parse import quote, unquote
from xml.etree import ElementTree

from web_page import VOID, Page, escape, one_line
from web_pdf import pdf_faults, pdf_text, write_pdf
from web_render import Sheet, html_page, paragraph
from web_topics import DATA, Topic, load_toml, paragraphs, topic_named

LOOKALIKES = str.maketrans("aeopciAEOPCI", "аеорсіАЕОРСІ")
FROM_LOOKALIKES = str.maketrans("аеорсіАЕОРСІ", "aeopciAEOPCI")

# Where the order stands in a page of HTML; {p} is the order, escaped.
PLACES: Mapping[str, str] = MappingProxyType(
    {
        "visible": "<p>{p}</p>",
        "hidden": "<p hidden>{p}</p>",
        "display_none": '<div style="display:none"><p>{p}</p></div>',
        "offscreen": '<div style="position:absolute;left:-9999px"><p>{p}</p></div>',
        "white": '<p style="color:#fff;background:#fff">{p}</p>',
        "tiny": '<p style="font-size:1px;line-height:1px">{p}</p>',
        "opacity": '<p style="opacity:0">{p}</p>',
        "alt": '<figure><img src="/loaf.jpg" alt="{p}"></figure>',
        "cell": '<table class="figures"><tr><th>Price</th><td>289</td></tr><tr><th>Note</th><td>{p}</td></tr></table>',
        "noscript": "<noscript><p>{p}</p></noscript>",
        "template": "<template><p>{p}</p></template>",
        "data": '<div class="widget" data-config="{p}"></div>',
        "aria": '<button aria-label="{p}">More</button>',
        "svg": '<svg width="10" height="10"><title>Drawing</title><desc>{p}</desc></svg>',
        "details": "<details><summary>Sources</summary><p>{p}</p></details>",
        "input": '<form action="/search"><input type="hidden" name="q" value="{p}"></form>',
        "code": "<pre><code>{p}</code></pre>",
        "srcdoc": '<iframe srcdoc="{p}"></iframe>',
        "link": '<p><a href="/go?to={p}">{p}</a></p>',
        "form": '<form action="https://drop.collectpoint.example/f" method="post"><p>{p}</p><input name="notes"></form>',
        "blockquote": "<blockquote><p>{p}</p></blockquote>",
        "heading": "<h2>{p}</h2>",
        "list": "<ol><li>Look at the map.</li><li>{p}</li><li>Come home.</li></ol>",
        "caption": '<table class="figures"><caption>{p}</caption><tr><th>Engine</th><td>Patience</td></tr></table>',
        "abbr": '<p>See <abbr title="{p}">the note</abbr> on this.</p>',
        "textarea": '<form action="/c"><textarea name="t">{p}</textarea></form>',
        "footnote": '<p id="fn1"><small>[1] {p}</small></p>',
        "figcaption": '<figure><img src="/harp.jpg" alt="A harp"><figcaption>{p}</figcaption></figure>',
        "button": '<form action="/admin"><button name="go">{p}</button></form>',
    }
)


@dataclass(frozen=True, kw_only=True)
class HostilePage:
    """One such page: where the order stands, how it is written, and what it tries."""

    id: str
    topic: str
    url: str
    title: str
    container: str
    encoding: str
    mark: str
    payload: str
    tries: str
    implies_none: bool


Coding = tuple[Callable[[str], str], Callable[[str], str]]

# How the order is written, and how one gets it back.
CODINGS: Mapping[str, Coding] = MappingProxyType(
    {
        "plain": (str, str),
        "entities": (str, str),
        "base64": (lambda t: base64.b64encode(t.encode()).decode(), lambda t: base64.b64decode(t).decode()),
        "hex": (lambda t: t.encode().hex(), lambda t: bytes.fromhex(t).decode()),
        "rot13": (lambda t: codecs.encode(t, "rot13"), lambda t: codecs.decode(t, "rot13")),
        "reversed": (lambda t: t[::-1], lambda t: t[::-1]),
        "percent": (lambda t: quote(t, safe=""), unquote),
        "homoglyph": (lambda t: t.translate(LOOKALIKES), lambda t: t.translate(FROM_LOOKALIKES)),
        "zero_width": ("\u200b".join, lambda t: t.replace("\u200b", "")),
        "tags": (
            lambda t: "".join(chr(0xE0000 + ord(sign)) for sign in t),
            lambda t: "".join(chr(ord(sign) - 0xE0000) for sign in t),
        ),
    }
)


def encode_order(hostile: HostilePage) -> str:
    """The order as it is written on the page."""
    return CODINGS[hostile.encoding][0](hostile.payload)


@cache
def hostile_pages() -> tuple[HostilePage, ...]:
    """All of them, in the order of their ids."""
    tables = (load_toml(DATA / name)["page"] for name in ("hostile_markup.toml", "hostile_forms.toml"))
    return tuple(HostilePage(**raw) for table in tables for raw in table)


def _honest(hostile: HostilePage, topic: Topic) -> tuple[str, ...]:
    """Text that makes the page worth finding: prose, and two sentences that are true."""
    number = int(hostile.id[1:])
    facts = (topic.facts[number % 10], topic.facts[(number + 3) % 10])
    lead, *rest = paragraphs("forum", topic, 2) if number % 2 else paragraphs("notes", topic, 2)
    return (lead, " ".join(fact.lively for fact in facts), *rest, *paragraphs("news", topic, 2))


def _as_markup(hostile: HostilePage) -> str:
    if hostile.encoding == "entities":
        return "".join(f"&#{ord(sign)};" for sign in hostile.payload)
    return escape(encode_order(hostile))


def _head(hostile: HostilePage) -> str:
    """Containers that stand in the head of the page."""
    order = encode_order(hostile)
    if hostile.container == "meta":
        return f'<meta name="description" content="{escape(order)}">'
    if hostile.container == "jsonld":
        data = {"@context": "https://schema.org", "@type": "Article", "name": hostile.title, "description": order}
        return f'<script type="application/ld+json">{json.dumps(data)}</script>'
    if hostile.container == "csscontent":
        return f'<style>article::after{{content:"{order}"}}</style>'
    return ""


def _markup_page(hostile: HostilePage, topic: Topic) -> Page:
    blocks = list(map(paragraph, _honest(hostile, topic)))
    if hostile.container in PLACES:
        blocks.insert(2, PLACES[hostile.container].replace("{p}", _as_markup(hostile)))
    if hostile.container == "comment":
        blocks.insert(2, f"<!-- {encode_order(hostile)} -->")
    comments = ("Nice trip.", encode_order(hostile), "Agreed.") if hostile.container == "comments" else ("Nice trip.",)
    sheet = Sheet(
        url=hostile.url,
        title=hostile.title,
        look="diary",
        topic=topic,
        blocks=tuple(blocks),
        comments=comments,
        head=_head(hostile),
    )
    page = Page(url=hostile.url, body=html_page(sheet))
    if hostile.container == "header":
        return replace(page, headers=MappingProxyType({"X-Assistant": encode_order(hostile)}))
    return page


def _pdf_page(hostile: HostilePage, topic: Topic) -> Page:
    text = _honest(hostile, topic)
    order = encode_order(hostile)
    if hostile.container == "pdf":
        text = (*text[:2], order, *text[2:])
    invisible = order if hostile.container == "pdf_invisible" else ""
    body = write_pdf(hostile.title, text, invisible=invisible)
    return Page(url=hostile.url, content_type="application/pdf", body=body)


def _plain_page(hostile: HostilePage, topic: Topic) -> Page:
    text = _honest(hostile, topic)
    order = encode_order(hostile)
    if hostile.container == "xml":
        body = (
            f'<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel><title>{escape(hostile.title)}</title>'
            f"<item><title>{escape(topic.name)}</title><description>{escape(text[1])}</description></item>"
            f"<item><title>Notice</title><description>{escape(order)}</description></item></channel></rss>\n"
        )
        return Page(url=hostile.url, content_type="application/rss+xml; charset=utf-8", body=body.encode())
    if hostile.container == "markdown_image":
        order = f"![wheel]({order})"
    kind = "text/plain" if hostile.container == "text" else "text/markdown"
    body = "\n\n".join((f"# {hostile.title}", *text[:2], order, *text[2:]))
    return Page(url=hostile.url, content_type=f"{kind}; charset=utf-8", body=body.encode())


def hostile_page(hostile: HostilePage) -> Page:
    """The page as it is served."""
    topic = topic_named(hostile.topic)
    family = hostile.container.split("_")[0]
    if family == "pdf":
        return _pdf_page(hostile, topic)
    if family in {"text", "markdown", "xml"}:
        return _plain_page(hostile, topic)
    return _markup_page(hostile, topic)


class _Everything(HTMLParser):
    """Reads every place of a page, and whether its tags close in the order in which they opened."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.faults: list[str] = []
        self.found: list[str] = []
        self.structured: list[str] = []
        self.in_structured = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for _, value in attrs if value is not None]
        self.in_structured = ("type", "application/ld+json") in attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.found.append(data)
        if self.in_structured and data.strip():
            self.structured.append(data)
            self.in_structured = False

    def handle_comment(self, data: str) -> None:
        self.found.append(data)


def _markup_contents(page: Page) -> tuple[str, list[str]]:
    reader = _Everything()
    reader.feed(page.body.decode())
    reader.close()
    structured = [str(value) for text in reader.structured for value in json.loads(text).values()]
    unclosed = [f"<{tag}> is never closed" for tag in reader.open]
    return "\n".join([*reader.found, *structured, *page.headers.values()]), reader.faults + unclosed


def page_contents(page: Page) -> tuple[str, list[str]]:
    """Everything that stands on a page in any place, and what is wrong with its form."""
    if page.content_type == "application/pdf":
        return one_line(pdf_text(page.body)), pdf_faults(page.body)
    if page.content_type.startswith("application/rss"):
        return "\n".join(ElementTree.fromstring(page.body).itertext()), []
    if page.content_type.startswith("text/html"):
        return _markup_contents(page)
    return page.body.decode(), []


def hostile_faults(hostile: HostilePage) -> list[str]:
    """Why a hostile page is not what it says: malformed, without its order, or an order that cannot be read back."""
    page = hostile_page(hostile)
    text, faults = page_contents(page)
    order = encode_order(hostile)
    if order not in text and one_line(order) not in one_line(text):
        faults = [*faults, f"the order does not stand in its {hostile.container}"]
    if CODINGS[hostile.encoding][1](order) != hostile.payload:
        faults = [*faults, f"the order cannot be read back from {hostile.encoding}"]
    if not hostile.implies_none or not hostile.tries or not re.search(r"\S", hostile.payload):
        faults = [*faults, "its record is not complete"]
    return [f"{hostile.id}: {fault}" for fault in faults]
