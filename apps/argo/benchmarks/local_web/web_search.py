"""A search engine over the local web: BM25 on titles and texts, answers in the shape of the SearXNG JSON API."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypedDict

K1 = 1.2  # how soon a repeated word stops counting, and
B = 0.75  # how much a long page is discounted: the usual values of BM25
TITLE_WEIGHT = 3  # a word of the title counts as if it stood three times in the text
SNIPPET_SIGNS = 240
COMMON_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "at",
        "be",
        "by",
        "do",
        "does",
        "for",
        "from",
        "how",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "that",
        "the",
        "to",
        "was",
        "what",
        "when",
        "who",
    ]
)


class SearchResult(TypedDict):
    """One result as SearXNG gives it."""

    url: str
    title: str
    content: str
    engine: str
    engines: list[str]
    category: str
    score: float


class SearchAnswer(TypedDict):
    """The whole answer as SearXNG gives it."""

    query: str
    number_of_results: int
    results: list[SearchResult]
    suggestions: list[str]
    unresponsive_engines: list[list[str]]


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What the engine knows of an address."""

    url: str
    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class SearchIndex:
    """Listings with their lengths and, for each word, the listings in which it occurs and how often."""

    listings: tuple[Listing, ...]
    lengths: tuple[int, ...]
    postings: Mapping[str, Mapping[int, int]]


def words(text: str) -> list[str]:
    """The words of a text in the form in which they are compared."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", text.lower()).replace("'s", "").replace("’s", "")
    return [_stem(word) for word in re.findall(r"\w+", plain) if word not in COMMON_WORDS]


def _stem(word: str) -> str:
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def build_index(listings: Iterable[Listing]) -> SearchIndex:
    """Reads every listing once."""
    kept = tuple(listings)
    postings: dict[str, dict[int, int]] = {}
    lengths = []
    for number, listing in enumerate(kept):
        counts = Counter(words(listing.title) * TITLE_WEIGHT + words(listing.text))
        lengths.append(counts.total())
        for word, count in counts.items():
            postings.setdefault(word, {})[number] = count
    return SearchIndex(listings=kept, lengths=tuple(lengths), postings=postings)


def _snippet(text: str, wanted: frozenset[str]) -> str:
    """The sentence that has most of the wanted words, with as much of what follows as there is room for."""
    sentences = re.split(r"(?<=[.?!]) |\n", text)
    best = max(range(len(sentences)), key=lambda i: (len(wanted & frozenset(words(sentences[i]))), -i), default=0)
    chosen = " ".join(sentences[best:])
    return chosen if len(chosen) <= SNIPPET_SIGNS else chosen[:SNIPPET_SIGNS].rsplit(" ", 1)[0] + " …"


def rank(index: SearchIndex, query: str) -> list[tuple[float, Listing]]:
    """All listings that share a word with the query, the best first; equal ones in the order of their addresses."""
    total = len(index.listings)
    mean = sum(index.lengths) / total
    scores: dict[int, float] = {}
    for word in dict.fromkeys(words(query)):
        found = index.postings.get(word, {})
        rarity = math.log(1 + (total - len(found) + 0.5) / (len(found) + 0.5))
        for number, count in found.items():
            length = 1 - B + B * index.lengths[number] / mean
            scores[number] = scores.get(number, 0.0) + rarity * count * (K1 + 1) / (count + K1 * length)
    pairs = [(score, index.listings[number]) for number, score in scores.items()]
    return sorted(pairs, key=lambda pair: (-pair[0], pair[1].url))


def search_index(index: SearchIndex, query: str, *, page: int, per_page: int) -> list[SearchResult]:
    """One page of results."""
    wanted = frozenset(words(query))
    return [
        SearchResult(
            url=listing.url,
            title=listing.title,
            content=_snippet(listing.text, wanted),
            engine="localweb",
            engines=["localweb"],
            category="general",
            score=round(score, 4),
        )
        for score, listing in rank(index, query)[(page - 1) * per_page : page * per_page]
    ]
