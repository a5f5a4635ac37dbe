"""Bad input to a memory: every refusal is a sentence, and comes before any work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from interlock import ConfigError, StoreError, Trust
from interlock.errors import InvalidInput
from interlock.memory import Document, DocumentKind, Memory, MemoryLimits, Retention, StatedFact
from interlock.testing import ManualClock
from tests.memory_parts import SmallEmbedder, note, page, texts


@pytest.fixture
def embedder() -> SmallEmbedder:
    return SmallEmbedder()


@pytest.fixture
async def memory(tmp_path: Path, embedder: SmallEmbedder) -> AsyncIterator[Memory]:
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=embedder, clock=ManualClock()) as memory:
        yield memory


BAD_DOCUMENTS: list[tuple[Any, str]] = [
    ({"text": "x"}, "a document is an interlock.memory.Document, not dict"),
    (note(""), "has no text"),
    (note(" \n\t "), "has no text"),
    (note("\u200b\u200b"), "has no text"),
    (note("x" * 2_000_001), "2,000,001 characters; at most 2,000,000"),
    (note("x", ""), "says where it comes from"),
    (note("x", "a\nb"), "characters that nobody sees"),
    (note("x", "s" * 2001), "source has 2,001 characters; at most 2,000"),
    (note("x", title="t" * 2001), "title has 2,001 characters"),
    (note("x", key="k\x00"), "key .* characters that nobody sees"),
    (note("x", replaces=True), "replaces= needs a key="),
    (note("x", time_us=-1), "time_us is microseconds since 1970"),
    (note("x", time_us=2**70), "cannot be remembered|time_us is microseconds"),
    (note("x", time_us="now"), "Expected `int | null`"),
    (Document(text=5, source="x"), "Expected `str`"),  # type: ignore[arg-type]
    (note("x", trust="maybe"), "Invalid enum value 'maybe'"),
    (note("x", kind="mail"), "Invalid enum value 'mail'"),
    (note("x", kind=DocumentKind.WEB), "text from the web is untrusted, whoever hands it over"),
    (note("x", kind="web"), "kind is DocumentKind.WEB, and not the text 'web'"),
    (note("x", trust="trusted"), "trust is Trust.TRUSTED, and not the text 'trusted'"),
    (note("x", metadata={"a": [1]}), "cannot be remembered"),
    (note("x", metadata={"a": "y" * 5000}), "metadata: .*more than the 4,096 allowed"),
    (note("x", metadata={"a": float("nan")}), "metadata|cannot be remembered"),
    (note("x", retention=Retention(keep_s=0)), "keep_s is a number of seconds above 0"),
    (note("x", retention=Retention(half_life_s=float("inf"))), "half_life_s is a number of seconds above 0"),
    (note("x", namespace="nowhere"), "there is no namespace 'nowhere'"),
]


@pytest.mark.parametrize(("document", "said"), BAD_DOCUMENTS, ids=[said[:40] for _, said in BAD_DOCUMENTS])
async def test_a_document_that_cannot_be_remembered_is_refused_before_anything_is_done(
    memory: Memory, embedder: SmallEmbedder, document: Any, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        await memory.ingest_many([note("a good one"), document])
    assert len(str(refused.value)) < 500
    assert embedder.texts == 0
    assert (await memory.state()).documents == 0


async def test_a_document_of_too_many_chunks_is_refused(tmp_path: Path) -> None:
    limits = MemoryLimits(chunks=3)
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=None, limits=limits) as memory:
        with pytest.raises(InvalidInput, match="more than 3 chunks: split it"):
            await memory.ingest(note("# a\n\nx\n" * 4))
        assert (await memory.ingest(note("# a\n\nx\n" * 3))).chunks == 3


@pytest.mark.parametrize(
    ("query", "options", "said"),
    [
        ("", {}, "the query is empty"),
        ("  ", {}, "the query is empty"),
        (None, {}, "a query is a text, not NoneType"),
        ("x" * 2001, {}, "2,001 characters; at most 2,000"),
        ("x", {"top_k": 0}, "top_k is between 1 and 50, not 0"),
        ("x", {"top_k": -5}, "top_k is between 1 and 50, not -5"),
        ("x", {"top_k": 51}, "top_k is between 1 and 50, not 51"),
        ("x", {"top_k": True}, "top_k is a whole number, not True"),
        ("x", {"top_k": 2.0}, "top_k is a whole number"),
        ("x", {"kind": "wep"}, "kind is note, file, web, fact, summary, not 'wep'; did you mean 'web'"),
        ("x", {"trust": "high"}, "trust is trusted, untrusted, not 'high'"),
        ("x", {"namespace": "defaul"}, "did you mean 'default'"),
        ("x", {"namespace": ()}, "namespace= is empty"),
        ("x", {"namespace": 5}, "namespace= is a name or several names, not int"),
        ("x", {"kind": 5}, "kind is note, file, web, fact, summary, not 5"),
        ("x", {"source": ""}, "source is empty"),
    ],
)
async def test_a_search_that_makes_no_sense_is_refused(
    memory: Memory, embedder: SmallEmbedder, query: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        await memory.search(query, **options)
    assert embedder.texts == 0


async def test_a_misspelled_filter_is_refused_and_not_left_out(memory: Memory) -> None:
    with pytest.raises(ConfigError, match="takes no 'namespaces'; did you mean 'namespace'"):
        await memory.search("x", namespaces="default")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("chunk", "said"),
    [
        ("", "is no chunk id"),
        ("a b", "is no chunk id"),
        ("../../etc/passwd", "is no chunk id"),
        ("https://x.example/a?b", "is no chunk id"),
        ("ä", "is no chunk id"),
        ("a\n", "is no chunk id"),
        ("a" * 201, "201 characters; at most 200"),
        (7, "a chunk id is a text, not int"),
    ],
)
async def test_a_chunk_id_that_cannot_be_one_is_refused(memory: Memory, chunk: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        await memory.fetch(chunk)


@pytest.mark.parametrize("neighbours", [-1, 11, None, 1.0])
async def test_neighbours_are_bounded(memory: Memory, neighbours: Any) -> None:
    with pytest.raises(InvalidInput, match="neighbours is"):
        await memory.fetch("a.0", neighbours=neighbours)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "forget what\\?"),
        ({"document": "a", "source": "b"}, "forget what\\? name one"),
        ({"source": ""}, "an empty name means nothing, and not everything"),
        ({"source": "*"}, "an empty name means nothing, and not everything"),
        ({"namespace": ""}, "an empty name"),
        ({"older_than": timedelta(0)}, "a stretch of time"),
        ({"older_than": timedelta(days=-1)}, "a stretch of time"),
        ({"older_than": 90}, "a stretch of time"),
        ({"key": "x", "namespace": "nowhere"}, "there is no namespace"),
    ],
)
async def test_a_forget_that_could_take_too_much_is_refused(memory: Memory, options: dict[str, Any], said: str) -> None:
    await memory.ingest(note("stays"))
    with pytest.raises(InvalidInput, match=said):
        await memory.forget(reason="x", **options)
    assert await texts(memory, "stays") == ["stays"]


async def test_a_forget_says_why_and_takes_no_odd_option(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="reason is empty"):
        await memory.forget(key="x", reason=" ")
    with pytest.raises(ConfigError, match="takes no 'sources'; did you mean 'source'"):
        await memory.forget(reason="x", sources="y")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ({"subject": ""}, "subject is empty"),
        ({"predicate": "a\nb"}, "predicate .* nobody sees"),
        ({"value": ""}, "value of a fact is a text that is not empty"),
        ({"value": "x" * 10_001}, "10,001 characters; at most 10,000"),
        ({"source": ""}, "says where it comes from"),
        ({"namespace": "nowhere"}, "there is no namespace"),
        ({"since_us": -1}, "time_us is microseconds"),
        ({"trust": "trusted"}, "trust is Trust.TRUSTED"),
    ],
)
async def test_a_fact_that_is_none_is_refused(memory: Memory, fact: dict[str, Any], said: str) -> None:
    whole = {"subject": "user", "predicate": "is", "value": "x", "source": "chat", "trust": Trust.TRUSTED, **fact}
    with pytest.raises(InvalidInput, match=said):
        await memory.state_fact(StatedFact(**whole))
    assert await memory.facts(state=None) == ()


async def test_facts_of_an_unknown_state_are_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="state is current, replaced, contested, not 'bad'"):
        await memory.facts(state="bad")  # type: ignore[arg-type]


async def test_nothing_is_older_than_all_of_time(memory: Memory) -> None:
    await memory.ingest(note("stays"))
    assert (await memory.forget(older_than=timedelta.max, reason="x")).documents == 0


async def test_what_cannot_be_cut_is_refused_before_anything_lands(memory: Memory, embedder: SmallEmbedder) -> None:
    good = [note(f"good number {number}") for number in range(100)]
    for bad in (note("\u200b\u200b"), note("# a\n\nx\n" * 10_001)):
        with pytest.raises(InvalidInput, match=r"no text that could be found again|more than 10,000 chunks"):
            await memory.ingest_many([*good, bad])
    assert (embedder.texts, (await memory.state()).documents) == (0, 0)


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "x" * 101, None, "a/b", "ä"])
async def test_a_namespace_has_a_plain_name(memory: Memory, name: Any) -> None:
    with pytest.raises(InvalidInput, match="cannot be the name of a namespace"):
        await memory.create_namespace(name)


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("memory://", {}, "is not one of|cannot"),
        ("sqlite:///:memory:", {}, "write sqlite:///FILE"),
        ("chroma://x", {}, "is not one of"),
        ("sqlite:///{}/m.db", {"embedder": "bge"}, "embedder= is 'minilm'"),
        ("sqlite:///{}/m.db", {"embedder": object()}, "embedder= is an interlock.embedding.Embedder"),
        ("sqlite:///{}/m.db", {"namespaces": "default"}, "namespaces= are several names"),
        ("sqlite:///{}/m.db", {"namespaces": ()}, "namespaces= is empty"),
        ("sqlite:///{}/m.db", {"tenants": ("a",)}, "Memory.open takes no 'tenants'"),
        ("sqlite:///{}/nowhere/m.db", {}, "cannot be opened"),
    ],
)
async def test_a_memory_that_cannot_be_opened_says_why(
    tmp_path: Path, url: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises((ConfigError, StoreError), match=said):
        Memory.open(url.replace("{}", str(tmp_path)), **{"embedder": None, **options})


async def test_a_closed_memory_says_so(tmp_path: Path) -> None:
    memory = Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=SmallEmbedder())
    await memory.close()
    for work in (memory.search("x"), memory.ingest(note("x")), memory.fetch("a.0")):
        with pytest.raises(StoreError, match="the memory is closed"):
            await work


async def test_a_memory_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    import sqlite3

    url = f"sqlite:///{tmp_path / 'm.db'}"
    await Memory.open(url, embedder=None).close()
    connection = sqlite3.connect(tmp_path / "m.db")
    with connection:
        connection.execute("UPDATE memory_meta SET value = '9' WHERE name = 'schema'")
    connection.close()
    with pytest.raises(StoreError, match="newer version"):
        Memory.open(url, embedder=None)


class Shorter(SmallEmbedder):
    """Says that its vectors are longer than they are."""

    def embed(self, texts: Any) -> Any:
        return super().embed(texts)[:, :10]


async def test_an_embedder_that_gives_rows_of_another_shape_is_told_so(tmp_path: Path) -> None:
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=Shorter()) as memory:
        with pytest.raises(ConfigError, match=r"gave rows of the shape \(1, 10\), not 1 of 192"):
            await memory.ingest(note("x"))
        assert (await memory.state()).documents == 0


async def test_a_page_cannot_be_made_trusted_by_its_document(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="a person who has read it may vouch"):
        await memory.ingest(Document(text="x", source="s", kind=DocumentKind.WEB, trust=Trust.TRUSTED))
    assert (await memory.ingest(page("x"))).trust is Trust.UNTRUSTED
    assert (await memory.ingest(Document(text="y", source="s"))).trust is Trust.UNTRUSTED
