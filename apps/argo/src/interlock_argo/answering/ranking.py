"""Statements in the order in which they answer a question: by its words, by meaning, and by the kind of value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from interlock.embedding import Embedder, MiniLm, MissingWeights
from interlock_argo.answering.asked import Asking, Term, stem, stems
from interlock_argo.answering.statements import split_statements

_MOST_EMBEDDED = 80
_LONGEST_NAME = 60
_UNDER, _FUZZY = 0.7, 0.85
"""What a word counts that stands above a statement and not in it; and how alike a misspelled one has to be."""
_SHORTEST_FUZZY = 5
_BY_WORDS, _BY_MEANING, _BY_KIND = 1.0, 0.8, 0.25
_A_NAME = 1.6
"""A name weighs more than another word that is as rare."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that could be quoted."""

    text: str
    under: str
    before: str = ""
    said_by: str
    source: str
    chunk: str
    trust: str
    order: int = 0
    """How old what it stands in is: a higher one came in later."""
    is_yours: bool = False
    """The user has said it."""


def candidates_of(text: str, *, title: str, source: str, heading: str = "") -> list[Candidate]:
    """The statements of a text that somebody else has written."""
    said_by = (title or source).replace(":", " ")[:_LONGEST_NAME]
    return [
        Candidate(
            text=one.text,
            under=one.under,
            before=one.before,
            said_by=said_by,
            source=source,
            chunk="",
            trust="untrusted",
        )
        for one in split_statements(text, heading)
    ]


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with how well it answers."""

    candidate: Candidate
    score: float
    covered: float
    """The share of the question's words, by weight, that it has."""
    alike: float
    """How near it is by meaning; 0 without weights."""
    fits: bool
    """It has a value of the kind that is asked for."""
    terms: frozenset[str]
    """The words of the question that it has."""
    lacks: tuple[str, ...]
    """The names of the question that it does not have."""


class Ranking:
    """Ranks by words and meaning; by words alone where there are no weights."""

    def __init__(self) -> None:
        self._embedder: Embedder | None = None
        self._is_open = False

    def rank(self, asking: Asking, candidates: Sequence[Candidate]) -> list[Ranked]:
        """Best first."""
        if not candidates:
            return []
        said = [(stems(one.text), stems(" ".join(_context(one)))) for one in candidates]
        terms = _correct(asking.terms, said)
        weights = _weights(terms, said)
        total = sum(weights.values()) or 1.0
        subjects = _subjects(terms, candidates)
        made = [_weigh(parts, terms, subjects, weights, total) for parts in said]
        order = sorted(range(len(made)), key=lambda place: -made[place][0])[:_MOST_EMBEDDED]
        meant = self._compare(asking.text, [candidates[place] for place in order])
        found = []
        for place, alike in zip(order, meant, strict=True):
            covered, names, lacks = made[place]
            fits = asking.is_said_by(candidates[place].text)
            score = _BY_WORDS * covered + _BY_MEANING * alike + (_BY_KIND if fits and asking.kinds else 0.0)
            found.append(
                Ranked(
                    candidate=candidates[place],
                    score=score,
                    covered=covered,
                    alike=alike,
                    fits=fits,
                    terms=names,
                    lacks=lacks,
                )
            )
        return sorted(found, key=lambda one: -one.score)

    def _compare(self, question: str, candidates: Sequence[Candidate]) -> list[float]:
        embedder = self._open()
        if embedder is None:
            return [0.0] * len(candidates)
        texts = [". ".join(part for part in (one.under, one.before, one.text) if part) for one in candidates]
        vectors: Any = embedder.embed([question, *texts])
        return [float(alike) for alike in vectors[1:] @ vectors[0]]

    def _open(self) -> Embedder | None:
        if not self._is_open:
            self._is_open = True
            try:
                self._embedder = MiniLm()
            except MissingWeights:
                self._embedder = None
        return self._embedder


def _weigh(
    parts: tuple[frozenset[str], frozenset[str]],
    terms: Sequence[Term],
    subjects: frozenset[str],
    weights: dict[str, float],
    total: float,
) -> tuple[float, frozenset[str], tuple[str, ...]]:
    """The share of the question's words that a statement has, which these are, and which names it lacks."""
    own, above = parts
    covered, names, lacks = 0.0, set[str](), list[str]()
    for term in terms:
        share = 1.0 if term.alike & own else _UNDER if term.alike & above else 0.0
        covered += share * weights[term.word]
        if share:
            names.add(term.word)
        elif term.share == 1.0 and (term.is_name or term.word in subjects):
            lacks.append(term.word)
    return covered / total, frozenset(names), tuple(lacks)


def _subjects(terms: Sequence[Term], candidates: Sequence[Candidate]) -> frozenset[str]:
    """The words that stand in the title or file name of something: whoever says one means what is about that."""
    titles = {(one.said_by, one.source) for one in candidates if not one.is_yours}
    words = [stems(f"{title} {_file_name(source)}") for title, source in titles]
    return frozenset(term.word for term in terms if any(term.alike & one for one in words))


def _file_name(source: str) -> str:
    return source.rpartition("/")[2].replace("_", " ")


def _context(one: Candidate) -> tuple[str, ...]:
    """What a statement stands under, its title and the name of its file: what it need not say itself."""
    return one.under, one.before, one.said_by, "" if one.is_yours else _file_name(one.source)


def _correct(terms: Sequence[Term], said: Sequence[tuple[frozenset[str], frozenset[str]]]) -> list[Term]:
    """The terms, those that nothing has in the spelling that something has."""
    known = frozenset[str]().union(*(own | above for own, above in said))
    found = []
    for term in terms:
        if not term.alike & known and len(term.word) >= _SHORTEST_FUZZY:
            close = get_close_matches(stem(term.word), known, n=2, cutoff=_FUZZY)
            term = msgspec.structs.replace(term, alike=term.alike | frozenset(close))
        found.append(term)
    return found


def _weights(terms: Sequence[Term], said: Sequence[tuple[frozenset[str], frozenset[str]]]) -> dict[str, float]:
    """How much each word tells: the rarer it is among the statements, the more. One that nothing has tells most."""
    counts = Counter(term.word for term in terms for own, above in said if term.alike & (own | above))
    every = len(said)
    return {
        term.word: term.share * math.log(1 + every / (1 + counts[term.word])) * (_A_NAME if term.is_name else 1.0)
        for term in terms
    }
