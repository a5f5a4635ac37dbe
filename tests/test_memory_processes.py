"""Several processes on one memory, processes that are killed in the middle, and callers who give up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from interlock import StoreError
from interlock.memory import Memory
from tests.memory_parts import SmallEmbedder, note, texts

ROOT = Path(__file__).parent.parent
KILLED_AT = ("memory.document", "memory.chunks", "memory.words", "memory.vectors", "memory.commit")
CHILD = """
import asyncio, os, signal, sys
from interlock.memory import Memory
from tests.memory_parts import SmallEmbedder, note

class Kill:
    def __init__(self, point, times):
        self.point, self.left = point, times
    def at(self, point):
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

async def main(url, what, *more):
    if what == "killed":
        async with Memory.open(url, embedder=SmallEmbedder()) as memory:
            await memory.ingest(note("alpha whole"))
        # Points of opening come first: the commit that makes the tables is not the one that is meant.
        kill = Kill(more[0], 1)
        memory = Memory.open(url, embedder=SmallEmbedder())
        memory._database.at = kill.at
        await memory.ingest(note("# a\\n\\nbeta half\\n\\n# b\\n\\nbeta other half"))
    else:
        async with Memory.open(url, embedder=SmallEmbedder()) as memory:
            for n in range(int(more[1])):
                await memory.ingest(note(f"{more[0]} wrote number {n}"))
                await memory.ingest(note(f"both wrote number {n}", more[0]))

asyncio.run(main(*sys.argv[1:]))
"""


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(CHILD), *arguments], cwd=ROOT)


@pytest.mark.parametrize("point", KILLED_AT)
async def test_whoever_is_killed_in_the_middle_leaves_no_half_document(tmp_path: Path, point: str) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    child = start(url, "killed", point)
    assert await asyncio.to_thread(child.wait, 120) == -9
    async with Memory.open(url, embedder=SmallEmbedder()) as memory:
        state = await memory.state()
        assert (state.documents, state.chunks, state.embedded) == (1, 1, 1)
        assert await texts(memory, "alpha beta") == ["alpha whole"]
        landed = await memory.ingest(note("# a\n\nbeta half\n\n# b\n\nbeta other half"))
        assert (landed.new, landed.chunks) == (True, 2)
        assert len(await texts(memory, "beta half")) >= 2


@pytest.mark.parametrize("durable", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
async def test_processes_side_by_side_keep_one_copy_of_what_both_say(
    tmp_path: Path, durable: str, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    if durable == "postgres":
        url = request.getfixturevalue("postgres")
    children = [start(url, "writes", name, "12") for name in ("ann", "bob")]
    async with Memory.open(url, embedder=SmallEmbedder()) as memory:
        while any(child.poll() is None for child in children):
            await memory.search("wrote number")
            await asyncio.sleep(0.05)
        assert [child.returncode for child in children] == [0, 0]
        state = await memory.state()
        assert (state.documents, state.chunks, state.embedded) == (36, 36, 36)
        assert len(await texts(memory, "wrote number", top_k=50)) == 36
        (hit, *_) = (await memory.search("both wrote number 7")).hits
        chunk = await memory.fetch(hit.chunk)
        assert sorted(chunk.sources) == ["ann", "bob"]  # type: ignore[union-attr]


class SlowEmbedder(SmallEmbedder):
    """Says when it has begun, and waits until it may go on."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self._loop = loop

    def embed(self, texts):  # type: ignore[no-untyped-def]
        self._loop.call_soon_threadsafe(self.begun.set)
        return super().embed(texts)


async def test_whoever_gives_up_leaves_a_document_whole_or_not_at_all(tmp_path: Path) -> None:
    embedder = SlowEmbedder(asyncio.get_running_loop())
    document = note("\n\n".join(f"# Part {n}\n\nword{n} of a long text" for n in range(200)))
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=embedder) as memory:
        for steps in (0, 1, 3, 10, 30):
            task = asyncio.create_task(memory.ingest(document))
            await embedder.begun.wait()
            embedder.begun.clear()
            for _ in range(steps):
                await asyncio.sleep(0.002)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            state = await memory.state()
            assert (state.documents, state.chunks) in ((0, 0), (1, 200))
            if state.documents:
                break
        assert (await memory.ingest(document)).chunks == 200
        assert (await memory.state()).embedded == 200


async def test_the_event_loop_goes_on_while_documents_are_taken_in(tmp_path: Path) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=SmallEmbedder()) as memory:
        await memory.ingest_many([note(f"word{n} " * 60) for n in range(300)])
    ticking.cancel()
    assert ticks > 20


async def test_a_file_that_was_removed_takes_nothing_more(tmp_path: Path) -> None:
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=None) as memory:
        await memory.ingest(note("one"))
        (tmp_path / "m.db").unlink()
        with pytest.raises(StoreError, match="removed or replaced"):
            await memory.ingest(note("two"))


async def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=None) as memory:
        await memory.ingest(note("one"))
        for file in tmp_path.iterdir():
            assert file.stat().st_mode & 0o077 == 0, file
