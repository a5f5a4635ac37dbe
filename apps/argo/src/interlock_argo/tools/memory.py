"""The tools over Argo's memory: looking, fetching one chunk, keeping a note, remembering what the user has said."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from interlock import Result, Tool, Trust, tool
from interlock.memory import ChunkMiss, DocumentKind, SearchHit
from interlock_argo.memory.home import MemoryHome
from interlock_argo.memory.notes import Notes, file_key, note_key, state_of
from interlock_argo.reading.readable import read_local_file

_LONGEST_CHUNK = 8_000
Metadata = dict[str, str | int | float | bool]


class Remembered(BaseModel):
    """One hit of a search: enough to see whether it is worth fetching."""

    chunk_id: str
    text: str
    title: str
    source: str
    written: str
    trust: str


class FetchedChunk(BaseModel):
    """A chunk with what stands around it."""

    chunk_id: str
    text: str
    title: str
    source: str
    trust: str


class Kept(BaseModel):
    """A note that is in the memory now."""

    title: str
    namespace: str
    chunks: int
    trust: str


def build_memory_tools(home: MemoryHome) -> tuple[Tool, ...]:
    """The tools over one memory."""
    notes = Notes(home)
    return _query_tool(home), _fetch_tool(home), *_writing_tools(notes), _ingest_tool(notes)


def _row(hit: SearchHit) -> Remembered:
    day = datetime.fromtimestamp(hit.time_us / 1e6, UTC).date().isoformat()
    return Remembered(
        chunk_id=hit.chunk, text=hit.snippet, title=hit.title, source=hit.source, written=day, trust=hit.trust.value
    )


def _query_tool(home: MemoryHome) -> Tool:
    @tool(
        effect="read",
        trust="untrusted",
        known_values={"query": lambda text: (text,)},
        recalls=("memory_write", "remember"),
    )
    async def memory_query(
        query: Annotated[str, Field(min_length=1, max_length=2000)], top_k: int = 5, namespace: str | None = None
    ) -> Result[list[Remembered]]:
        """What is remembered about something: notes, files, facts and pages that were read, as snippets with ids."""
        found = await home.memory.search(query, top_k=top_k, **({} if namespace is None else {"namespace": namespace}))
        rows = [_row(hit) for hit in found.hits]
        if not rows:
            return Result(no_data=True, summary="nothing is remembered about that")
        metadata: dict[str, Any] = {"scores": {hit.chunk: round(hit.score, 3) for hit in found.hits}}
        if found.note:
            metadata["note"] = found.note
        sources = tuple(dict.fromkeys(row.source for row in rows))
        return Result(value=rows, sources=sources, metadata=metadata)

    return memory_query


def _fetch_tool(home: MemoryHome) -> Tool:
    @tool(effect="read", trust="untrusted", recalls=("memory_write", "remember"))
    async def retrieve_context(chunk_id: str) -> Result[FetchedChunk]:
        """The full text of a chunk that memory_query has found, with what stands beside it."""
        found = await home.memory.fetch(chunk_id, neighbours=1)
        if isinstance(found, ChunkMiss):
            return Result(no_data=True, summary=found.message, metadata={"found": False, "error": found.message})
        text = "\n\n".join(part for part in (found.before, found.text, found.after) if part)[:_LONGEST_CHUNK]
        value = FetchedChunk(
            chunk_id=found.id, text=text, title=found.title, source=found.sources[-1], trust=found.trust.value
        )
        return Result(value=value, sources=(value.source,), metadata={"found": True})

    return retrieve_context


def _ingest_tool(notes: Notes) -> Tool:
    @tool(
        effect="write",
        key=lambda given: file_key(given["path"]),
        resource=notes,
        timeout_s=600,
        refusals=(ValueError, OSError),
    )
    async def ingest_file(path: str, trusted: bool = False) -> Kept:
        """Take a file of the user's into the memory, in place of what was known of it before."""
        found = await asyncio.to_thread(read_local_file, path)
        trust = Trust.TRUSTED if trusted else Trust.UNTRUSTED
        title = found.title or Path(path).stem.replace("_", " ")
        return await _keep(
            notes, file_key(path), state_of(found.text, path, trust, title=title, kind=DocumentKind.FILE)
        )

    return ingest_file


async def _keep(notes: Notes, key: str, state: dict[str, Any]) -> Kept:
    landed = await notes.write(key, state)
    trust = landed.trust.value  # as it is kept: what was untrusted before stays so
    return Kept(title=state["title"], namespace=landed.namespace, chunks=landed.chunks, trust=trust)


def _writing_tools(notes: Notes) -> tuple[Tool, ...]:
    @tool(
        effect="write",
        key=lambda given: note_key(given["namespace"], given["content"]),
        resource=notes,
        simulate=lambda state, given: _note(given["content"], given["title"], given["metadata"]),
        refusals=(ValueError,),
    )
    async def memory_write(
        content: Annotated[str, Field(min_length=1)],
        title: Annotated[str, Field(max_length=300)] = "",
        namespace: str = "default",
        metadata: Metadata | None = None,
    ) -> Kept:
        """Keep a text in the memory: a summary, say. It stays marked as not the user's own words."""
        return await _keep(notes, note_key(namespace, content), _note(content, title, metadata))

    @tool(
        effect="write",
        key=lambda given: note_key("personal", given["text"]),
        resource=notes,
        simulate=lambda state, given: state_of(given["text"], "you", Trust.TRUSTED),
        known_values={"text": lambda text: (text,)},
        says=["remembered", "noted"],
        refusals=(ValueError,),
    )
    async def remember(text: Annotated[str, Field(min_length=1, max_length=2000)]) -> Result[Kept]:
        """Keep what the user has said about themselves, in their own words."""
        kept = await _keep(notes, note_key("personal", text), state_of(text, "you", Trust.TRUSTED))
        return Result(value=kept, summary="Remembered in your own words.")

    return memory_write, remember


def _note(content: str, title: str, metadata: Metadata | None) -> dict[str, Any]:
    return state_of(content, "argo", Trust.UNTRUSTED, title=title, metadata=metadata)
