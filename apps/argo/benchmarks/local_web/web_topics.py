"""The invented topics: what is true of each, how three kinds of writer say it, and who gets it wrong."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One fact with its value, a query as people type it, and the sentences of three writers."""

    key: str
    label: str
    value: str
    ask: str
    plain: str
    official: str
    lively: str


@dataclass(frozen=True, kw_only=True)
class WrongFigure:
    """A value that a page gives and that does not hold, outdated or merely claimed."""

    key: str
    value: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class TopicQuestion:
    """A question on one topic and the facts that answer it."""

    text: str
    keys: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Topic:
    """One invented thing and everything that is written about it."""

    order: int
    slug: str
    name: str
    called: str
    kind: str
    domain: str
    region: str
    stale_date: str
    prose: tuple[str, ...]
    facts: tuple[Fact, ...]
    outdated: tuple[WrongFigure, ...]
    rival: tuple[WrongFigure, ...]
    questions: tuple[TopicQuestion, ...]

    @property
    def headline(self) -> str:
        """The name as it begins a title."""
        return self.name[0].upper() + self.name[1:]

    def fact(self, key: str) -> Fact:
        """The fact of that key."""
        return next(fact for fact in self.facts if fact.key == key)


def load_toml(path: Path) -> dict[str, Any]:
    """One table of data."""
    with path.open("rb") as stream:
        return tomllib.load(stream)


def _topic(raw: dict[str, Any]) -> Topic:
    return Topic(
        order=raw["order"],
        slug=raw["slug"],
        name=raw["name"],
        called=raw["called"],
        kind=raw["kind"],
        domain=raw["domain"],
        region=raw["region"],
        stale_date=raw["stale_date"],
        prose=tuple(raw["prose"]),
        facts=tuple(Fact(**fact) for fact in raw["fact"]),
        outdated=tuple(WrongFigure(**figure) for figure in raw["outdated"]),
        rival=tuple(WrongFigure(**figure) for figure in raw["rival"]),
        questions=tuple(TopicQuestion(text=each["text"], keys=tuple(each["keys"])) for each in raw["question"]),
    )


@cache
def topics() -> tuple[Topic, ...]:
    """All topics in their order."""
    loaded = (_topic(load_toml(path)) for path in (DATA / "topics").glob("*.toml"))
    return tuple(sorted(loaded, key=lambda topic: topic.order))


def topic_named(slug: str) -> Topic:
    """The topic of that slug."""
    return next(topic for topic in topics() if topic.slug == slug)


@cache
def prose() -> Mapping[str, tuple[str, ...]]:
    """Paragraphs that any topic may be given, by the kind of page."""
    return MappingProxyType({kind: tuple(texts) for kind, texts in load_toml(DATA / "prose.toml").items()})


def paragraphs(kind: str, topic: Topic, count: int) -> tuple[str, ...]:
    """Some paragraphs of that kind, beginning elsewhere for each topic, with the names filled in."""
    pool = prose()[kind]
    chosen = (pool[(topic.order + i) % len(pool)] for i in range(min(count, len(pool))))
    texts = (text.format(name=topic.called, kind=topic.kind, region=topic.region) for text in chosen)
    return tuple(re.sub(r"(^|[.?!] )([a-z])", lambda start: start[1] + start[2].upper(), text) for text in texts)


@cache
def host_table() -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, str]]:
    """The hosts of each kind of page, and the names that sites give themselves."""
    raw = load_toml(DATA / "hosts.toml")
    hosts = {kind: tuple(names) for kind, names in raw["hosts"].items()}
    return MappingProxyType(hosts), MappingProxyType(raw["names"])


def host_of(kind: str, topic: Topic) -> str:
    """The host that serves this kind of page on this topic."""
    choices = host_table()[0][kind]
    return choices[topic.order % len(choices)]
