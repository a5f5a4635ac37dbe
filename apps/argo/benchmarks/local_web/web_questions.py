"""The questions and the retrieval queries, derived from the topics, with the pages on which the answers stand."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from web_articles import articles, wrong_pages
from web_page import Page, page_text, registrable_domain
from web_topics import DATA, Fact, Topic, load_toml, topic_named, topics

HERE = Path(__file__).parent
Record = Mapping[str, Any]


def says_fact(text: str, fact: Fact) -> bool:
    """Whether a text says the fact: in the sentence of one of the writers, or as its label followed by its value."""
    if any(sentence in text for sentence in (fact.plain, fact.official, fact.lively)):
        return True
    pair = rf"\b{re.escape(fact.label)}\b.{{0,60}}?{re.escape(fact.value)}"
    return re.search(pair, text) is not None


def supporting_pages(topic: Topic, fact: Fact) -> tuple[Page, ...]:
    """The pages that say the fact, without the wrong ones and without copies of a page already named."""
    wrong = {page.url for page in wrong_pages(topic)}
    seen: set[bytes] = set()
    kept = []
    for page in articles(topic):
        if page.url not in wrong and page.body not in seen and says_fact(page_text(page), fact):
            kept.append(page)
        seen.add(page.body)
    return tuple(kept)


def _contradictions(topic: Topic, fact: Fact) -> list[Record]:
    outdated, rival = wrong_pages(topic)
    found = [
        {"url": outdated.url, "value": figure.value, "why": "outdated", "date": topic.stale_date}
        for figure in topic.outdated
        if figure.key == fact.key
    ]
    found += [
        {"url": rival.url, "value": figure.value, "why": "unsupported claim", "date": "2025"}
        for figure in topic.rival
        if figure.key == fact.key
    ]
    return list(found)


def _fact_record(topic: Topic, key: str) -> Record:
    fact = topic.fact(key)
    return {
        "topic": topic.slug,
        "key": key,
        "label": fact.label,
        "value": fact.value,
        "urls": [page.url for page in supporting_pages(topic, fact)],
        "contradicted_by": _contradictions(topic, fact),
    }


def _question(number: int, text: str, facts: list[Record]) -> Record:
    urls = list(dict.fromkeys(url for fact in facts for url in fact["urls"]))
    return {
        "id": f"q{number:02d}",
        "text": text,
        "topics": list(dict.fromkeys(fact["topic"] for fact in facts)),
        "facts": facts,
        "urls": urls,
        "domains": sorted({registrable_domain(url) for url in urls}),
    }


def questions() -> Iterator[Record]:
    """Two questions on each topic, then those that need several topics."""
    number = 0
    for topic in topics():
        for asked in topic.questions:
            number += 1
            yield _question(number, asked.text, [_fact_record(topic, key) for key in asked.keys])
    for raw in load_toml(DATA / "cross_questions.toml")["question"]:
        number += 1
        pairs = (name.split(".") for name in raw["facts"])
        yield _question(number, raw["text"], [_fact_record(topic_named(slug), key) for slug, key in pairs])


def queries() -> Iterator[Record]:
    """One query for each fact; the writers take turns at giving the sentence that answers it."""
    number = 0
    for topic in topics():
        pages = {page.url: page_text(page) for page in articles(topic)}
        for i, fact in enumerate(topic.facts):
            number += 1
            sentence = (fact.plain, fact.official, fact.lively)[(i + topic.order) % 3]
            urls = [url for url, text in pages.items() if sentence in text]
            yield {
                "id": f"r{number:03d}",
                "topic": topic.slug,
                "key": fact.key,
                "query": fact.ask,
                "url": urls[0],
                "sentence": sentence,
                "value": fact.value,
                "same_sentence": urls[1:],
                "same_fact": [page.url for page in supporting_pages(topic, fact)],
            }


def _lines(records: Iterator[Record]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def data_files() -> Mapping[str, str]:
    """The files that are derived, by name, as they have to be."""
    return {"questions.jsonl": _lines(questions()), "queries.jsonl": _lines(queries())}


def load_records(name: str) -> list[Record]:
    """The records of one of the files in this folder."""
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]
