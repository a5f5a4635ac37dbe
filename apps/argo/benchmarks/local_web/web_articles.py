"""Which honest pages each topic has: the same facts by several writers, two that are wrong, copies and spellings."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from web_page import Page, escape
from web_pdf import write_pdf
from web_render import Sheet, article_json, emphasise, html_page, paragraph, table
from web_topics import Fact, Topic, host_of, paragraphs, prose

SPELLINGS = (
    "{url}?utm_source=newsletter&utm_medium=email&utm_campaign=spring",
    "{url}?fbclid=IwAR0xQuillstead{order}",
    "{url}?gclid=Cj0KCQ{order}&ref=home",
    "{url}?ref=search&source=rss",
    "{url}?mc_cid={order}a7&mc_eid=UNIQID",
)
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")


def _date(topic: Topic, shift: int) -> str:
    return f"{3 + (topic.order * 7 + shift) % 25} {MONTHS[(topic.order + shift) % len(MONTHS)]} 2025"


def _comments(topic: Topic, count: int) -> tuple[str, ...]:
    pool = prose()["comments"]
    return tuple(pool[(topic.order + i) % len(pool)] for i in range(count))


def _weave(texts: tuple[str, ...], sentences: list[str]) -> tuple[str, ...]:
    """Paragraphs of prose with paragraphs of two or three fact sentences between them."""
    size = 2 if len(sentences) <= 5 else 3
    groups = [" ".join(sentences[i : i + size]) for i in range(0, len(sentences), size)]
    blocks: list[str] = []
    for i in range(max(len(groups), len(texts))):
        blocks += [paragraph(text) for text in texts[i : i + 1]]
        blocks += [f"<p>{group}</p>" for group in groups[i : i + 1]]
    return tuple(blocks)


def overview(topic: Topic) -> Page:
    """The article of the encyclopedia, with all facts."""
    url = f"https://{host_of('overview', topic)}/wiki/{topic.slug}"
    rows = [(fact.label, fact.value) for fact in topic.facts[:6]]
    sentences = [emphasise(fact.plain, fact.value) for fact in topic.facts]
    blocks = (
        table(topic.name, rows, "infobox"),
        f"<p><b>{escape(topic.name)}</b> ({escape(topic.kind)}) belongs to {escape(topic.region)}.</p>",
        "<h2>Description</h2>",
        *_weave(topic.prose[:2], sentences),
        "<h2>References</h2>",
        f'<ol><li><a href="https://www.{topic.domain}/about">Official pages</a></li></ol>',
    )
    return _html(
        Sheet(url=url, title=topic.headline, look="reference", topic=topic, blocks=blocks, date=_date(topic, 0))
    )


def _html(sheet: Sheet) -> Page:
    return Page(url=sheet.url, body=html_page(sheet))


def _official(topic: Topic) -> Iterator[Page]:
    first = [escape(fact.official) for fact in topic.facts[:5]]
    rest = [escape(fact.official) for fact in topic.facts[5:]]
    yield _html(
        Sheet(
            url=f"https://www.{topic.domain}/about",
            title=f"About {topic.called}",
            look="company",
            topic=topic,
            blocks=_weave((*paragraphs("official", topic, 3 + topic.order % 3), topic.prose[2]), first),
            date=_date(topic, 1),
        )
    )
    yield _html(
        Sheet(
            url=f"https://docs.{topic.domain}/register/{topic.slug}-in-detail",
            title=f"{topic.headline} in detail",
            look="company",
            topic=topic,
            blocks=_weave((*paragraphs("detail", topic, 3 + topic.order % 2), topic.prose[3]), rest),
            date=_date(topic, 2),
        )
    )


def _press(topic: Topic) -> Iterator[Page]:
    plans = (
        ("news", "A visit to {}", "a-visit", 4, topic.facts[:5]),
        ("second", "What you asked about {}", "your-questions", 5, topic.facts[5:]),
    )
    for kind, title, tail, part, facts in plans:
        sheet = Sheet(
            url=f"https://{host_of(kind, topic)}/2025/{1 + topic.order % 10:02d}/{topic.slug}-{tail}",
            title=title.format(topic.called),
            look="paper",
            topic=topic,
            blocks=_weave(
                (*paragraphs(kind, topic, 4 + topic.order % 3), topic.prose[part]), [escape(f.lively) for f in facts]
            ),
            date=_date(topic, part),
            comments=_comments(topic, 2 + topic.order % 4),
        )
        yield _html(replace(sheet, head=article_json(sheet)))


def _answers(facts: tuple[Fact, ...]) -> str:
    forms = ("{}, checked by two members.", "It is {}.", "{}. Source is the yearly return.", "As of this year {}.")
    pairs = "\n".join(
        f'<dt>{escape(fact.label)}?</dt><dd>{escape(forms[i % len(forms)].format(fact.value))} <span class="vote">+{3 + 7 * i % 11}</span></dd>'
        for i, fact in enumerate(facts)
    )
    return f"<dl>\n{pairs}\n</dl>"


def _references(topic: Topic) -> Iterator[Page]:
    rows = [(fact.label, fact.value) for fact in topic.facts]
    yield _html(
        Sheet(
            url=f"https://{host_of('table', topic)}/returns/2025/{topic.slug}",
            title=f"{topic.headline}: key figures 2025",
            look="reference",
            topic=topic,
            blocks=(*map(paragraph, paragraphs("table", topic, 3)), table(f"Key figures, {topic.name}", rows)),
            date="31 October 2025",
        )
    )
    yield _html(
        Sheet(
            url=f"https://{host_of('faq', topic)}/questions/{1000 + 37 * topic.order}/{topic.slug}",
            title=f"Frequently asked: {topic.called}",
            look="board",
            topic=topic,
            blocks=(*map(paragraph, paragraphs("faq", topic, 3)), _answers(topic.facts)),
            comments=_comments(topic, 3),
            date=_date(topic, 7),
        )
    )


def _unreliable(topic: Topic) -> Iterator[Page]:
    """The outdated guide, the blog with figures of its own, and the forum that has none."""
    old = [escape(figure.sentence) for figure in topic.outdated]
    yield _html(
        Sheet(
            url=f"https://{host_of('outdated', topic)}/guide/{topic.slug}.html",
            title=f"{topic.headline} (guide)",
            look="reference",
            topic=topic,
            blocks=_weave(paragraphs("outdated", topic, 4), old),
            date=topic.stale_date,
        )
    )
    yield _html(
        Sheet(
            url=f"https://{host_of('rival', topic)}/the-truth-about-{topic.slug}",
            title=f"The truth about {topic.called}",
            look="diary",
            topic=topic,
            blocks=_weave(paragraphs("rival", topic, 4), [escape(figure.sentence) for figure in topic.rival]),
            date=_date(topic, 9),
            comments=_comments(topic, 4),
        )
    )
    yield _html(
        Sheet(
            url=f"https://{host_of('forum', topic)}/t/{topic.slug}-meeting-up",
            title=f"Meeting up: {topic.called}",
            look="board",
            topic=topic,
            blocks=tuple(map(paragraph, paragraphs("forum", topic, 5))),
            comments=_comments(topic, 6),
        )
    )


def _plain_forms(topic: Topic) -> Iterator[Page]:
    """A text file or a Markdown note, and for two topics out of three a PDF."""
    if topic.order % 2:
        lines = [
            f"# {topic.headline}",
            *paragraphs("notes", topic, 4),
            "## Notes",
            *(f"- {f.official}" for f in topic.facts),
        ]
        url = f"https://{host_of('notes', topic)}/{topic.slug}.md"
        yield Page(url=url, content_type="text/markdown; charset=utf-8", body="\n\n".join(lines).encode())
    else:
        rows = [f"{fact.label + ' ':.<34} {fact.value}" for fact in topic.facts]
        lines = [topic.name.upper() + "\n" + "=" * len(topic.name), *paragraphs("notes", topic, 4), "\n".join(rows)]
        url = f"https://{host_of('text', topic)}/pub/{topic.slug}.txt"
        yield Page(url=url, content_type="text/plain; charset=utf-8", body="\n\n".join(lines).encode())
    if topic.order % 3:
        text = paragraphs("paper", topic, 4)
        results = " ".join(fact.plain for fact in topic.facts)
        body = write_pdf(f"A note on {topic.called}", (*text[:2], results, *text[2:]), packed=topic.order % 2 == 0)
        yield Page(
            url=f"https://{host_of('paper', topic)}/2025/{topic.slug}.pdf", content_type="application/pdf", body=body
        )


def _feature(topic: Topic) -> Iterator[Page]:
    """For two topics out of three a long read, which takes its facts from the papers."""
    if topic.order % 3 == 2:
        return
    sheet = Sheet(
        url=f"https://{host_of('feature', topic)}/issue-{20 + topic.order}/three-visits-{topic.slug}",
        title=f"Three visits: {topic.called}",
        look="paper",
        topic=topic,
        blocks=_weave(paragraphs("feature", topic, 7 + topic.order % 4), [escape(fact.lively) for fact in topic.facts]),
        date=_date(topic, 8),
        comments=_comments(topic, 5),
    )
    yield _html(replace(sheet, head=article_json(sheet)))


def _copies(topic: Topic) -> Iterator[Page]:
    """The same bytes under other addresses: a mirror, the mobile host, a spelling with tracking parameters."""
    original = overview(topic)
    if topic.order % 2 == 0:
        yield replace(original, url=f"https://{host_of('mirror', topic)}/lexivane/{topic.slug}.html")
    else:
        news = next(_press(topic))
        spelling = SPELLINGS[topic.order // 2 % len(SPELLINGS)]
        yield replace(news, url=spelling.format(url=news.url, order=topic.order))
    if topic.order % 4 == 0:
        yield replace(original, url=f"https://{host_of('mobile', topic)}/wiki/{topic.slug}")


@cache
def articles(topic: Topic) -> tuple[Page, ...]:
    """All the honest pages on a topic, the wrong ones among them."""
    return tuple(_articles(topic))


def _articles(topic: Topic) -> Iterator[Page]:
    yield overview(topic)
    yield from _official(topic)
    yield from _references(topic)
    yield from _press(topic)
    yield from _feature(topic)
    yield from _unreliable(topic)
    yield from _plain_forms(topic)
    yield from _copies(topic)


def wrong_pages(topic: Topic) -> tuple[Page, ...]:
    """The outdated page and the one that contradicts, in this order."""
    return tuple(_unreliable(topic))[:2]
