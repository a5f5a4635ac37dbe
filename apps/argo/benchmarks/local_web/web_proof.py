"""Proofs that the local web is what its README says."""

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher

from web_articles import articles, wrong_pages
from web_hostile import hostile_faults, hostile_pages, page_contents
from web_page import Page, page_text, registrable_domain
from web_questions import HERE, Record, data_files, load_records
from web_topics import topics

Texts = Mapping[str, str]


def _sizes(pages: Mapping[str, Page]) -> Iterator[str]:
    domains = {registrable_domain(url) for url in pages}
    counts = (
        ("pages", len(pages), 200),
        ("topics", len(topics()), 20),
        ("registrable domains", len(domains), 25),
        ("hostile pages", len(hostile_pages()), 60),
        ("questions", len(load_records("questions.jsonl")), 50),
        ("open questions", len(load_records("open_questions.jsonl")), 5),
        ("queries", len(load_records("queries.jsonl")), 200),
    )
    for name, count, least in counts:
        if count < least:
            yield f"only {count} {name} of {least}"
    for url in pages:
        if not registrable_domain(url).endswith(".example"):
            yield f"{url} is on no invented host"


def _articles() -> Iterator[str]:
    """Articles are well-formed and have the length of articles, and wrong pages do not say what is true."""
    for topic in topics():
        for page in articles(topic):
            yield from (f"{page.url}: {fault}" for fault in page_contents(page)[1])
            if not 150 <= len(page_text(page).split()) <= 900:
                yield f"{page.url} has {len(page_text(page).split())} words"
        for page, figures in zip(wrong_pages(topic), (topic.outdated, topic.rival), strict=True):
            text = page_text(page)
            for figure in figures:
                if figure.sentence not in text or topic.fact(figure.key).value in text:
                    yield f"{page.url} is not wrong about {figure.key}"


def _facts() -> Iterator[str]:
    """Each writer's sentence gives the value, and a wrong figure differs from it."""
    for topic in topics():
        for fact in topic.facts:
            for sentence in (fact.plain, fact.official, fact.lively):
                if fact.value.casefold() not in sentence.casefold():
                    yield f"{topic.slug}: a sentence on {fact.key} does not give its value"
        for figure in (*topic.outdated, *topic.rival):
            if figure.value == topic.fact(figure.key).value or figure.value not in figure.sentence:
                yield f"{topic.slug}: the wrong figure for {figure.key} is none"


def _redirects(pages: Mapping[str, Page]) -> Iterator[str]:
    """A redirect has a status that says so, and says where to."""
    for url, page in pages.items():
        if (page.redirect_to is not None) != (300 <= page.status < 400):
            yield f"{url} has status {page.status} and leads to {page.redirect_to}"
        if page.redirect_to is not None and page.headers.get("Location") != page.redirect_to:
            yield f"{url} names another place in its header"


def _question(record: Record, texts: Texts) -> Iterator[str]:
    if not 2 <= len(record["facts"]) <= 4:
        yield f"{record['id']} has {len(record['facts'])} facts"
    for fact in record["facts"]:
        if len({registrable_domain(url) for url in fact["urls"]}) < 3:
            yield f"{record['id']}: {fact['key']} stands on fewer than three registrable domains"
        for url in fact["urls"]:
            if fact["value"].casefold() not in texts[url].casefold():
                yield f"{record['id']}: {fact['value']} does not stand on {url}"
        for other in fact["contradicted_by"]:
            if other["value"] not in texts[other["url"]]:
                yield f"{record['id']}: {other['value']} does not stand on {other['url']}"


def _open_question(record: Record, texts: Texts) -> Iterator[str]:
    name = next(topic.name for topic in topics() if topic.slug == record["topic"])
    for url, text in texts.items():
        if name.casefold() not in text.casefold():
            continue
        for phrase in record["absent"]:
            if phrase.casefold() in text.casefold():
                yield f"{record['id']}: {phrase} stands on {url}"


def _query(record: Record, texts: Texts) -> Iterator[str]:
    if record["sentence"] not in texts[record["url"]]:
        yield f"{record['id']}: the sentence does not stand on {record['url']}"
    query, sentence = record["query"].casefold(), record["sentence"].casefold()
    same = SequenceMatcher(None, query, sentence, autojunk=False).find_longest_match().size
    if same > 0.8 * len(query):
        yield f"{record['id']}: the query is copied from the sentence"
    if record["value"].casefold() in query:
        yield f"{record['id']}: the query gives its own answer"


def _files() -> Iterator[str]:
    for name, text in data_files().items():
        if (HERE / name).read_text(encoding="utf-8") != text:
            yield f"{name} is not what the topics say; write it again with --write"


def faults(pages: Mapping[str, Page], texts: Texts) -> tuple[str, ...]:
    """Everything that is not as promised, in plain sentences; nothing if all is well."""
    found = [*_sizes(pages), *_facts(), *_articles(), *_redirects(pages), *_files()]
    for record in load_records("questions.jsonl"):
        found += _question(record, texts)
    for record in load_records("open_questions.jsonl"):
        found += _open_question(record, texts)
    for record in load_records("queries.jsonl"):
        found += _query(record, texts)
    for hostile in hostile_pages():
        found += hostile_faults(hostile)
        if hostile.url not in pages:
            found.append(f"{hostile.id} is served nowhere")
    return tuple(found)
