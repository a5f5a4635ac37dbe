"""Sentences to vectors: the port, and the weights that the extras bring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from interlock.embedding.minilm import MiniLm, MissingWeights
from interlock.embedding.wordpiece import vocabulary

__all__ = ["Embedder", "MiniLm", "MissingWeights", "vocabulary"]


class Embedder(Protocol):
    """What makes vectors of texts. Vectors under one name can be compared with each other, and with no others."""

    @property
    def name(self) -> str:
        """Of the weights: what was embedded under another name is not compared."""
        ...

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        ...

    def embed(self, texts: Sequence[str]) -> Any:
        """One unit vector a text, as the rows of a numpy array; may be called from any thread."""
        ...
