"""What tests of memories share: a small embedder, and documents in one line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from interlock.memory import Chunk, ChunkMiss, Document, DocumentKind, Memory
from interlock.values import Trust

SAME = {"car": "automobile", "cars": "automobile", "doctor": "physician", "buy": "purchase", "bought": "purchase"}
"""Words that mean the same to the small embedder."""


class SmallEmbedder:
    """Vectors of words: each word is a direction of its own, and a few mean the same. Counts what it is asked."""

    name = "small"
    dimensions = 192

    def __init__(self) -> None:
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> Any:
        self.texts += len(texts)
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                digest = hashlib.sha256(SAME.get(word, word).encode()).digest()
                row += np.where(np.unpackbits(np.frombuffer(digest[:24], dtype=np.uint8)) > 0, 1.0, -1.0)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def note(text: str, source: str = "chat", **more: Any) -> Document:
    """What the user has said."""
    return Document(text=text, source=source, **{"trust": Trust.TRUSTED, **more})


def page(text: str, source: str = "https://a.example/1", **more: Any) -> Document:
    """What stands on the web."""
    return Document(text=text, source=source, kind=DocumentKind.WEB, **more)


async def texts(memory: Memory, query: str, **more: Any) -> list[str]:
    """The snippets of what a search finds."""
    return [hit.snippet for hit in (await memory.search(query, **more)).hits]


def there(found: Chunk | ChunkMiss) -> Chunk:
    """A chunk that must be there."""
    assert isinstance(found, Chunk), found
    return found
