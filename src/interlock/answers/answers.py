"""`Answers`: turns of agents on a runtime, and the answers that came out of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import TypedDict, Unpack

import msgspec

from interlock.answers.agent import Agent, require_agent
from interlock.answers.answer_review import decide_answer, fetch_result, refuse_others_reply, reopen_turn
from interlock.answers.asked import Asked, Carried, refuse_long_question
from interlock.answers.entities import Entities, bind, delegates
from interlock.answers.grounding import Source
from interlock.answers.intents import Classified, Classifier
from interlock.answers.judge import Judges
from interlock.answers.pending_turn import PendingTurn
from interlock.answers.requirements import Requirement, leaves, need
from interlock.answers.result import TurnResult
from interlock.answers.sessions.exchanges import RecentSession, read_sessions, require_most
from interlock.answers.sessions.session import Session, answer_question
from interlock.answers.turn import Turn
from interlock.answers.wishes import Withheld
from interlock.answers.work.sites import require_suffixes
from interlock.answers.workflows import Workflow
from interlock.canonical import did_you_mean
from interlock.config import parse_mode
from interlock.errors import ConfigError
from interlock.models import Model
from interlock.operations.approvals import decision_state
from interlock.runtime import Runtime, refuse_odd_names
from interlock.state import TicketKind
from interlock.values import Mode
from interlock.wrong_values import refuse_unknown, require_all, require_kind


class TurnDetails(TypedDict, total=False):
    """What a caller may say about a turn beside the question and the agent."""

    requires: Requirement | str
    """What the answer needs, where the caller knows better than the agent's intents."""
    principal: str
    on_behalf_of: str
    parent: str
    run: str
    mode: Mode | str
    workflow: Workflow
    """A way of working: budgets, phases with their tools, when to stop."""
    work: str
    """One of the ways of working that the agent offers, by its name."""
    withheld: Sequence[Withheld]
    """Tools that may not be called in it, nor in turns that it opens."""
    carried: Carried
    """What another agent had to call for this question, where it was handed over."""
    given: Sequence[Source | int]
    """Earlier records (their numbers) and chunks of text that the answer may rest on."""


