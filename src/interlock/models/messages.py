"""What goes to a model and what comes back: the same values for every provider."""

from __future__ import annotations

from typing import Any, Protocol

from interlock.tools.known_values import KnownValues
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
    known_values: dict[str, KnownValues] = {}
    """The values that arguments can have, where the tool says so; not shown in words."""


class Message(Value, frozen=True):
    """One message of the conversation. What a tool returned is a message of the tool, never of the system."""

    role: str
    """user, assistant or tool."""
    text: str = ""
    proposals: tuple[Proposal, ...] = ()
    """Of the assistant: the calls that it proposed."""
    tool: str = ""
    call_id: str = ""
    result: dict[str, Json] = {}
    """Of a tool: what it returned, as the text says it."""


class WorkTask(Value, frozen=True):
    """What the way of working of a turn wants now."""

    phase: str
    plan: bool = False
    """A plan is due: an answer is not taken, and no call is made."""
    answers: bool = False
    """An answer may be given."""
    questions: tuple[str, ...] = ()
    """The sub-questions of the plan."""
    open_questions: tuple[int, ...] = ()
    """Those, by their numbers from 1, that still need a source."""
    sources: tuple[str, ...] = ()
    """What was read so far."""
    calls_left: int = 0


class Task(Value, frozen=True):
    """What a turn knows about its question, as values beside the words of the prompt."""

    question: str
    required: bool = False
    """Whether the answer needs tools at all."""
    needs: tuple[str, ...] = ()
    """The tools whose success is missing now, the next one first."""
    about: tuple[tuple[str, str], ...] = ()
    """Arguments and ids of what the next of them has still to be called about."""
    intents: tuple[str, ...] = ()
    """What the question was taken for."""
    certainty: float = 1.0
    """How clearly, between 0 and 1."""
    abilities: tuple[str, ...] = ()
    """What the agent can be asked for."""
    said: tuple[str, ...] = ()
    """What the user has said since to the questions that the turn has asked."""
    settled: dict[str, Json] = {}
    """Arguments of the call that is needed next, as the conversation has settled them; None: to be left out."""
    remembered: dict[str, Json] = {}
    """Arguments of the call before it in the session, which hold where the question says nothing else."""
    units: tuple[str, ...] = ()
    """The units in which the answer is wanted, as the user has called them."""
    earlier_questions: tuple[str, ...] = ()
    """What the user has said in the last turns of the session, the last one last."""
    work: WorkTask | None = None
    """Where the way of working stands, if the turn has one."""
    vocabulary: Any = None
    """The words of the agent's field (`interlock.answers.Vocabulary`), where it has its own."""


class Request(Value, frozen=True):
    """One question to a model."""

    instructions: str
    messages: tuple[Message, ...]
    tools: tuple[ToolCard, ...] = ()
    force: str | None = None
    """The one tool that may be called, and must be."""
    grammar: str = ""
    """A grammar (GBNF) that the reply has to follow, for engines that can."""
    task: Task | None = None
    max_tokens: int = 1024
    temperature: float = 0.1


class Usage(Value, frozen=True):
    """What a reply cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_micros + other.cost_micros,
        )


class Reply(Value, frozen=True):
    """What a model said: a text, calls that it proposes, or neither if the provider refused."""

    text: str = ""
    proposals: tuple[Proposal, ...] = ()
    usage: Usage = Usage()
    blocked: str = ""
    """Why the provider refused to answer, if it did."""
    dropped: int = 0
    """Calls beyond those that one reply may propose."""
    question: str = ""
    """What the user has to say before anything can be done."""
    asks_for: tuple[str, ...] = ()
    """The arguments of the call that is due which that question is about."""
    final: bool = False
    """It has nothing better to say: asking again in other words would bring the same."""

    declines: str = ""
    """Why nothing of what was found answers the question; the turn then ends as one that found nothing."""


class ModelFailed(Exception):
    """The model gave no reply, and trying again did not help."""


class Model(Protocol):
    """Something that replies."""

    name: str
    instructable: bool
    """Whether it can be told what to do in words; a very small one can only be given a choice."""

    async def reply(self, request: Request) -> Reply:
        """One reply; `ModelFailed` if there is none."""
        ...

    async def close(self) -> None:
        """Let go of what it holds."""
        ...
