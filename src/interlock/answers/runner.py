"""A model's turn from question to answer: ask, call, check, and again, never more often than the bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from interlock.answers.result import TurnResult
from interlock.answers.turn import Again, Turn
from interlock.models import Message, Model, ModelFailed, Reply, Request, ToolCard
from interlock.tools import Tool
from interlock.values import Json, Outcome, Status, Value

LONGEST_RESULT = 12_000


class Progress(Value, frozen=True):
    """Something that happened in a turn, for whoever watches."""

    what: str
    """asking, called, returned, again, forced, phase or finished."""
    text: str = ""
    tool: str = ""
    outcome: Outcome | None = None


Watch = Callable[[Progress], None]


class Runner:
    """The rounds of one turn."""

    def __init__(self, turn: Turn, model: Model, watch: Watch, history: Sequence[Message]) -> None:
        self._turn = turn
        self._model = model
        self._watch = watch
        self._messages: list[Message] = [*history, Message("user", turn.asked.question)]

    async def run(self) -> TurnResult:
        """Until there is a result."""
        step: TurnResult | Again | None = None
        while not isinstance(step, TurnResult):
            step = await self._round(step)
        self._watch(Progress("finished", step.outcome.value))
        return step

    async def _round(self, again: Again | None) -> TurnResult | Again | None:
        """One model call, and what follows from it."""
        turn = self._turn
        forced = None if again is None else again.tool
        if again is not None and again.prompt:
            self._watch(Progress("forced" if forced else "again", again.prompt, forced or ""))
            self._messages.append(Message("user", again.prompt))
        reply = await self._ask(forced)
        if again is not None and again.prompt:
            self._messages.pop()  # said once, for one reply; it is not part of the conversation
        if reply is None:
            return await turn.finish(None)
        if reply.blocked:
            return await turn.finish(None, blocked=reply.blocked)
        if reply.question:
            return await turn.ask(reply.question)
        if not reply.proposals:
            return await self.answered(reply)
        parked = await self._calls(reply, forced)
        goes_on = not parked and turn.replies < turn.most_replies and turn.left_s > 0
        return None if goes_on else await turn.finish(None)

    def instructions(self) -> str:
        """What the model is told before the conversation."""
        return self._turn.instructions

    async def answered(self, reply: Reply) -> TurnResult | Again | None:
        """A text without calls is a draft."""
        return await self._turn.finish(reply.text, final=reply.final)

    def called(self, outcomes: Sequence[Outcome]) -> None:
        """Calls have been made."""

    async def _ask(self, forced: str | None) -> Reply | None:
        turn = self._turn
        request = Request(
            instructions=self.instructions(),
            messages=tuple(self._messages),
            tools=tuple(card(tool) for tool in turn.tools if forced in (None, tool.name)),
            force=forced,
            task=await turn.task(),
        )
        self._watch(Progress("asking", self._model.name))
        try:
            async with asyncio.timeout(turn.left_s):
                reply = await self._model.reply(request)
        except (TimeoutError, ModelFailed) as error:
            self._watch(Progress("again", f"no reply: {error or 'time is up'}"))
            turn.replies += 1
            return None
        turn.spent(reply.usage)
        return reply

    async def _calls(self, reply: Reply, forced: str | None) -> bool:
        """Make the calls; whether the turn ends here, as a person has to decide first."""
        proposals = [p if p.id else msgspec.structs.replace(p, id=self._turn.new_id()) for p in reply.proposals]
        if forced is not None:
            proposals = [p for p in proposals if p.tool == forced][:1] or proposals[:1]
        for proposal in proposals:
            self._watch(Progress("called", ascii_json(proposal.arguments), proposal.tool))
        outcomes = await self._turn.propose(proposals, only=forced)
        self._messages.append(Message("assistant", reply.text, tuple(proposals)))
        for proposal, outcome in zip(proposals, outcomes, strict=True):
            self._watch(Progress("returned", outcome.summary, outcome.tool, outcome))
            self._messages.append(
                Message("tool", result_text(outcome), (), proposal.tool, proposal.id, as_seen_by_model(outcome))
            )
        if reply.dropped:
            told = f"{reply.dropped} more calls were not made: propose fewer at a time."
            self._messages.append(Message("user", told))
        self.called(outcomes)
        return any(outcome.status is Status.PARKED for outcome in outcomes)


def ascii_json(value: Json) -> str:
    """A value for people to look at, whatever is in it."""
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, TypeError, UnicodeEncodeError, RecursionError):
        return ascii(value)


def card(tool: Tool) -> ToolCard:
    """What a model is shown of a tool."""
    made = tool.manifest()
    return ToolCard(made["name"], made["description"], made["parameters"], dict(tool.known_values))


def as_seen_by_model(outcome: Outcome) -> dict[str, Json]:
    """An outcome as a model sees it: status, value or reason, where it comes from."""
    given: dict[str, Json] = {"status": outcome.status.value}
    if outcome.value is not None:
        given["value"] = outcome.value
    if outcome.said:
        given["summary"] = outcome.said
    if outcome.snippets:
        given["snippets"] = list(outcome.snippets)
    if outcome.problem is not None:
        given["reason"] = outcome.problem.message
        if outcome.problem.hints:
            given["hints"] = list(outcome.problem.hints)
    if outcome.sources:
        given["sources"] = list(outcome.sources)
    if outcome.record is not None:
        given["record"] = outcome.record
    return given


def result_text(outcome: Outcome) -> str:
    """The same as text, no longer than a model can take."""
    text = msgspec.json.encode(as_seen_by_model(outcome)).decode()
    return text if len(text) <= LONGEST_RESULT else text[:LONGEST_RESULT] + "… (cut)"
