"""Forget really forgets: nothing is left in the bytes of the files; what is left is a tombstone and a record."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from interlock import ConfigError, Runtime, Trust
from interlock.memory import Document, Memory, StatedFact
from interlock.memory.documents import DAY_S
from interlock.ports import Query
from interlock.testing import ManualClock
from tests.conftest import expect, running
from tests.memory_parts import SmallEmbedder, note, page, texts

SECRET = "zanzibarine quicksilver hummingbirds"
"""Words that stand nowhere else."""
OTHERS = [f"An ordinary note number {n} about gardens, trains and bread of kind{n}." for n in range(400)]


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=SmallEmbedder()) as memory:
        yield memory


def left_behind(folder: Path, *needles: bytes) -> list[tuple[str, bytes]]:
    """The files that still hold something."""
    return [
        (file.name, needle)
        for file in sorted(folder.iterdir())
        for needle in needles
        if needle in file.read_bytes().lower()
    ]


def stored_vector(file: Path, document: str) -> bytes:
    with sqlite3.connect(file) as connection:
        (codes,) = connection.execute(
            "SELECT codes FROM memory_vectors WHERE document = (SELECT number FROM memory_documents WHERE id = ?)",
            (document,),
        ).fetchone()
    connection.close()
    return bytes(codes)


async def test_text_words_vector_title_and_source_are_gone_from_the_files(memory: Memory, tmp_path: Path) -> None:
    await memory.ingest_many([note(text) for text in OTHERS[:200]])
    landed = await memory.ingest(
        note(
            f"Remember the {SECRET}. {'It is long. ' * 300}",
            "https://secretsource.example/x",
            title="Zebrafinch title",
            key="sesamekey",
            metadata={"who": "marmosetdata"},
        )
    )
    await memory.ingest_many([note(text) for text in OTHERS[200:]])
    assert (await memory.search(SECRET)).hits[0].document == landed.document
    words = ["zanzibarin", "quicksilv", "hummingbird", "secretsource", "zebrafinch", "sesamekey", "marmosetdata"]
    needles = [word.encode() for word in words]
    assert {needle for _file, needle in left_behind(tmp_path, *needles)} == set(needles)
    vector = stored_vector(tmp_path / "m.db", landed.document)
    gone = await memory.forget(document=landed.document, reason="asked")
    assert (gone.documents, gone.lingers) == (1, False)
    # While it is open: whoever copies the files now finds nothing.
    assert left_behind(tmp_path, *needles) == []
    assert [file.name for file in tmp_path.iterdir() if vector in file.read_bytes()] == []
    assert len(await texts(memory, "ordinary gardens", top_k=50)) == 50


async def test_what_was_replaced_is_gone_from_the_bytes_with_the_next_forget(memory: Memory, tmp_path: Path) -> None:
    await memory.ingest(note(f"first form: {SECRET}", key="k", replaces=True))
    await memory.ingest(note("second form", key="k", replaces=True))
    assert {file for file, _needle in left_behind(tmp_path, b"zanzibarin")} == {"m.db"}  # in the index, not in the log
    await memory.forget(key="nothing at all", reason="to be sure")
    assert left_behind(tmp_path, b"zanzibarin", b"quicksilv") == []


async def test_what_has_expired_is_gone_from_the_bytes_with_a_purge_or_a_wipe(tmp_path: Path) -> None:
    clock = ManualClock()
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=None, clock=clock) as memory:
        await memory.ingest_many([note(OTHERS[0]), page(f"Remember the {SECRET}.")])
        clock.advance(8 * DAY_S)
        assert await memory.purge() == 1
        assert left_behind(tmp_path, b"zanzibarin", b"quicksilv") == []
        await memory.ingest(page(f"Remember the {SECRET}."))
        clock.advance(8 * DAY_S)
        await memory.ingest(note("something else"))
        assert await memory.wipe()
        assert left_behind(tmp_path, b"zanzibarin", b"quicksilv") == []


async def test_the_name_of_a_source_goes_from_a_fact_that_another_source_states_too(
    memory: Memory, tmp_path: Path
) -> None:
    for source in ("chat", "mail of marmoset"):
        await memory.state_fact(
            StatedFact(subject="user", predicate="lives in", value="Bern", source=source, trust=Trust.TRUSTED)
        )
    gone = await memory.forget(source="mail of marmoset", reason="asked")
    assert (gone.documents, gone.kept, gone.facts) == (0, 1, 0)
    assert [fact.source for fact in await memory.facts("user")] == ["chat"]
    assert left_behind(tmp_path, b"marmoset") == []


async def test_a_forget_that_nobody_waits_for_wipes_all_the_same(memory: Memory, tmp_path: Path) -> None:
    await memory.ingest_many([note(text) for text in [*OTHERS[:50], f"Remember the {SECRET}."]])
    loop = asyncio.get_running_loop()

    def give_up(point: str) -> None:
        loop.call_soon_threadsafe(task.cancel)

    memory._database.at = give_up
    task = asyncio.create_task(memory.forget(source="chat", reason="asked"))
    with pytest.raises(asyncio.CancelledError):
        await task
    await memory._database.write(lambda connection: None)  # behind what runs
    assert (await memory.state()).documents == 0
    assert left_behind(tmp_path, b"zanzibarin", b"quicksilv") == []


async def test_that_a_wipe_is_owed_outlives_the_process(memory: Memory, tmp_path: Path) -> None:
    await memory.ingest(note(f"Remember the {SECRET}."))
    reader = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memory_documents").fetchone()
    assert (await memory.forget(source="chat", reason="asked")).lingers
    reader.close()
    assert left_behind(tmp_path, b"quicksilv") != []
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=None):  # as after a crash of the first one
        assert left_behind(tmp_path, b"quicksilv") == []


async def test_on_a_server_vectors_and_keys_are_vacuumed_too(postgres: str) -> None:
    async with Memory.open(postgres, embedder=SmallEmbedder()) as memory:
        await memory.ingest_many([note(text, key="k") for text in OTHERS[:50]])
        assert (await memory.forget(key="k", reason="asked")).documents == 50
    wanted = {f"memory_{name}" for name in ("chunks", "documents", "sources", "keys", "facts", "embeddings")}
    for _time in range(100):
        with psycopg.connect(postgres, autocommit=True) as connection:
            rows = connection.execute("SELECT relname FROM pg_stat_user_tables WHERE vacuum_count > 0").fetchall()
        if wanted <= {row[0] for row in rows}:
            return
        await asyncio.sleep(0.1)  # the server counts a little later
    raise AssertionError(f"vacuumed: {sorted(rows)}")


async def test_a_fact_is_gone_with_its_history(memory: Memory, tmp_path: Path) -> None:
    for value in ("Quicksilverton", "Hummingbirdham"):
        await memory.state_fact(
            StatedFact(subject="user", predicate="lives in", value=value, source="chat", trust=Trust.TRUSTED)
        )
    gone = await memory.forget(key="user/lives in", reason="asked")
    assert (gone.documents, gone.facts) == (2, 2)
    assert left_behind(tmp_path, b"quicksilv", b"hummingbird") == []


async def test_where_somebody_reads_the_log_lingers_and_that_is_said(memory: Memory, tmp_path: Path) -> None:
    await memory.ingest(note(f"Remember the {SECRET}."))
    reader = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memory_documents").fetchone()
    gone = await memory.forget(source="chat", reason="asked")
    assert gone.lingers
    assert await texts(memory, SECRET) == []
    reader.execute("COMMIT")
    reader.close()
    assert await memory.wipe()
    assert left_behind(tmp_path, b"quicksilv") == []


async def test_what_lingers_goes_when_the_memory_is_closed(tmp_path: Path) -> None:
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=None) as memory:
        await memory.ingest(note(f"Remember the {SECRET}."))
        reader = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memory_documents").fetchone()
        assert (await memory.forget(source="chat", reason="asked")).lingers
        reader.close()
    assert left_behind(tmp_path, b"quicksilv") == []


async def test_the_vector_is_gone_from_the_copies_in_memory(memory: Memory, tmp_path: Path) -> None:
    landed = await memory.ingest_many([note(text) for text in OTHERS[:20]])
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=SmallEmbedder()) as other:
        for each in (memory, other):
            await each.search("gardens")
        await memory.forget(document=landed[3].document, reason="asked")
        assert await other.wipe()
        for each in (memory, other):
            (block,) = each._tables.vectors._blocks  # type: ignore[union-attr]
            held = [bool(row.any()) for row in block.codes[:20]]
            assert held == [n != 3 for n in range(20)]
            assert not block.signs[:, 3].any()


async def test_a_tombstone_holds_nothing_that_could_be_guessed(tmp_path: Path) -> None:
    digests = []
    for name in ("a", "b"):
        async with Memory.open(f"sqlite:///{tmp_path / name}.db", embedder=None) as memory:
            landed = await memory.ingest(note("nuts"))
            await memory.forget(document=landed.document, reason="asked")
            (stone,) = await memory.tombstones()
            digests.append(stone.digest)
            assert landed.document not in repr(stone)
    assert digests[0] != digests[1]


async def test_the_ledger_says_that_something_was_forgotten_and_not_what(memory: Memory) -> None:
    async with running() as runtime:
        await memory.ingest(page("buy zorkmids", "https://zorkmid.example"))
        gone = await memory.forget(source="https://zorkmid.example", reason="request 17", runtime=runtime)
        record = await _record(runtime, expect(gone.record))
        assert (record.kind, record.status, record.actor) == ("erasure", "forgotten", runtime.principal)
        said = record.content().arguments
        assert (said["by"], said["reason"], said["count"]) == ("memory source", "request 17", 1)
        assert said["tombstones"] == list(gone.tombstones)
        assert "zorkmid" not in str(record.body)
        # What the ledger itself forgets and verifies goes on as before.
        with pytest.raises(Exception, match="no record matches"):
            await runtime.operations.forget(key="shelf/none", reason="x")


async def test_the_ledger_says_who_has_vouched(memory: Memory) -> None:
    async with running() as runtime:
        landed = await memory.ingest(page("the office opens at eight"))
        await memory.vouch(landed.document, reason="I called", by="user:ann", runtime=runtime)
        record = await _record(runtime, 1)
        assert (record.kind, record.status, record.actor) == ("memory", "vouched", "user:ann")
        assert record.content().arguments == {"document": landed.document, "reason": "I called"}


async def test_nobody_forgets_in_the_name_of_the_system(memory: Memory) -> None:
    await memory.ingest(note("stays"))
    async with running() as runtime:
        for by in ("os:somebody", "token:service", "argo", "agent:argo"):
            with pytest.raises(ConfigError, match=r"cannot be given|no person"):
                await memory.forget(source="chat", reason="x", by=by, runtime=runtime)
    assert await texts(memory, "stays") == ["stays"]


async def test_a_search_beside_a_forget_finds_the_document_or_does_not(memory: Memory) -> None:
    landed = await memory.ingest_many([note(text) for text in OTHERS[:60]])

    async def search() -> None:
        for _ in range(10):
            for hit in (await memory.search("ordinary gardens", top_k=50)).hits:
                assert hit.snippet

    async def forget() -> None:
        for one in landed[:10]:
            await memory.forget(document=one.document, reason="x")

    await asyncio.gather(search(), search(), forget())
    assert (await memory.state()).documents == 50


async def test_a_document_that_was_forgotten_says_so_when_it_comes_back(memory: Memory) -> None:
    document = Document(text="once more", source="chat", trust=Trust.TRUSTED)
    assert (await memory.ingest(document)).forgotten_us is None
    await memory.forget(source="chat", reason="x")
    assert (await memory.ingest(document)).forgotten_us is not None


async def _record(runtime: Runtime, number: int):  # type: ignore[no-untyped-def]
    (record,) = [item async for item in runtime.store.records(Query(after=number - 1, until=number))]
    return record
