"""One server behind MCP: started, asked, started again where it has ended, and ended with us."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TypedDict, TypeVar, Unpack, cast

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import Transport
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import RequestParamsMeta
from pydantic import TypeAdapter

from interlock.adapters.mcp.callbacks import ClientCallbacks
from interlock.adapters.mcp.downstream import CALLER, DownstreamCall
from interlock.adapters.mcp.error_output import ErrorOutput
from interlock.adapters.mcp.http_client import McpHttpClient
from interlock.adapters.mcp.lines import MOST_BYTES, LineReads
from interlock.adapters.mcp.pins import PinsFile
from interlock.adapters.mcp.processes import run_server
from interlock.errors import (
    ConfigError,
    InDoubt,
    InputRequired,
    InvalidInput,
    NothingLanded,
    Permanent,
    TimedOut,
    ToolError,
    Unavailable,
)
from interlock.values import Json, shorten

T = TypeVar("T")
_ANSWER: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)
_log = logging.getLogger("interlock.mcp")
_START_S = 30.0
"""So long a server may take until it answers for the first time."""
_PAUSES_S = (0.1, 0.5, 2.0, 10.0, 30.0)
"""Before it is started again: the first time at once, nearly."""
_BACK_S, _HOPELESS = 30.0, 3
"""So long a call waits for a server that has ended, and so often it may fail to start before nobody waits."""
_MOST_PAGES = 100
_LIST_S = 20.0
"""So long a server may take to list its tools."""
_COMPARE_S = 60.0
"""So old the last comparison with the pins may be when a tool is called."""
_OF_THE_SDK = (
    "Connection closed",
    "Request '",
    "Failed to parse JSON response",
    "Unexpected content type",
    "server answered a request with 202",
    "SSE stream ended",
    "SSE stream failed",
)
"""How the SDK's own errors begin. Of none of these is it known that the server did not do what it was asked for."""
_SESSION_GONE = ("Session terminated", "Session not found")
_STEADY_S = 10.0
"""A server that was there for so long is started again at once, nearly."""
_SAID = 500


class ServerAddress(TypedDict, total=False):
    """How a server is reached: the command that starts it, or its address."""

    command: Sequence[str]
    url: str
    env: Mapping[str, str]
    """Variables that a command gets beside those that the SDK hands on."""
    cwd: str
    headers: Mapping[str, str]
    """Headers of requests to its address: what it knows us by."""
    sse: bool
    """Its address speaks only the older transport."""


