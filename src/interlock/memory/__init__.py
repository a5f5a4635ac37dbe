"""What an agent remembers: documents, facts and summaries, found by words and meaning, and forgotten for good."""

from __future__ import annotations

from interlock.memory.documents import (
    Chunk,
    ChunkMiss,
    Document,
    DocumentKind,
    FactState,
    Forgotten,
    Ingested,
    KeptDocument,
    MemoryState,
    MissReason,
    RememberedFact,
    Retention,
    SearchHit,
    SearchResult,
    Tombstone,
)
from interlock.memory.facts import StatedFact
from interlock.memory.limits import MemoryLimits
from interlock.memory.memory import Memory

__all__ = [
    "Chunk",
    "ChunkMiss",
    "Document",
    "DocumentKind",
    "FactState",
    "Forgotten",
    "Ingested",
    "KeptDocument",
    "Memory",
    "MemoryLimits",
    "MemoryState",
    "MissReason",
    "RememberedFact",
    "Retention",
    "SearchHit",
    "SearchResult",
    "StatedFact",
    "Tombstone",
]
