"""Vectors that are compared in this process: what is found is what an exact search finds, whatever is added and goes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interlock.memory import Memory
from interlock.memory import vectors as vectors_module
from tests.memory_parts import note, page

COUNT = 1_200


class Numbered:
    """A random direction for each text "n…": so it is known what is near to what."""

    name = "numbered"
    dimensions = 100  # no multiple of sixty-four

    def __init__(self) -> None:
        rows = np.random.default_rng(3).standard_normal((COUNT + 1, self.dimensions)).astype(np.float32)
        self.rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed(self, texts: Sequence[str]) -> Any:
        return np.array([self.rows[int(text.strip().split()[0][1:])] for text in texts])


@pytest.fixture
def embedder() -> Numbered:
    return Numbered()


@pytest.fixture
async def memory(tmp_path: Path, embedder: Numbered, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Memory]:
    # So that a thousand rows are many: several blocks, several pages, and a search by signs.
    for name, value in {"_BLOCK": 256, "_PAGE": 100, "_FEW": 50, "_CANDIDATES": 150}.items():
        monkeypatch.setattr(vectors_module, name, value)
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=embedder) as memory:
        yield memory


async def near(memory: Memory, number: int, **more: Any) -> list[int]:
    result = await memory.search(f"n{number}", top_k=50, **more)
    return [int(hit.snippet.split()[0][1:]) for hit in result.hits if "vectors" in hit.by]


def truth(embedder: Numbered, number: int, among: Sequence[int], most: int) -> list[int]:
    likeness = embedder.rows[list(among)] @ embedder.rows[number]
    order = np.argsort(-likeness)[:most]
    return [among[place] for place in order if likeness[place] >= 0.21]


async def test_what_is_near_is_found_also_after_additions_and_removals(memory: Memory, embedder: Numbered) -> None:
    landed = await memory.ingest_many(
        [note(f"n{n} note") if n % 2 else page(f"n{n} page", f"https://h.example/{n % 7}") for n in range(COUNT)]
    )
    everything = list(range(COUNT))
    found = total = 0
    for number in range(0, COUNT, 100):
        wanted = truth(embedder, number, everything, 10)
        seen = await near(memory, number)
        assert number in seen
        found += len(set(seen) & set(wanted))
        total += len(wanted)
    assert found / total > 0.7  # of directions at random, the hardest there are
    webs = await near(memory, 100, kind="web", source="https://h.example/2")
    assert webs == [n for n in webs if n % 2 == 0 and n % 7 == 2]
    assert 100 in webs
    for n in range(40):
        await memory.forget(document=landed[n].document, reason="x")
    assert 8 not in await near(memory, 8)
    assert 1000 in await near(memory, 1000)
    await memory.ingest(note("n8 again"))
    assert 8 in await near(memory, 8)


async def test_once_many_have_gone_the_copy_is_made_anew(memory: Memory) -> None:
    await memory.ingest_many([note(f"n{n} note", f"s{n % 2}") for n in range(400)])
    assert 7 in await near(memory, 7)
    assert (await memory.forget(source="s1", reason="x")).documents == 200
    await memory.ingest(note("n401 one more"))
    assert 8 in await near(memory, 8)
    assert 401 in await near(memory, 401)
    packed: Any = memory._tables.vectors
    assert packed._rows == 201


async def test_bytes_are_as_good_as_numbers(embedder: Numbered) -> None:
    packed = vectors_module.PackedVectors(embedder.dimensions)
    stored = packed.pack(embedder.rows[:50])
    rows = np.array([np.frombuffer(codes, dtype=np.int8) * scale for scale, codes in stored])
    assert np.abs((rows * embedder.rows[:50]).sum(axis=1) - 1).max() < 0.01
    ((scale, codes),) = packed.pack(np.zeros((1, 100), dtype=np.float32))
    assert scale > 0
    assert not any(codes)
