"""A model's turn from question to answer: ask, call, check, and again, never more often than the bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from interlock.models import Message, Model, ModelFailed, Reply, Request, ToolCard
from interlock.schema import Tool
from interlock.turn.result import TurnResult
from interlock.turn.slots import slots, untaken
from interlock.turn.statements import statements
from interlock.turn.turn import Again, Turn
from interlock.turn.wording import left_out, unsure
from interlock.values import Json, Outcome, Status, Value

LONGEST_RESULT = 12_000
_SURE_ENOUGH = 0.7
"""How clearly a question must be recognised before a model that can only be constrained acts on it."""


class Progress(Value, frozen=True):
    """Something that happened in a turn, for whoever watches."""

    what: str
    """asking, called, returned, again, forced, phase or finished."""
    text: str = ""
    tool: str = ""
    outcome: Outcome | None = None


Watch = Callable[[Progress], None]


class Drive:
    """The rounds of one turn."""

    def __init__(self, turn: Turn, model: Model, watch: Watch, history: Sequence[Message]) -> None:
        self._turn = turn
        self._model = model
        self._watch = watch
        self._messages: list[Message] = [*history, Message("user", turn.asked.question)]
        self._outcomes: list[Outcome] = []

    async def run(self) -> TurnResult:
        """Until there is a result."""
        turn = self._turn
        step: TurnResult | Again | None = await turn.begin(follows=self._model.follows)
        while not isinstance(step, TurnResult):
            step = await self._round(step)
        self._watch(Progress("finished", step.outcome.value))
        return step

    async def _round(self, again: Again | None) -> TurnResult | Again | None:
        """One model call, and what follows from it."""
        turn = self._turn
        forced = None if again is None else again.tool
        if forced is not None and not self._model.follows:
            question = self._unclear(forced)
            if question:
                return await turn.ask(question)
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
        if not reply.proposals:
            return await self.answered(reply)
        settled = await self._calls(reply, forced)
        goes_on = not settled and turn.replies < turn.most_replies and turn.left_s > 0
        return await turn.begin(follows=self._model.follows) if goes_on else await turn.finish(None)

    def instructions(self) -> str:
        """What the model is told before the conversation."""
        return self._turn.instructions

    async def answered(self, reply: Reply) -> TurnResult | Again | None:
        """A text without calls is a draft."""
        return await self._turn.finish(reply.text)

    def called(self, outcomes: Sequence[Outcome]) -> None:
        """Calls have been made."""

    def _unclear(self, forced: str) -> str:
        """What has to be asked first: a model that only chooses would not notice that another tool is meant, nor what
        of the question the forced call would not take up."""
        turn, question = self._turn, self._turn.asked.question
        classified = turn.asked.classified
        if classified.intents and classified.score < _SURE_ENOUGH:
            return unsure([intent.name for intent in turn.agent.intents])
        tool = next((tool for tool in turn.tools if tool.name == forced), None)
        left = () if tool is None else untaken(tool, turn.tools, question, slots(tool, question))
        return left_out(forced, left) if left else ""

    async def _ask(self, forced: str | None) -> Reply | None:
        turn = self._turn
        said = " ".join(message.text for message in self._messages if message.role == "user")
        tool = next((tool for tool in turn.tools if tool.name == forced), None)
        leads, facts = ((), ()) if self._model.follows or forced else statements(self._outcomes)
        request = Request(
            instructions=self.instructions(),
            messages=tuple(self._messages),
            tools=tuple(card(tool) for tool in turn.tools if forced in (None, tool.name)),
            force=forced,
            slots={} if tool is None else slots(tool, turn.asked.question or said),
            lead="; ".join(leads),
            facts=tuple(facts),
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
        """Make the calls; whether the turn ends here, as a person has to decide or to answer first."""
        proposals = [p if p.id else msgspec.structs.replace(p, id=self._turn.new_id()) for p in reply.proposals]
        if forced is not None:
            proposals = [p for p in proposals if p.tool == forced][:1] or proposals[:1]
        for proposal in proposals:
            self._watch(Progress("called", ascii_json(proposal.arguments), proposal.tool))
        outcomes = await self._turn.propose(proposals, only=forced)
        self._outcomes += [outcome for outcome in outcomes if outcome.ok]
        self._messages.append(Message("assistant", reply.text, tuple(proposals)))
        for proposal, outcome in zip(proposals, outcomes, strict=True):
            self._watch(Progress("returned", outcome.summary, outcome.tool, outcome))
            self._messages.append(Message("tool", shown(outcome), (), proposal.tool, proposal.id))
        if reply.dropped:
            told = f"{reply.dropped} more calls were not made: propose fewer at a time."
            self._messages.append(Message("user", told))
        self.called(outcomes)
        parked = any(outcome.status is Status.PARKED for outcome in outcomes)
        return parked or (not self._model.follows and not any(outcome.ok for outcome in outcomes))


def ascii_json(value: Json) -> str:
    """A value for people to look at, whatever is in it."""
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, TypeError, UnicodeEncodeError, RecursionError):
        return ascii(value)


def card(tool: Tool) -> ToolCard:
    """What a model is shown of a tool."""
    made = tool.manifest()
    return ToolCard(made["name"], made["description"], made["parameters"])


def as_told(outcome: Outcome) -> dict[str, Json]:
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


def shown(outcome: Outcome) -> str:
    """The same as text, no longer than a model can take."""
    text = msgspec.json.encode(as_told(outcome)).decode()
    return text if len(text) <= LONGEST_RESULT else text[:LONGEST_RESULT] + "… (cut)"
