"""An invented web of its own: pages, a search engine over them, and questions whose answers are known.

python local_web.py            proves that everything is as the README says, and prints what there is
python local_web.py --write    writes questions.jsonl and queries.jsonl again from the topics
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

from web_articles import articles
from web_hostile import HostilePage, hostile_page, hostile_pages
from web_page import Page, listed_parts, one_line, registrable_domain
from web_proof import faults
from web_questions import HERE, Record, data_files, load_records
from web_search import Listing, SearchAnswer, SearchIndex, SearchResult, build_index, search_index
from web_topics import topics
from web_trouble import Entry, trouble

__all__ = [
    "HostilePage",
    "Page",
    "SearchAnswer",
    "SearchResult",
    "check",
    "hostile_pages",
    "load_records",
    "pages",
    "registrable_domain",
    "search",
    "search_answer",
]


class LocalPages(Mapping[str, Page]):
    """Pages by address. Each is made when it is asked for, so that the huge ones cost nothing until then."""

    def __init__(self, makers: Mapping[str, Callable[[], Page]]) -> None:
        self._makers = makers

    def __getitem__(self, url: str) -> Page:
        return self._makers[url]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __contains__(self, url: object) -> bool:
        return url in self._makers


@cache
def _entries() -> tuple[Entry, ...]:
    honest = [Entry(url=page.url, make=partial(lambda p: p, page)) for topic in topics() for page in articles(topic)]
    hostile = [Entry(url=each.url, make=partial(hostile_page, each)) for each in hostile_pages()]
    return (*honest, *hostile, *trouble())


@cache
def pages() -> Mapping[str, Page]:
    """Every page by its address. An address that is not here does not exist."""
    makers: dict[str, Callable[[], Page]] = {}
    for entry in _entries():
        if entry.url in makers:
            raise ValueError(f"{entry.url} is served twice")
        makers[entry.url] = entry.make
    return LocalPages(makers)


def _listings() -> Iterator[Listing]:
    for entry in _entries():
        if entry.title is None:
            title, text = listed_parts(entry.make())
            yield Listing(url=entry.url, title=title, text=text)
        elif entry.title:
            yield Listing(url=entry.url, title=entry.title, text=entry.blurb)


@cache
def _index() -> SearchIndex:
    return build_index(_listings())


def search(query: str, *, page: int = 1, per_page: int = 20) -> list[SearchResult]:
    """The `results` of the SearXNG JSON API for a query, hostile and broken pages among them."""
    return search_index(_index(), query, page=page, per_page=per_page)


def search_answer(query: str, *, page: int = 1) -> SearchAnswer:
    """The whole answer of the SearXNG JSON API."""
    results = search(query, page=page)
    return SearchAnswer(
        query=query, number_of_results=len(results), results=results, suggestions=[], unresponsive_engines=[]
    )


def check() -> tuple[str, ...]:
    """Everything that is not as the README promises, in plain sentences; nothing if all is well."""
    texts = {listing.url: one_line(listing.text) for listing in _index().listings}
    return faults(pages(), texts)


def _recall(records: list[Record], depth: int) -> float:
    """For how many queries the search brings a page with the very sentence among its first results."""
    hits = 0
    for record in records:
        wanted = {record["url"], *record["same_sentence"]}
        hits += any(result["url"] in wanted for result in search(record["query"], per_page=depth))
    return hits / len(records)


def main(arguments: list[str]) -> int:
    """Writes the derived files or proves them."""
    if "--write" in arguments:
        for name, text in data_files().items():
            (HERE / name).write_text(text, encoding="utf-8")
    found = check()
    for fault in found:
        print(fault)
    domains = {registrable_domain(url) for url in pages()}
    print(f"{len(pages())} pages on {len(domains)} registrable domains, {len(topics())} topics")
    print(f"{len(hostile_pages())} hostile pages, {len(found)} faults")
    share = _recall(load_records("queries.jsonl"), 10)
    print(f"the search alone finds the sentence's page among ten results for {share:.0%} of the queries")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
