"""The server's side of a write: once for each idempotency key, on the versions it was decided on, under its tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from interlock import Context
from interlock.errors import ConfigError, Conflict, NotFound
from interlock.resources import Documents
from interlock_catalog.backends.embedded import DatabaseBackend
from interlock_catalog.contracts import Doc
from interlock_catalog.server.gate import Refusal

KEPT = "idem:"
ABSENT = "0"


class ServerStore:
    """The catalog in a database, and what was answered to each idempotency key, written together."""

    def __init__(self, url: str) -> None:
        self.backend = DatabaseBackend(url)

    async def get(self, key: str) -> tuple[Doc, str]:
        """A document and its version."""
        found = (await self.backend.read_many([key])).get(key)
        if found is None or not isinstance(found.value, dict):
            raise NotFound(f"there is no {key}")
        return found.value, found.version

    async def answered(self, context: Context, request: str) -> dict[str, Any] | None:
        """What was answered to this very request before; a key that is used for another one is refused."""
        if context.idempotency_key is None:
            return None
        key = f"{KEPT}{context.idempotency_key}"
        held = (await self.backend.read_many([key])).get(key)
        if held is None:
            return None
        if held.value["request"] != request:
            raise Refusal(422, "this Idempotency-Key was used for another request")
        return dict(held.value["answer"])

    async def write(
        self, context: Context, request: str, states: Mapping[str, Doc | None], reading: Reading, more: Any
    ) -> dict[str, Any]:
        """Write documents with the answer to their request, in one transaction, if nothing that was read has moved."""
        answer = {"written": sorted(states), **more}
        kept: dict[str, Doc | None] = {}
        expected = dict(reading.versions)
        if context.idempotency_key is not None:
            key = f"{KEPT}{context.idempotency_key}"
            kept[key] = {"request": request, "answer": answer}
            expected[key] = ABSENT
        if states or kept:
            await self.backend.documents.write_all(
                {**states, **kept}, context, versions=expected, finding=reading.found
            )
        return answer

    async def copied(self, name: str) -> int | None:
        """A copy of the catalog in a table of its own; None if there is one of that name, or can be none."""
        try:
            copy = Documents(self.backend.url, name)
        except ConfigError:
            return None
        try:
            if await copy.count():
                return None
            every = {k: d for k, d in (await self.backend.everything()).items() if not k.startswith(KEPT)}
            await copy.write_all(every)
            return len(every)
        finally:
            await copy.close()

    async def close(self) -> None:
        """Let go."""
        await self.backend.close()


class Reading:
    """What one request has read, and at which versions: it is only written if that still holds."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store
        self.versions: dict[str, str] = {}
        self.found: dict[tuple[str, str], frozenset[str]] = {}
        """What was found by a field and a value."""

    async def aliases_of(self, exercise: str) -> list[str]:
        """The aliases that point at an exercise, which must still be all when this is written."""
        keys = sorted(await self._store.backend.aliases_of([exercise]))
        self.found["exercise_id", exercise] = frozenset(keys)
        return keys

    async def many(self, keys: Iterable[str]) -> dict[str, Doc]:
        """Those of the documents that there are; that the others are not is noted, too."""
        wanted = list(keys)
        found = await self._store.backend.read_many(wanted)
        for key in wanted:
            version = found[key].version if key in found else ABSENT
            if self.versions.setdefault(key, version) != version:
                raise Conflict(f"{key} moved while this was being decided; try again")
        return {key: doc.value for key, doc in found.items() if isinstance(doc.value, dict)}

    async def one(self, key: str) -> Doc:
        """A document that must be there."""
        found = (await self.many([key])).get(key)
        if found is None:
            raise NotFound(f"there is no {key}")
        return found


def known_as(function: str, body: Any) -> str:
    """What a request is known by: its function and its body."""
    text = msgspec.json.encode([function, body], order="deterministic")
    return hashlib.sha256(text).hexdigest()
