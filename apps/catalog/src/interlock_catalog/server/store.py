"""The server's side of a write: once for each idempotency key, at the version that was asked for, under its token."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from interlock import Context
from interlock.errors import Conflict, NotFound
from interlock.resources import Documents
from interlock_catalog.backends.embedded import DatabaseBackend
from interlock_catalog.contracts import Doc
from interlock_catalog.server.gate import Refusal

KEPT = "idem:"


class ServerStore:
    """The catalog in a database, and what was answered to each idempotency key, written together."""

    def __init__(self, url: str) -> None:
        self.backend = DatabaseBackend(url)

    async def get(self, key: str) -> tuple[Doc, str]:
        """A document and its version."""
        found = (await self.backend.read_many([key])).get(key)
        if found is None:
            raise NotFound(f"there is no {key}")
        return found.value, found.version

    async def answered(self, context: Context, function: str, body: Any) -> Any | None:
        """What was answered to this very request before; a key that is used for another one is refused."""
        if context.idempotency_key is None:
            return None
        key = f"{KEPT}{context.idempotency_key}"
        held = (await self.backend.read_many([key])).get(key)
        if held is None:
            return None
        if held.value["request"] != _request(function, body):
            raise Refusal(422, "this Idempotency-Key was used for another request")
        return held.value["answer"]

    async def write(
        self,
        context: Context,
        function: str,
        body: Any,
        states: Mapping[str, Doc | None],
        versions: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Write documents with the answer to their request, in one transaction; the answer: their versions."""
        expected = dict(versions or {})
        now = await self.backend.read_many(states)
        answer = {key: str(int(now[key].version) + 1) if key in now else "" for key in states}
        pinned = {key: now[key].version for key in states if key in now and key not in expected}
        kept: dict[str, Doc | None] = {}
        if context.idempotency_key is not None:
            key = f"{KEPT}{context.idempotency_key}"
            kept[key] = {"request": _request(function, body), "answer": {"versions": answer}}
            expected[key] = "0"
        try:
            made = await self.backend.documents.write_all({**states, **kept}, context, versions={**pinned, **expected})
        except Conflict:
            again = await self.answered(context, function, body)
            if again is not None:
                return dict(again)
            raise
        return {"versions": {key: made[key] for key in states}}

    async def copied(self, name: str) -> int | None:
        """A copy of the catalog in a table of its own; None if there is one of that name."""
        copy = Documents(self.backend.url, name)
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


def _request(function: str, body: Any) -> str:
    text = msgspec.json.encode([function, body], order="deterministic")
    return hashlib.sha256(text).hexdigest()
