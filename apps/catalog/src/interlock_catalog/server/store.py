"""The server's side of a write: once for each idempotency key, at the versions it was decided on, under its tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from interlock import Context
from interlock.errors import ConfigError, Conflict, NotFound
from interlock.resources import Documents
from interlock.values import Versioned
from interlock_catalog.backends.embedded import DatabaseBackend
from interlock_catalog.contracts import KINDS, Doc, Json
from interlock_catalog.document_keys import DocumentKey, DocumentKind, kind_of
from interlock_catalog.server.errors import RequestRefused

_COPIED = frozenset({*KINDS, DocumentKind.SEARCH})
ABSENT = "0"
"""The version of a document that does not exist."""


class ServerStore:
    """The catalog in a database, and what was answered to each idempotency key."""

    def __init__(self, url: str) -> None:
        self.backend = DatabaseBackend(url)

    async def get(self, key: str) -> Versioned:
        """A document that must exist."""
        found = (await self.backend.read_many([key])).get(key)
        if found is None or not isinstance(found.value, dict):
            raise NotFound(f"there is no {key}")
        return found

    async def find_answer(self, context: Context, request: str) -> dict[str, Any] | None:
        """What was answered to this very request before; a key that was used for another one is refused."""
        if context.idempotency_key is None:
            return None
        key = _answer_key(context)
        stored = (await self.backend.read_many([key])).get(key)
        if stored is None:
            return None
        if stored.value["request"] != request:
            raise RequestRefused(422, "this Idempotency-Key was used for another request")
        return dict(stored.value["answer"])

    async def write(
        self,
        states: Mapping[str, Doc | None],
        read_set: ReadSet,
        *,
        context: Context,
        request: str,
        more: Mapping[str, Json],
    ) -> dict[str, Any]:
        """Write documents with the answer to their request, in one transaction, if nothing that was read has moved.

        Documents and answer together: if the connection breaks after the commit, the request sent again finds its
        answer; if it breaks before, it finds nothing and is done.
        """
        answer = {"written": sorted(states), **more}
        answers: dict[str, Doc | None] = {}
        expected = dict(read_set.versions)
        if context.idempotency_key is not None:
            key = _answer_key(context)
            answers[key] = {"request": request, "answer": answer}
            expected[key] = ABSENT  # of two deliveries at once, one fails here
        if states or answers:
            await self.require_ledger(context)
            await self.backend.documents.write_all(
                {**states, **answers}, context, versions=expected, finding=read_set.found
            )
        return answer

    async def fence(self, context: Context) -> None:
        """Refuse writes under older tokens of the context's ledger from now on."""
        await self.require_ledger(context)
        await self.backend.fence(context.tokens, context.ledger)

    async def require_ledger(self, context: Context) -> None:
        """Refuse tokens of a ledger that another holder has used: they could fence off the workers of that ledger."""
        if not context.tokens:
            return
        key = DocumentKey(DocumentKind.LEDGER, hashlib.sha256(context.ledger.encode()).hexdigest()).text
        found = (await self.backend.read_many([key])).get(key)
        if found is None:
            try:
                claim = {"ledger": context.ledger, "holder": context.actor}
                await self.backend.documents.write(key, claim, version=ABSENT)
                return
            except Conflict:  # somebody was faster
                found = (await self.backend.read_many([key]))[key]
        if found.value["holder"] != context.actor:
            raise RequestRefused(403, "these fencing tokens are of a ledger that another token works for")

    async def copy_catalog(self, name: str) -> int | None:
        """A copy of the catalog in a table of its own; None if there is one of that name, or can be none."""
        try:
            copy = Documents(self.backend.url, name)
        except ConfigError:
            return None
        try:
            if await copy.count():
                return None
            # Answers and ledgers belong to requests to this catalog; a copy was never asked.
            every = {k: d for k, d in (await self.backend.read_all()).items() if kind_of(k) in _COPIED}
            await copy.write_all(every)
            return len(every)
        finally:
            await copy.close()

    async def close(self) -> None:
        await self.backend.close()


class ReadSet:
    """What one request has read, and at which versions: it is only written if that still holds."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store
        self.versions: dict[str, str] = {}
        self.found: dict[tuple[str, str], frozenset[str]] = {}
        """The keys that were found by a field and a value: no other may have come, or gone, when it is written."""

    async def read_aliases_of(self, exercise: str) -> list[str]:
        """The aliases that point at an exercise."""
        keys = sorted(await self._store.backend.aliases_of([exercise]))
        self.found["exercise_id", exercise] = frozenset(keys)
        return keys

    async def read_many(self, keys: Iterable[str]) -> dict[str, Doc]:
        """Those of the documents that exist; that the others do not is part of what was read."""
        wanted = list(keys)
        found = await self._store.backend.read_many(wanted)
        for key in wanted:
            version = found[key].version if key in found else ABSENT
            # What is decided may rest on both reads, so the second has to agree with the first.
            if self.versions.setdefault(key, version) != version:
                raise Conflict(f"{key} moved while this was being decided; try again")
        return {key: doc.value for key, doc in found.items() if isinstance(doc.value, dict)}

    async def read_one(self, key: str) -> Doc:
        """A document that must exist."""
        found = (await self.read_many([key])).get(key)
        if found is None:
            raise NotFound(f"there is no {key}")
        return found


def _answer_key(context: Context) -> str:
    """Answers are in the same table as the documents: only so can both be written in one transaction.

    A key belongs to whoever sent it: another holder's request under the same key is another request.
    """
    owned = hashlib.sha256(msgspec.json.encode([context.actor, context.idempotency_key])).hexdigest()
    return DocumentKey(DocumentKind.ANSWER, owned).text


def digest_request(function: str, body: Json) -> str:
    """Identifies a request by its function and its body."""
    text = msgspec.json.encode([function, body], order="deterministic")
    return hashlib.sha256(text).hexdigest()
