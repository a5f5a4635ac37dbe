"""Search in a folder of documents: by meaning and by words, with exact citations, and nothing where nothing fits."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from interlock import Result
from interlock.config import cache_folder
from interlock.embedding import MiniLm
from interlock.errors import ConfigError, InvalidInput, NotFound
from interlock_ranger.evidence import (
    DataSource,
    DatedBy,
    Evidence,
    Finding,
    Part,
    Recommendation,
    Step,
    Today,
    build_result,
    compute_confidence,
)
from interlock_ranger.intake.text import decode_table, file_digest

# tests/test_corpus.py holds both limits: with them a zebra finds nothing, and each question that the shipped documents
# answer finds its passage.
LEAST_SIMILARITY = 0.34
"""How near in meaning a passage must be, unless the question names its citation."""
SURE_SIMILARITY = 0.5
"""From here on no word has to be shared."""
LONGEST_PASSAGE = 1500
"""Characters: more than an embedding takes in, and enough to read."""
QUOTED = 2
"""So many passages are quoted in the summary."""
_STEM = 5
"""Words are compared by their first letters: "regulation" and "regulatory" share them."""
_COMMON_WORDS = (Path(__file__).parent / "common_words.txt").read_text(encoding="utf-8").split()
_COMMON_STEMS = frozenset(word[:_STEM] for word in _COMMON_WORDS)
"""Words that nearly every question and passage has: sharing one says nothing."""
# Non-greedy: the first colon with a space behind it parts them, and a title may have further ones.
_HEADING = re.compile(r"^##\s+(.+?)(?::\s+(.+))?$", re.MULTILINE)
"""## CITATION: TITLE, or ## CITATION alone."""
_CITED = re.compile(r"\d+\s*(?:CFR|U\.?S\.?C\.?)\s*(?:part\s*)?[\w.]+(?:\([\w]+\))*|FS[HM]\s*[\d.]+", re.I)
"""A citation in a question: 7 CFR 1b.4(d)(36), 42 U.S.C. 4336a, FSH 1909.15."""
_DATED = re.compile(r"\bof (\d{4}-\d{2}-\d{2})\b")
_DATE_WITHIN = 500
"""A document names its date in so many of its first characters."""
_SHIPPED = "> A short summary written for this application"


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A section of a document."""

    citation: str
    title: str
    text: str
    file: str
    is_summary: bool
    """Whether it is a summary written here, and not the text itself."""


class Match(NamedTuple):
    score: float
    passage: Passage


class PassageFound(Part):
    citation: str
    title: str
    text: str
    file: str
    fit: float
    summary_only: bool
    rule: str = "nepa.search"


class SearchResult(Finding):
    query: str
    searched: int
    passages: tuple[PassageFound, ...]


class Corpus:
    """The sections of every document of a folder, with their vectors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = sorted(folder.glob("*.md")) + sorted(folder.glob("*.txt"))
        if not files:
            raise ConfigError(f"{folder}: there is no document (*.md, *.txt) here")
        self.passages = tuple(passage for file in files for passage in split_sections(file))
        self._digests = {file.name: file_digest(file) for file in files}
        self._dates = {file.name: document_date(file) for file in files}

    # Loaded by the first search: it takes time and memory, and most questions are no searches.
    @cached_property
    def _embedder(self) -> MiniLm:
        return MiniLm()

    @cached_property
    def _vectors(self) -> Any:
        """Made once for a corpus and kept; what is kept and cannot be read is made again."""
        texts = [f"{p.citation} {p.title}. {p.text}"[:LONGEST_PASSAGE] for p in self.passages]
        # With the embedder's name: vectors that another model made of the same texts must not be compared with these.
        digest = hashlib.sha256("\x00".join((MiniLm.name, *texts)).encode()).hexdigest()[:32]
        cached = cache_folder() / f"ranger-{digest}.npy"
        try:
            # No pickles: whoever can write into the cache folder could otherwise have code run here.
            vectors = np.load(cached, allow_pickle=False)
            if vectors.shape[0] == len(texts):
                return vectors
        except (OSError, ValueError):
            pass
        vectors = self._embedder.embed(texts)
        with contextlib.suppress(OSError):  # a folder that cannot be written costs only time
            cached.parent.mkdir(parents=True, exist_ok=True)
            # Written beside and then renamed, so that another process never reads half a file.
            partial = cached.with_suffix(f".{os.getpid()}.npy")
            np.save(partial, vectors)
            partial.replace(cached)
        return vectors

    def search(self, query: str, most: int) -> list[Match]:
        """The passages that fit, best first: near in meaning, or cited by the question."""
        similarities = (self._vectors @ self._embedder.embed([query])[0]).tolist()
        wanted = [_citation_parts(cited) for cited in _CITED.findall(query)]
        stems = _stems(query)
        matches = []
        for similarity, passage in zip(similarities, self.passages, strict=True):
            own = _citation_parts(passage.citation)
            # A question that cites a section is about that one; what is only near (4336a for 4336) is another.
            if wanted:
                fits = any(_is_cited(own, name) for name in wanted)
            else:
                shares = bool(stems & _stems(f"{passage.title} {passage.text}"))
                fits = similarity >= SURE_SIMILARITY or (similarity >= LEAST_SIMILARITY and shares)
            if fits:
                # Cited to the letter goes before its parts, its whole, and a range that it lies in.
                matches.append(Match(1.0 if own in wanted else float(similarity), passage))
        return sorted(matches, key=lambda match: -match.score)[:most]

    def source(self, file: str) -> DataSource:
        """A document as a source."""
        dated, dated_by = self._dates[file]
        return DataSource(
            file=f"corpus/{file}", dated=dated, dated_by=dated_by, sha256=self._digests[file], synthetic=False
        )


