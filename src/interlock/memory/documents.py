"""What is remembered, and what is given back of it: frozen values."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from interlock.values import Trust

DAY_S = 86_400.0


class DocumentKind(StrEnum):
    """What a document is."""

    NOTE = "note"
    FILE = "file"
    WEB = "web"
    FACT = "fact"
    SUMMARY = "summary"


class Retention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a document is kept, and how fast it loses rank; without a number, for ever and not at all."""

    keep_s: float | None = None
    half_life_s: float | None = None


RETENTIONS: dict[DocumentKind, Retention] = {
    DocumentKind.NOTE: Retention(),
    DocumentKind.FILE: Retention(),
    DocumentKind.WEB: Retention(keep_s=7 * DAY_S, half_life_s=3 * DAY_S),
    DocumentKind.FACT: Retention(),
    DocumentKind.SUMMARY: Retention(),
}
"""What holds for a document that does not say: a page is a copy of something that moves on, the others are not."""


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something to be remembered. Who does not say that it may be believed has said that it may not."""

    text: str
    source: str
    """Where it comes from: an address, a file, a conversation."""
    title: str = ""
    time_us: int | None = None
    """When it was written or fetched; now, if nobody says."""
    trust: Trust = Trust.UNTRUSTED
    namespace: str = "default"
    kind: DocumentKind = DocumentKind.NOTE
    key: str = ""
    """A name of the caller's own, by which it is replaced or forgotten."""
    metadata: dict[str, str | int | float | bool] = {}
    retention: Retention | None = None
    """That of its kind, if nobody says."""
    replaces: bool = False
    """Whether other documents under its key go: an older state of the same file."""


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a document that was handed over."""

    document: str
    """The id of the document."""
    new: bool
    """Whether its text was not there before; otherwise its source and time were added to what is there."""
    chunks: int
    trust: Trust
    """As it is kept: the lower one, where it was there under another label."""
    namespace: str
    embedded: bool
    """Whether it is found by its meaning, and not by its words alone."""
    replaced: int = 0
    """How many older documents under its key went."""
    forgotten_us: int | None = None
    """When a document with this text was forgotten here; None if none was."""


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk that was found, as a model is shown it: enough to decide whether to fetch it."""

    chunk: str
    document: str
    snippet: str
    score: float
    """Between 0 and 1: 1 is first by words and by meaning, and fresh."""
    source: str
    """The one that was added last."""
    title: str
    heading: str
    time_us: int
    age_s: float
    trust: Trust
    kind: DocumentKind
    namespace: str
    by: tuple[str, ...]
    """What has found it: words, vectors."""


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a search has found, best first."""

    hits: tuple[SearchHit, ...]
    note: str = ""
    """What the search could not do, in a sentence: without an embedding model it goes by words alone."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a document, as it stands there."""

    id: str
    document: str
    position: int
    of: int
    """How many chunks the document has."""
    heading: str
    text: str
    before: str
    """What stands before it, where neighbours were asked for."""
    after: str
    sources: tuple[str, ...]
    title: str
    time_us: int
    age_s: float
    trust: Trust
    kind: DocumentKind
    namespace: str
    key: str
    metadata: dict[str, str | int | float | bool]
    vouched_by: str = ""
    """Who has vouched for it, where it came in untrusted."""


class KeptDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it is remembered, as a whole."""

    id: str
    text: str
    sources: tuple[str, ...]
    title: str
    time_us: int
    trust: Trust
    kind: DocumentKind
    namespace: str
    key: str
    metadata: dict[str, str | int | float | bool]
    chunks: int
    vouched_by: str = ""


class MissReason(StrEnum):
    """Why there is no chunk under an id."""

    UNKNOWN = "unknown"
    EXPIRED = "expired"


class ChunkMiss(msgspec.Struct, frozen=True, kw_only=True):
    """There is no such chunk; that is an answer, and no error."""

    id: str
    reason: MissReason
    message: str


class FactState(StrEnum):
    """How a statement stands to the others about the same thing."""

    CURRENT = "current"
    REPLACED = "replaced"
    """A newer one holds."""
    CONTESTED = "contested"
    """An untrusted one that contradicts a trusted one: it is kept, and does not hold."""


class RememberedFact(msgspec.Struct, frozen=True, kw_only=True):
    """One statement: subject, predicate, value; from when until when it held."""

    id: str
    namespace: str
    subject: str
    predicate: str
    value: str
    source: str
    trust: Trust
    state: FactState
    since_us: int
    until_us: int | None = None
    vouched_by: str = ""


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a document that was forgotten: nothing of its text, its source or its title."""

    id: str
    digest: str
    """A keyed digest of its text: the same text is recognised, and nobody can guess it."""
    namespace: str
    at_us: int
    by: str
    reason: str


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What a forget has removed, and what it has not."""

    documents: int
    chunks: int
    facts: int
    kept: int = 0
    """Documents that another source has too: that one source is gone, the text is not."""
    tombstones: tuple[str, ...] = ()
    record: int | None = None
    """The record in the ledger that says so, where a runtime was at hand."""
    lingers: bool = False
    """Whether the log of a SQLite file still holds what was removed, as somebody reads there: call `wipe` later."""


class MemoryState(msgspec.Struct, frozen=True, kw_only=True):
    """How much is remembered, and how it is searched."""

    documents: int
    chunks: int
    embedded: int
    """Chunks that have a vector."""
    namespaces: tuple[str, ...]
    vectors: str
    """What compares vectors: packed (in this process), pgvector, or none."""
    embedder: str
