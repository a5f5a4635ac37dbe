"""`Turn`: one question, its calls, and the one way out for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import msgspec

from interlock.answers.agent import Agent, model_calls, require_agent
from interlock.answers.asked import Again, Asked, ModelState, refuse_long_question, require_draft, require_proposals
from interlock.answers.child_turns import missing_above, unmet_child
from interlock.answers.citations import NumberedFact
from interlock.answers.draft_check import check_draft, facts_of, print_draft
from interlock.answers.events import Abandoned, AskedBack, Noted, Offered, TurnLog
from interlock.answers.finish import TurnEnd, finish_turn
from interlock.answers.given import given_sources
from interlock.answers.grounding import Grounded, Source
from interlock.answers.hidden_values import redacted_names
from interlock.answers.history import Histories, History
from interlock.answers.intents import Classified
from interlock.answers.judge import Judges, judge_draft
from interlock.answers.ladder import Ask, Force, Pass, Render, Retry, Step, TurnState, next_step
from interlock.answers.missing import Missing, missing_of
from interlock.answers.parked import pending_ticket, resume_approved, with_denials
from interlock.answers.prompts import instructions, no_data_text, retry_prompt, which_is_meant, withheld_text
from interlock.answers.proposals import make_calls
from interlock.answers.requirements import Requirement, tool_names
from interlock.answers.result import TurnResult
from interlock.answers.sessions.asked_back import describe_question
from interlock.answers.sessions.describe import describe_session
from interlock.answers.sessions.follow_up import settle_child
from interlock.answers.small_talk import only_talks, small_talk
from interlock.answers.task import make_task
from interlock.answers.turn_records import Opening, attempt_event, judged_event, log_beginning
from interlock.answers.turn_state import Findings, turn_state
from interlock.answers.wishes import Withheld, withheld_tools
from interlock.answers.work.cross_checks import rule_of
from interlock.answers.work.gaps import find_gaps
from interlock.answers.work.inherited import budgets_of, inherited_from, withheld_in
from interlock.answers.work.ongoing import OngoingWork
from interlock.answers.workflows import Phase, SourceRule
from interlock.errors import ConfigError, NotAllowed
from interlock.models.messages import Proposal, Task, Usage
from interlock.operations.ledger_writer import LedgerWriter
from interlock.runtime import Runtime
from interlock.tools import Tool
from interlock.tools.long_texts import leave_loop, size_of
from interlock.values import Budget, Json, Outcome

Classify = Callable[[Agent, str], Classified]
_LONGEST_ID = 200  # the id is a model's own words, and stands in a column of the ledger
_ANY = SourceRule()
_NONE = ("(none)",)
"""Offered where no tool is: an empty list would mean all."""


class Turn:
    """One turn of one agent; use it as an async context manager, and finish it."""

    def __init__(
        self, runtime: Runtime, agent: Agent, asked: Asked, classify: Classify, judges: Judges | None = None
    ) -> None:
        if not asked.question.strip():
            raise ConfigError("the question is empty; a turn needs one")
        self.agent = agent
        self.asked = asked
        self.id = asked.id
        self.result: TurnResult | None = None
        self.replies = 0
        """How many times the model has replied in this turn."""
        ctx = self._ctx = runtime.context
        self._runtime, self._classify, self._judges = runtime, classify, judges
        self._histories = Histories(ctx.store, ctx.faults)
        self._root_turn: str | None = None
        self._overhead_s = 0.0
        self._offered = agent.tools
        self._said: tuple[str, ...] = ()
        self._finishing = asyncio.Lock()  # an answer leaves once, however many finish at a time
        self._usage = Usage()
        self._given: tuple[Source, ...] = ()
        self.set_aside: tuple[str, ...] = ()  # approvals that no call of this turn is made with any more
        self._end_s = ctx.clock.monotonic() + min(agent.deadline_s, asked.at_most_s)
        self._writer = LedgerWriter(asked.principal, ctx.store, ctx.clock, ctx.ids, ctx.faults)
        self._writer.actor = agent.name
        self._log = TurnLog(self._writer, self.id)
        self.withheld: tuple[Withheld, ...] = asked.withheld
        """What may not be called in it: from when it is entered also what the user's words take away."""
        self._budgets: tuple[Budget, ...] = ()
        self.work: OngoingWork | None = None
        """Where its way of working stands; None if it has none."""
        if asked.workflow is not None:
            self.work = OngoingWork(asked.workflow, self._log, self._histories, self.id, agent.max_retries)
        if asked.before is not None:
            self._restore(asked.before)

    def _restore(self, before: History) -> None:
        """What a turn knew when it was left: a new process has only the records."""
        self.replies, self._usage, self._said = before.model_calls, before.usage, before.said
        if before.offered is not None:  # and no more than the agent has by now
            self._offered = tuple(name for name in before.offered if name in self.agent.tools)

    @property
    def requirement(self) -> Requirement:
        """What the answer needs."""
        return self.asked.classified.requirement

    @property
    def phase(self) -> Phase | None:
        """The phase of its way of working that it is in, as it was when it was last looked at."""
        return None if self.work is None else self.work.phase

    @property
    def offered(self) -> tuple[str, ...]:
        """The tools that may be called now: of the agent's those of the phase, without what is withheld."""
        phase, withheld = self.phase, withheld_tools(self.withheld)
        return tuple(n for n in self._offered if n not in withheld and (phase is None or n in phase.tools))

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that may be called now, as they are shown to a model."""
        return tuple(found.tool for name in self.offered if (found := self._ctx.bindings.get(name)) is not None)

    @property
    def instructions(self) -> str:
        session, tools = describe_session(self.asked, self._ctx.clock.now_us()), self.tools
        work = "" if self.work is None else self.work.prompt
        parts = (instructions(self.agent, tools), session, withheld_text(self.withheld), work)
        return "\n\n".join(part for part in parts if part)

    @property
    def most_replies(self) -> int:
        """The bound on model calls."""
        workflow, before = self.asked.workflow, self.asked.before
        rounds = 0 if workflow is None else workflow.calls + len(workflow.phases)
        # What was asked back and is answered is asked again: what it took until then does not count against that.
        spent = before.model_calls if before is not None and self.asked.reply is not None else 0
        return spent + model_calls(self.agent, self.requirement, rounds)

    @property
    def left_s(self) -> float:
        """Seconds until the deadline; not above it even when time is up."""
        return max(0.0, self._end_s - self._ctx.clock.monotonic())

    async def __aenter__(self) -> Turn:
        started, asked = self._ctx.clock.monotonic(), self.asked
        here = None if asked.carried is None else asked.carried.turn
        self._given = await given_sources(self._ctx.store, asked.given, here)
        above = await inherited_from(self._ctx.store, asked.parent)
        self._root_turn = asked.root_turn or above.root_turn
        if asked.parent is not None and asked.user_words is None:
            asked = self.asked = msgspec.structs.replace(asked, user_words=above.user_words)
        self.withheld = await withheld_in(self._ctx.store, asked, self.agent.wishes, above)
        self._budgets = budgets_of(asked, above)
        opens = Opening(self.most_replies, self._root_turn, self.withheld, self._budgets)
        await log_beginning(self._writer, self._log, self.agent, asked, opens, redacted_names(self._ctx.bindings))
        if self.work is not None:
            await self.work.look()
        self._count_overhead(started)
        if asked.before is not None and asked.resumes:
            self.set_aside = await resume_approved(self._runtime, asked.before, withheld_tools(self.withheld))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.result is None:  # nobody got an answer
            why = "the turn was left without an answer" if error is None else type(error).__name__
            await self._log.append(Abandoned(reason=why, usage=self._usage, model_calls=self.replies))

    def child(self, agent: Agent, question: str) -> Turn:
        """A turn of another agent that this one delegates to: same history, principal, mode and time."""
        refuse_long_question(question, self._ctx.limits)
        require_agent(agent)
        asked = self.asked.child(self._ctx.ids.new(), question, self._classify(agent, question))
        asked = msgspec.structs.replace(asked, workflow=agent.workflow, at_most_s=self.left_s)
        asked = settle_child(self.asked, asked, agent, self._ctx.bindings)
        return Turn(self._runtime, agent, asked, self._classify, self._judges)

    def count_usage(self, usage: Usage) -> None:
        """A reply has cost this."""
        self._usage += usage

    async def offer(self, tools: Sequence[str]) -> None:
        """From now on only these of the agent's tools may be called."""
        offered = tuple(name for name in self.agent.tools if name in tools)
        if offered != self._offered:
            self._offered = offered
            await self._log.append(Offered(tools=offered))

    async def note(self, text: str) -> None:
        """Something that the answer has to say, whatever the model writes."""
        self._said += (text,)
        await self._log.append(Noted(text=text))

    async def recall(self) -> History:
        """What has been done in this turn so far, with what its calls returned; and in those it was handed over by."""
        history, carried = await with_denials(self._ctx, await self._histories.read(self.id)), self.asked.carried
        if carried is None or carried.turn is None:
            return history
        return history.with_calls_of(await self._histories.read(carried.turn, evidence=False))

    async def facts(self) -> tuple[NumberedFact, ...]:
        """The values that the tools have returned, numbered: an answer cites one as `{f12}`."""
        found = await self.recall()
        size = size_of([source.value for source in found.sources])
        return await leave_loop(size, facts_of, self.agent, found, self._given, self._ctx)

    async def is_waiting(self) -> bool:
        """Whether a call of this turn waits for a person."""
        return await pending_ticket(self._ctx, await self.recall(), self.set_aside) is not None

    def new_id(self) -> str:
        """An id for a call of a model that gives none."""
        return self._ctx.ids.new()

    async def task(self) -> Task:
        """What is known about the question, as values beside the words of the prompt."""
        missing = (await self._lacking(await self._histories.read(self.id, evidence=False))).what
        return make_task(self.agent, self.asked, missing, None if self.work is None else self.work.task)

    async def call(self, tool: str, arguments: Json, *, call_id: str = "") -> Outcome:
        """One governed call in this turn; what its phase does not offer, or is withheld, is refused on the path."""
        return await self._call(Proposal(tool, arguments, call_id), None)

    async def _call(self, proposal: Proposal, only: str | None) -> Outcome:
        asked, withheld = self.asked, withheld_tools(self.withheld)
        if self.work is not None:
            await self.work.look()  # others may have called meanwhile
            objection = await self.work.objection(proposal.tool, proposal.arguments)
            withheld |= {proposal.tool: objection} if objection and proposal.tool not in withheld else {}
        offered = tuple(name for name in self.offered if only in (None, name))
        details: dict[str, Any] = {"turn": self.id, "principal": asked.principal, "offered": offered or _NONE}
        given = {"withheld": withheld, "budgets": self._budgets, "call_id": proposal.id, "root_turn": self._root_turn}
        details |= {name: value for name, value in given.items() if value}
        for name in ("mode", "run", "parent", "on_behalf_of"):
            if getattr(asked, name) is not None:
                details[name] = getattr(asked, name)
        outcome = await self._runtime.call(proposal.tool, proposal.arguments, actor=self.agent.name, **details)
        if self.work is not None:
            await self.work.look()
        return outcome

    async def propose(self, proposals: Sequence[Proposal], *, only: str | None = None) -> list[Outcome]:
        """Calls of one reply, in order: reads side by side, changes one after another; refusals are outcomes too.

        `only`: the tool that the reply was forced to; anything else is refused.
        """
        require_proposals(proposals)
        if self.result is not None:
            raise NotAllowed(f"turn {self.id!r} has ended, and nothing more is called in it; open a new one")
        self.replies += 1

        async def make(proposal: Proposal) -> Outcome:
            odd = not proposal.id.isprintable() or len(proposal.id) > _LONGEST_ID
            return await self._call(msgspec.structs.replace(proposal, id="") if odd else proposal, only)

        return await make_calls(proposals, self._ctx.bindings, make)

    async def ask(self, question: str, *, fields: tuple[str, ...] = ()) -> TurnResult:
        """End the turn with a question of its own: something has to be said first.

        `fields`: the arguments of the call that is due which the question is about, so that an answer to it is read so.
        """
        async with self._finishing:
            if self.result is None:
                history = await self.recall()
                missing = (await self._lacking(history)).what
                found = await check_draft(question, self.agent, history, (), self._ctx, question=self.asked.words)
                if found.disagreements:  # a question is no place to say what was done
                    question = which_is_meant()
                asks = describe_question(self.asked.classified, missing, history, self._ctx.bindings, fields)
                ending = self._ending(Ask(question), "", Grounded(), asks)
                self.result = await finish_turn(self._writer, self._log, self._ctx, ending, history)
            return self.result

    async def finish(
        self, draft: str | None, *, blocked: str = "", final: bool = False, no_reply: str = "", declines: bool = False
    ) -> TurnResult | Again:
        """Let a draft out, or say what to do first. None: the model gave no answer. `blocked`: the provider refused.

        `final`: nothing better can be said, so it is not asked to correct itself. `no_reply`: why it failed, so that
        it is not asked again. `declines`: the draft says why nothing that was found answers.
        """
        require_draft(draft)
        async with self._finishing:
            if self.result is None:
                return await self._finish(draft, ModelState(blocked, final, no_reply, declines))
            return self.result

    async def _finish(self, draft: str | None, model: ModelState) -> TurnResult | Again:
        started = self._ctx.clock.monotonic()
        self.replies += draft is not None or bool(model.blocked)  # None: no reply, or one that was counted already
        text = (draft or "").encode(errors="replace").decode().strip()  # half of a cut emoji cannot be written down
        work = None if model.blocked or model.no_reply else self.work
        if work is not None and await work.hold(text, self._usage, self.replies):
            if self.replies < self.most_replies and self.left_s > 0:
                return Again(work.prompt, stays=True)
            text = ""  # it was no answer
        history = await self.recall()
        text = await print_draft(text, self.agent, history, self._given, self._ctx, question=self.asked.words)
        step = await self._decide(history, text, model)
        self._count_overhead(started)
        if isinstance(step, Again):
            return step
        ending = msgspec.structs.replace(step, overhead_us=int(self._overhead_s * 1e6))
        self.result = await finish_turn(self._writer, self._log, self._ctx, ending, history)
        return self.result

    async def _decide(self, history: History, draft: str, model: ModelState) -> Again | TurnEnd:
        """The next step: what the model is told, with its record; or how the turn ends."""
        state, grounded = await self._state(history, draft, model)
        enforced = self.agent.enforcement == "enforce"
        talks = enforced and not model.no_reply and only_talks(self.asked, history, grounded)
        if talks:
            draft, grounded = small_talk(self.agent, self.tools, self.asked.question, draft), Grounded()
            clean: dict[str, Any] = {"unsupported": (), "disagreements": (), "unchecked": "", "irrelevant": False}
            state = msgspec.structs.replace(state, has_draft=True, **clean)
        step = next_step(state)
        if isinstance(step, Pass) and enforced and not talks:
            # Only what the rules let out is judged: a judge can hold it back, and never let anything out.
            state = msgspec.structs.replace(state, disputed=await self._judge(draft, grounded, history))
            step = next_step(state)
        if isinstance(step, Retry | Force) and enforced:
            await self._log.append(attempt_event(step, history, self._usage, self.replies))
            return Again(retry_prompt(step), step.need.tool if isinstance(step, Force) else None)
        asks = None
        if isinstance(step, Ask):
            asks = describe_question(self.asked.classified, state.missing, history, self._ctx.bindings)
        gaps = None
        if isinstance(step, Pass | Render):
            words = self.asked.words
            gaps = await find_gaps(self.work, history, self.agent, self._given, self._ctx, words=words)
        if talks and gaps is not None:  # something was asked for, and nothing came of it
            draft, talks = no_data_text(()), False
        ending = msgspec.structs.replace(self._ending(step, draft, grounded, asks), gaps=gaps)
        return msgspec.structs.replace(ending, missing=tool_names(state.missing), conversation=talks)

    async def _judge(self, draft: str, grounded: Grounded, history: History) -> tuple[str, ...]:
        judge = None if self._judges is None else self._judges.of(self.agent)
        if judge is None:
            return ()
        started = self._ctx.clock.monotonic()
        found = await judge_draft(judge, draft, grounded, (*history.sources, *self._given), self.left_s)
        self._overhead_s -= self._ctx.clock.monotonic() - started  # it is a model's time, not ours
        self.count_usage(found.usage)
        await self._log.append(judged_event(found), {"disputed": list(found.disputed)})
        return found.disputed

    def _ending(self, step: Step, draft: str, grounded: Grounded, asks: AskedBack | None = None) -> TurnEnd:
        return TurnEnd(
            turn=self.id,
            agent=self.agent,
            words=self.asked.words,
            step=step,
            draft=draft,
            grounded=grounded,
            missing=(),
            required=self.asked.required,
            intents=self.asked.classified.intents,
            notes=self._said,
            usage=self._usage,
            replies=self.replies,
            on_behalf_of=self.asked.on_behalf_of,
            asks=asks,
            given=self._given,
            read=() if self.work is None else self.work.state.read,
            rule=_ANY if self.work is None else rule_of(self.work.workflow),
        )

    async def _state(self, history: History, draft: str, model: ModelState) -> tuple[TurnState, Grounded]:
        lacking = await self._lacking(history)
        child = await unmet_child(self._ctx, self._histories, history, self.set_aside)
        sources = (*history.sources, *self._given)
        checked = await check_draft(draft, self.agent, history, sources, self._ctx, question=self.asked.words)
        found = Findings(
            draft=draft,
            checked=checked,
            lacking=lacking,
            child=child,
            ticket=await pending_ticket(self._ctx, history, self.set_aside),
            has_results=bool(history.sources or history.notes),
            late=self.left_s <= 0,
            calls_left=self.most_replies - self.replies,
            offered=self.offered,
            withheld=withheld_tools(self.withheld),
        )
        return turn_state(self.agent, self.asked, history, model, found), checked.grounded

    async def _lacking(self, history: History) -> Missing:
        """What is missing of what the answer needs; what was handed over with the question, once the rest is there."""
        lacking, carried = missing_of(self.requirement, history), self.asked.carried
        if lacking.what is not None or carried is None:
            return lacking
        return await missing_above(self._histories, carried, self.id, self.agent.name)

    def _count_overhead(self, started: float) -> None:
        self._overhead_s += self._ctx.clock.monotonic() - started
