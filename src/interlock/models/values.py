"""What goes to a model and what comes back: the same values for every provider."""

from __future__ import annotations

from typing import Protocol

from interlock.values import Json, Value


class Proposal(Value, frozen=True):
    """One call that a model proposes."""

    tool: str
    arguments: Json
    id: str = ""
    """The model's own id for it: the same id in the same turn is the same call."""


class ToolCard(Value, frozen=True):
    """What a model is shown of a tool."""

    name: str
    description: str
    parameters: dict[str, Json]


class Message(Value, frozen=True):
    """One message of the conversation. What a tool returned is a message of the tool, never of the system."""

    role: str
    """user, assistant or tool."""
    text: str = ""
    proposals: tuple[Proposal, ...] = ()
    """Of the assistant: the calls that it proposed."""
    tool: str = ""
    call_id: str = ""


class Request(Value, frozen=True):
    """One question to a model."""

    instructions: str
    messages: tuple[Message, ...]
    tools: tuple[ToolCard, ...] = ()
    force: str | None = None
    """The one tool that may be called, and must be."""
    slots: dict[str, tuple[Json, ...]] = {}
    """For the forced tool: the values that an argument may have, where they are known."""
    lead: str = ""
    facts: tuple[str, ...] = ()
    """For a model that can only be constrained: what its answer begins with, and what may follow."""
    max_tokens: int = 1024
    temperature: float = 0.1


class Usage(Value, frozen=True):
    """What a reply cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int = 0


class Reply(Value, frozen=True):
    """What a model said: a text, calls that it proposes, or neither if the provider refused."""

    text: str = ""
    proposals: tuple[Proposal, ...] = ()
    usage: Usage = Usage()
    blocked: str = ""
    """Why the provider refused to answer, if it did."""
    dropped: int = 0
    """Calls beyond those that one reply may propose."""


class ModelFailed(Exception):
    """The model gave no reply, and trying again did not help."""


class Model(Protocol):
    """Something that replies."""

    name: str
    follows: bool
    """Whether it can be told to call a tool or to correct itself; a very small one can only be constrained."""

    async def reply(self, request: Request) -> Reply:
        """One reply; `ModelFailed` if there is none."""
        ...

    async def close(self) -> None:
        """Let go of what it holds."""
        ...
