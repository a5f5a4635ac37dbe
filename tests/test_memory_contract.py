"""The memory on SQLite, on PostgreSQL with pgvector and on PostgreSQL without: the same behaviour."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from interlock import ConfigError, Trust
from interlock.errors import InvalidInput
from interlock.memory import (
    ChunkMiss,
    DocumentKind,
    FactState,
    Memory,
    MissReason,
    Retention,
    StatedFact,
)
from interlock.memory.documents import DAY_S
from interlock.testing import ManualClock
from tests.memory_parts import SmallEmbedder, note, page, texts, there

LONG = "\n\n".join(f"## Part {n}\n\nParagraph {n} is about subject{n}." for n in range(12))


class MemoryContract:
    """What every twin does."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def embedder(self) -> SmallEmbedder:
        return SmallEmbedder()

    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def reopen(self, url: str, clock: ManualClock, embedder: SmallEmbedder) -> Callable[..., Memory]:
        def make(**more: object) -> Memory:
            return Memory.open(url, **{"embedder": embedder, "clock": clock, **more})  # type: ignore[arg-type]

        return make

    @pytest.fixture
    async def memory(self, reopen: Callable[..., Memory]) -> AsyncIterator[Memory]:
        async with reopen() as memory:
            yield memory

    async def test_the_same_text_three_times_is_one_document_with_its_sources(
        self, memory: Memory, embedder: SmallEmbedder
    ) -> None:
        landed = [
            await memory.ingest(note("Ask Ann about the lease.", source)) for source in ("chat 1", "chat 2", "chat 3")
        ]
        again = await memory.ingest(note("  ask ann\nabout THE  lease. ", "chat 4"))
        assert [one.new for one in landed] == [True, False, False]
        assert {one.document for one in (*landed, again)} == {landed[0].document}
        state = await memory.state()
        assert (state.documents, state.chunks, state.embedded) == (1, 1, 1)
        assert embedder.texts == 1
        (hit,) = (await memory.search("lease")).hits
        assert hit.source == "chat 4"
        chunk = there(await memory.fetch(hit.chunk))
        assert chunk.sources == ("chat 1", "chat 2", "chat 3", "chat 4")

    async def test_words_and_meaning_both_find_and_what_both_find_comes_first(self, memory: Memory) -> None:
        await memory.ingest_many(
            [
                note("My automobile stands in the garage."),
                note("The car insurance runs out in May."),
                note("Bread needs flour, water and salt."),
            ]
        )
        result = await memory.search("car")
        assert result.note == ""
        assert [hit.by for hit in result.hits[:2]] == [("words", "vectors"), ("vectors",)]
        assert [hit.snippet.split()[1] for hit in result.hits[:2]] == ["car", "automobile"]
        assert result.hits[0].score > result.hits[1].score > 0

    async def test_a_search_is_held_to_namespace_kind_trust_and_source(self, memory: Memory) -> None:
        await memory.create_namespace("work")
        await memory.ingest_many(
            [
                note("river one"),
                note("river two", "file:///a/two.txt", kind=DocumentKind.FILE),
                note("river three", namespace="work"),
                page("river four", "https://a.example/4"),
                page("river five", "https://b.example/5"),
            ]
        )

        async def found(**filters: object) -> set[str]:
            return {text.split()[1] for text in await texts(memory, "river", **filters)}

        assert await found() == {"one", "two", "three", "four", "five"}
        assert await found(namespace="work") == {"three"}
        assert await found(namespace=("work", "default"), kind="note") == {"one", "three"}
        assert await found(kind=(DocumentKind.FILE, "web")) == {"two", "four", "five"}
        assert await found(trust="untrusted") == {"four", "five"}
        assert await found(trust=Trust.TRUSTED) == {"one", "two", "three"}
        assert await found(source="https://a.example/*") == {"four"}
        assert await found(source="https://b.example/5") == {"five"}
        assert await found(source="https://b.example") == set()
        assert len(await texts(memory, "river", top_k=2)) == 2

    async def test_ids_of_chunks_are_stable_and_lead_to_the_text_and_its_neighbours(
        self, memory: Memory, reopen: Callable[..., Memory]
    ) -> None:
        landed = await memory.ingest(note(LONG, title="Parts"))
        (hit, *_) = (await memory.search("subject5")).hits
        assert hit.chunk == f"{landed.document}.5"
        assert (hit.title, hit.heading) == ("Parts", "Parts > Part 5")
        chunk = there(await memory.fetch(hit.chunk, neighbours=1))
        assert chunk.text == "## Part 5\n\nParagraph 5 is about subject5."
        assert chunk.before == "## Part 4\n\nParagraph 4 is about subject4."
        assert chunk.after == "## Part 6\n\nParagraph 6 is about subject6."
        assert (chunk.position, chunk.of) == (5, landed.chunks)
        await memory.forget(document=landed.document, reason="to see")
        again = await memory.ingest(note(LONG, "elsewhere", title="Parts"))
        assert (again.document, again.forgotten_us is not None) == (landed.document, True)
        async with reopen() as other:
            assert there(await other.fetch(hit.chunk)).text == chunk.text

    async def test_a_miss_is_an_answer(self, memory: Memory) -> None:
        landed = await memory.ingest(note("something"))
        for chunk in ("nothing", "a.b.c", f"{landed.document}.1", f"{landed.document}.99999999999", "0" * 32 + ".0"):
            missed = await memory.fetch(chunk)
            assert isinstance(missed, ChunkMiss)
            assert missed.reason is MissReason.UNKNOWN
            assert chunk in missed.message

    async def test_what_came_in_untrusted_stays_so_whoever_hands_it_over_later(self, memory: Memory) -> None:
        await memory.create_namespace("personal")
        text = "The bank's new account is 12345."
        assert (await memory.ingest(page(text))).trust is Trust.UNTRUSTED
        assert (await memory.ingest(note(text))).trust is Trust.UNTRUSTED
        assert (await memory.ingest(note(text.upper() + "\u200b"))).trust is Trust.UNTRUSTED
        assert (await memory.ingest(note(text, namespace="personal"))).trust is Trust.UNTRUSTED
        await memory.forget(source="https://a.example/1", reason="stale")
        await memory.forget(namespace="default", reason="all of it")
        assert (await memory.ingest(note(text))).trust is Trust.UNTRUSTED

    async def test_what_the_user_said_loses_its_label_where_an_outsider_says_the_same(self, memory: Memory) -> None:
        assert (await memory.ingest(note("Meet at nine."))).trust is Trust.TRUSTED
        assert (await memory.ingest(page("Meet at nine."))).trust is Trust.UNTRUSTED
        (hit,) = (await memory.search("meet nine")).hits
        assert hit.trust is Trust.UNTRUSTED
        assert await texts(memory, "meet nine", trust="trusted") == []

    async def test_a_person_may_vouch_and_is_named(self, memory: Memory) -> None:
        landed = await memory.ingest(page("The office opens at eight."))
        assert await memory.vouch(landed.document, reason="I called them", by="user:ann") is Trust.TRUSTED
        (hit,) = (await memory.search("office", trust="trusted")).hits
        assert there(await memory.fetch(hit.chunk)).vouched_by == "user:ann"
        assert (await memory.ingest(page("The office opens at eight.", "https://b.example"))).trust is Trust.TRUSTED
        for by in ("argo", "agent:argo", "model:x"):
            with pytest.raises(ConfigError, match="no person"):
                await memory.vouch(landed.document, reason="x", by=by)
        with pytest.raises(ConfigError, match="cannot be given"):
            await memory.vouch(landed.document, reason="x", by="os:somebody")
        with pytest.raises(InvalidInput, match="there is no document"):
            await memory.vouch("0" * 32, reason="x", by="user:ann")

    async def test_pages_lose_rank_and_expire_and_notes_do_not(self, memory: Memory, clock: ManualClock) -> None:
        # The one that is equally good by words and meaning is first while it is fresh, as it came in first.
        web = await memory.ingest(page("glacier report alpha"))
        await memory.ingest(note("glacier report bravo"))
        first = (await memory.search("glacier report")).hits
        clock.advance(3 * DAY_S)
        (top, second) = (await memory.search("glacier report")).hits
        assert top.snippet == "glacier report bravo"
        fresh = next(hit for hit in first if hit.document == web.document)
        assert second.score == pytest.approx(fresh.score / 2, rel=0.02)
        assert second.age_s == 3 * DAY_S
        clock.advance(4 * DAY_S + 1)
        assert await texts(memory, "glacier report") == ["glacier report bravo"]
        missed = await memory.fetch(second.chunk)
        assert isinstance(missed, ChunkMiss)
        assert missed.reason is MissReason.EXPIRED
        assert await memory.purge() == 1
        assert (await memory.state()).documents == 1
        clock.advance(1000 * DAY_S)
        (hit,) = (await memory.search("glacier report")).hits
        assert hit.score == pytest.approx(1.0)

    async def test_a_page_that_is_fetched_again_is_fresh_again(self, memory: Memory, clock: ManualClock) -> None:
        await memory.ingest(page("glacier report"))
        clock.advance(6 * DAY_S)
        await memory.ingest(page("glacier report"))
        clock.advance(6 * DAY_S)
        (hit,) = (await memory.search("glacier")).hits
        assert hit.age_s == 6 * DAY_S
        await memory.ingest(note("glacier report"))
        clock.advance(600 * DAY_S)
        (hit,) = (await memory.search("glacier")).hits
        assert (hit.kind, hit.trust) == (DocumentKind.NOTE, Trust.UNTRUSTED)

    async def test_retention_can_be_said(self, memory: Memory, clock: ManualClock) -> None:
        await memory.ingest(note("for an hour", retention=Retention(keep_s=3600.0)))
        assert await texts(memory, "hour") == ["for an hour"]
        clock.advance(3601)
        assert await texts(memory, "hour") == []

    async def test_a_newer_fact_takes_the_place_of_the_older_which_stays_readable(
        self, memory: Memory, clock: ManualClock
    ) -> None:
        for value in ("Bern", "Oslo", "Oslo", "Bern"):
            clock.advance(60)
            await memory.state_fact(fact(value))
        (now,) = await memory.facts("user", "lives in")
        assert (now.value, now.state, now.until_us) == ("Bern", FactState.CURRENT, None)
        history = await memory.facts("user", state=None)
        assert [(one.value, one.state.value) for one in history] == [
            ("Bern", "replaced"),
            ("Oslo", "replaced"),
            ("Bern", "current"),
        ]
        assert history[0].until_us == history[1].since_us
        assert await texts(memory, "where lives the user", kind="fact") == ["user lives in: Bern"]
        old = await memory.state_fact(fact("Rome", since_us=history[0].since_us - 1))
        assert (old.state, old.until_us) == (FactState.REPLACED, now.since_us)
        assert (await memory.facts("user", "lives in"))[0].value == "Bern"

    async def test_an_untrusted_fact_does_not_take_the_place_of_a_trusted_one(
        self, memory: Memory, clock: ManualClock
    ) -> None:
        await memory.state_fact(fact("Bern"))
        clock.advance(60)
        claimed = await memory.state_fact(fact("Minsk", trust=Trust.UNTRUSTED, source="mail"))
        assert claimed.state is FactState.CONTESTED
        assert [one.value for one in await memory.facts("user")] == ["Bern"]
        assert [one.value for one in await memory.facts("user", state=FactState.CONTESTED)] == ["Minsk"]
        (hit,) = (await memory.search("Minsk")).hits[:1]
        await memory.vouch(hit.document, reason="she told me", by="user:ann")
        (now,) = await memory.facts("user")
        assert (now.value, now.trust, now.vouched_by) == ("Minsk", Trust.TRUSTED, "user:ann")

    async def test_a_fact_of_any_text_can_be_written_down(self, memory: Memory) -> None:
        stated = await memory.state_fact(fact("Be\x00rn\ud800\r\nWest"))
        assert (await memory.facts("user"))[0].value == stated.value == "Bern?\nWest"

    async def test_a_summary_takes_the_place_of_the_earlier_one_of_its_session(self, memory: Memory) -> None:
        await memory.add_summary("s1", "We spoke of boats.", trust=Trust.TRUSTED)
        await memory.add_summary("s2", "We spoke of trains.", trust=Trust.TRUSTED)
        landed = await memory.add_summary("s1", "We spoke of boats and harbours.", trust=Trust.TRUSTED)
        assert landed.replaced == 1
        found = await texts(memory, "spoke", kind="summary")
        assert sorted(found) == ["We spoke of boats and harbours.", "We spoke of trains."]

    async def test_what_is_forgotten_is_found_by_nobody(self, memory: Memory, reopen: Callable[..., Memory]) -> None:
        landed = await memory.ingest(note("my password is hunter2", key="secret"))
        await memory.ingest(note("my bicycle is blue"))
        await memory.state_fact(fact("Bern"))
        async with reopen() as other:  # which has a copy of the vectors by now
            assert len(await texts(other, "password hunter2")) >= 1
            gone = await memory.forget(key="secret", reason="asked by the user", by="user:ann")
            assert (gone.documents, gone.chunks, len(gone.tombstones)) == (1, 1, 1)
            for each in (memory, other):
                assert not any("hunter2" in text for text in await texts(each, "password hunter2"))
                assert isinstance(await each.fetch(f"{landed.document}.0"), ChunkMiss)
        (stone,) = await memory.tombstones()
        assert (stone.id, stone.by, stone.reason) == (gone.tombstones[0], "user:ann", "asked by the user")
        assert "hunter2" not in repr(stone)
        gone = await memory.forget(key="user/lives in", reason="asked")
        assert (gone.documents, gone.facts) == (1, 1)
        assert await memory.facts("user", state=None) == ()
        again = await memory.ingest(note("my password is hunter2"))
        assert (again.new, again.forgotten_us) == (True, stone.at_us)

    async def test_forget_by_source_keeps_what_another_source_has_too(self, memory: Memory) -> None:
        await memory.ingest(page("only there", "https://evil.example/1"))
        shared = await memory.ingest(page("there and here", "https://evil.example/2"))
        await memory.ingest(page("there and here", "https://good.example"))
        gone = await memory.forget(source="https://evil.example/*", reason="spam")
        assert (gone.documents, gone.kept) == (1, 1)
        chunk = there(await memory.fetch(f"{shared.document}.0"))
        assert chunk.sources == ("https://good.example",)

    async def test_forget_by_age_and_namespace(self, memory: Memory, clock: ManualClock) -> None:
        await memory.create_namespace("work")
        await memory.ingest_many([note("old one"), note("old two", namespace="work")])
        clock.advance(10 * DAY_S)
        await memory.ingest_many([note("new one"), note("new two", namespace="work")])
        gone = await memory.forget(older_than=timedelta(days=5), namespace="work", reason="rule")
        assert gone.documents == 1
        gone = await memory.forget(older_than=timedelta(days=5), reason="rule")
        assert gone.documents == 1
        gone = await memory.forget(namespace="work", reason="project is over")
        assert gone.documents == 1
        assert await texts(memory, "new old") == ["new one"]
        assert (await memory.forget(key="nothing", reason="x")).documents == 0

    async def test_a_memory_sees_the_namespaces_that_it_was_opened_with(self, reopen: Callable[..., Memory]) -> None:
        async with reopen(namespaces=("ann",)) as ann, reopen(namespaces=("bob",)) as bob:
            landed = await ann.ingest(note("ann likes tea", namespace="ann"))
            await bob.ingest(note("bob likes coffee", namespace="bob"))
            assert await texts(bob, "likes") == ["bob likes coffee"]
            assert await bob.namespaces() == ("bob",)
            assert isinstance(await bob.fetch(f"{landed.document}.0"), ChunkMiss)
            assert (await bob.forget(document=landed.document, reason="not mine")).documents == 0
            for refused in (
                bob.ingest(note("x", namespace="ann")),
                bob.search("likes", namespace="ann"),
                bob.facts(namespace="ann"),
                bob.forget(namespace="ann", reason="x"),
                bob.vouch(landed.document, reason="x", by="user:bob"),
            ):
                with pytest.raises(InvalidInput, match="there is no"):
                    await refused
            assert await texts(ann, "likes") == ["ann likes tea"]

    async def test_an_unknown_namespace_is_refused_with_the_nearest(self, memory: Memory) -> None:
        await memory.create_namespace("research")
        with pytest.raises(InvalidInput, match="did you mean 'research'"):
            await memory.ingest(note("x", namespace="reserch"))
        with pytest.raises(InvalidInput, match="there is no namespace 'zzz'; there are default, research"):
            await memory.search("x", namespace="zzz")

    async def test_documents_of_one_key_replace_each_other(self, memory: Memory) -> None:
        await memory.ingest(note("draft of the plan", key="plan.md", replaces=True))
        landed = await memory.ingest(note("final form of the plan", key="plan.md", replaces=True))
        assert landed.replaced == 1
        assert await texts(memory, "plan") == ["final form of the plan"]

    async def test_what_was_taken_in_by_words_is_embedded_later(self, reopen: Callable[..., Memory]) -> None:
        async with reopen(embedder=None) as plain:
            landed = await plain.ingest(note("my automobile"))
            assert not landed.embedded
            result = await plain.search("automobile")
            assert len(result.hits) == 1
            assert "words alone" in result.note
        async with reopen() as memory:
            assert await texts(memory, "car") == []
            assert await memory.embed_missing() == 1
            assert await texts(memory, "car") == ["my automobile"]
            assert await memory.embed_missing() == 0

    async def test_vectors_of_other_weights_are_not_compared(
        self, memory: Memory, reopen: Callable[..., Memory]
    ) -> None:
        class Other(SmallEmbedder):
            name = "other"

        await memory.ingest(note("x"))
        with pytest.raises(ConfigError, match="were made by 'small'"):
            reopen(embedder=Other())

    async def test_metadata_key_and_time_come_back(self, memory: Memory) -> None:
        landed = await memory.ingest(note("x y", metadata={"page": 3, "draft": True}, key="k", time_us=5))
        chunk = there(await memory.fetch(f"{landed.document}.0"))
        assert (chunk.metadata, chunk.key, chunk.time_us) == ({"page": 3, "draft": True}, "k", 5)

    async def test_text_of_every_kind_goes_in_and_is_found(self, memory: Memory) -> None:
        odd = "Zażółć gęślą jaźń \x00\ud800 'quoted\" %s ? {x} -- ; DROP TABLE memory_documents; OR AND NOT NEAR("
        landed = await memory.ingest(note(odd))
        assert len(await texts(memory, odd)) == 1
        assert "\x00" not in there(await memory.fetch(f"{landed.document}.0")).text
        for query in ('"', "' OR 1=1", "a*", "NEAR(a b)", "日本語", "-", "%", "&|!()", "x" * 2000):
            await memory.search(query)


class TestSqlite(MemoryContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'memory.db'}"


class TestPostgres(MemoryContract):
    @pytest.fixture
    def url(self, postgres: str) -> str:
        return postgres

    async def test_vectors_are_compared_by_the_server(self, memory: Memory) -> None:
        assert (await memory.state()).vectors == "pgvector"


class TestPostgresWithoutPgvector(MemoryContract):
    """As whoever may not install extensions: vectors are bytes, and compared in this process."""

    @pytest.fixture
    def url(self, postgres: str) -> str:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute("DO $$ BEGIN CREATE ROLE plain LOGIN; EXCEPTION WHEN OTHERS THEN NULL; END $$")
            connection.execute("GRANT CREATE ON SCHEMA public TO plain")
        return postgres.replace("postgres:@", "plain:@").replace("postgres@", "plain@")

    async def test_vectors_are_compared_here(self, memory: Memory) -> None:
        assert (await memory.state()).vectors == "packed"


def fact(value: str, **more: object) -> StatedFact:
    given = {"source": "chat", "trust": Trust.TRUSTED, **more}
    return StatedFact(subject="user", predicate="lives in", value=value, **given)  # type: ignore[arg-type]
