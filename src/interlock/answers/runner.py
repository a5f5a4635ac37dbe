"""A model's turn from question to answer: ask, call, check, and again, never more often than the bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar

import msgspec

from interlock.answers.asked import Again
from interlock.answers.citations import list_facts
from interlock.answers.history import History
from interlock.answers.ladder import TurnOutcome
from interlock.answers.result import TurnResult
from interlock.answers.sentences import split_sentences
from interlock.answers.turn import Turn
from interlock.answers.workflows import SourceRead, distinct
from interlock.models import Message, Model, ModelFailed, Proposal, Reply, Request, ToolCard
from interlock.models.guarded import guarded_reply
from interlock.tools import Tool
from interlock.values import Json, Outcome, Status, Trust, Value
from interlock.wrong_values import require_kind, require_methods

LONGEST_RESULT = 12_000
_MOST_TOKENS = 1024


class Asking(Value, frozen=True):
    """The model is asked."""

    model: str


class Called(Value, frozen=True):
    """The model proposes a call."""

    tool: str
    arguments: Json


class Returned(Value, frozen=True):
    """A call has ended."""

    outcome: Outcome


class Prompted(Value, frozen=True):
    """The model is told what is missing, or made to call a tool."""

    prompt: str
    tool: str | None = None


class NoReply(Value, frozen=True):
    """The model gave no reply."""

    reason: str


class PhaseEntered(Value, frozen=True):
    """A phase of the workflow has begun."""

    name: str
    number: int = 1
    of: int = 1
    why: str = ""
    """Why the one before was left early."""


class PlanMade(Value, frozen=True):
    """The model has written its plan."""

    questions: tuple[str, ...]


class SourceFound(Value, frozen=True):
    """A source has been read."""

    source: SourceRead
    distinct: int
    """How many distinct ones there are by now."""
    wanted: int


class TurnEnded(Value, frozen=True):
    """The turn has a result."""

    outcome: TurnOutcome


Progress = Asking | Called | Returned | Prompted | NoReply | PhaseEntered | PlanMade | SourceFound | TurnEnded
"""What happens in a turn, for whoever watches."""
Watch = Callable[[Progress], None]


class Runner:
    """The rounds of one turn."""

    def __init__(self, turn: Turn, model: Model, watch: Watch, history: Sequence[Message]) -> None:
        self._turn = turn
        self._model = model
        self._watch = watch
        self._messages: list[Message] = [*history, Message("user", turn.asked.question)]
        self._shown: tuple[int, bool, int] = (-1, False, 0)  # the phase, the plan and the sources that were reported

    async def run(self) -> TurnResult:
        """Until there is a result."""
        step: TurnResult | Again | None = None
        turn = self._turn
        self._report()
        if turn.asked.before is not None:
            self._messages += [Message("user", text) for text in turn.asked.said]
            self._messages += rebuild_messages(await turn.recall())
            if await turn.is_waiting():  # for a person, and whatever a model says, that is not its to decide
                step = await turn.finish(None)
        while not isinstance(step, TurnResult):
            step = await self._round(step)
            self._report()
        self._watch(TurnEnded(step.outcome))
        return step

    async def _round(self, again: Again | None) -> TurnResult | Again | None:
        """One model call, and what follows from it."""
        turn = self._turn
        forced = None if again is None else again.tool
        if again is not None and again.prompt:
            self._watch(Prompted(again.prompt, forced))
            self._messages.append(Message("user", again.prompt))
        reply = await self._ask(forced)
        if again is not None and again.prompt:
            self._messages.pop()  # said once, for one reply; it is not part of the conversation
        if isinstance(reply, NoReply):
            return await turn.finish(None, no_reply=reply.reason)
        if reply.blocked:
            return await turn.finish(None, blocked=reply.blocked)
        if reply.question:
            return await turn.ask(reply.question, fields=reply.asks_for)
        if not reply.proposals:
            step = await turn.finish(reply.declines or reply.text, final=reply.final, declines=bool(reply.declines))
            if isinstance(step, Again) and step.stays:
                self._messages.append(Message("assistant", reply.text))
            return step
        parked = await self._calls(reply, forced)
        goes_on = not parked and turn.replies < turn.most_replies and turn.left_s > 0
        return None if goes_on else await turn.finish(None)

    def _report(self) -> None:
        """Tell whoever watches how far the way of working has come."""
        work = self._turn.work
        if work is None:
            return
        state, phases, (shown, planned, read) = work.state, work.workflow.phases, self._shown
        if state.plan and not planned:
            self._watch(PlanMade(state.questions))
        for number in range(read + 1, len(state.read) + 1):
            source, wanted = state.read[number - 1], max(phase.done.sources for phase in phases)
            self._watch(SourceFound(source, distinct(state.read[:number]), wanted))
        if state.place != shown:
            why = "" if state.cut is None else state.why
            self._watch(PhaseEntered(phases[state.place].name, state.place + 1, len(phases), why))
        self._shown = (state.place, state.plan, len(state.read))

    async def _ask(self, forced: str | None) -> Reply | NoReply:
        turn = self._turn
        facts = list_facts(await turn.facts())
        request = Request(
            instructions="\n\n".join(part for part in (turn.instructions, facts) if part),
            messages=tuple(self._messages),
            # A model that cannot be forced, as it takes tools as text, sees nothing else to call.
            tools=tuple(card(tool) for tool in turn.tools if forced in (None, tool.name)),
            force=forced,
            task=await turn.task(),
            max_tokens=_MOST_TOKENS if turn.work is None else turn.work.workflow.max_tokens,
        )
        self._watch(Asking(self._model.name))
        try:
            reply = await guarded_reply(self._model, request, turn.left_s)
        except (TimeoutError, ModelFailed) as error:
            failed = str(error) if isinstance(error, ModelFailed) else ""
            self._watch(NoReply(failed or "time is up"))
            turn.replies += 1
            return NoReply(failed)
        turn.count_usage(reply.usage)
        return reply

    async def _calls(self, reply: Reply, forced: str | None) -> bool:
        """Make the calls; whether the turn ends here, as a person has to decide first."""
        proposals = [p if p.id else msgspec.structs.replace(p, id=self._turn.new_id()) for p in reply.proposals]
        if forced is not None:
            # A model that ignores the force has its first call refused on the path, so that the refusal is on record.
            proposals = [p for p in proposals if p.tool == forced][:1] or proposals[:1]
        for proposal in proposals:
            self._watch(Called(proposal.tool, proposal.arguments))
        outcomes = await self._turn.propose(proposals, only=forced)
        self._messages.append(Message("assistant", reply.text, tuple(proposals)))
        for proposal, outcome in zip(proposals, outcomes, strict=True):
            self._watch(Returned(outcome))
            self._messages.append(
                Message("tool", result_text(outcome), (), proposal.tool, proposal.id, as_seen_by_model(outcome))
            )
        if reply.dropped:  # said, or the model would take them for made
            told = f"{reply.dropped} more calls were not made: propose fewer at a time."
            self._messages.append(Message("user", told))
        return any(outcome.status is Status.PARKED for outcome in outcomes)


class Driven(msgspec.Struct, frozen=True):
    """A turn that a model is working on."""

    turn: Turn
    model: Model
    watch: Watch


DRIVEN: ContextVar[Driven | None] = ContextVar("interlock_driven", default=None)


async def run_turn(
    turn: Turn,
    model: Model,
    *,
    watch: Watch | None = None,
    history: Sequence[Message] = (),
    on_text: Callable[[str], None] | None = None,
) -> TurnResult:
    """Ask, call, check, and again, never more often than the bound; in phases, if the turn has a way of working.

    `on_text` is given the answer sentence by sentence, once all of it is checked: a draft that is replaced by its last
    sentence has shown nothing of the others.
    """
    require_kind("what run_turn drives", turn, Turn, "a turn of Answers.turn that was entered")
    require_methods("a model", model, ("reply",), "one of interlock.models.open_model('local'), or of your own")
    seen = watch or _ignore
    # For tools that delegate: they are called with arguments and a context, and know neither turn nor model.
    mark = DRIVEN.set(Driven(turn, model, seen))
    try:
        result = await Runner(turn, model, seen, history).run()
    finally:
        DRIVEN.reset(mark)
    if on_text is not None:
        for sentence in split_sentences(result.answer):
            on_text(sentence)
    return result


def _ignore(_progress: Progress) -> None:
    return


def ascii_json(value: Json) -> str:
    """A value for people to look at, whatever is in it."""
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, TypeError, UnicodeEncodeError, RecursionError):
        return ascii(value)  # a lone surrogate of a model's must not end the turn


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
    if outcome.trust is Trust.UNTRUSTED and outcome.status is Status.OK:
        given["trust"] = outcome.trust.value
    if outcome.sources:
        given["sources"] = list(outcome.sources)
    if outcome.record is not None:
        given["record"] = outcome.record
    return given


_RECALLED = ("value", "summary", "snippets", "hints", "sources")


def rebuild_messages(history: History) -> list[Message]:
    """The calls of a turn that is gone on with, as the model saw them when they were made, or would have."""
    found = {source.id: source.value for source in history.sources}
    messages = []
    for call in history.told:
        value = found.get(f"record {call.record}", {})
        given: dict[str, Json] = {"status": call.status.value, **{n: value[n] for n in _RECALLED if n in value}}
        given |= {"reason": call.message} if call.message else {}
        given["record"] = call.record
        name = f"record-{call.record}"
        messages.append(Message("assistant", "", (Proposal(call.tool, call.arguments, name),)))
        messages.append(Message("tool", _cut(given), (), call.tool, name, given))
    return messages


def result_text(outcome: Outcome) -> str:
    """An outcome as text, no longer than a model can take."""
    return _cut(as_seen_by_model(outcome))


def _cut(given: Json) -> str:
    text = msgspec.json.encode(given).decode()
    return text if len(text) <= LONGEST_RESULT else text[:LONGEST_RESULT] + "… (cut)"
