"""What goes to ADK and comes from it: contents, responses and configurations as ADK writes them."""

from __future__ import annotations

from typing import Any

import msgspec
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from interlock.answers.runner import LONGEST_RESULT, as_seen_by_model
from interlock.values import Outcome


def describe_outcome(outcome: Outcome) -> dict[str, Any]:
    """An outcome as the model sees it."""
    found = as_seen_by_model(outcome)
    if len(msgspec.json.encode(found)) > LONGEST_RESULT:  # a result that is cut would be no JSON
        return {"status": outcome.status.value, "summary": outcome.summary}
    return found


def force_only(tool: str) -> types.ToolConfig:
    """A configuration of its own: ADK's is shared with the agent, and changing it there would hold for ever."""
    return types.ToolConfig(
        function_calling_config=types.FunctionCallingConfig(
            mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=[tool]
        )
    )


def replace_parts(before: LlmResponse, parts: list[types.Part]) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=before.usage_metadata)


def text_content(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


def text_of(content: types.Content | None) -> str:
    return "" if content is None else " ".join(part.text for part in content.parts or () if part.text)
