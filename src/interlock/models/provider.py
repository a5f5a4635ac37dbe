"""Models of providers, through Pydantic AI's direct requests: Gemini, Anthropic, OpenAI-style servers and more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from interlock.errors import ConfigError, install_hint
from interlock.models.manifest import describe_tools
from interlock.models.messages import Message, ModelFailed, Reply, Request, ToolCard, Usage
from interlock.models.tool_call_parser import MAX_PROPOSALS, parse_native, parse_text
from interlock.ports import Clock, SystemClock

# A provider that is busy is often free a second later; after three tries the turn has better uses for its time.
_TRIES = 3
_WAIT_S = 0.5
_WAY_OUT = f"models of providers need the extra 'models': {install_hint('models')}"


class ProviderModel:
    """`provider:name`, and another one to fall back to."""

    instructable = True

    def __init__(
        self,
        name: str | Any,
        *,
        fallback: str | Any = "",
        timeout_s: float = 60.0,
        tools: str = "native",
        clock: Clock | None = None,
    ) -> None:
        self.name = name if isinstance(name, str) else str(getattr(name, "model_name", name))
        self._models = [_infer(item) for item in (name, fallback) if item]
        self._timeout_s = timeout_s
        self._tools = tools
        self._clock = clock or SystemClock()

    async def reply(self, request: Request) -> Reply:
        """Ask the model, again if it was only busy; then its fallback."""
        problems = []
        for model in self._models:
            for attempt in range(_TRIES):
                try:
                    return await self._ask(model, request)
                except Exception as error:  # noqa: BLE001 - sorted out below
                    blocked, again = _sort(error)
                    if blocked:
                        return Reply(blocked=blocked)
                    problems.append(f"{type(error).__name__}: {str(error)[:200]}")
                    if not again or attempt + 1 == _TRIES:
                        break
                    await self._clock.sleep(_WAIT_S * 2**attempt)
        raise ModelFailed(f"{self.name} gave no reply: {problems[-1]}")

    async def close(self) -> None:
        for model in self._models:
            client = getattr(model, "client", None)
            if client is not None and hasattr(client, "close"):
                await client.close()

    async def _ask(self, model: Any, request: Request) -> Reply:
        from pydantic_ai.direct import model_request
        from pydantic_ai.models import ModelRequestParameters

        as_text = self._tools != "native"
        parameters = ModelRequestParameters(function_tools=[] if as_text else _definitions(request.tools))
        settings: Any = {"max_tokens": request.max_tokens, "temperature": request.temperature}
        if request.force is not None and not as_text:
            # Only native tools can be forced; described as text, the one tool of the request is all there is.
            settings["tool_choice"] = [request.force]
        told = (
            f"{request.instructions}\n\n{describe_tools(request.tools, self._tools)}"
            if as_text
            else request.instructions
        )
        waiting = model_request(
            model, _history(request.messages, told), model_settings=settings, model_request_parameters=parameters
        )
        async with asyncio.timeout(self._timeout_s):
            response = await waiting
        # In a thread: a reply may be long, and other turns go on.
        return await asyncio.to_thread(read, response, request.tools)


def read(response: Any, tools: Sequence[ToolCard]) -> Reply:
    """A response as a reply: calls as they came, or found in the text."""
    text = "".join(part.content for part in response.parts if part.part_kind == "text")
    calls = [
        {"id": part.tool_call_id, "name": part.tool_name, "arguments": part.args}
        for part in response.parts
        if part.part_kind == "tool-call"
    ]
    proposals = parse_native(calls)
    if not proposals:
        proposals, text = parse_text(text, tools)
    used = response.usage
    usage = Usage(used.input_tokens or 0, used.output_tokens or 0, _cost_micros(response))
    blocked = "the provider filtered its answer" if response.finish_reason == "content_filter" else ""
    return Reply(
        "" if blocked else text, proposals[:MAX_PROPOSALS], usage, blocked, max(0, len(proposals) - MAX_PROPOSALS)
    )


def _cost_micros(response: Any) -> int:
    try:
        return round(float(response.cost().total_price) * 1e6)
    except (LookupError, ValueError, AssertionError, AttributeError):  # a model without a known price
        return 0


def _sort(error: Exception) -> tuple[str, bool]:
    """Whether the provider refused for safety, and whether it is worth asking again."""
    from pydantic_ai import exceptions

    if isinstance(error, exceptions.ContentFilterError):
        return "the provider refused to answer", False
    busy = (TimeoutError, ConnectionError, exceptions.ModelAPIError)
    refused = (exceptions.ModelRequestRejectedError, exceptions.ModelQuotaExceededError)
    # Refused requests and spent quotas are API errors too, and come back the same however often they are sent.
    return "", isinstance(error, busy) and not isinstance(error, refused)


def _infer(model: Any) -> Any:
    if not isinstance(model, str):
        return model
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
    except ImportError:
        raise ConfigError(_WAY_OUT) from None
    try:
        return infer_model(model)
    except (UserError, ImportError, ValueError) as error:
        raise ConfigError(f"model {model!r}: {error}") from None


def _definitions(tools: Sequence[ToolCard]) -> list[Any]:
    from pydantic_ai.tools import ToolDefinition

    return [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
        for tool in tools
    ]


def _history(messages: Sequence[Message], told: str) -> list[Any]:
    """Our messages as Pydantic AI's: what a tool returned goes back as the return of that tool."""
    from pydantic_ai import messages as theirs

    made: list[Any] = []
    for message in messages:
        if message.role == "assistant":
            parts: list[Any] = [theirs.TextPart(content=message.text)] if message.text else []
            parts += [
                theirs.ToolCallPart(tool_name=p.tool, args=p.arguments, tool_call_id=p.id) for p in message.proposals
            ]
            made.append(theirs.ModelResponse(parts=parts))
            continue
        part = (
            theirs.ToolReturnPart(tool_name=message.tool, content=message.text, tool_call_id=message.call_id)
            if message.role == "tool"
            else theirs.UserPromptPart(content=message.text)
        )
        # Several results of one reply go back in one request, as some providers insist on.
        if made and isinstance(made[-1], theirs.ModelRequest):
            made[-1] = theirs.ModelRequest(parts=[*made[-1].parts, part], instructions=told)
        else:
            made.append(theirs.ModelRequest(parts=[part], instructions=told))
    return made
