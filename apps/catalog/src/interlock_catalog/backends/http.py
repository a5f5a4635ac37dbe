"""The catalog behind the Functions-style API: every request with a time limit, tried again as far as it may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

import httpx
import msgspec

from interlock import Context, RetryRule
from interlock.errors import Unavailable
from interlock.resources import HttpClient
from interlock.values import Effect, Versioned
from interlock_catalog.backends.port import Docs, Search, Write
from interlock_catalog.contracts import Json
from interlock_catalog.document_keys import RESOURCE, DocumentKind, kind_of, name_of
from interlock_catalog.fencing_header import write_fencing_tokens
from interlock_catalog.settings import Settings

_CHUNK = 40
"""Keys of one request: an address stays below the 8 kB that servers and proxies take."""
_MAX_CACHED = 2000


class _Cached(msgspec.Struct, frozen=True):
    """An answer, and the ETag that it came with."""

    etag: str
    body: Json


class _FunctionCall(msgspec.Struct, frozen=True):
    """A function of the server that makes a write, its body, and the version that it must find."""

    function: str
    body: Json
    if_match: str | None = None


class HttpBackend:
    """A catalog at an address. What was read is cached by its ETag, so that it is not sent again unless it changed."""

    def __init__(self, base: str, settings: Settings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        headers = {"Authorization": f"Bearer {settings.token}"} if settings.token else {}
        limits = httpx.Limits(max_connections=20, max_keepalive_connections=20)
        # trust_env is off: the token goes to the address in the settings, through no proxy of the environment.
        self._connections = httpx.AsyncClient(headers=headers, limits=limits, transport=transport, trust_env=False)
        retry = RetryRule(max_attempts=settings.attempts, base_s=settings.backoff_s, cap_s=settings.backoff_cap_s)
        # The server keeps idempotency keys (keyed), so that a write may be sent again as well.
        self._client = HttpClient(self._connections, retry=retry, timeout_s=settings.timeout_s, keyed=True)
        self._base = base.rstrip("/")
        self._cache: dict[str, _Cached] = {}

    async def read_many(self, keys: Iterable[str]) -> Docs:
        found: Docs = {}
        by_kind: dict[DocumentKind | None, list[str]] = {}
        for key in sorted(set(keys)):
            by_kind.setdefault(kind_of(key), []).append(key)
        where = {
            DocumentKind.EXERCISE: ("getExercises", "ids"),
            DocumentKind.ALIAS: ("searchAliases", "slugs"),
            DocumentKind.FAMILY: ("listFamilies", "slugs"),
        }
        # Under a key of another kind, or of none, a server has nothing to give.
        for kind in (kind for kind in where if kind in by_kind):
            (function, argument), names = where[kind], [name_of(key) for key in by_kind[kind]]
            for start in range(0, len(names), _CHUNK):
                found |= await self._page(function, [(argument, name) for name in names[start : start + _CHUNK]])
        return dict(sorted(found.items()))

    async def families(self, *, after: str = "", limit: int = 200) -> Docs:
        return await self._page("listFamilies", [("after", after), ("limit", str(limit))])

    async def exercises(self, *, family: str | None = None, after: str = "", limit: int = 200) -> Docs:
        if family is not None:
            return await self._page("getExercises", [("family", family)])
        return await self._page("getExercises", [("after", after), ("limit", str(limit))])

    async def aliases(self, *, after: str = "", limit: int = 500) -> Docs:
        return await self._page("searchAliases", [("after", after), ("limit", str(limit))])

    async def aliases_of(self, exercises: Iterable[str], families: Iterable[str] = ()) -> Docs:
        asked = [("exercise_ids", name) for name in sorted(set(exercises))]
        asked += [("families", name) for name in sorted(set(families))]
        found: Docs = {}
        for start in range(0, len(asked), _CHUNK):
            found |= await self._page("searchAliases", asked[start : start + _CHUNK])
        return dict(sorted(found.items()))

    async def find_by_name(self, slugs: Iterable[str]) -> Docs:
        asked, found = [("slugs", slug) for slug in sorted(set(slugs)) if slug], Docs()
        for start in range(0, len(asked), _CHUNK):
            found |= await self._page("findByName", asked[start : start + _CHUNK])
        return found

    async def searches(self, *, after: str = "", limit: int = 500) -> list[Search]:
        body = await self._get("listSearches", [("after", after), ("limit", str(limit))])
        return [Search(*row) for row in body["searches"]]

    async def write(self, write: Write, context: Context | None = None) -> None:
        """One function call; its idempotency key and fencing tokens go with it."""
        call = _function_call(write)
        headers = {} if call.if_match is None else {"If-Match": f'"{call.if_match}"'}
        if context is not None and context.tokens:
            headers |= _fencing_headers(context.tokens, context.ledger)
        key = None if context is None else context.idempotency_key
        await self._client.request(
            "POST",
            f"{self._base}/{call.function}",
            Effect.WRITE,
            json=call.body,
            key=key,
            headers=headers,
            resource=RESOURCE,
        )

    async def fence(self, tokens: dict[str, int], ledger: str) -> None:
        headers = _fencing_headers(tokens, ledger)
        await self._client.request("POST", f"{self._base}/fence", Effect.WRITE, json={}, headers=headers)

    async def close(self) -> None:
        await self._connections.aclose()

    async def _page(self, function: str, asked: list[tuple[str, str]]) -> Docs:
        body = await self._get(function, asked)
        return {key: Versioned(item["state"], item["version"]) for key, item in body["documents"].items()}

    async def _get(self, function: str, asked: list[tuple[str, str]]) -> Any:
        url = f"{self._base}/{function}?{urlencode([pair for pair in asked if pair[1] != ''])}"
        cached = self._cache.get(url)
        headers = {} if cached is None else {"If-None-Match": cached.etag}
        answer = await self._client.request("GET", url, headers=headers, accept=(304,))
        if answer.status_code == 304 and cached is not None:
            return cached.body
        try:
            body = answer.json()
        except ValueError:
            raise Unavailable(f"{function} answered something that is not JSON") from None
        tag = answer.headers.get("etag")
        if tag is not None:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.pop(next(iter(self._cache)))  # the oldest
            self._cache[url] = _Cached(tag, body)
        return body


def _fencing_headers(tokens: Mapping[str, int], ledger: str) -> dict[str, str]:
    return {"X-Fencing-Tokens": write_fencing_tokens(tokens), "X-Fencing-Ledger": ledger}


def _function_call(write: Write) -> _FunctionCall:
    given, keys = write.arguments, list(write.states)
    # If-Match is about one document; where several are written, the server compares those that it has read itself.
    version = write.versions.get(keys[0]) if len(keys) == 1 else None
    match write.op:
        case "upsert_exercise":
            return _FunctionCall("upsertExercise", {"exercise": write.states[keys[0]]}, version)
        case "approve_exercise":
            return _FunctionCall("approveExercise", {"id": given["exercise_id"]}, version)
        case "normalize_catalog_page":
            return _FunctionCall("normalizeCatalogPage", _pick(given, "family_slug", "items"))
        case "merge_exercises":
            return _FunctionCall("mergeExercises", _pick(given, "source_id", "target_id", "family_slug", "aliases"))
        case "upsert_alias":
            return _FunctionCall("upsertAlias", _pick(given, "alias_slug", "exercise_id", "family_slug"), version)
        case "delete_alias":
            return _FunctionCall("deleteAlias", _pick(given, "alias_slug", "replacement"))
        case _:
            return _FunctionCall("writeDocuments", {"documents": write.states}, version)


def _pick(given: dict[str, Json], *names: str) -> dict[str, Json]:
    return {name: given[name] for name in names}
