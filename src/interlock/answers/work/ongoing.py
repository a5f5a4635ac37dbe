"""Where a turn's way of working stands: folded from its records, whoever has made the calls, in any process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from interlock.answers.events import PhaseBegun, Planned, Sourced, Talked, TurnLog
from interlock.answers.history import Histories, History
from interlock.answers.requirements import CallSeen
from interlock.answers.work.plans import parse_plan, questions_of
from interlock.answers.work.sites import digest_of, is_address, site_of, text_of
from interlock.answers.work.summaries import longest_text, why_no_summary
from interlock.answers.workflows import (
    CallMade,
    Happened,
    Phase,
    PlanSeen,
    SourceRead,
    TalkSeen,
    Workflow,
    WorkflowState,
    advance,
    lacks,
    open_questions,
    see,
    workflow_prompt,
)
from interlock.models.messages import Usage, WorkTask
from interlock.operations.ledger_writer import payload_of, store_digest
from interlock.ports import Query, Store
from interlock.tools.long_texts import leave_loop, size_of
from interlock.values import Json, Status, Value, one_line


class Shortfall(Value, frozen=True):
    """What a way of working did not reach: why it was cut short, what is missing, and about what nothing was read."""

    why: str
    lacks: tuple[str, ...]
    questions: tuple[tuple[int, str], ...] = ()


class OngoingWork:
    """Where the work of one turn stands."""

    def __init__(self, workflow: Workflow, log: TurnLog, histories: Histories, turn: str, max_idle: int) -> None:
        self.workflow = workflow
        self.state = replace(WorkflowState(), place=advance(workflow, WorkflowState()))
        """As it was when the records were last looked at."""
        self._log, self._histories, self._turn, self._max_idle = log, histories, turn, max_idle
        self._store = histories.store
        self._seen: object = None
        self._looking = asyncio.Lock()  # what is found out about a source is written down once

    @property
    def phase(self) -> Phase:
        """The phase that the turn is in."""
        return self.workflow.phases[self.state.place]

    @property
    def prompt(self) -> str:
        """What a model is told of it."""
        return workflow_prompt(self.workflow, self.state)

    @property
    def task(self) -> WorkTask:
        """The same as values."""
        state, phase = self.state, self.phase
        return WorkTask(
            phase.name,
            plan=phase.done.plan and not state.plan,
            answers=phase.answers,
            questions=state.questions,
            open_questions=open_questions(phase.done, state),
            sources=tuple(one.name for one in state.read),
            calls_left=max(0, self.workflow.calls - state.made),
        )

    async def look(self) -> WorkflowState:
        """Where it stands now: the records are asked, and what is new in them is weighed."""
        async with self._looking:
            history = await self._histories.read(self._turn, evidence=False)
            sourced = {event.record: event for event in reversed(history.sourced)}
            for call in _find_fetches(self.workflow, history):
                if call.record not in sourced:
                    found = await self._weigh(call, _questions_at(history, call.record))
                    sourced[call.record] = found
                    if found.digest:
                        await self._log.append(found)
            seen = (history.own, history.steps, tuple(sourced))
            if seen == self._seen:
                return self.state
            self.state = fold(self.workflow, history, sourced.values(), self._max_idle)
            began = history.phase or self.workflow.phases[0].name
            if self.phase.name != began:
                await self._log.append(PhaseBegun(self.phase.name, self.state.why))
            self._seen = seen
            return self.state

    async def _weigh(self, call: CallSeen, questions: tuple[str, ...]) -> Sourced:
        """What one result is as a source; without a digest if it says nothing."""
        value, names = await _read_result(self._store, call.record)
        said = call.arguments.get(self.workflow.question_field) if isinstance(call.arguments, dict) else None
        given = (*names, *_addresses(call.arguments))
        name = next((one for one in given if one.strip()), f"{call.tool} {one_line(call.arguments)}")

        def weigh() -> tuple[str, tuple[int, ...]]:
            text = text_of(value)
            return digest_of(text), questions_of(questions, text, said)

        words, speaks_to = await leave_loop(size_of(value), weigh)
        digest = store_digest(self._store, words.encode()) if words else ""
        return Sourced(call.record, call.tool, name, site_of(name), digest, speaks_to)

    async def hold(self, text: str, usage: Usage, replies: int) -> bool:
        """Whether a text is held back, as no answer is taken in this phase: it was the plan that was due, or talk."""
        await self.look()
        if self.phase.answers or not text:
            return False
        event: Planned | Talked = Talked(usage, replies)
        if self.phase.done.plan and not self.state.plan and (questions := parse_plan(text)):
            event = Planned(len(questions), questions, usage, replies)
        await self._log.append(event, {"text": text})
        await self.look()
        return True

    async def objection(self, tool: str, arguments: Json) -> str:
        """Why a call is not to be made in this phase, whatever its tool is for: it would keep no summary."""
        if tool not in self.phase.summarises:
            return ""
        read = [text_of((await _read_result(self._store, one.record))[0]) for one in self.state.read]
        kept = longest_text(arguments)
        return await leave_loop(sum(map(len, read)) + len(kept), why_no_summary, kept, "\n".join(read))

    def shortfall(self) -> Shortfall | None:
        """What is missing of the work, if an answer given now is not the whole one."""
        state, phases = self.state, self.workflow.phases
        if state.cut is None and self.phase.answers:
            return None
        first = state.place if state.cut is None else state.cut
        open_ = [phase.done for phase in phases[first:] if not phase.answers]
        missing = [what for done in open_ for what in lacks(done, state)]
        if not missing:
            return None
        numbers = dict.fromkeys(number for done in open_ for number in open_questions(done, state))
        questions = tuple((number, state.questions[number - 1]) for number in numbers)
        return Shortfall(state.why or "the turn ended before that", tuple(dict.fromkeys(missing)), questions)


def fold(workflow: Workflow, history: History, sourced: Iterable[Sourced], max_idle: int) -> WorkflowState:
    """Where the work stands by what the records say, in their order."""
    state = WorkflowState()
    state = replace(state, place=advance(workflow, state))
    for _number, what in sorted(_what_happened(history, sourced), key=lambda item: item[0]):
        state = see(workflow, state, what, max_idle)
    return state


def _what_happened(history: History, sourced: Iterable[Sourced]) -> Iterator[tuple[int, Happened]]:
    read = {one.record: _source(one) for one in sourced if one.digest}
    own = [call for call in history.own if call.repeats is None]
    for number, event in history.steps:
        yield number, PlanSeen(event.questions) if isinstance(event, Planned) else TalkSeen()
    for call in own:
        yield call.record, CallMade(call.tool, call.status, read.pop(call.record, None))
    yield from read.items()  # those that agents have read which were asked


def _source(event: Sourced) -> SourceRead:
    return SourceRead(event.record, event.tool, event.name, event.site, event.digest, event.questions)


def _find_fetches(workflow: Workflow, history: History) -> list[CallSeen]:
    """The calls whose results may be sources: a result that was given once more is not another one."""
    tools, calls = workflow.fetching, (*history.own, *history.below)
    return [call for call in calls if call.tool in tools and call.status is Status.OK and call.repeats is None]


def _questions_at(history: History, record: int) -> tuple[str, ...]:
    """The sub-questions of the plan that stood when a call was recorded."""
    plans = [event.questions for number, event in history.steps if isinstance(event, Planned) and number < record]
    return plans[-1] if plans else ()


async def _read_result(store: Store, number: int) -> tuple[Json, tuple[str, ...]]:
    """What a call returned, and what its tool calls the sources of that."""
    async for record in store.records(Query(after=number - 1, until=number)):
        content = record.content()
        whole = await payload_of(store, number, content) if content.payload else {}
        value = whole.get("value", content.value)
        return (list(content.snippets) if value is None else value), content.sources
    return None, ()


def _addresses(arguments: Json) -> list[str]:
    """The addresses among the arguments of a call: what was read, where its tool does not say it."""
    values = arguments.values() if isinstance(arguments, dict) else ()
    return [value for value in values if isinstance(value, str) and is_address(value)]
