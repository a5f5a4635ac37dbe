"""`Turn`: one question, its calls, and the one way out for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any

import msgspec

from interlock.engine import World
from interlock.errors import ConfigError
from interlock.grounding import Grounded, Source, traced
from interlock.intents import Classified
from interlock.models import Proposal, Usage
from interlock.modes import WorkMode
from interlock.operations import Desk
from interlock.requirements import Requirement, encoded, leaves
from interlock.schema import Tool
from interlock.standing import TicketState, state_of
from interlock.turn.agent import Agent, model_calls
from interlock.turn.ending import Ending, conclude
from interlock.turn.instructions import instructions
from interlock.turn.ladder import Ask, Force, Retry, Step, TurnState, next_step
from interlock.turn.result import TurnResult
from interlock.turn.trail import TURN, Missing, Trail, given_sources, outermost, read_trail, what_is_missing
from interlock.turn.unmet import unmet_child
from interlock.turn.vacuous import is_vacuous, only_repeats
from interlock.turn.wording import named, told
from interlock.values import Budget, Effect, Json, Mode, Outcome, Status, Value

Call = Callable[..., Awaitable[Outcome]]
Classify = Callable[[Agent, str], Classified]
_LONGEST_QUESTION = 20_000
_LONGEST_DRAFT = 20_000
_LONGEST_ID = 200
_NONE = ("(none)",)
"""Offered where no tool is: an empty list would mean all."""


class Again(Value, frozen=True):
    """The draft cannot leave: what to tell the model, and the one tool that it may call if it is forced."""

    prompt: str
    tool: str | None = None


class Asked(Value, frozen=True):
    """What a turn starts from."""

    id: str
    question: str
    classified: Classified
    principal: str
    parent: str | None = None
    run: str | None = None
    on_behalf_of: str | None = None
    mode: Mode | None = None
    given: tuple[Source | int, ...] = ()
    """Earlier records, chunks of memory, earlier words of the user: what the answer may rest on beside the results."""
    work: WorkMode | None = None
    reopens: bool = False
    at_most_s: float = float("inf")
    """What is left of the time of the turn that delegates."""
    trail: str | None = None
    """The outermost turn, whose budget this one spends; None: itself."""


class Turn:
    """One turn of one agent; use it as an async context manager, and finish it."""

    def __init__(self, world: World, call: Call, agent: Agent, asked: Asked, classify: Classify | None = None) -> None:
        if not asked.question.strip():
            raise ConfigError("the question is empty; a turn needs one")
        self.agent = agent
        self.asked = asked
        self.id = asked.id
        self.result: TurnResult | None = None
        self.replies = 0
        """How many times the model has replied in this turn."""
        self._world = world
        self._call = call
        self._classify = classify
        self._trail: str | None = None
        self._overhead_s = 0.0
        self._follows = True
        self._offered = agent.tools
        self._said: tuple[str, ...] = ()
        self._finishing = asyncio.Lock()
        self._usage = Usage()
        self._given: tuple[Source, ...] = ()
        self._end_s = world.clock.monotonic() + min(agent.deadline_s, asked.at_most_s)
        self._desk = Desk(asked.principal, world.store, world.clock, world.ids, world.faults)
        self._desk.actor, self._desk.about = agent.name, TURN

    @property
    def requirement(self) -> Requirement:
        """What the answer needs."""
        return self.asked.classified.requirement

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of the agent, as they are shown to a model."""
        return tuple(desk.tool for name in self._offered if (desk := self._world.desks.get(name)) is not None)

    @property
    def instructions(self) -> str:
        """What the model is told before the question."""
        return instructions(self.agent, self.tools)

    @property
    def most_replies(self) -> int:
        """The bound on model calls."""
        work = self.asked.work
        return model_calls(self.agent, self.requirement, 0 if work is None else work.calls + len(work.phases))

    @property
    def left_s(self) -> float:
        """Seconds until the deadline; not above it even when time is up."""
        return max(0.0, self._end_s - self._world.clock.monotonic())

    async def __aenter__(self) -> Turn:
        started, asked, classified = self._world.clock.monotonic(), self.asked, self.asked.classified
        what: dict[str, Json] = {
            "state": "reopened" if asked.reopens else "opened",
            "agent": self.agent.name,
            "intents": list(classified.intents),
            "by": classified.by,
            "requires": encoded(self.requirement),
            "enforcement": self.agent.enforcement,
            "most_model_calls": self.most_replies,
            "parent": asked.parent,
            "on_behalf_of": asked.on_behalf_of,
            "work": None if asked.work is None else asked.work.name,
            "mode": None if asked.mode is None else asked.mode.value,
            "run": asked.run,
        }
        given = [item if isinstance(item, int) else msgspec.to_builtins(item) for item in asked.given]
        beside = {
            "question": asked.question[:_LONGEST_QUESTION],
            "given": given,
            "work": msgspec.to_builtins(asked.work),
        }
        self._given = await given_sources(self._world.store, asked.given)
        self._trail = asked.trail or await outermost(self._world.store, asked.parent)
        what["trail"] = self._trail
        if asked.parent is not None and not asked.reopens:
            await self._desk.commit(
                "turn", {"state": "delegated", "child": self.id, "agent": self.agent.name}, turn=asked.parent
            )
        await self._desk.commit_with("turn", what, beside, self.id)
        self._spent(started)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.result is None:  # nobody got an answer
            why = "the turn was left without an answer" if error is None else type(error).__name__
            await self._desk.commit("turn", {"state": "abandoned", "reason": why}, turn=self.id)

    def child(self, agent: Agent, question: str) -> Turn:
        """A turn of another agent that this one delegates to: same trail, principal, mode and time."""
        if self._classify is None:
            raise ConfigError("only a turn that a runtime opened can delegate")
        asked = Asked(
            id=self._world.ids.new(),
            question=question,
            classified=self._classify(agent, question),
            principal=self.asked.principal,
            parent=self.id,
            run=self.asked.run,
            on_behalf_of=self.asked.on_behalf_of,
            mode=self.asked.mode,
            given=self.asked.given,
            work=agent.work,
            at_most_s=self.left_s,
        )
        return Turn(self._world, self._call, agent, asked, self._classify)

    def spent(self, usage: Usage) -> None:
        """A reply has cost this."""
        before = self._usage
        self._usage = Usage(
            before.input_tokens + usage.input_tokens,
            before.output_tokens + usage.output_tokens,
            before.cost_micros + usage.cost_micros,
        )

    def offer(self, tools: Sequence[str]) -> None:
        """From now on only these of the agent's tools may be called."""
        self._offered = tuple(name for name in self.agent.tools if name in tools)

    def add_note(self, text: str) -> None:
        """Something that the answer has to say, whatever the model writes."""
        self._said += (text,)

    async def note(self, what: dict[str, Json], beside: Json = None) -> None:
        """A record of the turn's own."""
        await self._desk.commit_with("turn", what, beside, self.id)

    def new_id(self) -> str:
        """An id for a call of a model that gives none."""
        return self._world.ids.new()

    async def begin(self, *, follows: bool) -> Again | None:
        """What to start with: nothing, for a model that follows instructions; for another, the call that is forced."""
        self._follows = follows
        if follows or not leaves(self.requirement) or self.agent.enforcement != "enforce":
            return None
        step = await self._decided(await read_trail(self._world.store, self.id), "", "")
        return step if isinstance(step, Again) else None

    async def call(self, tool: str, arguments: Json, *, call_id: str = "") -> Outcome:
        """One governed call in this turn."""
        asked = self.asked
        details: dict[str, Any] = {"turn": self.id, "principal": asked.principal, "offered": self._offered or _NONE}
        if asked.work is not None:
            details["budgets"] = (Budget(id=f"mode {asked.work.name}", per="turn", calls=asked.work.calls),)
        if call_id:
            details["call_id"] = call_id
        if self._trail is not None:
            details["trail"] = self._trail
        for name in ("mode", "run", "parent", "on_behalf_of"):
            if getattr(asked, name) is not None:
                details[name] = getattr(asked, name)
        return await self._call(tool, arguments, actor=self.agent.name, **details)

    async def propose(self, proposals: Sequence[Proposal], *, only: str | None = None) -> list[Outcome]:
        """Calls of one reply, in order: reads side by side, changes one after another; refusals are outcomes too.

        `only`: the tool that the reply was forced to; anything else is refused.
        """
        self.replies += 1
        before = self._offered
        try:
            if only is not None:
                self.offer((only,))
            return await self._proposed(proposals)
        finally:
            self._offered = before

    async def _proposed(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        done: list[Outcome] = []
        reads: list[Proposal] = []
        for proposal in proposals:
            desk = self._world.desks.get(proposal.tool)
            if desk is None or desk.tool.effect is Effect.READ:
                reads.append(proposal)
                continue
            done += await self._together(reads)
            reads = []
            done.append(await self._one(proposal))
        return done + await self._together(reads)

    async def _together(self, proposals: Sequence[Proposal]) -> list[Outcome]:
        if len(proposals) < 2:
            return [await self._one(proposal) for proposal in proposals]
        return list(await asyncio.gather(*map(self._one, proposals)))

    def _one(self, proposal: Proposal) -> Awaitable[Outcome]:
        odd = not proposal.id.isprintable() or len(proposal.id) > _LONGEST_ID
        return self.call(proposal.tool, proposal.arguments, call_id="" if odd else proposal.id)

    async def ask(self, question: str) -> TurnResult:
        """End the turn with a question of its own: something has to be said first."""
        async with self._finishing:
            if self.result is None:
                trail = await read_trail(self._world.store, self.id)
                ending = self._ending(Ask(question), "", Grounded())
                self.result = await conclude(self._desk, self._world.review, ending, trail)
            return self.result

    async def finish(self, draft: str | None, *, blocked: str = "") -> TurnResult | Again:
        """Let a draft out, or say what to do first. None: the model gave no answer. `blocked`: the provider refused."""
        async with self._finishing:
            return self.result or await self._finished(draft, blocked)

    async def _finished(self, draft: str | None, blocked: str) -> TurnResult | Again:
        started = self._world.clock.monotonic()
        self.replies += draft is not None or bool(blocked)
        text = (draft or "").encode(errors="replace").decode().strip()  # half of a cut emoji cannot be written down
        trail = await read_trail(self._world.store, self.id)
        step = await self._decided(trail, text, blocked)
        self._spent(started)
        if isinstance(step, Again):
            return step
        ending = msgspec.structs.replace(step, overhead_us=int(self._overhead_s * 1e6))
        self.result = await conclude(self._desk, self._world.review, ending, trail)
        return self.result

    async def _decided(self, trail: Trail, draft: str, blocked: str) -> Again | Ending:
        """The next step: what the model is told, with its record; or how the turn ends."""
        state, grounded = await self._state(trail, draft, blocked)
        step = next_step(state)
        if isinstance(step, Retry | Force) and self.agent.enforcement == "enforce":
            await self._note(step, trail)
            return Again(told(step), step.need.tool if isinstance(step, Force) else None)
        return msgspec.structs.replace(self._ending(step, draft, grounded), missing=named(state.missing))

    def _ending(self, step: Step, draft: str, grounded: Grounded) -> Ending:
        return Ending(
            turn=self.id,
            agent=self.agent,
            question=self.asked.question,
            step=step,
            draft=draft,
            grounded=grounded,
            missing=(),
            required=bool(leaves(self.requirement)),
            intents=self.asked.classified.intents,
            notes=self._said,
            usage=self._usage,
            replies=self.replies,
        )

    async def _state(self, trail: Trail, draft: str, blocked: str) -> tuple[TurnState, Grounded]:
        lacking = what_is_missing(self.requirement, trail)
        child = await unmet_child(self._world.store, trail)
        sources = [*trail.sources, *self._given, Source("question", self.asked.question, echo=True)]
        checks = self.agent.grounding and bool(draft)
        grounded = traced(draft[:_LONGEST_DRAFT], sources) if checks else Grounded()
        required = bool(leaves(self.requirement))
        parked = await self._waits_for(trail)
        forced = trail.forced
        if child is not None and lacking.what is None:
            lacking = Missing(child.missing, child.failed, "", child.question)
            forced += tuple(leaf.tool for leaf in leaves(child.missing))  # there is no tool of that name to force
        return TurnState(
            required=required,
            missing=lacking.what,
            failed=lacking.failed,
            empty=lacking.empty,
            lacks=lacking.lacks,
            ticket=parked or (None if child is None else child.ticket),
            question=lacking.question,
            blocked=blocked,
            late=self.left_s <= 0,
            has_draft=bool(draft),
            unsupported=tuple(claim.text for claim in grounded.unsupported) + _too_long(draft),
            vacuous=required and checks and self._says_nothing(draft, grounded, trail),
            retries=trail.retries,
            max_retries=self.agent.max_retries if self._follows else 0,
            corrected=trail.corrected or not self._follows,
            forced=forced,
            calls_left=self.most_replies - self.replies,
        ), grounded

    async def _waits_for(self, trail: Trail) -> str | None:
        """The ticket of a parked call that can still be decided or made."""
        for call in reversed(trail.calls):
            if call.status is Status.PARKED and call.ticket is not None:
                ticket = await self._world.store.ticket(call.ticket)
                now_us = self._world.clock.now_us()
                if ticket is not None and state_of(ticket, now_us) in (TicketState.OPEN, TicketState.APPROVED):
                    return call.ticket
        return None

    def _says_nothing(self, draft: str, grounded: Grounded, trail: Trail) -> bool:
        question = self.asked.question
        if is_vacuous(draft, question, grounded, trail):
            return True
        return not self._follows and not only_repeats(draft, question, trail)

    async def _note(self, step: Step, trail: Trail) -> None:
        """An attempt that did not pass: on which rung, what had been called, what is missing."""
        what: dict[str, Json] = {"called": [call.tool for call in trail.calls]}
        if isinstance(step, Force):
            what |= {"state": "force", "rung": "force", "tool": step.need.tool}
        elif isinstance(step, Retry):
            what |= {
                "state": "retry",
                "rung": "retry" if step.missing is not None else "correct",
                "missing": list(named(step.missing)),
                "unsupported": len(step.unsupported),
            }
        await self._desk.commit("turn", what, turn=self.id)

    def _spent(self, started: float) -> None:
        self._overhead_s += self._world.clock.monotonic() - started


def _too_long(draft: str) -> tuple[str, ...]:
    return (f"an answer of {len(draft):,} characters",) if len(draft) > _LONGEST_DRAFT else ()
