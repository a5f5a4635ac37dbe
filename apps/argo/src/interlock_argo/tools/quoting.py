"""The tools that answer out of the memory by themselves: quoting what it says, forgetting what the user has said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, Field

from interlock import Result, Tool, tool
from interlock.memory import Chunk, KeptDocument, SearchHit
from interlock_argo.answering.follow_ups import Meant
from interlock_argo.answering.quotes import Quotes, read_meant
from interlock_argo.answering.ranking import Candidate, candidates_of
from interlock_argo.memory.home import WEB, MemoryHome

YOU = "you"
"""The source of what the user has said."""
_READ = 16
"""So many chunks are read for what they say to a question."""
_MOST_TOLD = 200
_FILES = "files and pages are forgotten by `interlock argo memory forget`"
_RECALLS = ("memory_write", "remember")


class Quote(BaseModel):
    """A statement as it stands in something that is remembered."""

    text: str
    under: str
    said_by: str
    chunk_id: str
    source: str
    written: str
    trust: str


def build_quoting_tools(home: MemoryHome) -> tuple[Tool, ...]:
    """The tools over one memory."""
    quotes = Quotes()
    return _quote_tool(home, quotes), _forget_tool(home, quotes)


def _quote_tool(home: MemoryHome, quotes: Quotes) -> Tool:
    @tool(effect="read", trust="untrusted", known_values={"question": lambda text: (text,)}, recalls=_RECALLS)
    async def memory_quote(
        question: Annotated[str, Field(min_length=1, max_length=2000)],
        about: Annotated[str, Field(max_length=4000)] = "",
        other: bool = False,
        among: Literal["all", "web"] = "all",
    ) -> Result[list[Quote]]:
        """The statements in notes, files and pages that answer a question, word for word, each with where it stands.

        `about`: the question before, where this one goes on from it; `other`: not what was quoted for that.
        """
        meant = Meant(question=question, about=about, other=other)
        candidates, days = await _candidates(home, meant, among)
        found = await asyncio.to_thread(quotes.choose, meant, candidates)
        if not found.is_sure:
            return Result(no_data=True, summary=found.text or "Nothing is remembered about that")
        rows = [
            Quote(
                text=one.text,
                under=one.under,
                said_by=one.said_by,
                chunk_id=one.chunk,
                source=one.source,
                written=days[one.chunk],
                trust=one.trust,
            )
            for one in found.picks
        ]
        return Result(value=rows, summary=found.text, sources=tuple(dict.fromkeys(row.source for row in rows)))

    return memory_quote


async def _candidates(home: MemoryHome, meant: Meant, among: str) -> tuple[list[Candidate], dict[str, str]]:
    """The statements of the chunks that are nearest, and what the user has said; with the day of each chunk."""
    query = " ".join(part for part in (meant.about[-1000:], meant.question) if part)[:2000]
    namespace = {"namespace": WEB} if among == "web" else {}
    found = await home.memory.search(query, top_k=_READ, **namespace)
    candidates, days = list[Candidate](), dict[str, str]()
    for hit in found.hits:
        chunk = await home.memory.fetch(hit.chunk)
        if isinstance(chunk, Chunk):
            candidates += _of_chunk(hit, chunk)
            days[hit.chunk] = datetime.fromtimestamp(hit.time_us / 1e6, UTC).date().isoformat()
    if among == "all":
        known = {one.text for one in candidates if one.is_yours}
        for note in await told_by_you(home):
            if note.text not in known:
                candidates.append(_of_note(note))
                days[note.id] = datetime.fromtimestamp(note.time_us / 1e6, UTC).date().isoformat()
    return candidates, days


def _of_chunk(hit: SearchHit, chunk: Chunk) -> list[Candidate]:
    found = candidates_of(chunk.text, title=hit.title, source=hit.source, heading=chunk.heading)
    own: Any = {"chunk": hit.chunk, "trust": hit.trust.value, "is_yours": hit.source == YOU}
    return [msgspec.structs.replace(one, **own) for one in found]


def _of_note(note: KeptDocument) -> Candidate:
    return Candidate(
        text=note.text, under="", said_by=YOU, source=YOU, chunk=note.id, trust=note.trust.value, is_yours=True
    )


async def told_by_you(home: MemoryHome) -> Sequence[KeptDocument]:
    """What the user has said of themselves, the last first."""
    return await home.memory.documents(source=YOU, most=_MOST_TOLD)


def _forget_tool(home: MemoryHome, quotes: Quotes) -> Tool:
    @tool(effect="send", says=["forgotten", "forgot", "forget", "deleted", "erased"])
    async def forget(text: Annotated[str, Field(max_length=2000)] = "") -> Result[int]:
        """Forget for good what the user has told about themselves; without words, what they told last."""
        notes = await told_by_you(home)
        if not notes:
            return Result(no_data=True, summary=f"You have not told me anything that I could forget; {_FILES}")
        meant = notes[0] if not text else await _find_note(quotes, text, notes)
        if meant is None:
            return Result(no_data=True, summary=f"Nothing that you have told me is about that; {_FILES}")
        gone = await home.memory.forget(document=meant.id, reason="the user said so")
        return Result(value=gone.documents, summary=f"Forgotten what you told me: {meant.text}")

    return forget


async def _find_note(quotes: Quotes, text: str, notes: Sequence[KeptDocument]) -> KeptDocument | None:
    """The note that words are about."""
    if any(note.text.casefold() == text.casefold() for note in notes):
        return next(note for note in notes if note.text.casefold() == text.casefold())
    wanted = read_meant(Meant(question=text)).text
    found = await asyncio.to_thread(quotes.choose, Meant(question=wanted), [_of_note(note) for note in notes])
    return next((note for note in notes if found.is_sure and note.id == found.picks[0].chunk), None)