class Answers:
    """The second half: `Answers(runtime)` opens turns, in which an answer leaves only when it is supported."""

    def __init__(self, runtime: Runtime, *, judge: str | Model = "") -> None:
        """`judge`: a second model (`provider:name`, or one of your own) that is asked about what the rules let out."""
        require_kind("what Answers is made with", runtime, Runtime, "an open Runtime")
        self.runtime = runtime
        self._judges = Judges(judge)
        self._classifiers: dict[Agent, Classifier] = {}
        self._learning = threading.Lock()  # each agent is learned once, whichever thread comes first

    async def prepare(self, *agents: Agent) -> None:
        """Learn what these agents are asked for, before the first call of a turn has a deadline to keep.

        The first time on a machine that takes seconds for each of them, so it happens beside the event loop; what was
        learned is kept. A turn of an agent that is not prepared learns it where the turn is opened.
        """
        for agent in agents:
            await asyncio.to_thread(self._classifier, agent)

    def turn(self, question: str, *, agent: Agent, **details: Unpack[TurnDetails]) -> Turn:
        """A turn of an agent: `async with answers.turn(question, agent=agent) as turn`, then call, and finish."""
        return self._turn(agent, self._ask(question, agent, details))

    def session(self, name: str) -> Session:
        """A conversation of several turns, by its name: `session.turn(question, agent=agent)` knows the earlier ones.

        It belongs to the principal (and to whom it is on behalf of) that its turns are opened with.
        """
        refuse_odd_names({}, self.runtime, name)
        return Session(name, self.runtime.context, self.runtime.principal, self._ask, self._turn, self.classify)

    async def sessions(
        self, *, principal: str | None = None, on_behalf_of: str | None = None, most: int = 50
    ) -> list[RecentSession]:
        """The sessions of the principal (and of whom it is on behalf of), that which was talked in last first."""
        whose = {"principal": principal, "on_behalf_of": on_behalf_of}
        refuse_odd_names(whose, self.runtime)
        require_most(most)
        mine = self.runtime.principal if principal is None else principal
        return await read_sessions(self.runtime.store, mine, on_behalf_of, most)

    def _ask(self, question: str, agent: Agent, details: TurnDetails) -> Asked:
        refuse_long_question(question, self.runtime.context.limits)
        refuse_unknown("Answers.turn", details, TurnDetails.__annotations__)
        require_agent(agent)
        _refuse_odd_details(details)
        refuse_odd_names(details, self.runtime)
        self.runtime.context.ruleset.named.check_actor(agent.name)
        requires, mode = details.get("requires"), details.get("mode")
        if requires is None:
            classified = self.classify(agent, question)
        else:
            requirement = need(requires) if isinstance(requires, str) else requires
            classified = Classified(self._bind(agent, requirement, question), by="caller", score=1.0)
        return Asked(
            id=self.runtime.context.ids.new(),
            question=question,
            classified=classified,
            principal=details.get("principal") or self.runtime.principal,
            parent=details.get("parent"),
            run=details.get("run"),
            on_behalf_of=details.get("on_behalf_of"),
            mode=None if mode is None else parse_mode(mode),
            given=tuple(details.get("given", ())),
            workflow=None if classified.chat else _workflow(agent, details),
            withheld=tuple(details.get("withheld", ())),
            carried=details.get("carried"),
        )

    def reopen(
        self,
        turn: str,
        *,
        agent: Agent,
        principal: str | None = None,
        on_behalf_of: str | None = None,
        resume: bool = True,
        reply: str | None = None,
    ) -> PendingTurn:
        """Go on with a turn that waited for a person, under a new deadline: what it had done still counts.

        `async with answers.reopen(turn, agent=agent) as turn`, like a new one; awaited, it is that turn, not entered.
        When it is entered, its calls that were approved meanwhile are made, each with its own ticket. `resume=False`:
        they are left to whoever goes on, as their tools cannot be run from here. `reply`: what was said to the
        question that the turn has asked, by the one whom it was opened for (`principal`, `on_behalf_of`).
        """
        require_agent(agent)
        refuse_odd_names({"principal": principal, "on_behalf_of": on_behalf_of}, self.runtime)

        async def find() -> Turn:
            asked = await reopen_turn(self.runtime.context, turn, agent.name, on_behalf_of)
            if reply is not None:
                refuse_long_question(reply, self.runtime.context.limits)
                refuse_others_reply(asked, principal or self.runtime.principal, on_behalf_of)
                asked = answer_question(self.runtime.context, agent, asked, reply, self.classify)
            return self._turn(agent, msgspec.structs.replace(asked, resumes=resume))

        return PendingTurn(find)

    async def result(self, turn: str) -> TurnResult:
        """The result of a turn as it stands now: also after a reviewer released, corrected or rejected it."""
        return await fetch_result(self.runtime.store, turn)

    async def decide(
        self,
        ticket: str,
        *,
        approve: bool,
        by: str | None = None,
        token: str | None = None,
        reason: str = "",
        text: str = "",
    ) -> int:
        """Decide any ticket, also one about an answer: release the draft, write another (`text`), or reject it.

        The id of the decision's record, as of `operations.decide`; what the turn came to is `answers.result(turn)`.
        """
        operations, found = self.runtime.operations, await self.runtime.store.ticket(ticket)
        if found is None or found.kind is not TicketKind.ANSWER:
            return await operations.decide(ticket, approve=approve, by=by, token=token, reason=reason)
        state = decision_state(approve)
        return await decide_answer(await operations.decider(ticket, by, token), ticket, state, reason, text)

    async def close(self) -> None:
        """Let go of the judges that were opened; the runtime is closed by whoever opened it."""
        await self._judges.close()

    def classify(self, agent: Agent, question: str) -> Classified:
        """Which of an agent's intents a question has, and so what its answer needs, and about what."""
        classifier = self._classifier(agent)
        found = classifier.classify(question)
        # Somebody on file may be called as others are greeted.
        if found.chat:
            entities = self._entities(agent, question)
            found = classifier.unsure() if any(map(entities.known_to, agent.tools)) else found
        return msgspec.structs.replace(found, requirement=self._bind(agent, found.requirement, question))

    def _bind(self, agent: Agent, requirement: Requirement, question: str) -> Requirement:
        if not leaves(requirement):
            return requirement
        tools = {name: binding.tool for name, binding in self.runtime.context.bindings.items()}
        return bind(requirement, self._entities(agent, question), tools, agent.tools)

    def _entities(self, agent: Agent, question: str) -> Entities:
        """What a question names: of the agent's own tools, and of all others where it can ask other agents."""
        every = [binding.tool for binding in self.runtime.context.bindings.values()]
        own = [tool for tool in every if tool.name in agent.tools]
        return Entities(question, every if any(map(delegates, own)) else own)

    def _classifier(self, agent: Agent) -> Classifier:
        require_agent(agent)
        found = self._classifiers.get(agent)
        if found is not None:
            return found
        with self._learning:
            if agent not in self._classifiers:
                self._classifiers[agent] = agent.classifier()  # training takes seconds, once for each agent
            return self._classifiers[agent]

    def _turn(self, agent: Agent, asked: Asked) -> Turn:
        strange = [name for name in agent.tools if name not in self.runtime.context.bindings]
        if strange:
            raise ConfigError(f"agent {agent.name!r} has tools that are not registered: {', '.join(strange)}")
        for leaf in leaves(asked.classified.requirement):
            if leaf.tool not in agent.tools:
                hint = did_you_mean(leaf.tool, agent.tools)
                raise ConfigError(f"an answer of {agent.name!r} needs {leaf.tool!r}, which is none of its tools{hint}")
        self._judges.of(agent)  # one that cannot be opened is said before anything is done
        return Turn(self.runtime, agent, asked, self.classify, self._judges)


def _workflow(agent: Agent, details: TurnDetails) -> Workflow | None:
    """The way of working of a turn: what its caller says, or the agent's."""
    work = details.get("work")
    found = details.get("workflow") or agent.workflow if work is None else agent.work(work)
    if found is not None and found.counts_sources:
        require_suffixes()
    return found


def _refuse_odd_details(details: TurnDetails) -> None:
    if details.get("requires") is not None:
        meant = "the name of a tool or a requirement such as need('lookup')"
        require_kind("requires=", details["requires"], Requirement | str, meant)
    if details.get("workflow") is not None:
        require_kind("workflow=", details["workflow"], Workflow, "an interlock.answers.workflows.Workflow")
    if details.get("work") is not None:
        require_kind("work=", details["work"], str, "the name of one of the agent's ways of working")
        if details.get("workflow") is not None:
            raise ConfigError("a turn has one way of working: give work= or workflow=, not both")
    if "withheld" in details:
        require_all("withheld=", details["withheld"], Withheld, "interlock.answers.wishes.Withheld")
    if details.get("carried") is not None:
        require_kind("carried=", details["carried"], Carried, "an interlock.answers.asked.Carried")
    if "given" in details:
        require_all("given=", details["given"], Source | int, "numbers of records and sources")
