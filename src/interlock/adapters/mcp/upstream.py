"""One server behind MCP: started, asked, started again where it has ended, and ended with us."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar, Unpack, cast

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import Transport
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import RequestParamsMeta
from pydantic import TypeAdapter

from interlock.adapters.mcp.address import ServerAddress
from interlock.adapters.mcp.answered_errors import AnsweredErrors, note_requests
from interlock.adapters.mcp.callbacks import ClientCallbacks
from interlock.adapters.mcp.client_settings import ClientSettings
from interlock.adapters.mcp.downstream import CALLER, DownstreamCall
from interlock.adapters.mcp.error_output import ErrorOutput
from interlock.adapters.mcp.http_client import McpHttpClient
from interlock.adapters.mcp.lines import MOST_BYTES, LineReads
from interlock.adapters.mcp.listed_tools import ListedTools
from interlock.adapters.mcp.pin_watch import PinWatch
from interlock.adapters.mcp.pins import PinsFile
from interlock.adapters.mcp.processes import run_server
from interlock.adapters.mcp.root_cause import root_cause
from interlock.adapters.mcp.tasks import TaskLost, call_as_task
from interlock.adapters.mcp.under_way import ChangesUnderWay
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
_REFRESH_S = 2.0
"""So long nobody waits for who only wants to see a list."""
_BY_STATUS = ("Server returned an error response", "Not Found")
"""What the SDK says of a status by which a request was not taken (`http_client`). Of any other error that the server
has not answered with itself it is not known that it did not do what it was asked for."""
_SESSION_GONE = ("Session terminated", "Session not found")
_STEADY_S = 10.0
"""A server that was there for so long is started again at once, nearly."""
_SAID = 500


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
        self._pins, self.watch, self.settings = pins, PinWatch(name, pins), ClientSettings()
        self._client: Client | None = None
        self._there, self._lost, self._failed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._problem = ""
        self._errors: ErrorOutput | None = None
        self._reads: LineReads | None = None
        self._http: McpHttpClient | None = None
        self._answered = AnsweredErrors()
        self._failures = 0
        self._listed = ListedTools(name)
        self._under_way = ChangesUnderWay()
        self._keeper: asyncio.Task[None] | None = None
        self._others: weakref.WeakSet[Upstream] = weakref.WeakSet()

    async def __aenter__(self) -> Upstream:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    def connect_again(self, callbacks: ClientCallbacks) -> Upstream:
        """Another connection to the same server, for somebody whom it may ask back; not started yet."""
        callbacks = callbacks if self.hears_roots else callbacks.without_roots()
        made = Upstream(self.name, pins=self._pins, callbacks=callbacks, **self._address)
        made._listed = self._listed.copy()
        self._others.add(made)
        return made

    async def start(self) -> None:
        """Start it, and wait until it answers; it is looked after until `close`."""
        if self._keeper is None:
            self._failed.clear()
            self._keeper = asyncio.create_task(self._keep(), name=f"mcp {self.name}")
        await self._first_of_both(_START_S)
        if not self._there.is_set():
            await self.close()
            raise ConfigError(f"the MCP server {self.name!r} did not start: {self._problem or 'it gave no answer'}")

    async def _first_of_both(self, most_s: float) -> None:
        """Until it is there, or could not be had."""
        waiting = [asyncio.create_task(event.wait()) for event in (self._there, self._failed)]
        try:
            await asyncio.wait(waiting, timeout=most_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    async def finish(self) -> None:
        """End it once the changes that it makes have ended: who has asked for them may be gone."""
        try:
            await self._under_way.until_none()
        finally:
            await self.close()

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
    def hears_roots(self) -> bool:
        """Whether it is told the folders of its clients."""
        return self._address.get("roots", True)

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine, as we have started it."""
        return bool(self._command)

    async def _target(self, stack: contextlib.AsyncExitStack) -> Transport:
        secrets = self._address.get("secrets", dict)()
        headers = {**self._headers, **secrets}
        if self._url and self._sse:
            made = partial(McpHttpClient, errors=self._answered)
            return cast(Transport, sse_client(self._url, headers=headers, httpx_client_factory=made))
        if self._url:
            self._http = await stack.enter_async_context(McpHttpClient(headers, errors=self._answered))
            return streamable_http_client(self._url, http_client=self._http, max_sse_event_size=MOST_BYTES)
        first, *rest = self._command
        # What the SDK hands on by itself (PATH, HOME …) and what the operator names: no secret of ours goes along.
        started = StdioServerParameters(command=first, args=rest, env={**self._env, **secrets} or None, cwd=self._cwd)
        self._errors = stack.enter_context(ErrorOutput(self.name))
        self._reads = LineReads(self.name, self._drop, errors=self._answered)
        return run_server(started, self._errors.file, self._reads)

    def _drop(self) -> None:
        """The connection is no more: whoever comes next waits for another one."""
        self._client = None
        self._there.clear()
        self._lost.set()

    @property
    def _is_kept(self) -> bool:
        """Whether nobody has closed it: a cancellation that comes just as a connection breaks is lost in the SDK."""
        return self._keeper is asyncio.current_task()

    async def _keep(self) -> None:
        """Connected for as long as somebody needs it. The SDK wants to be entered and left in one task: this one."""
        while True:
            since = asyncio.get_running_loop().time()
            try:
                async with contextlib.AsyncExitStack() as stack:
                    target = note_requests(await self._target(stack), self._answered)
                    client = await stack.enter_async_context(self._callbacks.open(target, self._hear))
                    await self.watch.compare(partial(self._listed.read, client))
                    self._lost.clear()
                    changes = await self.settings.renew(client)
                    self._client = client
                    self._there.set()
                    # Beside it: a client that does not read what it is told keeps no server from being looked after.
                    telling = asyncio.create_task(self._tell(changes), name=f"mcp {self.name}: changes")
                    stack.callback(telling.cancel)
                    if self._is_kept:
                        await self._lost.wait()
            except Exception as error:  # noqa: BLE001  whatever a server or its transport does, it is started again
                said = "" if self._errors is None else self._errors.tail()
                said = said if self._http is None else self._http.refused
                self._problem = shorten(f"{root_cause(error)}{f' ({said})' if said else ''}", _SAID)
                self._failed.set()
                _log.warning("the MCP server %s: %s", self.name, self._problem)
            if not self._is_kept:
                return
            self._drop()
            if asyncio.get_running_loop().time() - since > _STEADY_S:
                self._failures = 0
            await asyncio.sleep(_PAUSES_S[min(self._failures, len(_PAUSES_S) - 1)])
            self._failures += 1

    async def list_tools(self) -> list[types.Tool]:
        """Everything that it offers."""
        async with self._asking("tools/list", changes=False) as client:
            return await self._listed.read(client)

    async def _hear(self, message: object) -> None:
        """What a server says of itself: that its tools are others now; whoever listens hears it, too."""
        if isinstance(message, types.ToolListChangedNotification):
            self.watch.told = True
        if self._callbacks.hear is not None:
            await self._callbacks.hear(message)

    async def _tell(self, changes: list[types.ServerNotification]) -> None:
        hear = self._callbacks.hear
        if hear is not None:
            for one in changes:
                await hear(one)

    @property
    def switched_off(self) -> dict[str, str]:
        """The tools that nobody may use as they are, and why."""
        return self.watch.switched_off

    @property
    def is_connected(self) -> bool:
        """Whether it is there now."""
        return self._client is not None

    async def refresh(self) -> bool:
        """Compare its tools if that is due, and it does not take long: whether what is known of them is as it is."""
        if self._client is None or not self.watch.is_due:
            return True
        try:
            await asyncio.wait_for(self._compare_if_due(self._client), _REFRESH_S)
        except (TimeoutError, NothingLanded):
            return False
        return True

    async def _compare_if_due(self, client: Client) -> None:
        try:
            await self.watch.compare_if_due(partial(self._listed.read, client))
        except Exception as error:  # noqa: BLE001  what cannot be compared is not to be used
            self._problem = f"its tools could not be listed: {shorten(root_cause(error), _SAID)}"
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
        with self._under_way.making(changes=changes):
            return await self._call_tool(
                tool, arguments, changes=changes, timeout_s=timeout_s, meta=meta, caller=caller
            )

    async def _call_tool(
        self,
        tool: str,
        arguments: dict[str, Json],
        *,
        changes: bool,
        timeout_s: float,
        meta: Mapping[str, Json] | None,
        caller: DownstreamCall,
    ) -> types.CallToolResult:
        async with self._asking(tool, changes=changes, caller=caller) as client:
            await self._compare_if_due(client)
            if tool in self.switched_off:
                raise Permanent(self.watch.say_off(tool, self.switched_off[tool]))
            asked = types.CallToolRequestParams(
                name=tool,
                arguments=arguments,
                input_responses=caller.input_responses,
                request_state=caller.request_state,
                _meta=cast(RequestParamsMeta | None, meta),
            )
            found: types.CallToolResult | types.InputRequiredResult
            if tool in self._listed.as_tasks:
                found = await call_as_task(client.session, asked, timeout_s, self._under_way)
            else:
                found = await client.session.send_request(
                    types.CallToolRequest(params=asked),
                    _ANSWER,
                    request_read_timeout_seconds=timeout_s,
                    progress_callback=caller.progress,
                )
            if isinstance(found, types.CallToolResult) and not found.is_error:
                problem = self._listed.forms.problem(tool, found)
                if problem:  # whatever it has said, the call was answered
                    said = f"{self.name} has answered {tool}, and not as it promises: {shorten(problem, _SAID)}"
                    raise self._in_doubt(said, changes)
        if isinstance(found, types.InputRequiredResult):
            caller.asks = found
            wanted = found.model_dump(mode="json", by_alias=True, exclude_none=True)
            raise InputRequired(f"{self.name} has to be told something first", requests=wanted)
        return found

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
            self._failed.clear()
            await self._first_of_both(_BACK_S)
        return self._client

    @contextlib.asynccontextmanager
    async def _asking(self, what: str, *, changes: bool, caller: DownstreamCall | None = None) -> AsyncIterator[Client]:
        client = await self._ready()
        if client is None:
            raise NothingLanded(f"the MCP server {self.name!r} is not there: {self._problem or 'it is being started'}")
        try:
            with self._answered.waiting() as asked:
                try:
                    yield client
                except MCPError as error:
                    heard = self._answered.answers(asked, error)
                    is_answer = heard or error.message in _BY_STATUS
                    if caller is not None and is_answer:
                        caller.error = error
                    raise self._explain(error, what, changes=changes, heard=heard, is_answer=is_answer) from None
        except TaskLost as error:
            raise self._in_doubt(f"{self.name} has begun {what}, and {shorten(str(error), _SAID)}", changes) from None
        except (OSError, RuntimeError, ValueError) as error:  # of the SDK: a broken pipe, a result that fits no schema
            self._drop()
            raise self._in_doubt(f"{self.name} broke off while it was asked for {what}: {error}", changes) from None

    def _explain(self, error: MCPError, what: str, *, changes: bool, heard: bool, is_answer: bool) -> ToolError:
        said = shorten(error.message, _SAID)
        if error.message in _SESSION_GONE and not self.is_local and not heard:
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
