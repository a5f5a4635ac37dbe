"""The memory of an agent: what goes in once, is found by words and meaning, and goes for good when it is forgotten."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar, Unpack

from interlock.embedding import Embedder
from interlock.errors import InvalidInput
from interlock.memory import statements as sql
from interlock.memory.database import Database
from interlock.memory.documents import (
    Chunk,
    ChunkMiss,
    Document,
    DocumentKind,
    FactState,
    Forgotten,
    Ingested,
    KeptDocument,
    MemoryState,
    RememberedFact,
    SearchResult,
    Tombstone,
)
from interlock.memory.embedding_thread import MINILM, EmbeddingThread
from interlock.memory.facts import StatedFact, fact_of_row, land_fact
from interlock.memory.grouping import embed_group, embedded_text, land_group, make_groups
from interlock.memory.ingest import LandingTime, NewDocument, add_vectors, cut_document, land_documents
from interlock.memory.limits import (
    MOST_DOCUMENTS,
    MOST_HITS,
    NEIGHBOURS,
    MemoryLimits,
    check_count,
    check_namespace_name,
    refuse_unknown_namespaces,
    refuse_unknown_options,
)
from interlock.memory.matching import query_words
from interlock.memory.opening import DEFAULT_NAMESPACE, add_namespace, make_namespaces, open_tables
from interlock.memory.options import ForgetOptions, MemoryParts, target_of
from interlock.memory.reading import DocumentRequest, count_all, read_documents
from interlock.memory.removal import Farewell, forget_documents, merge_words, remove_expired
from interlock.memory.searching import SearchRequest, fetch_chunk, find_hits
from interlock.memory.selection import Filters, find_member, select
from interlock.memory.tables import MemoryTables
from interlock.memory.vouching import require_document, vouch_document
from interlock.memory.witnesses import check_person, record_forget, record_vouch
from interlock.ports import Clock, Ids, SystemClock, SystemIds
from interlock.stores.dialect import Connection, fill
from interlock.values import Trust

if TYPE_CHECKING:
    from types import TracebackType

    from interlock.runtime import Runtime

T = TypeVar("T")
_log = logging.getLogger("interlock")
_EXPIRED_AT_ONCE = 50
_TRIES = 3
"""Where others remove, between embedding and landing, what was taken for being there."""
_EMBEDDED_AT_ONCE = 256


class Memory:
    """Documents, facts and summaries in one database. Open it, use it, close it (or as an async context manager)."""

    def __init__(
        self, database: Database, tables: MemoryTables, embedding: EmbeddingThread, scope: frozenset[str] | None
    ) -> None:
        self._database = database
        self._tables = tables
        self._embedding = embedding
        self._scope = scope
        self._limits = MemoryLimits()
        self._clock: Clock = SystemClock()
        self._ids: Ids = SystemIds()

    @classmethod
    def open(
        cls,
        url: str = "sqlite:///memory.db",
        *,
        namespaces: Iterable[str] | None = None,
        embedder: Embedder | str | None = MINILM,
        **parts: Unpack[MemoryParts],
    ) -> Memory:
        """Open the memory behind a URL: sqlite:///FILE or postgresql://…

        `namespaces` are made if they are not there, and the only ones that are seen; None: all that there are. Without
        an embedder, or without the extra that brings the standard one, it is searched by words alone, and says so.
        """
        refuse_unknown_options("Memory.open", parts, MemoryParts.__annotations__)
        clock = parts.get("clock") or SystemClock()
        embedding = EmbeddingThread(embedder)
        database = Database(url, parts.get("busy_s", 10.0), parts.get("faults"))
        try:
            scope = make_namespaces(database, namespaces, clock.now_us())
            tables = open_tables(database, embedding)
        except BaseException:
            database.close_now()
            raise
        if embedding.note and embedder is not None:
            _log.warning("memory: %s", embedding.note)
        memory = cls(database, tables, embedding, scope)
        memory._limits = parts.get("limits") or MemoryLimits()
        memory._clock, memory._ids = clock, parts.get("ids") or SystemIds()
        return memory

    async def ingest(self, document: Document) -> Ingested:
        """Take a document in; what is there already is given its source and time, and no second copy."""
        return (await self.ingest_many([document]))[0]

    async def ingest_many(self, documents: Iterable[Document]) -> tuple[Ingested, ...]:
        """Take documents in, each whole or not at all; looked at before the first of them lands."""
        given = list(documents)
        for document in given:
            self._limits.check_document(document)
        await self._check_namespaces({document.namespace for document in given})
        cut = [await self._database.aside(partial(self._cut, document)) for document in given]
        landed: list[Ingested] = []
        for group in make_groups(cut):
            landed += await self._land(group)
        return tuple(landed)

    async def search(self, query: str, *, top_k: int = 8, **filters: Unpack[Filters]) -> SearchResult:
        """The chunks that fit a query best, by words and by meaning: ids and snippets, to be fetched where needed."""
        self._limits.check_query(query)
        check_count("top_k", top_k, 1, MOST_HITS)
        which = select(
            filters, await self._wanted_namespaces(filters.get("namespace")), self._clock.now_us(), self._limits
        )
        vectors = await self._embedding.embed([query])
        asked = SearchRequest(
            words=query_words(query), vector=None if vectors is None else vectors[0], which=which, top_k=top_k
        )
        hits = await self._database.read(lambda connection: find_hits(connection, self._tables, asked))
        return SearchResult(hits=hits, note=self._embedding.note)

    async def fetch(self, chunk: str, *, neighbours: int = 0) -> Chunk | ChunkMiss:
        """A chunk by its id, with the text of so many chunks around it; a miss says why there is none."""
        self._limits.check_chunk_id(chunk)
        check_count("neighbours", neighbours, 0, NEIGHBOURS)
        now_us, scope = self._clock.now_us(), self._scope
        return await self._database.read(lambda connection: fetch_chunk(connection, chunk, neighbours, scope, now_us))

    async def documents(
        self, *, document: str = "", key: str = "", source: str = "", namespace: str | None = None, most: int = 20
    ) -> tuple[KeptDocument, ...]:
        """Whole documents, the last one first: of an id, a key or a source; without any, what came in last."""
        for what, name in (("document", document), ("key", key), ("source", source)):
            self._limits.check_name(what, name)
        check_count("most", most, 1, MOST_DOCUMENTS)
        asked = DocumentRequest(
            now_us=self._clock.now_us(),
            most=most,
            document=document,
            key=key,
            source=source,
            namespaces=await self._wanted_namespaces(namespace),
        )
        return await self._database.read(lambda connection: read_documents(connection, asked))

    async def add_summary(
        self, session: str, text: str, *, trust: Trust, namespace: str = DEFAULT_NAMESPACE, title: str = ""
    ) -> Ingested:
        """Keep the summary of a session; a later one of the same session takes its place."""
        name = self._limits.check_name("session", session, needed=True)
        return await self.ingest(
            Document(
                text=text,
                source=f"session:{name}",
                title=title,
                trust=trust,
                namespace=namespace,
                kind=DocumentKind.SUMMARY,
                key=f"session:{name}",
                replaces=True,
            )
        )

    async def state_fact(self, stated: StatedFact) -> RememberedFact:
        """Keep a fact; a newer one takes the place of the one that held, which stays readable as history."""
        if not isinstance(stated, StatedFact):
            raise InvalidInput(f"a fact is an interlock.memory.StatedFact, not {type(stated).__name__}")
        stated.check(self._limits)
        document = stated.as_document()
        self._limits.check_document(document)
        await self._check_namespaces({stated.namespace})
        cut, name = await self._database.aside(partial(self._cut, document)), self._ids.new()
        return await self._store(
            [cut],
            lambda connection, new, landing: land_fact(connection, self._tables, stated, new[0], landing, name),
        )

    async def facts(
        self,
        subject: str = "",
        predicate: str = "",
        *,
        namespace: str = DEFAULT_NAMESPACE,
        state: FactState | None = FactState.CURRENT,
    ) -> tuple[RememberedFact, ...]:
        """What holds about a subject (of all, if it is empty); `state=None`: also what held, and what is contested."""
        self._limits.check_name("subject", subject)
        self._limits.check_name("predicate", predicate)
        await self._check_namespaces({namespace})
        which = "" if state is None else find_member(FactState, "state", state).value
        asked = (namespace, subject, subject, predicate, predicate, which, which)
        rows = await self._database.read(lambda connection: connection.rows(sql.FACTS, asked))
        return tuple(map(fact_of_row, rows))

    async def vouch(
        self, document: str, *, reason: str, by: str | None = None, runtime: Runtime | None = None
    ) -> Trust:
        """A person has read a document and says that it may be believed; who that was is noted. Not for models."""
        person = check_person(by, runtime)
        self._limits.check_chunk_id(document)
        self._limits.check_name("reason", reason, needed=True)
        scope, now_us = self._scope, self._clock.now_us()
        await self._database.read(lambda connection: require_document(connection, document, scope))
        await record_vouch(runtime, document, reason, person)  # first: no label is raised that nobody can explain
        vouched = await self._database.write(
            lambda connection: vouch_document(connection, self._tables, document, scope, person, now_us)
        )
        return vouched.trust

    async def forget(self, *, reason: str, **options: Unpack[ForgetOptions]) -> Forgotten:
        """Remove text, words, vectors and facts of what is named, for good; a tombstone stays for each document."""
        refuse_unknown_options("Memory.forget", options, ForgetOptions.__annotations__)
        self._limits.check_name("reason", reason, needed=True)
        runtime, target = options.get("runtime"), target_of(options, self._limits, self._clock.now_us())
        by = check_person(options.get("by"), runtime)
        if target.namespace is not None:
            await self._check_namespaces({target.namespace})
        scope, farewell = self._scope, Farewell(by=by, reason=reason, at_us=self._clock.now_us(), new_id=self._ids.new)
        removed = await self._database.write(
            lambda connection: forget_documents(connection, self._tables, target, scope, farewell)
        )
        wiped = await self._wipe_logs()
        return Forgotten(
            documents=removed.documents,
            chunks=removed.chunks,
            facts=removed.facts,
            kept=removed.kept,
            tombstones=tuple(stone.id for stone in removed.tombstones),
            record=await record_forget(runtime, target, removed, reason, by),
            lingers=not wiped,
        )

    async def wipe(self) -> bool:
        """Let go of what was removed and still lies in copies and logs of ours; False where others read there now."""
        await self._database.write(lambda connection: merge_words(connection, self._tables))
        return await self._wipe_logs()

    async def _wipe_logs(self) -> bool:
        if self._tables.vectors is not None:
            await self._database.read(self._tables.vectors.refresh)
        return await self._database.wipe()

    async def tombstones(self) -> tuple[Tombstone, ...]:
        """What is left of everything that was forgotten."""
        scope = self._scope
        rows = await self._database.read(lambda connection: connection.rows(sql.TOMBSTONES))
        stones = [
            Tombstone(id=name, digest=digest, namespace=namespace, at_us=at_us, by=by, reason=reason)
            for name, digest, namespace, at_us, by, reason in rows
        ]
        return tuple(stone for stone in stones if scope is None or stone.namespace in scope)

    async def purge(self) -> int:
        """Remove what has expired, as ingesting does little by little; how many documents."""
        now_us, total, gone = self._clock.now_us(), 0, _EXPIRED_AT_ONCE
        while gone == _EXPIRED_AT_ONCE:
            gone = await self._database.write(
                lambda connection: remove_expired(connection, self._tables, now_us, _EXPIRED_AT_ONCE)
            )
            total += gone
        if total:
            await self.wipe()
        return total

    async def embed_missing(self) -> int:
        """Embed what was taken in without an embedder; how many chunks."""
        vectors, last, total = self._tables.vectors, 0, 0
        while vectors is not None:
            statement = fill(sql.WITHOUT_VECTOR, {"vectors": vectors.statement})
            asked = (last, _EMBEDDED_AT_ONCE)
            rows = await self._database.read(partial(Connection.rows, statement=statement, parameters=asked))
            if not rows:
                break
            made = await self._embedding.embed([embedded_text(row[1], row[2]) for row in rows])
            add = partial(add_vectors, tables=self._tables, rows=rows, vectors=made)
            total += await self._database.write(add)
            last = rows[-1][0]
        return total

    async def create_namespace(self, name: str) -> None:
        """Make a namespace; one that is there stays as it is, and is not for a memory that was opened without it."""
        check_namespace_name(name)
        made, scope = (name, self._clock.now_us()), self._scope
        await self._database.write(lambda connection: add_namespace(connection, made, scope))
        if scope is not None:
            self._scope = scope | {name}

    async def namespaces(self) -> tuple[str, ...]:
        """The namespaces that this memory sees."""
        rows = await self._database.read(lambda connection: connection.rows(sql.NAMESPACES))
        return tuple(row[0] for row in rows if self._scope is None or row[0] in self._scope)

    async def state(self) -> MemoryState:
        """How much is remembered in all, and how it is searched."""
        names = await self.namespaces()
        documents, chunks, embedded = await self._database.read(partial(count_all, tables=self._tables))
        return MemoryState(
            documents=documents,
            chunks=chunks,
            embedded=embedded,
            namespaces=names,
            vectors="none" if self._tables.vectors is None else self._tables.vectors.name,
            embedder=self._embedding.name,
        )

    async def close(self) -> None:
        """Finish what was begun, then let go."""
        await self._database.aside(self._embedding.close)
        await self._database.close()

    async def __aenter__(self) -> Memory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _cut(self, document: Document) -> NewDocument:
        return cut_document(document, self._limits, self._clock.now_us())

    def _landing(self) -> LandingTime:
        return LandingTime(now_us=self._clock.now_us(), at=self._database.at)

    async def _land(self, group: Sequence[NewDocument]) -> tuple[Ingested, ...]:
        def work(connection: Connection, new: Sequence[NewDocument], landing: LandingTime) -> tuple[Ingested, ...]:
            remove_expired(connection, self._tables, landing.now_us, _EXPIRED_AT_ONCE)
            return land_documents(connection, self._tables, new, landing)

        return await self._store(group, work)

    async def _store(
        self, group: Sequence[NewDocument], work: Callable[[Connection, Sequence[NewDocument], LandingTime], T]
    ) -> T:
        """Embed documents and land them in one transaction."""
        for left in reversed(range(_TRIES)):
            landing = self._landing()
            new = await embed_group(self._database, self._embedding, group, landing.now_us)
            land = partial(land_group, embedding=self._embedding, new=new, landing=landing, work=work, at_all=not left)
            done = await self._database.write(land)
            if done is not None:
                return done
        raise AssertionError("the last time it lands as it is")

    async def _wanted_namespaces(self, asked: str | tuple[str, ...] | None) -> tuple[str, ...] | None:
        """The namespaces of a search; None for all that there are."""
        if asked is None:
            return None if self._scope is None else tuple(sorted(self._scope))
        if not isinstance(asked, str | list | tuple | set | frozenset):
            raise InvalidInput(f"namespace= is a name or several names, not {type(asked).__name__}")
        names = (asked,) if isinstance(asked, str) else tuple(asked)
        if not names:
            raise InvalidInput("namespace= is empty; name one, or leave it out for all")
        await self._check_namespaces(names)
        return names

    async def _check_namespaces(self, asked: Iterable[str]) -> None:
        if self._scope is None:
            refuse_unknown_namespaces(asked, await self.namespaces())
        else:
            refuse_unknown_namespaces(asked, self._scope)