class Upstream:
    """A server, by the command that starts it or by its address, started when it is first needed; `async with` ends it.

    With `pins`, its tools are compared with what was pinned whenever it is connected to, and when it says that they
    have changed: `switched_off` are those that nobody may use as they are, and why.
    """

    def __init__(
        self,
        name: str,
        *,
        pins: PinsFile | None = None,
        callbacks: ClientCallbacks | None = None,
        **connection: Unpack[ServerAddress],
    ) -> None:
        self._address, self._callbacks = connection, callbacks or ClientCallbacks()
        self._command, self._url = list(connection.get("command", ())), connection.get("url", "")
        if bool(self._command) == bool(self._url):
            raise ConfigError(f"the MCP server {name!r} needs a command that starts it, or its url: one of them")
        self.name = name
        self._env, self._cwd = dict(connection.get("env", {})), connection.get("cwd")
        self._headers, self._sse = dict(connection.get("headers", {})), connection.get("sse", False)
        self._pins = pins
        self.switched_off: dict[str, str] = {}
        self._client: Client | None = None
        self._there, self._lost, self._failed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._problem = ""
        self._errors: ErrorOutput | None = None
        self._reads: LineReads | None = None
        self._http: McpHttpClient | None = None
        self._failures = 0
        self._keeper: asyncio.Task[None] | None = None
        self._others: weakref.WeakSet[Upstream] = weakref.WeakSet()
        self._compared_at = 0.0

    async def __aenter__(self) -> Upstream:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    def connect_again(self, callbacks: ClientCallbacks) -> Upstream:
        """Another connection to the same server, for somebody whom it may ask back; not started yet."""
        made = Upstream(self.name, pins=self._pins, callbacks=callbacks, **self._address)
        self._others.add(made)
        return made

    async def start(self) -> None:
        """Start it, and wait until it answers; it is looked after until `close`."""
        if self._keeper is None:
            self._failed.clear()
            self._keeper = asyncio.create_task(self._keep(), name=f"mcp {self.name}")
        waiting = [asyncio.create_task(event.wait()) for event in (self._there, self._failed)]
        try:
            await asyncio.wait(waiting, timeout=_START_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        if not self._there.is_set():
            await self.close()
            raise ConfigError(f"the MCP server {self.name!r} did not start: {self._problem or 'it gave no answer'}")

    async def close(self) -> None:
        """End it, and the other connections to it."""
        await asyncio.gather(*(one.close() for one in list(self._others)), return_exceptions=True)
        keeper, self._keeper = self._keeper, None
        self._drop()
        if keeper is not None:
            keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeper

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine, as we have started it."""
        return bool(self._command)

    async def _target(self, stack: contextlib.AsyncExitStack) -> Transport:
        if self._url and self._sse:
            return cast(Transport, sse_client(self._url, headers=self._headers, httpx_client_factory=McpHttpClient))
        if self._url:
            self._http = await stack.enter_async_context(McpHttpClient(self._headers))
            return streamable_http_client(self._url, http_client=self._http, max_sse_event_size=MOST_BYTES)
        first, *rest = self._command
        # What the SDK hands on by itself (PATH, HOME …) and what the operator names: no secret of ours goes along.
        started = StdioServerParameters(command=first, args=rest, env=self._env or None, cwd=self._cwd)
        self._errors = stack.enter_context(ErrorOutput(self.name))
        self._reads = LineReads(self.name, self._drop)
        return run_server(started, self._errors.file, self._reads)

    def _drop(self) -> None:
        """The connection is no more: whoever comes next waits for another one."""
        self._client = None
        self._there.clear()
        self._lost.set()

    async def _keep(self) -> None:
        """Connected for as long as somebody needs it. The SDK wants to be entered and left in one task: this one."""
        while True:
            since = asyncio.get_running_loop().time()
            try:
                async with contextlib.AsyncExitStack() as stack:
                    target = await self._target(stack)
                    client = await stack.enter_async_context(self._callbacks.open(target, self._hear))
                    await self._compare(client)
                    self._lost.clear()
                    self._client = client
                    self._there.set()
                    await self._lost.wait()
            except Exception as error:  # noqa: BLE001  whatever a server or its transport does, it is started again
                said = "" if self._errors is None else self._errors.tail()
                said = said if self._http is None else self._http.refused
                self._problem = shorten(f"{_root_of(error)}{f' ({said})' if said else ''}", _SAID)
                self._failed.set()
                _log.warning("the MCP server %s: %s", self.name, self._problem)
            self._drop()
            if asyncio.get_running_loop().time() - since > _STEADY_S:
                self._failures = 0
            await asyncio.sleep(_PAUSES_S[min(self._failures, len(_PAUSES_S) - 1)])
            self._failures += 1

    async def list_tools(self) -> list[types.Tool]:
        """Everything that it offers."""
        async with self._asking("tools/list", changes=False) as client:
            return await self._list(client)

    async def _list(self, client: Client) -> list[types.Tool]:
        found: list[types.Tool] = []
        cursor: str | None = None
        for _page in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                return found
        raise ConfigError(f"the MCP server {self.name!r} lists its tools on more than {_MOST_PAGES} pages")

    async def _compare(self, client: Client) -> None:
        """Switch off what is not as it was pinned."""
        if self._pins is None:
            return
        offered = await asyncio.wait_for(self._list(client), _LIST_S)
        self._compared_at = asyncio.get_running_loop().time()
        off = self._pins.switched_off(self.name, offered)
        for tool, why in off.items():
            if self.switched_off.get(tool) != why:
                _log.warning("%s: %s is switched off: %s", self.name, tool, why)
        self.switched_off = off

    async def _hear(self, message: object) -> None:
        """What a server says of itself: that its tools are others now; whoever listens hears it, too."""
        if self._callbacks.hear is not None:
            await self._callbacks.hear(message)
        if isinstance(message, types.ToolListChangedNotification):
            self._compared_at = 0.0

    async def _compare_if_due(self, client: Client) -> None:
        """Before a call: where the server has said that its tools are others, and once in a while as it may not."""
        if self._pins is None or asyncio.get_running_loop().time() - self._compared_at < _COMPARE_S:
            return
        try:
            await self._compare(client)
        except Exception as error:  # noqa: BLE001  what cannot be compared is not to be used
            self._problem = f"its tools could not be listed: {shorten(_root_of(error), _SAID)}"
            self._drop()
            raise NothingLanded(f"the MCP server {self.name!r}: {self._problem}") from None

    async def call_tool(
        self,
        tool: str,
        arguments: dict[str, Json],
        *,
        changes: bool,
        timeout_s: float,
        meta: Mapping[str, Json] | None = None,
        caller: DownstreamCall | None = None,
    ) -> types.CallToolResult:
        """Call a tool. An answer that is an error means that nothing was done; no answer, that nobody knows.

        `caller`: the request of a client of the gateway that it is made for.
        """
        caller = caller or DownstreamCall()
        async with self._asking(tool, changes=changes, caller=caller) as client:
            await self._compare_if_due(client)
            if tool in self.switched_off:
                why = self.switched_off[tool].partition("\n")[0].rstrip(":")
                raise Permanent(
                    f"{self.name}: {tool} is switched off: {why}; interlock mcp show {self.name} has the difference,"
                    f" and interlock mcp pin {self.name} accepts it"
                )
            asked = types.CallToolRequestParams(
                name=tool,
                arguments=arguments,
                input_responses=caller.input_responses,
                request_state=caller.request_state,
                _meta=cast(RequestParamsMeta | None, meta),
            )
            found = await client.session.send_request(
                types.CallToolRequest(params=asked),
                _ANSWER,
                request_read_timeout_seconds=timeout_s,
                progress_callback=caller.progress,
            )
            if isinstance(found, types.CallToolResult) and not found.is_error:
                await self._check_form(client, tool, found, changes=changes)
        if isinstance(found, types.InputRequiredResult):
            caller.asks = found
            wanted = found.model_dump(mode="json", by_alias=True, exclude_none=True)
            raise InputRequired(f"{self.name} has to be told something first", requests=wanted)
        return found

    async def _check_form(self, client: Client, tool: str, found: types.CallToolResult, *, changes: bool) -> None:
        """Hold an answer against the form that the tool promises. Whatever goes wrong here, the call was answered."""
        try:
            await client.session.validate_tool_result(tool, found)
        except (MCPError, RuntimeError) as error:
            said = shorten(str(error), _SAID)
            raise self._in_doubt(f"{self.name} has answered {tool}, and not as it promises: {said}", changes) from None

    async def ask(self, what: str, work: Callable[[Client], Awaitable[T]], caller: DownstreamCall | None = None) -> T:
        """Ask it for something that changes nothing."""
        async with self._asking(what, changes=False, caller=caller) as client:
            return await work(client)

    async def _ready(self) -> Client | None:
        """The connection; one that was lost is waited for, unless it could not be had again at once."""
        if self._keeper is None:
            try:
                await self.start()
            except ConfigError:
                return None
        if self._client is None and self._keeper is not None and self._failures < _HOPELESS:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._there.wait(), _BACK_S)
        return self._client

    @contextlib.asynccontextmanager
    async def _asking(self, what: str, *, changes: bool, caller: DownstreamCall | None = None) -> AsyncIterator[Client]:
        client = await self._ready()
        if client is None:
            raise NothingLanded(f"the MCP server {self.name!r} is not there: {self._problem or 'it is being started'}")
        try:
            yield client
        except MCPError as error:
            # The SDK makes up errors of codes that servers use as well: what it says itself, no server has said.
            is_answer = not error.message.startswith(_OF_THE_SDK)
            if caller is not None and is_answer:
                caller.error = error
            raise self._explain(error, what, changes=changes, is_answer=is_answer) from None
        except (OSError, RuntimeError, ValueError) as error:  # of the SDK: a broken pipe, a result that fits no schema
            self._drop()
            raise self._in_doubt(f"{self.name} broke off while it was asked for {what}: {error}", changes) from None

    def _explain(self, error: MCPError, what: str, *, changes: bool, is_answer: bool) -> ToolError:
        said = shorten(error.message, _SAID)
        if error.message in _SESSION_GONE and not self.is_local:
            self._drop()
            return NothingLanded(f"{self.name} does not know our session any more; it is connected to again")
        if error.code == types.REQUEST_TIMEOUT and not is_answer:
            return InDoubt(f"{self.name} gave no answer to {what} in time") if changes else TimedOut(said)
        if not is_answer:
            self._drop()
            why = "" if self._reads is None or not self._reads.problem else f": {self._reads.problem}"
            return self._in_doubt(f"{self.name} has ended while it was asked for {what}{why}", changes)
        if error.code == types.INVALID_PARAMS:
            return InvalidInput(f"{self.name} refuses {what}: {said}")
        return Permanent(f"{self.name} refuses {what}: {said}")

    @staticmethod
    def _in_doubt(message: str, changes: bool) -> ToolError:
        return InDoubt(message) if changes else Unavailable(message)


async def link_to(upstream: Upstream) -> Upstream:
    """The connection that the call on the path goes by: that of its client, or the one that all share."""
    caller = CALLER.get()
    found: Upstream = upstream if caller is None or caller.link is None else await caller.link(upstream)
    return found


def _root_of(error: BaseException) -> str:
    """What went wrong at the bottom: the SDK wraps it in groups."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
