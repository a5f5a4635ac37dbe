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
from typing import Any

import msgspec
import numpy as np

from interlock import Result
from interlock.answers.intents import Embedder
from interlock.config import cache_folder
from interlock.errors import ConfigError, InvalidInput, NotFound
from interlock_ranger.evidence import DataSource, Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.fires import digest

LEAST = 0.34
"""How near in meaning a passage must be, unless the question names its citation."""
SURE = 0.5
"""From here on no word has to be shared."""
LONGEST = 1500
_STEM = 5
_COMMON = frozenset(
    word[:_STEM]
    for word in "what when where which does have with from that this there their about need needs must should could"
    " would rule rules regulation regulations forest service people work area areas used under after before into"
    " long take says said tell please know want many much more than only other over still they them your".split()
)
_HEADING = re.compile(r"^##\s+(.+?)(?::\s+(.+))?$", re.MULTILINE)
_CITED = re.compile(r"\d+\s*(?:CFR|U\.?S\.?C\.?)\s*(?:part\s*)?[\w.]+(?:\([\w]+\))*|FS[HM]\s*[\d.]+", re.I)
_SHIPPED = "> A short summary written for this application"


class Passage(msgspec.Struct, frozen=True):
    """A section of a document."""

    citation: str
    title: str
    text: str
    file: str
    summary: bool
    """Whether it is a summary written here, and not the text itself."""


class Found(Part):
    """A passage that fits."""

    citation: str
    title: str
    text: str
    file: str
    fit: float
    summary_only: bool
    rule: str = "nepa.search"


class Passages(Finding):
    """What the documents say."""

    query: str
    searched: int
    passages: tuple[Found, ...]


