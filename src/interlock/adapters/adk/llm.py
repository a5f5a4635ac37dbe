"""Any model of ours as a model of ADK: the embedded one, or `provider:name`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextvars import ContextVar
from typing import Any

import msgspec
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import PrivateAttr

from interlock.adapters.adk.tools import declared_schema
from interlock.answers import Turn
from interlock.answers.constrained import constrain
from interlock.models import Message, Model, ModelFailed, Proposal, Reply, Request, ToolCard, open_model
from interlock.models.guarded import guarded_reply
from interlock.wrong_values import refuse_unknown, require_methods

TURN: ContextVar[Turn | None] = ContextVar("interlock_adk_turn", default=None)
"""The turn that the next model call of this task belongs to."""
QUESTION, FIELDS, FINAL = "interlock_question", "interlock_fields", "interlock_final"
"""What a reply says beside its text, in the metadata of ADK's response."""
_OPTIONS = ("fallback", "timeout_s", "tools")
MODEL_FAILED = "MODEL_FAILED"
"""The error code of ADK's response where one of our models gave no reply."""


class InterlockLlm(BaseLlm):
    """`InterlockLlm("local")`, `InterlockLlm("google:gemini-2.5-flash")`, or a model object of ours."""

    model: str = "local"
    _inner: Model = PrivateAttr()

    def __init__(self, model: str | Model = "local", **options: Any) -> None:
        if isinstance(model, str):
            refuse_unknown("InterlockLlm", options, _OPTIONS)
        else:
            require_methods("model", model, ("reply",), "the name of a model, or one such as MyModel()")
            refuse_unknown("InterlockLlm of a model that is open already", options, ())
        super().__init__(model=model if isinstance(model, str) else model.name)
        self._inner = constrain(open_model(model, **options) if isinstance(model, str) else model)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """One reply, whole: streaming would show a draft before it is checked."""
        try:
            reply = await guarded_reply(self._inner, await to_request(llm_request, TURN.get()))
        except ModelFailed as error:
            yield LlmResponse(error_code=MODEL_FAILED, error_message=str(error))
            return
        yield to_response(reply)


class LocalLlm(InterlockLlm):
    """The embedded model."""

    def __init__(self, **options: Any) -> None:
        super().__init__("local", **options)


async def to_request(llm_request: LlmRequest, turn: Turn | None = None) -> Request:
    """ADK's request as ours, with what the turn knows."""
    config = llm_request.config
    told = config.system_instruction if config is not None else ""
    known = {} if turn is None else {tool.name: dict(tool.known_values) for tool in turn.tools}
    cards = [
        ToolCard(
            declared.name or "",
            declared.description or "",
            declared_schema(declared),
            known.get(declared.name or "", {}),
        )
        for tool in ((config.tools if config is not None else None) or ())
        for declared in (getattr(tool, "function_declarations", None) or ())
    ]
    calling = getattr(getattr(config, "tool_config", None), "function_calling_config", None)
    forced = calling is not None and calling.mode == types.FunctionCallingConfigMode.ANY
    # mode=ANY without names allows all; ours forces one, so the first is the one that is due.
    allowed = (calling.allowed_function_names or [card.name for card in cards]) if forced and calling else []
    return Request(
        instructions=told if isinstance(told, str) else "",
        messages=tuple(message for content in llm_request.contents for message in _messages(content)),
        tools=tuple(card for card in cards if not allowed or card.name in allowed),
        force=allowed[0] if allowed else None,
        task=None if turn is None else await turn.task(),
    )


def _messages(content: types.Content) -> list[Message]:
    parts = content.parts or []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    calls = tuple(
        Proposal(part.function_call.name or "", dict(part.function_call.args or {}), part.function_call.id or "")
        for part in parts
        if part.function_call is not None
    )
    made = [
        Message(
            "tool",
            msgspec.json.encode(part.function_response.response).decode(),
            (),
            part.function_response.name or "",
            part.function_response.id or "",
            part.function_response.response or {},
        )
        for part in parts
        if part.function_response is not None
    ]
    if text or calls:
        made.append(Message("assistant" if content.role == "model" else "user", text, calls))
    return made


def to_response(reply: Reply) -> LlmResponse:
    """Our reply as ADK's response."""
    if reply.blocked:
        return LlmResponse(error_code="SAFETY", error_message=reply.blocked, finish_reason=types.FinishReason.SAFETY)
    parts = [types.Part(text=reply.text)] if reply.text else []
    parts += [
        types.Part(function_call=types.FunctionCall(name=p.tool, args=p.arguments, id=p.id or None))
        for p in reply.proposals
    ]
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=reply.usage.input_tokens,
        candidates_token_count=reply.usage.output_tokens,
        total_token_count=reply.usage.input_tokens + reply.usage.output_tokens,
    )
    said = {QUESTION: reply.question, FIELDS: list(reply.asks_for), FINAL: reply.final}
    beside = said if reply.question or reply.final else None
    return LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage, custom_metadata=beside)
