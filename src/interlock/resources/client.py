"""An HTTP client that tries again as far as the effect of a request allows: reads freely, changes only where safe."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypedDict, Unpack

from interlock.errors import (
    ConfigError,
    Conflict,
    Forbidden,
    InDoubt,
    NotFound,
    NothingLanded,
    Permanent,
    TimedOut,
    TooLarge,
    ToolError,
    Transient,
    Unavailable,
    from_http_status,
    install_hint,
)
from interlock.resilience import next_wait
from interlock.tools import RetryRule
from interlock.tools.body_limits import BodyLimits
from interlock.tools.egress import ask_for_bounded, from_transport, read_bounded, retry_after_s
from interlock.tools.wire import CHANGES, RESOURCE, SAFE_METHODS, Sending
from interlock.values import Effect, Json
from interlock.wrong_values import refuse_unknown

try:
    import httpx
except ImportError:
    raise ConfigError(f"an HTTP resource needs its client: {install_hint('http')}") from None

ONCE = RetryRule(max_attempts=1)
_WITHIN_S = 120.0
_SIGNED: Any = httpx.USE_CLIENT_DEFAULT


class RequestOptions(TypedDict, total=False):
    """What may be said about a request beside its method, address and effect."""

    json: Json
    """The body."""
    key: str | None
    """The idempotency key."""
    headers: Mapping[str, str]
    accept: tuple[int, ...]
    """Statuses that are answers, not errors."""
    within_s: float
    """For all attempts and waits together."""
    resource: str
    """The resource whose state it changes, if it changes nothing else: a look there shows whether it landed."""


class AnswerBytes(TypedDict, total=False):
    """How much of an answer is taken; as much as `Egress` takes, unless it is said."""

    wire_bytes: int
    body_bytes: int


_OPTIONS = ("retry", "timeout_s", "key_header", "keyed", "sleep")


# What may be tried again follows from the effect, not from the status alone.
class HttpClient:
    """Requests with a time limit each (None: that of the client), tried again by the class of their error.

    An answer may have `wire_bytes` as it comes, and `body_bytes` when it is unpacked, whatever the client allows.

    A read is tried again after whatever may pass. A change is tried again if nothing can have landed (never sent, or
    refused with 429); if its answer was lost or the server failed (5xx), only under an idempotency key that the server
    honours (`keyed`).
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        retry: RetryRule = ONCE,
        timeout_s: float | None = 10.0,
        key_header: str = "Idempotency-Key",
        keyed: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **limits: Unpack[AnswerBytes],
    ) -> None:
        refuse_unknown("HttpClient", limits, (*_OPTIONS, *AnswerBytes.__annotations__))
        self._limits = BodyLimits(owner="HttpClient", **limits).check()
        self._client = client
        self._retry = retry
        self._timeout_s = timeout_s
        self._key_header = key_header
        self._keyed = keyed
        self._sleep = sleep

    async def request(
        self, method: str, url: str, effect: Effect | None = None, **options: Unpack[RequestOptions]
    ) -> httpx.Response:
        """One answer that is a success or has an accepted status, or an error of its class.

        Unless it is said what effect a request has, a GET reads and everything else changes something.
        """
        refuse_unknown("HttpClient.request", options, RequestOptions.__annotations__)  # before anything is sent
        key = options.get("key") or None
        effect = effect or (Effect.READ if method.upper() in SAFE_METHODS else Effect.WRITE)
        sent = {**(options.get("headers") or {}), **({self._key_header: key} if key is not None else {})}
        # `keyed` says that the server honours the key: one that ignores it would do the thing twice.
        repeatable = effect is Effect.READ or (self._keyed and key is not None)
        asked = RequestOptions(**{**options, "headers": sent})
        end, attempts = time.monotonic() + options.get("within_s", _WITHIN_S), 0
        while True:
            attempts += 1
            try:
                answer = await self._once(method, url, effect, asked, end - time.monotonic())
                if answer.status_code not in options.get("accept", ()):
                    raise_for(answer, changes=effect is not Effect.READ)
                return answer
            except ToolError as error:
                left_s = end - time.monotonic()
                wait_s = next_wait(self._retry, attempts, error, left_s, _up_to, repeatable=repeatable)
                if wait_s is None:
                    raise
            await self._sleep(wait_s)

    async def _send(self, request: httpx.Request, *, follow: bool) -> httpx.Response:
        """A whole answer within the limits. Redirects are followed here: httpx reads all there is of each."""
        ask_for_bounded(request)
        following, auth = request, _SIGNED
        for _ in range(self._client.max_redirects + 1):
            answer = await self._client.send(following, auth=auth, stream=True, follow_redirects=False)
            if not follow or answer.next_request is None:
                return await read_bounded(answer, self._limits)
            await answer.aclose()
            # What signs in has signed the first request; of the next, httpx has taken out what is not for its host.
            following, auth = answer.next_request, httpx.Auth()
        raise httpx.TooManyRedirects(f"more than {self._client.max_redirects} redirects", request=request)

    async def _once(
        self, method: str, url: str, effect: Effect, asked: RequestOptions, left_s: float
    ) -> httpx.Response:
        reads, limit, resource = effect is Effect.READ, self._timeout_s, asked.get("resource", "")
        each: dict[str, Any] = {} if limit is None else {"timeout": httpx.Timeout(limit)}
        request = self._client.build_request(
            method, url, json=asked.get("json"), headers=dict(asked["headers"]), **each
        )
        sending = Sending(method, changes=not reads, resource=resource)
        trace = sending.trace(request.extensions.get("trace"))
        # Added: httpx keeps the timeouts there.
        request.extensions = {**request.extensions, "trace": trace, CHANGES: not reads, RESOURCE: resource}
        try:
            # A server that trickles gets no more time than one that is silent; a change is not followed elsewhere.
            async with asyncio.timeout(left_s if limit is None else min(limit, left_s)):
                follow = self._client.follow_redirects and reads
                answer = await self._send(request, follow=follow)
        except (httpx.HTTPError, TimeoutError, Transient) as error:
            lost = _explain(error, sending, request.url.host)
            if isinstance(lost, NothingLanded):
                sending.did_nothing()
            if reads or isinstance(lost, NothingLanded):
                raise lost from None
            raise InDoubt(f"{lost}: it may have landed") from None
        except TooLarge as error:  # the request had left, and its answer could not be taken
            if reads:
                raise
            raise InDoubt(f"{error}: it may have landed") from None
        except (asyncio.CancelledError, Forbidden) as error:  # given up by its caller, or refused by `Egress`
            if isinstance(error, Forbidden) or sending.still_connects:
                sending.did_nothing()
            raise
        sending.note_answer(answer.status_code)
        return answer


