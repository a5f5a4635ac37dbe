"""A memory of 100,000 chunks: hybrid queries, what ingesting costs beside the embedding, and what it holds in memory.

    .venv/bin/python benchmarks/memory.py [--chunks 100000] [--queries 300] [--write]

Texts are made of words as often as in a language (Zipf). The first thousand chunks are really embedded, which gives
the share; the others get a vector of these with noise, so that a hundred thousand are there in minutes. Queries are
embedded as always.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from interlock.embedding import MiniLm
from interlock.embedding.wordpiece import vocabulary
from interlock.memory import Document, DocumentKind, Memory
from interlock.values import Trust

PAGE = Path(__file__).parent.parent / "docs" / "memory-speed.md"
SPACES = ("default", "personal", "research", "web")
CHUNKS_EACH = 20
REAL = 1_000


class MostlyNoise:
    """The real embedder for what is measured, and vectors like its own for the rest."""

    name, dimensions = MiniLm.name, MiniLm.dimensions

    def __init__(self) -> None:
        self._real = MiniLm()
        self._random = np.random.default_rng(7)
        self._pool: Any = np.zeros((0, self.dimensions), dtype=np.float32)
        self.is_real = True
        self.seconds = 0.0

    def embed(self, texts: Sequence[str]) -> Any:
        start = time.perf_counter()
        if self.is_real:
            rows = self._real.embed(texts)
            if len(texts) > 1:
                self._pool = np.concatenate([self._pool, rows])
        else:
            chosen = self._pool[self._random.integers(0, len(self._pool), len(texts))]
            noise = self._random.standard_normal(chosen.shape).astype(np.float32) / np.sqrt(self.dimensions)
            rows = chosen + 0.7 * noise
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        self.seconds += time.perf_counter() - start
        return rows


class Writer:
    """Texts of words that are as often as in a language."""

    def __init__(self) -> None:
        self._random = random.Random(11)
        words = sorted(word for word in vocabulary() if word.isascii() and word.isalpha() and len(word) > 2)
        self._random.shuffle(words)
        self._words = words
        self._weights = np.cumsum([1 / (rank + 3) for rank in range(len(words))]).tolist()

    def sentence(self, count: int) -> str:
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=count))

    def document(self, number: int) -> Document:
        paragraphs = [f"{self.sentence(50)}." for _ in range(CHUNKS_EACH)]
        web = number % 4 == 3
        return Document(
            text="\n\n".join(paragraphs),
            source=f"https://host{number % 50}.example/{number}" if web else f"file:///notes/{number}",
            title=self.sentence(4),
            namespace=SPACES[number % 4],
            kind=DocumentKind.WEB if web else DocumentKind.NOTE,
            trust=Trust.UNTRUSTED if web else Trust.TRUSTED,
        )

    def query(self) -> str:
        return self.sentence(self._random.randint(2, 9))


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def percentiles(seconds: Sequence[float]) -> str:
    cuts = statistics.quantiles(seconds, n=20)
    return f"{statistics.median(seconds) * 1e3:.1f} / {cuts[-1] * 1e3:.1f} ms"


async def timed_queries(memory: Memory, writer: Writer, count: int, **filters: Any) -> str:
    """By the clock, and in time of the processor, which a busy machine does not stretch as much."""
    taken, worked = [], []
    for _ in range(count):
        query = writer.query()
        start, began = time.perf_counter(), time.process_time()
        await memory.search(query, top_k=8, **filters)
        taken.append(time.perf_counter() - start)
        worked.append(time.process_time() - began)
    return f"{percentiles(taken)} (processor: {percentiles(worked)})"


async def ingest(memory: Memory, writer: Writer, embedder: MostlyNoise, chunks: int) -> list[tuple[str, str]]:
    number = REAL // CHUNKS_EACH
    documents = [writer.document(n) for n in range(number)]
    await memory.search("to have everything loaded")
    embedder.seconds, start = 0.0, time.perf_counter()
    landed = await memory.ingest_many(documents)
    whole, real = time.perf_counter() - start, sum(one.chunks for one in landed)
    share = embedder.seconds / whole
    embedder.is_real, embedder.seconds, start, done = False, 0.0, time.perf_counter(), real
    while done < chunks:
        landed = await memory.ingest_many([writer.document(n) for n in range(number, number + 100)])
        number, done = number + 100, done + sum(one.chunks for one in landed)
    rest = time.perf_counter() - start - embedder.seconds
    return [
        (f"ingest, {real:,} chunks really embedded", f"{real / whole:,.0f} chunks/s; {share:.1%} of it is embedding"),
        ("ingest without the embedding, the other chunks", f"{rest / max(1, done - real) * 1e3:.2f} ms a chunk"),
        ("chunks", f"{done:,}"),
    ]


async def measure(chunks: int, queries: int, url: str) -> list[tuple[str, str]]:
    writer, embedder = Writer(), MostlyNoise()
    async with Memory.open(url, namespaces=SPACES, embedder=embedder) as memory:
        rows = await ingest(memory, writer, embedder, chunks)
        kind = (await memory.state()).vectors
    embedder.is_real = True
    async with Memory.open(url, namespaces=SPACES, embedder=embedder) as memory:
        before, start = resident_mb(), time.perf_counter()
        await memory.search("first")
        rows += [
            (f"first query of a process ({kind})", f"{(time.perf_counter() - start) * 1e3:,.0f} ms"),
            ("resident memory for the vectors", f"{resident_mb() - before:,.0f} MB"),
        ]
        rows.append(("hybrid query, everything, p50 / p95", await timed_queries(memory, writer, queries)))
        before = resident_mb()
        some = await timed_queries(memory, writer, queries, namespace="research")
        rows.append(("hybrid query, one namespace of four, p50 / p95", some))
        few = await timed_queries(memory, writer, queries, source="https://host3.example/*", kind="web")
        rows.append(("hybrid query, one source of fifty, p50 / p95", few))
        rows.append((f"resident memory, {2 * queries:,} queries later", f"{resident_mb() - before:+.1f} MB"))
        start = time.perf_counter()
        gone = await memory.forget(source="https://host3.example/*", reason="benchmark")
        rows.append((f"forget {gone.documents} documents", f"{time.perf_counter() - start:.2f} s"))
        start = time.perf_counter()
        await memory.ingest(writer.document(0))
        rows.append(("ingest of one document of twenty chunks", f"{(time.perf_counter() - start) * 1e3:,.0f} ms"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--url", default="")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interlock-memory-") as folder:
        rows = asyncio.run(measure(given.chunks, given.queries, given.url or f"sqlite:///{folder}/memory.db"))
        if not given.url:
            rows.append(("file", f"{Path(folder, 'memory.db').stat().st_size / 1e6:,.0f} MB"))
    table = ["| what | figure |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in rows)]
    print("\n".join(table))
    if given.write:
        load = " ".join(f"{value:.1f}" for value in os.getloadavg())
        head = (
            "# The speed of a memory\n\nWritten by `python benchmarks/memory.py --write`, on"
            f" {os.cpu_count()} cores with a load of {load} at the end.\n"
        )
        PAGE.write_text("\n".join([head, *table, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
