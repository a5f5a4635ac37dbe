"""JSON documents behind an HTTP API: ETag and If-Match, idempotency keys, and status codes as typed errors."""

from __future__ import annotations

import hashlib
import json as json_text
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from interlock.errors import InvalidInput, Permanent
from interlock.resources.client import HttpClient
from interlock.resources.written import note_failure, note_written
from interlock.tools.wire import answered_here, written_here
from interlock.values import NOT_THERE, Context, Effect, Json, Versioned

if TYPE_CHECKING:
    import httpx

_GONE = (404, 410)


class HttpDocuments:
    """Documents at BASE/KEY: GET, PUT and DELETE. The client is yours: its timeouts, headers and transport.

    With a bare httpx client a request is made once, as the engine tries the whole call again.
    """

    def __init__(
        self, client: httpx.AsyncClient | HttpClient, base: str, name: str, *, key_header: str = "Idempotency-Key"
    ) -> None:
        self.name = name
        if not isinstance(client, HttpClient):
            client = HttpClient(client, timeout_s=None, key_header=key_header)
        self._client = client
        self._base = base.rstrip("/")

    async def read_state(self, key: str) -> Json:
        """A document, with its ETag as version where the server gives a strong one; None if there is none.

        One that is JSON null is refused: None stands for a document that is not there, and an undo would remove it.
        """
        answer = await self._client.request("GET", self._url(key), accept=_GONE)
        if answer.status_code in _GONE:
            return None
        etag, state = _strong_etag(answer), answer.json()
        if state is None:
            raise Permanent(
                f"the document {key!r} is JSON null, which cannot be told from one that is not there, so that nobody"
                " could put it back; give it another value, or change it without a resource"
            )
        return state if etag is None else Versioned(state, etag)

    async def restore(self, key: str, state: Json, context: Context | None = None) -> None:
        """Put a document back as it was, or remove it (None)."""
        await self.write(key, state, context)

    async def write(self, key: str, state: Json, context: Context | None = None, *, version: str | None = None) -> Json:
        """PUT a document (None: DELETE it), under its idempotency key, and only at `version`, or else at the version
        that this call has left, or was planned on, where the server gives any. A weak ETag is refused: no server can be
        held to it."""
        headers = _condition(version or self._held_to(key, context))
        method = "DELETE" if state is None else "PUT"
        try:
            answer = await self._send(method, self._url(key), state, headers, context, resource=self.name)
        except BaseException as error:
            note_failure(self.name, (key,), context, error)
            raise
        left = _note_left(state, answer)
        note_written(self.name, {key: left}, context)
        if context is not None and key in context.versions:
            del context.versions[key]  # a second write of this call is held to what was noted, if that was said
        return _value(answer)

    async def send(
        self, method: str, url: str, json: Json, headers: Mapping[str, str], context: Context | None = None
    ) -> Json:
        """One request that changes something, under a key of its own; what may have landed raises `InDoubt`."""
        self._no_longer_known(url, context)
        return _value(await self._send(method, url, json, headers, context))

    def _held_to(self, key: str, context: Context | None) -> str | None:
        """The version that a write of a call is held to: a second one to what the first has left."""
        if context is None:
            return None
        own = context.written.get(f"{self.name}/{key}")
        return context.versions.get(key) if own is None else own.version

    def _no_longer_known(self, url: str, context: Context | None) -> None:
        """A request to a document that this call has written, or below it, may change it once more."""
        place = f"{self.name}/"
        noted = [name.removeprefix(place) for name in {**written_here(), **_notes(context)} if name.startswith(place)]
        keys = [key for key in noted if url.startswith(self._url(key))]
        note_written(self.name, dict.fromkeys(keys), context)
        if context is not None:
            for key in keys:
                context.versions.pop(key, None)

    async def _send(
        self,
        method: str,
        url: str,
        json: Json,
        headers: Mapping[str, str],
        context: Context | None,
        *,
        resource: str = "",
    ) -> httpx.Response:
        what, answered = (0 if context is None else context.attempt, _digest(method, url, json)), answered_here()
        answer = await self._client.request(
            method,
            url,
            Effect.WRITE,
            json=json,
            key=_key_of(context, what[1], answered[what]),
            headers=headers,
            accept=_GONE if method == "DELETE" else (),  # gone already is what was wanted
            resource=resource,
        )
        answered[what] += 1
        return answer

    def _url(self, key: str) -> str:
        if key in (".", ".."):  # `quote` leaves dots, and a client would resolve them to the folder above
            raise InvalidInput(f"{key!r} cannot be part of an address")
        return f"{self._base}/{quote(key, safe='')}"


def _digest(*request: Json) -> str:
    """What tells one request of a call from the others, short enough for a header."""
    return hashlib.sha256(json_text.dumps(request, sort_keys=True).encode()).hexdigest()[:16]


def _key_of(context: Context | None, what: str, answered: int) -> str | None:
    """The idempotency key of one request of a call: a server that honours keys does nothing for one that it knows.

    So requests that differ have keys that differ, and so has the same one made again after it was answered. What is
    made again because no answer came, or by another attempt of the call, has the key that it had.
    """
    if context is None or context.idempotency_key is None:
        return None
    return f"{context.idempotency_key}:{what}" + (f":{answered}" if answered else "")


def _notes(context: Context | None) -> dict[str, Versioned | None]:
    return {} if context is None else context.written


def _note_left(state: Json, answer: httpx.Response) -> Versioned | None:
    """What a write has left, where its answer says at which version; a copy, as its writer may change its own."""
    if state is None:
        return Versioned(None, NOT_THERE)
    etag = _strong_etag(answer)
    return None if etag is None else Versioned(json_text.loads(json_text.dumps(state)), etag)


def _value(answer: httpx.Response) -> Json:
    return None if answer.status_code in _GONE else body_of(answer)


def _strong_etag(answer: httpx.Response) -> str | None:
    etag = answer.headers.get("etag")
    return etag if etag and not _is_weak(etag) else None


def _is_weak(etag: str) -> bool:
    """Whether an ETag says only that two answers mean the same: the document may have been edited all the same."""
    return etag.startswith(("W/", "w/"))


def _condition(version: str | None) -> dict[str, str]:
    """The header that holds a server to a version."""
    if version is None:
        return {}
    if version == NOT_THERE:
        return {"If-None-Match": "*"}
    if _is_weak(version):  # left out, the write would be made on whatever is there
        raise InvalidInput(
            f"{version} is a weak ETag, which If-Match never matches (RFC 9110, 13.1.1), so that nothing was sent: name"
            " a strong one, or none, and then what somebody else wrote meanwhile may be overwritten"
        )
    return {"If-Match": version}


def body_of(answer: httpx.Response) -> Json:
    """The JSON of an answer, or its text: a change that was answered has been made, whatever the answer looks like."""
    if not answer.content:
        return None
    try:
        return answer.json()
    except ValueError:
        return answer.text
