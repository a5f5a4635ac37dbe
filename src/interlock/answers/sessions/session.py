"""`Session`: a conversation of several turns. The next one knows what the earlier ones were about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from interlock.answers.agent import Agent, require_agent
from interlock.answers.answer_review import reopen_turn
from interlock.answers.asked import Asked
from interlock.answers.grounding import Source, default_vocabulary
from interlock.answers.pending_turn import PendingTurn
from interlock.answers.result import TurnResult
from interlock.answers.runner import Watch, run_turn
from interlock.answers.sessions.closed_arguments import arguments_of
from interlock.answers.sessions.context import (
    EarlierCall,
    SessionContext,
    SessionPlace,
    citable_records,
    read_context,
)
from interlock.answers.sessions.exchanges import Exchange, read_exchanges, require_most
from interlock.answers.sessions.follow_up import follow, named_values
from interlock.answers.sessions.replies import Classify, Replying, go_on, read_reply, take_reply
from interlock.answers.sessions.units import asked_units
from interlock.answers.turn import Turn
from interlock.engine import EngineContext
from interlock.errors import NotAllowed
from interlock.models import Model
from interlock.values import Json

_QUESTIONS_TOLD = 6
"""Of earlier turns: "and the other one?" goes back no further."""
Ask = Callable[..., Asked]
OpenTurn = Callable[[Agent, Asked], Turn]


class Session:
    """One conversation, by its name. Everything it knows stands in the ledger: any process can go on with it."""

    def __init__(
        self, name: str, ctx: EngineContext, principal: str, ask: Ask, open_turn: OpenTurn, classify: Classify
    ) -> None:
        self.name, self._principal = name, principal
        self._ctx, self._ask, self._open_turn, self._classify = ctx, ask, open_turn, classify

    def turn(self, question: str, *, agent: Agent, resume: bool = True, **details: Any) -> PendingTurn:
        """The next turn: `async with session.turn(question, agent=agent) as turn`, as with `Answers.turn`.

        If the last turn of the session has asked something and this says it, that turn is gone on with.
        """
        require_agent(agent)

        async def find() -> Turn:
            # In a thread: an agent that was never asked is learned first.
            asked: Asked = await asyncio.to_thread(self._ask, question, agent, details)
            return await asyncio.to_thread(self._open_turn, agent, await self._next(agent, asked, resume=resume))

        return PendingTurn(find)

    async def ask(
        self,
        question: str,
        *,
        agent: Agent,
        model: Model,
        watch: Watch | None = None,
        on_text: Callable[[str], None] | None = None,
        **details: Any,
    ) -> TurnResult:
        """The next turn with a model that works on it, and its result."""
        async with self.turn(question, agent=agent, **details) as turn:
            return await run_turn(turn, model, watch=watch, on_text=on_text)

    async def exchanges(
        self, *, principal: str | None = None, on_behalf_of: str | None = None, most: int = 50
    ) -> list[Exchange]:
        """What was asked in it and answered, the last one last: to be shown to whom it belongs."""
        require_most(most)
        place = SessionPlace(self.name, self._principal if principal is None else principal, on_behalf_of)
        return await read_exchanges(self._ctx.store, place, most)

    async def _next(self, agent: Agent, asked: Asked, *, resume: bool) -> Asked:
        ctx = self._ctx
        place = SessionPlace(self.name, asked.principal, asked.on_behalf_of)
        context = await read_context(ctx, place)
        if context.is_asked and context.last_agent == agent.name:
            replied = await self._reply(agent, asked, context)
            if replied is not None:
                given = await _citable_still(ctx, context, replied.given)
                return replace(replied, session=place, resumes=resume, given=given)
        # Where the caller says what the answer needs, the words do not decide; what they refer to still holds.
        said = (
            replace(asked, units=asked_units(asked.question, agent.vocabulary or default_vocabulary()))
            if asked.classified.by == "caller"
            else await asyncio.to_thread(follow, asked, context, agent, ctx.bindings)
        )
        named = await asyncio.to_thread(named_values, asked.question, said, context, agent, ctx.bindings)
        given = await citable_records(ctx, context, named)
        return replace(
            said,
            session=place,
            earlier_turns=context.turns,
            earlier_questions=context.questions[-_QUESTIONS_TOLD:],
            given=(*said.given, *(number for number in given if number not in said.given)),
            earlier=tuple(told for call in context.calls if (told := _tell(ctx, call)) is not None),
        )

    async def _reply(self, agent: Agent, asked: Asked, context: SessionContext) -> Asked | None:
        """The turn that has asked, if this is what it wanted to know."""
        try:
            before = await reopen_turn(self._ctx, context.last_turn, agent.name, asked.on_behalf_of)
        except NotAllowed:  # its question was deleted, say
            return None
        replying = make_replying(self._ctx, agent, before, asked.classified)
        if replying is None:
            return None
        replying = replace(replying, context=context)
        reply = read_reply(replying, asked.question, sure=False)
        return None if reply is None else go_on(replying, reply)


def make_replying(ctx: EngineContext, agent: Agent, before: Asked, classified: Any) -> Replying | None:
    """A turn that has asked, with everything by which an answer to that is read; None if it has asked nothing."""
    history = before.before
    asks = None if history is None or history.finished is None else history.finished.asks
    if history is None or asks is None:
        return None
    return Replying(agent, before, history, asks, ctx.bindings, classified)


def answer_question(ctx: EngineContext, agent: Agent, before: Asked, text: str, classify: Classify) -> Asked:
    """A turn that has asked, gone on with by what somebody says to it."""
    replying = make_replying(ctx, agent, before, classify(agent, text))
    if replying is None:
        raise NotAllowed(f"turn {before.id!r} has asked nothing; go on with it without a text, or ask anew")
    return take_reply(replying, text)


def _tell(ctx: EngineContext, call: EarlierCall) -> EarlierCall | None:
    """A call as a model is told of it: ids, closed values and figures; texts may hold anything, and are left out."""
    binding = ctx.bindings.get(call.tool)
    if binding is None:
        return None
    closed = arguments_of(binding.tool, "").closed

    def is_typed(name: str, value: Json) -> bool:
        return isinstance(value, int | float) or (name in closed and value in closed[name].values)

    return replace(
        call, arguments={n: v for n, v in call.arguments.items() if not isinstance(v, list | dict) and is_typed(n, v)}
    )


async def _citable_still(
    ctx: EngineContext, context: SessionContext, given: tuple[Source | int, ...]
) -> tuple[Source | int, ...]:
    """What was given to a turn that has asked, without what has grown old or was changed until it is answered."""
    own = {call.record for call in context.calls} - {*await citable_records(ctx, context, {})}
    return tuple(one for one in given if one not in own)
