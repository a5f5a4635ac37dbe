"""JSON documents behind an HTTP API: ETag and If-Match, idempotency keys, and status codes as typed errors."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from interlock.egress import retry_after_s
from interlock.errors import (
    ConfigError,
    Conflict,
    InDoubt,
    InvalidInput,
    NotFound,
    Permanent,
    Unavailable,
    from_http_status,
)
from interlock.values import Context, Json, Versioned

try:
    import httpx
except ImportError:
    raise ConfigError("an HTTP resource needs its client: pip install 'interlock[http]'") from None

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class HttpDocuments:
    """Documents at BASE/KEY: GET, PUT and DELETE. The client is yours: its timeouts, headers and transport."""

    def __init__(self, client: httpx.AsyncClient, base: str, name: str, *, key_header: str = "Idempotency-Key") -> None:
        self.name = name
        self._client = client
        self._base = base.rstrip("/")
        self._key_header = key_header

    async def read_state(self, key: str) -> Json:
        """A document, with its ETag as version where the server gives one; None if there is none."""
        try:
            answer = await self._client.get(self._url(key))
        except httpx.HTTPError as error:
            raise Unavailable(f"{type(error).__name__}: {error}") from None
        if answer.status_code in (404, 410):
            return None
        _raise_for(answer)
        etag = answer.headers.get("etag")
        return answer.json() if etag is None else Versioned(answer.json(), etag)

    async def restore(self, key: str, state: Json, context: Context | None = None) -> None:
        """Put a document back as it was, or remove it (None)."""
        await self.write(key, state, context)

    async def write(self, key: str, state: Json, context: Context | None = None, *, version: str | None = None) -> Json:
        """PUT a document (None: DELETE it), under its idempotency key, and only at `version` where one is given."""
        headers: dict[str, str] = {} if version is None else {"If-Match": version}
        if context is not None and context.idempotency_key is not None:
            headers[self._key_header] = context.idempotency_key
        return await self.send("DELETE" if state is None else "PUT", self._url(key), state, headers)

    async def send(self, method: str, url: str, body: Json, headers: Mapping[str, str]) -> Json:
        """One request that changes something; what may have landed raises `InDoubt`."""
        try:
            answer = await self._client.request(method, url, json=body, headers=dict(headers))
        except _NEVER_SENT as error:
            raise Unavailable(f"{type(error).__name__}: {error}") from None
        except httpx.HTTPError as error:
            raise InDoubt(f"the answer was lost ({type(error).__name__}): it may have landed") from None
        if method == "DELETE" and answer.status_code in (404, 410):
            return None
        _raise_for(answer, changes=True)
        return _body(answer)

    def _url(self, key: str) -> str:
        if key in (".", ".."):
            raise InvalidInput(f"{key!r} cannot be part of an address")
        return f"{self._base}/{quote(key, safe='')}"


def _body(answer: httpx.Response) -> Json:
    """The JSON of an answer, or its text: a change that was answered has been made, whatever the answer looks like."""
    if not answer.content:
        return None
    try:
        return answer.json()
    except ValueError:
        return answer.text


def _raise_for(answer: httpx.Response, *, changes: bool = False) -> None:
    if answer.is_success:
        return
    if answer.status_code < 400:
        raise Permanent(f"{answer.request.method} answered {answer.status_code}; nothing was done")
    message = f"{answer.request.method} {answer.request.url.path} answered {answer.status_code}: {answer.text[:200]}"
    wait_s = retry_after_s(answer.headers.get("retry-after", ""))
    if answer.status_code == 412:
        raise Conflict(message)
    if answer.status_code == 404:
        raise NotFound(message)
    if changes and answer.status_code >= 500 and answer.status_code != 503:
        raise InDoubt(message)  # a server that fails half way may have done it
    raise from_http_status(answer.status_code, message, retry_after_s=wait_s)