def _explain(error: Exception, sending: Sending, host: str) -> Transient:
    """What it means that no answer came, over whatever client: that of `Egress` has said it already."""
    if isinstance(error, Transient):
        return error
    if isinstance(error, httpx.TransportError):
        return from_transport(error, host)
    if isinstance(error, TimeoutError):
        return NothingLanded("no connection in time") if sending.still_connects else TimedOut("no answer in time")
    return Unavailable(f"{type(error).__name__}: {error}")


def raise_for(answer: httpx.Response, *, changes: bool = False) -> None:
    """Raise the error class of an answer that is no success; of a change, what may have landed is `InDoubt`."""
    if answer.is_success:
        return
    if answer.status_code < 400:  # a redirect that is not followed, or an odd 1xx
        message = f"{answer.request.method} answered {answer.status_code}, and that is no answer"
        raise InDoubt(f"{message}: it may have landed") if changes else Permanent(message)
    message = f"{answer.request.method} {answer.request.url.path} answered {answer.status_code}: {answer.text}"
    wait_s = retry_after_s(answer.headers.get("retry-after", ""))
    if answer.status_code == 412:
        raise Conflict(message)
    if answer.status_code == 404:
        raise NotFound(message)
    if changes and (answer.status_code >= 500 or answer.status_code == 408):
        raise InDoubt(message)  # a server that fails half way may have done it, and so may whatever stands behind it
    raise from_http_status(answer.status_code, message, retry_after_s=wait_s)


def _up_to(most_s: float) -> float:
    return random.uniform(0.0, most_s)
