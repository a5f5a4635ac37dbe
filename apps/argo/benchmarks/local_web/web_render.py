"""How the invented sites look: navigation, cookie banner, the text, comments and a footer around it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

from web_page import escape, registrable_domain
from web_topics import Topic, host_table, prose, topics

NAVIGATION: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "reference": ("Main page", "Random article", "Recent changes", "Log in"),
        "company": ("Home", "About us", "Visit", "Contact"),
        "paper": ("Today", "Region", "Opinion", "Weather", "Subscribe"),
        "board": ("Questions", "Tags", "Members", "Ask a question"),
        "diary": ("Latest", "Archive", "About me"),
    }
)
LOOKS: Mapping[str, str] = MappingProxyType(
    {
        "reference": "body{font-family:serif;max-width:60em}.infobox{float:right;border:1px solid #aaa}",
        "company": "body{font-family:sans-serif}.cookie{position:fixed;bottom:0;background:#eee}",
        "paper": "body{font-family:Georgia,serif}.byline{color:#666}.ad{float:right;width:12em}",
        "board": "body{font-family:monospace}.vote{color:#a50}dt{font-weight:bold}",
        "diary": "body{background:#fdf6e3;max-width:38em;margin:auto}",
    }
)


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """What a page of a site consists of before it becomes HTML."""

    url: str
    title: str
    look: str
    topic: Topic
    blocks: tuple[str, ...]
    date: str = ""
    comments: tuple[str, ...] = ()
    head: str = ""


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def emphasise(sentence: str, value: str) -> str:
    """A sentence in HTML with its value in bold where it is spelled as such."""
    return escape(sentence).replace(escape(value), f"<b>{escape(value)}</b>", 1)


def table(caption: str, rows: Sequence[tuple[str, str]], css: str = "figures") -> str:
    """A table of two columns."""
    cells = "\n".join(f"<tr><th>{escape(label)}</th><td>{escape(value)}</td></tr>" for label, value in rows)
    return f'<table class="{css}"><caption>{escape(caption)}</caption>\n{cells}\n</table>'


def site_name(url: str, topic: Topic) -> str:
    """What the site calls itself."""
    domain = registrable_domain(url)
    fallback = f"{topic.name}, official pages" if domain == topic.domain else domain.split(".")[0].replace("-", " ")
    return host_table()[1].get(domain, fallback)


def _navigation(sheet: Sheet) -> str:
    items = "".join(f'<li><a href="/{i}">{label}</a></li>' for i, label in enumerate(NAVIGATION[sheet.look]))
    return f'<nav aria-label="Main"><ul>{items}</ul></nav>'


def _related(sheet: Sheet) -> str:
    """Links to the neighbouring topics in the encyclopedia, which is how a crawl gets about."""
    everything = topics()
    near = [everything[(sheet.topic.order + step) % len(everything)] for step in (1, 2, 7)]
    links = "".join(
        f'<li><a href="https://en.lexivane.example/wiki/{other.slug}">{escape(other.name)}</a></li>' for other in near
    )
    return f'<aside class="related"><h3>See also</h3><ul>{links}</ul></aside>'


def _comments(sheet: Sheet) -> str:
    if not sheet.comments:
        return ""
    names = ("harbourcat", "T. Ludd", "old_miller", "Anna from the mole", "guest 4471")
    entries = "\n".join(
        f'<li class="comment"><span class="who">{names[i % len(names)]}</span>: {escape(text)}</li>'
        for i, text in enumerate(sheet.comments)
    )
    return f'<section id="comments"><h3>Comments ({len(sheet.comments)})</h3><ol>\n{entries}\n</ol></section>'


def article_json(sheet: Sheet) -> str:
    """The structured data that papers put into the head."""
    facts = {"@context": "https://schema.org", "@type": "Article", "headline": sheet.title, "datePublished": sheet.date}
    return f'<script type="application/ld+json">{json.dumps(facts, ensure_ascii=False)}</script>'


def html_page(sheet: Sheet) -> bytes:
    """The whole page."""
    pool = prose()
    turn = sheet.topic.order + len(urlsplit(sheet.url).netloc)
    cookie = pool["cookies"][turn % len(pool["cookies"])]
    footer = pool["footers"][turn % len(pool["footers"])]
    name = escape(site_name(sheet.url, sheet.topic))
    date = f'<p class="byline">Last updated <time>{escape(sheet.date)}</time></p>' if sheet.date else ""
    blocks = "\n".join(sheet.blocks)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{escape(sheet.title)}</title>
<link rel="canonical" href="{escape(sheet.url)}">
<meta name="viewport" content="width=device-width">
<style>{LOOKS[sheet.look]}</style>
{sheet.head}
</head>
<body class="{sheet.look}">
<div class="cookie" role="dialog"><p>{escape(cookie)}</p><button>Accept</button></div>
<header><a class="site" href="/">{name}</a>
{_navigation(sheet)}</header>
<main>
<article>
<h1>{escape(sheet.title)}</h1>
{date}
{blocks}
</article>
{_comments(sheet)}
</main>
{_related(sheet)}
<footer><p>{name}. {escape(footer)}</p></footer>
<script>window.dataLayer = window.dataLayer || [];</script>
</body>
</html>
""".encode()
