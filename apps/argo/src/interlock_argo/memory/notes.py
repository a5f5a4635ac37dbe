"""Notes and files in the memory as something that can be planned, shown and taken back."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from interlock import Trust
from interlock.memory import Document, DocumentKind, Ingested
from interlock_argo.memory.home import DEFAULT, MemoryHome


def note_key(namespace: str, text: str) -> str:
    """Of a note: where it is, and a digest of what it says."""
    return f"{namespace}/note:{sha256(' '.join(text.split()).casefold().encode()).hexdigest()[:24]}"


def file_key(path: str) -> str:
    """Of a file: the same for as long as it lies where it lies."""
    return f"{DEFAULT}/file:{sha256(path.encode()).hexdigest()[:24]}"


class Notes:
    """The notes and files of a memory, by key: a resource of Interlock."""

    name = "memory"

    def __init__(self, home: MemoryHome) -> None:
        self._home = home

    async def read_state(self, key: str) -> dict[str, Any] | None:
        """The note as it stands; None if there is none."""
        namespace = key.partition("/")[0]
        found = await self._home.memory.documents(key=key, namespace=namespace, most=1)
        if not found:
            return None
        note = found[0]
        return {
            "text": note.text,
            "title": note.title,
            "source": note.sources[-1],
            "kind": note.kind.value,
            "trust": note.trust.value,
            "metadata": note.metadata,
        }

    async def write(self, key: str, state: dict[str, Any]) -> Ingested:
        """Keep a text under a key, in place of what was under it."""
        return await self._home.memory.ingest(
            Document(
                text=state["text"],
                title=state["title"],
                source=state["source"],
                kind=DocumentKind(state["kind"]),
                trust=Trust(state["trust"]),
                namespace=key.partition("/")[0],
                key=key,
                metadata=state["metadata"],
                replaces=True,
            )
        )

    async def restore(self, key: str, state: dict[str, Any] | None) -> None:
        """Put it back as it was: a note that was not there is forgotten."""
        if state is None:
            await self._home.memory.forget(key=key, reason="undone")
        else:
            await self.write(key, state)


def state_of(
    text: str,
    source: str,
    trust: Trust,
    *,
    title: str = "",
    kind: DocumentKind = DocumentKind.NOTE,
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A text as `Notes` has it."""
    about = {"title": title, "source": source, "kind": kind.value, "trust": trust.value}
    return {"text": text, **about, "metadata": dict(metadata or {})}