class Library:
    """The sections of every document of a folder, with their vectors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = sorted(folder.glob("*.md")) + sorted(folder.glob("*.txt"))
        if not files:
            raise ConfigError(f"{folder}: there is no document (*.md, *.txt) here")
        self.passages = tuple(passage for file in files for passage in sections(file))
        self._digests = {file.name: digest(file) for file in files}
        self._dates = {file.name: written_on(file) for file in files}

    @cached_property
    def _embedder(self) -> Embedder:
        return Embedder()

    @cached_property
    def _vectors(self) -> Any:
        """Made once for a corpus and kept; what is kept and cannot be read is made again."""
        texts = [f"{p.citation} {p.title}. {p.text}"[:LONGEST] for p in self.passages]
        name = hashlib.sha256("\x00".join((Embedder.name, *texts)).encode()).hexdigest()[:32]
        kept = cache_folder() / f"ranger-{name}.npy"
        try:
            found = np.load(kept, allow_pickle=False)
            if found.shape[0] == len(texts):
                return found
        except (OSError, ValueError):
            pass
        made = self._embedder.embed(texts)
        with contextlib.suppress(OSError):  # a folder that cannot be written costs only time
            kept.parent.mkdir(parents=True, exist_ok=True)
            beside = kept.with_suffix(f".{os.getpid()}.npy")
            np.save(beside, made)
            beside.replace(kept)
        return made

    def search(self, query: str, most: int) -> list[tuple[float, Passage]]:
        """The passages that fit, best first: near in meaning, or cited by the question."""
        near = (self._vectors @ self._embedder.embed([query])[0]).tolist()
        wanted = [_parts(found) for found in _CITED.findall(query)]
        words = _stems(query)
        scored = []
        for score, passage in zip(near, self.passages, strict=True):
            own = _parts(passage.citation)
            shares = bool(words & _stems(f"{passage.title} {passage.text}"))
            cited = any(_within(own, name) or _within(name, own) or _in_range(name, own) for name in wanted)
            if cited or (not wanted and (score >= SURE or (score >= LEAST and shares))):
                scored.append((1.0 if own in wanted else float(score), passage))
        return sorted(scored, key=lambda item: -item[0])[:most]

    def source(self, file: str, today: Today) -> DataSource:
        """A document as a source."""
        dated = min(self._dates[file], today())
        return DataSource(file=f"corpus/{file}", dated=dated, sha256=self._digests[file], synthetic=False)


def sections(file: Path) -> list[Passage]:
    """The sections of a document: each second-level heading is a citation and a title."""
    text = file.read_text(encoding="utf-8", errors="replace")
    summary = _SHIPPED in text
    heads = list(_HEADING.finditer(text))
    if not heads:
        return [Passage(file.stem, file.stem, text.strip()[:LONGEST], file.name, summary)]
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [
        Passage(head[1], head[2] or head[1], text[head.end() : end].strip()[:LONGEST], file.name, summary)
        for head, end in zip(heads, ends, strict=True)
    ]


def written_on(file: Path) -> date:
    """The day that a document names at its top ("of 2026-11-15"), else that of the file."""
    found = re.search(r"\bof (\d{4}-\d{2}-\d{2})\b", file.read_text(encoding="utf-8", errors="replace")[:500])
    if found:
        return date.fromisoformat(found[1])
    return datetime.fromtimestamp(file.stat().st_mtime, UTC).date()


def _parts(citation: str) -> tuple[str, ...]:
    """A citation in its parts: 7 CFR 1b.4(d)(36) is 7, cfr, 1b, 4, d, 36."""
    plain = citation.lower().replace("u.s.c.", "usc").replace("part ", "")
    return tuple(re.findall(r"[a-z0-9]+(?:-\d+)?", plain))


def _within(whole: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return whole[: len(part)] == part


def _in_range(name: tuple[str, ...], own: tuple[str, ...]) -> bool:
    """Whether a section lies in a range such as 40 CFR 1500-1508."""
    low, _, high = own[-1].partition("-")
    same = len(name) >= len(own) and name[: len(own) - 1] == own[:-1]
    at = name[len(own) - 1] if same else ""
    return same and high.isdigit() and at.isdigit() and int(low) <= int(at) <= int(high)


def _stems(text: str) -> set[str]:
    """Words that tell something, cut to their stems."""
    return {word[:_STEM] for word in re.findall(r"[a-z]{4,}", text.lower())} - _COMMON


def searched(library: Library, query: str, most: int, today: Today) -> Result[Passages]:
    """What the documents say about a question."""
    if not query.strip():
        raise InvalidInput("the query is empty; say what you are looking for")
    hits = library.search(query, most)
    if not hits:
        titles = tuple(dict.fromkeys(p.citation for p in library.passages))[:6]
        raise NotFound(f"nothing in {len(library.passages)} passages fits {query[:80]!r}", hints=titles)
    found = tuple(
        Found(
            citation=p.citation,
            title=p.title,
            text=p.text,
            file=p.file,
            fit=round(score, 2),
            summary_only=p.summary,
        )
        for score, p in hits
    )
    sources = tuple(library.source(file, today) for file in dict.fromkeys(item.file for item in found))
    value = {
        "query": query,
        "searched": len(library.passages),
        "passages": found,
        "reasoning": (Step(rule="nepa.search", said=f"{len(found)} of {len(library.passages)} passages fit"),),
        "recommendations": _read_the_text(found),
    }
    said = " ".join(f"{item.citation} ({item.title}): {item.text}" for item in found[:2])
    label = " Summaries written for this application, not the legal text." if found[0].summary_only else ""
    trust = confidence(today(), sources, sum(not item.summary_only for item in found) + 1, len(found) + 1)
    made = finding(Passages, said + label, value, sources, trust)
    return msgspec.structs.replace(made, snippets=tuple(item.text for item in found))


def _read_the_text(found: Sequence[Found]) -> tuple[Recommendation, ...]:
    if not any(item.summary_only for item in found):
        return ()
    return (Recommendation(rule="nepa.search", text=f"read {found[0].citation} itself before relying on a summary"),)
