"""Workflows as data: how many calls, which tools in which phase, when to stop; the prompt is made from the same values.

`quick_lookup`, `research` and `ingest` (`interlock.answers.presets`) are three; your own is a `Workflow` like them.
Where a turn stands is a pure function of what has happened so far (`see`), and what has happened is in its records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from msgspec.structs import replace

from interlock.answers.work.sites import count_distinct, is_one_of
from interlock.errors import ConfigError
from interlock.values import Status, Value
from interlock.wrong_values import check_fields

_TRIED = (Status.OK, Status.NO_DATA, Status.FAILED, Status.UNKNOWN)
"""Outcomes that use up the budget of a workflow."""
_DONE = (Status.OK, Status.PLANNED)


class SourceRule(Value, frozen=True):
    """Which sources are authoritative, and where they are wanted: a rule of whoever sets up the way of working."""

    authoritative: tuple[str, ...] = ()
    """`nih.gov` is that domain and all below it, `*.gov` all below gov; of a source without a host, its name."""
    at_least: int = 0
    """So many of the distinct sources have to be."""
    each_question: bool = False
    """Whether every sub-question needs one that is."""


class Done(Value, frozen=True):
    """When a phase is over: everything that is named must hold."""

    plan: bool = False
    """A plan has been written."""
    sources: int = 0
    """So many distinct sources have been read: no two of one domain, and no two that say the same."""
    of: tuple[str, ...] = ()
    """The tools whose results are sources, and whose calls count; without `sources`, none named means all."""
    questions: bool = False
    """Every sub-question of the plan has a source that speaks to it."""
    rule: SourceRule = SourceRule()
    calls: int = 0
    """So many calls have succeeded."""


class Phase(Value, frozen=True):
    """One part of the work: what it is for, which tools it may use, and when it is over."""

    name: str
    purpose: str
    tools: tuple[str, ...] = ()
    done: Done = Done()
    answers: bool = False
    """Whether an answer may be given in it."""
    summarises: tuple[str, ...] = ()
    """Tools that may be given only a summary of what the sources say: no copy of it, and nothing else."""


class Workflow(Value, frozen=True):
    """A way of working: budgets, phases and when to give up."""

    name: str
    calls: int
    """The most tool calls in the turn; reserved before each is made."""
    phases: tuple[Phase, ...]
    max_failures: int = 2
    """After so many failures in a row, what there is has to do."""
    max_tokens: int = 1024
    rules: tuple[str, ...] = ()
    question_field: str = "question"
    """The argument by which a model may say which sub-question a call is for, where a tool has it."""

    def __post_init__(self) -> None:
        check_fields(self, f"workflow {self.name!r:.80}")
        if not self.phases:
            raise ConfigError(f"workflow {self.name!r} has no phase; give it one that answers")
        if not self.phases[-1].answers:
            raise ConfigError(f"workflow {self.name!r}: no answer may be given in its last phase; set answers=True")
        for phase in self.phases:
            wants = phase.done.sources or phase.done.questions or phase.done.rule.at_least
            if wants and not phase.done.of:
                raise ConfigError(
                    f"workflow {self.name!r}: phase {phase.name!r} wants sources, and does not say whose results are"
                    " any; name the tools that fetch: Done(sources=3, of=('read_page',))"
                )

    @property
    def counts_sources(self) -> bool:
        """Whether anything in it depends on what was read."""
        return any(phase.done.of or phase.summarises for phase in self.phases)

    @property
    def fetching(self) -> tuple[str, ...]:
        """The tools whose results are sources in any of its phases."""
        return tuple(dict.fromkeys(name for phase in self.phases for name in phase.done.of))


class SourceRead(Value, frozen=True):
    """One result that is a source: what it is called, whose it is, what it says, which sub-questions it speaks to."""

    record: int
    tool: str
    name: str
    site: str
    digest: str
    questions: tuple[int, ...] = ()


class PlanSeen(Value, frozen=True):
    """A plan was written."""

    questions: tuple[str, ...]


class CallMade(Value, frozen=True):
    """A call has ended, and perhaps brought a source."""

    tool: str
    status: Status
    source: SourceRead | None = None


class TalkSeen(Value, frozen=True):
    """The model spoke where a plan or a call was due."""


Happened = PlanSeen | CallMade | TalkSeen | SourceRead
"""A source by itself is one that an agent has read which was asked."""


class WorkflowState(Value, frozen=True):
    """Where the work stands: what has happened so far in the turn."""

    place: int = 0
    """The phase that the turn is in."""
    plan: bool = False
    questions: tuple[str, ...] = ()
    """The sub-questions of the plan."""
    read: tuple[SourceRead, ...] = ()
    succeeded: tuple[str, ...] = ()
    """The tools of the calls that succeeded, in order."""
    made: int = 0
    """Calls that used up the budget."""
    failures: int = 0
    """Failures and refusals since the last success."""
    idle: int = 0
    """Replies in a row that called nothing where a call was due."""
    cut: int | None = None
    """The phase that was left before it was over."""
    why: str = ""
    """Why it was."""

    def sources(self, done: Done) -> tuple[SourceRead, ...]:
        """What counts as a source there."""
        return tuple(one for one in self.read if one.tool in done.of)


def see(workflow: Workflow, state: WorkflowState, what: Happened, max_idle: int) -> WorkflowState:
    """Where the work stands after this: phases only go forward, and an end that comes early says why."""
    state = _count(state, what)
    last = len(workflow.phases) - 1
    state = replace(state, place=advance(workflow, state))
    why = ends_short(workflow, state, max_idle)
    if why and state.place < last:
        # Straight to the last phase: a partial answer that says so is better than none.
        is_cut = not workflow.phases[state.place].answers and state.cut is None
        cut = {"cut": state.place, "why": why} if is_cut else {}
        state = replace(state, place=last, **cut)
    return state


def _count(state: WorkflowState, what: Happened) -> WorkflowState:
    match what:
        case PlanSeen(questions=questions):
            return replace(state, plan=True, questions=questions, idle=0)
        case TalkSeen():
            return replace(state, idle=state.idle + 1)
        case SourceRead():
            return replace(state, read=(*state.read, what))
        case CallMade(tool=tool, status=status, source=source):
            good = status in _DONE
            return replace(
                state,
                made=state.made + (status in _TRIED),
                succeeded=(*state.succeeded, tool) if good else state.succeeded,
                failures=0 if good or status is Status.PARKED else state.failures + 1,
                read=state.read if source is None else (*state.read, source),
                idle=0,
            )
        case _:
            assert_never(what)


def advance(workflow: Workflow, state: WorkflowState) -> int:
    """The phase that the turn is in now: the first from where it is on that is not over; the last stays."""
    place = state.place
    while place < len(workflow.phases) - 1 and not lacks(workflow.phases[place].done, state):
        place += 1
    return place


def ends_short(workflow: Workflow, state: WorkflowState, max_idle: int) -> str:
    """Why the phases that are left are skipped: no budget, nothing works, nothing happens; empty if they are not."""
    if state.made >= workflow.calls:
        return f"the {workflow.calls} calls of {workflow.name} were used up"
    if state.failures >= workflow.max_failures:
        return f"{state.failures} calls in a row came to nothing"
    if state.idle > max_idle:
        return "the model spoke of calling tools, but called none"
    return ""


def lacks(done: Done, state: WorkflowState) -> tuple[str, ...]:
    """What a phase has not reached yet, in words; nothing, if it is over. Sub-questions are named by their numbers."""
    found = []
    if done.plan and not state.plan:
        found.append("there was no plan")
    read = state.sources(done)
    if (number := distinct(read)) < done.sources:
        found.append(f"{number} of {done.sources} sources were read")
    best = [one for one in read if is_one_of(one.name, done.rule.authoritative)]
    if (number := distinct(best)) < done.rule.at_least:
        found.append(f"{number} of {done.rule.at_least} authoritative sources were read")
    if missing := open_questions(done, state):
        of = f"{len(missing)} of {len(state.questions)} sub-questions"
        found.append(f"{of} {'has' if len(missing) == 1 else 'have'} no {_source_kind(done)}")
    calls = [name for name in state.succeeded if not done.of or name in done.of]
    if len(calls) < done.calls:
        found.append(f"{len(calls)} of {done.calls} calls succeeded")
    return tuple(found)


def open_questions(done: Done, state: WorkflowState) -> tuple[int, ...]:
    """The sub-questions, by their numbers from 1, to which nothing that counts speaks."""
    if not done.questions:
        return ()
    read = state.sources(done)
    if done.rule.each_question:
        read = tuple(one for one in read if is_one_of(one.name, done.rule.authoritative))
    answered = {number for one in read for number in one.questions}
    return tuple(number for number in range(1, len(state.questions) + 1) if number not in answered)


def _source_kind(done: Done) -> str:
    return "authoritative source" if done.rule.each_question else "source"


def distinct(read: Iterable[SourceRead]) -> int:
    """How many of them are sources of their own."""
    return count_distinct((one.site, one.digest) for one in read)


def workflow_prompt(workflow: Workflow, state: WorkflowState) -> str:
    """Where the turn stands, what to do now, and what is left."""
    phase, left = workflow.phases[state.place], max(0, workflow.calls - state.made)
    names = ", ".join(phase.name for phase in workflow.phases)
    lines = [f"Workflow: {workflow.name} (phases: {names}). At most {workflow.calls} tool calls in all; {left} left."]
    lines.append(f"Phase now: {phase.name}. {phase.purpose[:1].upper()}{phase.purpose[1:]}.")
    lines.append(f"Tools in this phase: {', '.join(phase.tools) or 'none'}.")
    if phase.done.sources:
        lines.append(f"Different sources read: {distinct(state.sources(phase.done))} of {phase.done.sources}.")
    if state.questions:
        lines += ["The sub-questions of the plan:", *_questions(phase, state)]
    if not phase.answers:
        lines.append("An answer is not taken in this phase.")
    if state.cut is not None:
        lines.append(f"The work ends short: {state.why}. Say only what was found, and what remains unknown.")
    return "\n".join([*lines, *workflow.rules])


def _questions(phase: Phase, state: WorkflowState) -> list[str]:
    lines, missing = [], open_questions(phase.done, state)
    for number, question in enumerate(state.questions, 1):
        sites = dict.fromkeys(one.site for one in state.read if number in one.questions)
        if number in missing:
            how = f" (read: {', '.join(sites)}; no {_source_kind(phase.done)} yet)" if sites else " (nothing read yet)"
        else:
            how = f" (read: {', '.join(sites)})" if sites else ""
        lines.append(f"{number}. {question}{how}")
    return lines
