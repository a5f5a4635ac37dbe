"""What nobody who brings a text may do to what others have brought, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import InvalidInput
from interlock.memory import DocumentKind, FactState, Memory, Retention, StatedFact, matching
from interlock.memory.documents import DAY_S
from interlock.stores.dialect import Connection
from interlock.testing import ManualClock
from interlock.values import Trust
from tests.memory_parts import SmallEmbedder, note, page, texts, there

WEEK_US = 7 * 86_400 * 10**6


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'memory.db'}"
    return str(request.getfixturevalue("postgres"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def reopen(url: str, clock: ManualClock) -> Callable[..., Memory]:
    def make(**more: object) -> Memory:
        return Memory.open(url, **{"embedder": SmallEmbedder(), "clock": clock, **more})  # type: ignore[arg-type]

    return make


@pytest.fixture
async def memory(reopen: Callable[..., Memory]) -> AsyncIterator[Memory]:
    async with reopen() as memory:
        yield memory


def said(value: str, **more: object) -> StatedFact:
    given = {"subject": "user", "predicate": "lives in", "source": "chat", "trust": Trust.TRUSTED, **more}
    return StatedFact(value=value, **given)  # type: ignore[arg-type]


def rumour(value: str, **more: object) -> StatedFact:
    return said(value, **{"source": "mail", "trust": Trust.UNTRUSTED, **more})


async def states(memory: Memory) -> dict[str, str]:
    return {fact.value: fact.state.value for fact in await memory.facts("user", state=None)}


@pytest.mark.parametrize("at_us", [10**15, 0, -WEEK_US])
async def test_an_untrusted_fact_holds_against_no_trusted_one_whatever_its_date(
    memory: Memory, clock: ManualClock, at_us: int
) -> None:
    await memory.state_fact(said("Bern"))
    clock.advance(60)
    claimed = await memory.state_fact(rumour("Minsk", since_us=clock.now_us() + at_us))
    assert claimed.state is FactState.CONTESTED
    assert await states(memory) == {"Bern": "current", "Minsk": "contested"}


@pytest.mark.parametrize(("rumour_us", "said_us"), [(10**15, 0), (0, -WEEK_US), (-WEEK_US, 0)])
async def test_a_trusted_fact_displaces_an_untrusted_one_whatever_their_dates(
    memory: Memory, clock: ManualClock, rumour_us: int, said_us: int
) -> None:
    await memory.state_fact(rumour("Minsk", since_us=clock.now_us() + rumour_us))
    clock.advance(60)
    assert (await memory.state_fact(said("Oslo", since_us=clock.now_us() + said_us))).state is FactState.CURRENT
    assert await states(memory) == {"Oslo": "current", "Minsk": "contested" if said_us < rumour_us else "replaced"}


async def test_an_outsider_who_repeats_a_fact_does_not_lower_it(memory: Memory, clock: ManualClock) -> None:
    await memory.state_fact(said("Bern"))
    clock.advance(60)
    again = await memory.state_fact(rumour("Bern"))
    assert (again.trust, again.source) == (Trust.TRUSTED, "chat")
    assert (await memory.state_fact(rumour("Minsk"))).state is FactState.CONTESTED
    assert [fact.value for fact in await memory.facts("user")] == ["Bern"]


async def test_a_fact_that_is_vouched_for_and_was_replaced_meanwhile_is_history(
    memory: Memory, clock: ManualClock
) -> None:
    for one in (said("Bern"), rumour("Minsk"), said("Oslo")):
        await memory.state_fact(one)
        clock.advance(60)
    (hit,) = [hit for hit in (await memory.search("Minsk")).hits if "Minsk" in hit.snippet]
    await memory.vouch(hit.document, reason="she told me", by="user:ann")
    assert await states(memory) == {"Bern": "replaced", "Minsk": "replaced", "Oslo": "current"}
    assert await texts(memory, "user lives", kind="fact") == ["user lives in: Oslo"]


async def test_two_files_of_one_text_are_replaced_one_by_one(memory: Memory) -> None:
    for name in ("a/LICENSE", "b/LICENSE"):
        await memory.ingest(note("permission is granted", name, key=name, replaces=True))
    landed = await memory.ingest(note("other terms", "b/LICENSE", key="b/LICENSE", replaces=True))
    assert landed.replaced == 0
    (kept,) = await memory.documents(key="a/LICENSE")
    assert (kept.text, kept.sources, kept.key) == ("permission is granted", ("a/LICENSE",), "a/LICENSE")
    assert [one.text for one in await memory.documents(key="b/LICENSE")] == ["other terms"]
    landed = await memory.ingest(note("other terms", "a/LICENSE", key="a/LICENSE", replaces=True))
    assert (landed.new, landed.replaced, (await memory.state()).documents) == (False, 1, 1)


async def test_a_page_that_repeats_a_note_and_changes_takes_no_note_with_it(memory: Memory) -> None:
    await memory.ingest(note("Aunt Rosa is allergic to nuts."))
    url = "https://evil.example/"
    for text in ("Aunt Rosa is allergic to nuts.", "Welcome."):
        await memory.ingest(page(text, url, key=url, replaces=True))
    (kept,) = await memory.documents(source="chat")
    assert (kept.sources, kept.key) == (("chat",), "")


async def test_a_key_is_forgotten_whatever_other_keys_the_text_has(memory: Memory) -> None:
    landed = await memory.ingest(note("my password is hunter2", key="secret"))
    await memory.ingest(note("my password is hunter2", "notes.md", key="notes"))
    gone = await memory.forget(key="secret", reason="asked")
    assert (gone.documents, gone.kept) == (0, 1)
    chunk = there(await memory.fetch(f"{landed.document}.0"))
    assert (chunk.sources, chunk.key) == (("notes.md",), "notes")
    assert (await memory.forget(key="notes", reason="asked")).documents == 1
    assert (await memory.state()).documents == 0


async def test_a_fact_is_forgotten_by_its_key_though_a_note_says_the_same(memory: Memory) -> None:
    await memory.state_fact(said("Bern"))
    await memory.state_fact(said("Bern", subject="User"))
    await memory.ingest(note("User lives in: Bern", "notes.md", key="notes.md"))
    gone = await memory.forget(key="user/lives in", reason="asked")
    assert (gone.documents, gone.kept, gone.facts) == (0, 1, 1)
    assert [fact.subject for fact in await memory.facts(state=None)] == ["User"]
    gone = await memory.forget(source="chat", reason="asked")
    assert (gone.documents, gone.kept, gone.facts) == (0, 1, 1)
    assert await memory.facts(state=None) == ()
    (kept,) = await memory.documents()
    assert (kept.kind, kept.sources) == (DocumentKind.NOTE, ("notes.md",))


async def test_no_two_facts_have_one_key(memory: Memory) -> None:
    names = [("a/b", "c"), ("a", "b/c"), ("a\\", "b/c"), ("a\\/b", "c")]
    for subject, predicate in names:
        await memory.state_fact(said(f"{subject} {predicate}", subject=subject, predicate=predicate))
    gone = await memory.forget(key="a/b/c", reason="asked")
    assert (gone.documents, gone.facts) == (1, 1)
    left = {(fact.subject, fact.predicate) for fact in await memory.facts(state=None)}
    assert left == set(names) - {("a", "b/c")}
    assert (await memory.forget(key=r"a\/b/c", reason="asked")).facts == 1


@pytest.mark.parametrize("same", [{"source": "notes.md"}, {"key": "a note of mine"}])
async def test_a_note_that_says_what_a_fact_said_stays_when_the_fact_is_replaced(
    memory: Memory, clock: ManualClock, same: dict[str, str]
) -> None:
    await memory.ingest(note("user lives in: Bern", **same))
    for value in ("Bern", "Oslo"):
        clock.advance(60)
        await memory.state_fact(said(value))
    await memory.ingest(note("something else"))
    assert await texts(memory, "Bern", kind="note") == ["user lives in: Bern"]
    assert await states(memory) == {"Bern": "replaced", "Oslo": "current"}
    gone = await memory.forget(key="user/lives in", reason="x")
    assert (gone.documents, gone.kept, gone.facts) == (1, 1, 2)
    assert await texts(memory, "Bern", kind="note") == ["user lives in: Bern"]


async def test_documents_with_several_sources_are_counted_once(memory: Memory) -> None:
    for number in range(3):
        await memory.ingest(note("one text", f"https://evil.example/{number}"))
    gone = await memory.forget(source="https://evil.example/*", reason="spam")
    assert (gone.documents, gone.kept) == (1, 0)


async def test_a_document_of_another_namespace_is_not_forgotten(memory: Memory) -> None:
    await memory.create_namespace("personal")
    landed = await memory.ingest(note("stays in default"))
    gone = await memory.forget(document=landed.document, namespace="personal", reason="x")
    assert (gone.documents, (await memory.state()).documents) == (0, 1)
    assert (await memory.forget(document=landed.document, namespace="default", reason="x")).documents == 1


async def test_vectors_go_with_their_document_whoever_has_made_them(reopen: Callable[..., Memory]) -> None:
    async with reopen(embedder=None) as plain, reopen() as embedding:  # which makes its table only now
        await embedding.ingest_many([note("my password is hunter2", "a"), note("another", "b")])
        await plain.forget(source="a", reason="asked")
        assert (await plain.state()).embedded == (await embedding.state()).embedded == 1


async def test_a_memory_of_the_first_schema_is_brought_up_to_date(reopen: Callable[..., Memory]) -> None:
    async with reopen() as memory:
        landed = await memory.ingest(note("my password is hunter2", key="secret"))
        await memory.ingest(note("my password is hunter2", "notes.md"))
        await memory.state_fact(said("one", subject="a/b", predicate="c"))
        memory._database.at_once(_make_old)
    async with reopen() as memory:
        assert there(await memory.fetch(f"{landed.document}.0")).key == "secret"
        assert (await memory.forget(key=r"a\/b/c", reason="x")).documents == 1
        assert (await memory.forget(key="secret", reason="x")).documents == 1
    async with reopen() as memory:
        assert (await memory.ingest(note("my password is hunter2", key="secret"))).new


def _make_old(connection: Connection) -> None:
    """The tables as the first version had them."""
    for statement in (
        "ALTER TABLE memory_documents ADD COLUMN key TEXT NOT NULL DEFAULT ''",
        """UPDATE memory_documents SET key = CASE WHEN kind = 'fact' THEN 'a/b/c' ELSE 'secret' END""",
        "DROP TABLE memory_keys",
        "DROP INDEX memory_facts_stand",
        "DROP INDEX memory_facts_of",
        "CREATE INDEX memory_documents_key ON memory_documents (key, namespace)",
        "CREATE INDEX memory_facts_about ON memory_facts (namespace, subject, predicate)",
        "CREATE INDEX memory_facts_document ON memory_facts (document)",
        "UPDATE memory_meta SET value = '1' WHERE name = 'schema'",
    ):
        connection.run(statement)


async def test_a_page_that_comes_back_after_it_expired_has_its_vectors(memory: Memory, clock: ManualClock) -> None:
    for number in range(60):  # more than are removed at once
        await memory.ingest(page(f"filler number {number}"))
    await memory.ingest(page("My automobile stands here"))
    clock.advance(8 * DAY_S)
    landed = await memory.ingest(page("My automobile stands here"))
    assert landed.embedded
    assert (await texts(memory, "car"))[:1] == ["My automobile stands here"]
    await memory.purge()
    clock.advance(8 * DAY_S)
    assert (await memory.ingest(page("My automobile stands here"))).embedded
    assert (await texts(memory, "car"))[:1] == ["My automobile stands here"]


async def test_what_is_said_to_be_embedded_is(memory: Memory, reopen: Callable[..., Memory]) -> None:
    async with reopen(embedder=None) as plain:
        await plain.ingest(note("My automobile stands here"))
    assert not (await memory.ingest(note("My automobile stands here", "again"))).embedded
    await memory.embed_missing()
    again = await memory.ingest(note("My automobile\n\nstands here", "once more"))
    assert (again.new, again.embedded, again.chunks) == (False, True, 1)


async def test_a_memory_of_one_tenant_does_not_open_what_another_has(reopen: Callable[..., Memory]) -> None:
    async with reopen(namespaces=("ann",)) as ann, reopen(namespaces=("bob",)) as bob:
        await ann.ingest(note("the secret of ann", namespace="ann"))
        with pytest.raises(InvalidInput, match=r"is there already.* name it in Memory.open\(namespaces=…\)"):
            await bob.create_namespace("ann")
        assert await bob.namespaces() == ("bob",)
        assert await texts(bob, "secret") == []
        for _time in range(2):
            await bob.create_namespace("more")
        assert await bob.namespaces() == ("bob", "more")


async def test_a_common_word_is_found_however_much_others_have_written_since(
    reopen: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "_COMMON", 5)
    async with reopen(namespaces=("ann",), embedder=None) as ann, reopen(namespaces=("bob",), embedder=None) as bob:
        await ann.ingest(note("invoice of the plumber", namespace="ann"))
        for start in range(0, 10_200, 1_700):
            lines = (f"# {number}\n\ninvoice {number}" for number in range(start, start + 1_700))
            await bob.ingest(note("\n\n".join(lines), namespace="bob"))
        assert await texts(ann, "invoice") == ["invoice of the plumber"]
        assert len(await texts(bob, "invoice", top_k=50)) == 50


async def test_to_state_a_fact_reads_nothing_of_its_long_history(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []
    rows = Connection.rows

    def count(self: Connection, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        found = rows(self, statement, parameters)
        asked.append((statement, len(found)))
        return found

    for number in range(60):
        await memory.state_fact(said(f"place {number}", since_us=number + 1))
    monkeypatch.setattr(Connection, "rows", count)
    await memory.state_fact(said("Bern"))
    assert max(found for _statement, found in asked) <= 3
    assert len(await memory.facts("user", state=None)) == 61
    await memory.purge()
    assert len(await memory.facts("user", state=None)) == 61


@pytest.mark.parametrize(
    "text",
    [
        "Straße",
        "Weißwurst",
        "oﬃce",
        "ＴＯＫＹＯ",
        "CO₂",
        "m²",
        "İstanbul",
        "naïve",
        "Łódź",
        "0123456789abcdef" * 8,
    ],
)
async def test_a_word_is_found_as_it_is_written(reopen: Callable[..., Memory], text: str) -> None:
    async with reopen(embedder=None) as plain:
        await plain.ingest_many([note(f"look {text} here"), note("look elsewhere")])
        assert await texts(plain, text) == [f"look {text} here"]
        assert (await texts(plain, f"{text} look"))[:1] == [f"look {text} here"]


async def test_a_page_that_repeats_a_note_takes_nothing_of_its_time(memory: Memory, clock: ManualClock) -> None:
    await memory.ingest(note("glacier report", retention=Retention(keep_s=365 * DAY_S)))
    await memory.ingest(page("Glacier report"))
    clock.advance(8 * DAY_S)
    (hit,) = (await memory.search("glacier")).hits
    assert (hit.kind, hit.score) == (DocumentKind.NOTE, 1.0)
    clock.advance(358 * DAY_S)
    assert await texts(memory, "glacier") == []


async def test_what_others_forget_while_it_is_embedded_lands_with_its_vectors(reopen: Callable[..., Memory]) -> None:
    loop = asyncio.get_running_loop()

    class Slow(SmallEmbedder):
        def embed(self, texts: Sequence[str]) -> Any:
            if any("something new" in text for text in texts):
                asyncio.run_coroutine_threadsafe(other.forget(source="chat", reason="x"), loop).result(30)
            return super().embed(texts)

    async with reopen(embedder=Slow()) as memory, reopen() as other:
        await memory.ingest(note("My automobile stands here"))
        landed = await memory.ingest_many([note("My automobile stands here", "again"), note("something new", "new")])
        assert [(one.new, one.embedded) for one in landed] == [(True, True), (True, True)]
        assert (await texts(memory, "car"))[:1] == ["My automobile stands here"]


async def test_a_long_title_leaves_room_for_the_text_in_a_vector(reopen: Callable[..., Memory]) -> None:
    class Listening(SmallEmbedder):
        def embed(self, texts: Sequence[str]) -> Any:
            heard.extend(texts)
            return super().embed(texts)

    heard: list[str] = []
    async with reopen(embedder=Listening()) as memory:
        await memory.ingest(note("# Boiler\n\nIt was serviced.", title="Minutes of the meeting " * 30))
        (text,) = heard
        assert text.endswith("> Boiler\n# Boiler\n\nIt was serviced.")
        assert len(text) < 200