def split_sections(file: Path) -> list[Passage]:
    """The sections of a document: each second-level heading is a citation and a title; long ones in pieces."""
    text = read_document(file)
    heads = list(_HEADING.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    sections = [(head[1], head[2] or head[1], text[head.end() : end]) for head, end in zip(heads, ends, strict=False)]
    # What stands before the first heading is a section, too, unless it is only the title and notes of the document.
    opening = text[: heads[0].start()] if heads else text
    if not heads or any(line.strip() and line[0] not in "#>" for line in opening.splitlines()):
        sections.insert(0, (file.stem, file.stem, opening))
    return [
        _passage(file, citation, title, piece, text)
        for citation, title, section in sections
        for piece in _cut(section.strip())
    ]


def read_document(file: Path) -> str:
    try:
        text = decode_table(file.read_bytes(), file.name).text
    except InvalidInput as error:
        raise ConfigError(str(error)) from None
    return "\n".join(text.splitlines()) + "\n"


def _cut(section: str) -> list[str]:
    """A section in pieces that an embedding takes in, parted between paragraphs or words where that can be."""
    pieces = []
    while len(section) > LONGEST_PASSAGE:
        window = section[:LONGEST_PASSAGE]
        breaks = (window.rfind(mark) for mark in ("\n\n", "\n", " "))
        at = next((place for place in breaks if place > 0), LONGEST_PASSAGE)
        pieces.append(section[:at].strip())
        section = section[at:].strip()
    return [*pieces, section]


def _passage(file: Path, citation: str, title: str, section: str, document: str) -> Passage:
    return Passage(citation=citation, title=title, text=section, file=file.name, is_summary=_SHIPPED in document)


def document_date(file: Path) -> tuple[date, DatedBy]:
    """The day that a document names at its top ("of 2026-11-15"), else that of the file."""
    named = _DATED.search(read_document(file)[:_DATE_WITHIN])
    if named is None:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC).date(), DatedBy.FILE
    try:
        return date.fromisoformat(named[1]), DatedBy.DATA
    except ValueError:
        raise ConfigError(f"{file.name} says that it is of {named[1]}, which is no day; correct its date") from None


def _citation_parts(citation: str) -> tuple[str, ...]:
    """A citation in its parts: 7 CFR 1b.4(d)(36) is 7, cfr, 1b, 4, d, 36."""
    # With its dots, U.S.C. would be three parts and match no USC.
    plain = citation.lower().replace("u.s.c.", "usc").replace("part ", "")
    # A range such as 1500-1508 stays one part, for `_is_in_range`.
    return tuple(re.findall(r"[a-z0-9]+(?:-\d+)?", plain))


def _is_cited(own: tuple[str, ...], named: tuple[str, ...]) -> bool:
    """Whether a passage is what a question names, a part of it, the whole of it, or a range that it lies in."""
    return _begins_with(own, named) or _begins_with(named, own) or _is_in_range(named, own)


def _begins_with(whole: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return whole[: len(part)] == part


def _is_in_range(named: tuple[str, ...], own: tuple[str, ...]) -> bool:
    """Whether a section lies in a range such as 40 CFR 1500-1508."""
    low, _, high = own[-1].partition("-")
    same = len(named) >= len(own) and named[: len(own) - 1] == own[:-1]
    at = named[len(own) - 1] if same else ""
    return same and high.isdigit() and at.isdigit() and int(low) <= int(at) <= int(high)


def _stems(text: str) -> set[str]:
    """Words that tell something, cut to their stems."""
    return {word[:_STEM] for word in re.findall(r"[a-z]{4,}", text.lower())} - _COMMON_STEMS


def search_corpus(corpus: Corpus, query: str, most: int, today: Today) -> Result[SearchResult]:
    """What the documents say about a question."""
    if not query.strip():
        raise InvalidInput("the query is empty; say what you are looking for")
    matches = corpus.search(query, most)
    if not matches:
        citations = tuple(dict.fromkeys(p.citation for p in corpus.passages))[:6]
        raise NotFound(f"nothing in {len(corpus.passages)} passages fits {query[:80]!r}", hints=citations)
    found = tuple(
        PassageFound(
            citation=p.citation,
            title=p.title,
            text=p.text,
            file=p.file,
            fit=round(score, 2),
            summary_only=p.is_summary,
        )
        for score, p in matches
    )
    sources = tuple(corpus.source(file) for file in dict.fromkeys(item.file for item in found))
    texts = sum(not item.summary_only for item in found)
    evidence = Evidence(
        reasoning=(Step(rule="nepa.search", text=f"{len(found)} of {len(corpus.passages)} passages fit"),),
        recommendations=_recommendations(found),
        confidence=compute_confidence(today(), sources, texts + 1, len(found) + 1),
        data_sources=sources,
    )
    result = SearchResult(
        query=query,
        searched=len(corpus.passages),
        passages=found,
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    quoted = " ".join(f"{item.citation} ({item.title}): {item.text}" for item in found[:QUOTED])
    label = " Summaries written for this application, not the legal text." if found[0].summary_only else ""
    return msgspec.structs.replace(build_result(result, quoted + label), snippets=tuple(item.text for item in found))


def _recommendations(found: Sequence[PassageFound]) -> tuple[Recommendation, ...]:
    if not any(item.summary_only for item in found):
        return ()
    return (Recommendation(rule="nepa.search", text=f"read {found[0].citation} itself before relying on a summary"),)
