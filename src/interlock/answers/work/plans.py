"""A plan as values: its steps and sub-questions as a model wrote them, and which of those a text speaks to."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

_ITEM = re.compile(r"(?m)^[ \t]*(?P<mark>\d{1,3}[.)]|[-*•])[ \t]+(?P<text>\S[^\n]*)")
"""A line such as "1. read", "2) compare", "- look"."""
_TAGS = re.compile(r"<(?P<closes>/?)(?:research_)?plan>", re.I)
_MARKUP = re.compile(r"[*_`#]+")
_WORD = re.compile(r"[^\W_]+")
_MOST_QUESTIONS = 12
_LONGEST_QUESTION = 300
_CLOSE = 0.5
"""The share of a question's words that a text has to have to speak to it."""
_SHORTEST_STEM = 3


def parse_plan(text: str) -> tuple[str, ...]:
    """The steps of a plan, numbered ones before all; empty if it is none.

    Two steps or more make a plan, or anything between plan tags. Where some of them are questions, those are what the
    plan wants to know, and the others only say how.
    """
    tagged = _text_in_tags(text)
    steps = _items(text if tagged is None else tagged)
    if tagged is not None and not steps:
        steps = [line for line in tagged.splitlines() if _WORD.search(line)]
    elif tagged is None and len(steps) < 2:
        return ()
    plain = [" ".join(_MARKUP.sub(" ", step).split())[:_LONGEST_QUESTION] for step in steps]
    questions = [step for step in plain if step.endswith("?")] or plain
    return tuple(dict.fromkeys(step for step in questions if _WORD.search(step)))[:_MOST_QUESTIONS]


def is_plan(text: str) -> bool:
    """Whether a reply is a plan."""
    return bool(parse_plan(text))


def _items(text: str) -> list[str]:
    found = [(match["mark"], match["text"]) for match in _ITEM.finditer(text)]
    numbered = [item for mark, item in found if mark[0].isdigit()]
    # What stands below a number with a dash is part of that step.
    return numbered if len(numbered) >= 2 else [item for _mark, item in found]


def _text_in_tags(text: str) -> str | None:
    """What stands between the first tag that opens and the next that closes; None if nothing does."""
    opened = next((tag.end() for tag in _TAGS.finditer(text) if not tag["closes"]), None)
    if opened is None:
        return None
    closed = next((t.start() for t in _TAGS.finditer(text, opened) if t["closes"] and t.start() > opened), None)
    return None if closed is None else _TAGS.sub("\n", text[opened:closed])


def questions_of(questions: Sequence[str], text: str, said: object = None) -> tuple[int, ...]:
    """Which questions of a plan a text speaks to, by their numbers from 1.

    `said`: the question that the model says it is for, by its number or its words. It is believed where the text has a
    word of that question at all. Otherwise by the words of the questions: a text has to have half of them, and half of
    those by which a question differs from the others.
    """
    stems, wanted = _stems(text), [_stems(question) for question in questions]
    named = _number_of(questions, said)
    if named and wanted[named - 1] & stems:
        return (named,)
    shared = set.intersection(*wanted) if len(wanted) > 1 else set()
    return tuple(
        number
        for number, words in enumerate(wanted, 1)
        if _share(words, stems) >= _CLOSE and (words <= shared or _share(words - shared, stems) >= _CLOSE)
    )


def _number_of(questions: Sequence[str], said: object) -> int:
    if isinstance(said, str) and said.strip().rstrip(".)").isdecimal() and len(said) < 6:
        said = int(said.strip().rstrip(".)"))
    if isinstance(said, int) and not isinstance(said, bool):
        return said if 1 <= said <= len(questions) else 0
    if not isinstance(said, str) or not said.strip():
        return 0
    words = _stems(said[:_LONGEST_QUESTION])
    found = [(_share(_stems(question), words), -number) for number, question in enumerate(questions, 1)]
    best = max(found, default=(0.0, 0))
    return -best[1] if best[0] > _CLOSE else 0


def _share(words: set[str], stems: set[str]) -> float:
    return len(words & stems) / len(words) if words else 0.0


def _stems(text: str) -> set[str]:
    return set(content_words(text))


def content_words(text: str) -> list[str]:
    """The words of a text that carry its meaning, each without the ending of its form.

    Crude, and the same on every machine: what a record says of a source does not depend on what is installed.
    """
    stop, endings, same = _tables()
    found = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    stems = (word if word in same else _stem(word, endings) for word in found if word not in stop)
    return [same.get(stem, stem) for stem in stems]


def _stem(word: str, endings: Sequence[str]) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word


@cache
def _tables() -> tuple[frozenset[str], tuple[str, ...], dict[str, str]]:
    """Words without meaning, endings, and for words that mean the same the one that stands for them."""
    table = tomllib.loads(files("interlock.answers.tables").joinpath("closeness.toml").read_text(encoding="utf-8"))
    same = {word: line.split()[0] for line in table["same"] for word in line.split()}
    return frozenset(table["stop"].split()), tuple(table["endings"].split()), same
