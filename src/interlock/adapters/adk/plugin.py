"""`InterlockPlugin`: every tool call of every ADK agent on the one path, and every answer through `finish`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextvars import ContextVar
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from interlock.adapters.adk.bypasses import refuse_bypasses
from interlock.adapters.adk.confirmations import SessionCall, ask, take_answer
from interlock.adapters.adk.contents import (
    describe_outcome,
    force_only,
    replace_parts,
    text_content,
    text_of,
)
from interlock.adapters.adk.handover import NOBODY, Handover, SubagentCall, refuse_live
from interlock.adapters.adk.llm import FIELDS, FINAL, MODEL_FAILED, QUESTION, TURN
from interlock.adapters.adk.session import (
    answer_instead,
    name_session,
    remember,
    session_of,
    user_of,
    waiting_turn,
)
from interlock.adapters.adk.tools import RUNNING, Running
from interlock.answers import Again, Agent, Answers, Turn, TurnResult
from interlock.answers.asked import ModelState, question_problem
from interlock.answers.citations import list_facts
from interlock.answers.runner import ascii_json
from interlock.errors import ConfigError, NotAllowed
from interlock.models import Usage
from interlock.runtime import Runtime
from interlock.values import Outcome, Status

AGAIN = "interlock_again"
"""A call that the plugin puts in place of a draft that cannot leave; its result tells the model what is missing."""
_DELEGATED: ContextVar[SubagentCall] = ContextVar("interlock_adk_delegated", default=NOBODY)
"""The turn that delegates, what it asks, and whom."""
_LONGEST_ID = 200  # an id of the model's own, which stands in a column of the ledger
_WITHHELD = "(withheld: this text did not come through the turn's check)"
_BLOCKED = ("SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "RECITATION", "SPII")


class Waited:
    """A question that a program has put to a session, and waits for."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.result: TurnResult | None = None


WAITED: ContextVar[Waited | None] = ContextVar("interlock_adk_waited", default=None)
"""Whose result this task works on. By task, not by session: two users' sessions may share an id, two questions one."""


class _Open:
    """One agent's turn in one invocation."""

    def __init__(
        self, turn: Turn, waited: Waited | None, key: tuple[str, str, str], outer: _Open | None = None
    ) -> None:
        self.turn = turn
        self.waited = waited
        self.key = key
        self.outer = outer  # the turn in which the agent gave the question away, if it got it back
        self.again: Again | None = None
        self.outcomes: list[Outcome] = []


class _AgainTool(BaseTool):
    """Executable, but never declared to the model."""

    def __init__(self) -> None:
        super().__init__(name=AGAIN, description="what is missing before the answer can be given")

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Say what is missing."""
        return {"instruction": args.get("instruction", "")}


class InterlockPlugin(BasePlugin):
    """The first plugin of an `App`; `agents` says what each ADK agent's answers need, by its name."""

    def __init__(
        self,
        runtime: Runtime,
        agents: Mapping[str, Agent],
        *,
        allow: Collection[str] = (),
        instruct: bool = True,
        name: str = "interlock",
    ) -> None:
        super().__init__(name=name)
        self._runtime = runtime
        self._answers = Answers(runtime)  # one for all turns: it keeps what the agents' classifiers have learned
        self._agents = dict(agents)
        self._allow = frozenset(allow)
        self._instruct = instruct
        self._open: dict[tuple[str, str, str], _Open] = {}
        self._let_out: dict[tuple[str, str, str], str] = {}
        """What each agent's turn gave as its answer, until the invocation ends."""
        self._first: dict[str, Turn] = {}
        """The turn that each invocation began with: it was asked the user's question."""

    def deadline_s(self, agent: str) -> float | None:
        """How long an agent may take; None if it is not one of ours."""
        known = self._agents.get(agent)
        return None if known is None else known.deadline_s

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Refuse an agent tree with a way around, and a plugin that comes before us."""
        # At every run, not at the start: an agent tree can be changed between two.
        refuse_bypasses(invocation_context.agent, self._allow, self._agents)
        refuse_live(invocation_context, self._agents)
        # ADK stops at the first plugin that answers a callback.
        first = next(iter(invocation_context.plugin_manager.plugins), None)
        if first is not self:
            raise ConfigError("InterlockPlugin must be the first plugin: one before it could answer in its place")

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: Any) -> types.Content | None:
        """Open the agent's turn, as a child of the one that delegated to it; or go on with the one that waited."""
        known = self._agents.get(agent.name)
        if known is None:
            return None
        key, user = self._key(callback_context, agent.name), user_of(callback_context)
        waiting = waiting_turn(self._runtime.store, callback_context, agent.name)
        if waiting is not None:
            try:
                # A governed tool of ADK runs only in its own call: that resumes it, when ADK delivers it again.
                turn = await self._answers.reopen(waiting, agent=known, on_behalf_of=user, resume=False)
            except NotAllowed as refused:
                said = await answer_instead(self._answers, waiting, refused, agent=agent.name, user=user)
                return text_content(self._let_out_answer(key, said))
        else:
            # AgentTool opens another invocation, which does not know who asked.
            delegated, invocation = _DELEGATED.get(), callback_context.invocation_id
            question = (delegated.request or text_of(callback_context.user_content)).strip() or "(no text)"
            if problem := question_problem(question, self._runtime.context.limits):
                return text_content(self._let_out_answer(key, problem[:1].upper() + problem[1:]))
            over = Handover.to(agent, self._agents, delegated, self._first.get(invocation))
            details = {"on_behalf_of": user, **await over.details(self._answers, question)}
            if over.parent is not None:
                turn = self._answers.turn(question, agent=known, **details)
            else:
                # By the ledger, not by the session's state, which clients can write: what was called before, what was
                # asked, and what an answer may rest on.
                session = self._answers.session(name_session(callback_context))
                turn = await session.turn(question, agent=known, resume=False, **details)
            self._first.setdefault(invocation, turn)
        await turn.__aenter__()
        waited = WAITED.get()  # AgentTool works in a session of its own, for the same program
        own = waited is not None and waited.session == session_of(callback_context)
        self._open[key] = _Open(turn, waited if own else None, key, self._open.get(key))
        return None

    async def after_agent_callback(self, *, agent: BaseAgent, callback_context: Any) -> types.Content | None:
        """Close the turn; one that waits for a person, or whose time is up, ends here without a model's answer."""
        key = self._key(callback_context, agent.name)
        open_ = self._open.pop(key, None)
        if open_ is None:
            return None
        if open_.outer is not None:
            self._open[key] = open_.outer
        turn, said = open_.turn, None
        parked = any(outcome.status is Status.PARKED for outcome in open_.outcomes)
        # After a pause, or when its time is up, no further draft comes that could end the turn.
        if turn.result is None and (parked or turn.left_s <= 0):
            result = await turn.finish(None)
            if isinstance(result, TurnResult):
                said = text_content(self._let_out_answer(key, result.answer))
        if turn.result is not None:
            remember(self._runtime.store, callback_context, agent.name, turn.result)
            self._note_result(open_)
        await turn.__aexit__(None, None, None)
        return said

    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> Any:
        """A text in the name of an agent of ours that did not come through `finish` is withheld."""
        if event.author not in self._agents or event.content is None:
            return None
        parts = event.content.parts or []
        text = "".join(part.text or "" for part in parts)
        key = (invocation_context.invocation_id, event.branch or "", event.author)
        if not text.strip() or text == self._let_out.get(key):
            return None
        # Calls and responses stay: without them ADK's history would have results without a call.
        kept = [part for part in parts if not part.text]
        withheld = types.Content(role="model", parts=kept or [types.Part(text=_WITHHELD)])
        # An agent with an `output_key` writes its text into the session's state as well.
        state = {name: value for name, value in event.actions.state_delta.items() if value != text}
        actions = event.actions.model_copy(update={"state_delta": state})
        return event.model_copy(update={"content": withheld, "actions": actions})

    async def before_model_callback(self, *, callback_context: Any, llm_request: LlmRequest) -> LlmResponse | None:
        """Tell the model what holds, force where that is due, and stop where the bound is reached."""
        open_ = self._of(callback_context)
        # Also None: a task may have worked for another agent's turn before.
        TURN.set(None if open_ is None else open_.turn)
        if open_ is None:
            return None
        turn = open_.turn
        if turn.replies >= turn.most_replies or turn.left_s <= 0:
            result = await turn.finish(None)
            assert isinstance(result, TurnResult)  # no reply is left, so it is an end
            return LlmResponse(content=text_content(self._let_out_answer(open_.key, result.answer)))
        # Known to ADK, which would refuse a call of an unknown tool, but in no declaration that a model sees.
        llm_request.tools_dict[AGAIN] = _AgainTool()
        if self._instruct:
            facts = list_facts(await turn.facts())
            llm_request.append_instructions([turn.instructions, *([facts] if facts else [])])
        forced = None if open_.again is None else open_.again.tool
        # Forced for one call only: a model that takes mode=ANY at its word never answers while it is set.
        open_.again = None
        if forced is not None:
            llm_request.config.tool_config = force_only(forced)
        return None

    async def after_model_callback(self, *, callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        """A text is a draft: it leaves if it may. Calls go their way. Fragments of a draft are held back."""
        open_ = self._of(callback_context)
        if open_ is None:
            return None
        if open_.turn.result is not None:  # the answer has left; whatever else comes of this call does not
            return LlmResponse(content=types.Content(role="model", parts=[]), partial=llm_response.partial)
        parts = (llm_response.content.parts if llm_response.content is not None else None) or []
        # Streamed fragments are held back too: the reader would see a draft before it is checked.
        if llm_response.partial:
            return LlmResponse(content=types.Content(role="model", parts=[]), partial=True)
        used = llm_response.usage_metadata
        if used is not None:
            open_.turn.count_usage(Usage(used.prompt_token_count or 0, used.candidates_token_count or 0))
        if any(part.function_call is not None for part in parts):
            open_.turn.replies += 1
            calls = [part for part in parts if part.function_call is not None]
            # Words beside a call are no answer, and would leave unchecked.
            return None if len(calls) == len(parts) else replace_parts(llm_response, calls)
        reason = str(getattr(llm_response.finish_reason, "value", llm_response.finish_reason or ""))
        code = str(llm_response.error_code or "")
        refused = next((word for word in (reason, code) if word in _BLOCKED), "")
        text = "".join(part.text or "" for part in parts if not part.thought)
        beside = llm_response.custom_metadata or {}
        if beside.get(QUESTION):
            asked = await open_.turn.ask(str(beside[QUESTION]), fields=tuple(beside.get(FIELDS, ())))
            return LlmResponse(content=text_content(self._let_out_answer(open_.key, asked.answer)))
        blocked = f"the provider refused ({refused})" if refused else ""
        failed = llm_response.error_message or code if code == MODEL_FAILED else ""
        return await self._finish(open_, text, llm_response, ModelState(blocked, bool(beside.get(FINAL)), failed))

    async def on_model_error_callback(
        self, *, callback_context: Any, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """A model that fails gave no answer; what is known by then may still be enough."""
        open_ = self._of(callback_context)
        return None if open_ is None else await self._finish(open_, "", LlmResponse(), ModelState())

    async def _finish(self, open_: _Open, text: str, before: LlmResponse, model: ModelState) -> LlmResponse:
        step = await open_.turn.finish(text, blocked=model.blocked, final=model.final, no_reply=model.no_reply)
        if isinstance(step, TurnResult):
            answer = self._let_out_answer(open_.key, step.answer)
            return LlmResponse(content=text_content(answer), usage_metadata=before.usage_metadata)
        open_.again = step
        # ADK ends an agent's loop at a text. A call in its place keeps the loop going, and its result is the prompt.
        call = types.FunctionCall(name=AGAIN, args={"instruction": step.prompt})
        return replace_parts(before, [types.Part(function_call=call)])

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """The call on the one path; whatever comes of it is what the model sees, and ADK runs nothing itself."""
        if tool.name == AGAIN:
            return {"instruction": tool_args.get("instruction", "")}
        open_ = self._of(tool_context)
        # ADK takes several responses of one model call: after the one with the answer nothing is called.
        if open_ is not None and open_.turn.result is not None:
            return {"status": "denied", "reason": "the turn has ended; nothing more is called in it"}
        parent = _DELEGATED.get().parent if open_ is None else open_.turn.id
        inner = getattr(tool, "agent", None)
        running = Running(tool, tool_context)
        request = "" if inner is None else str(tool_args.get("request", "")) or ascii_json(tool_args)
        delegated = _DELEGATED.set(SubagentCall(parent, request, getattr(inner, "name", "")))
        # By task, not by call id: two calls of one reply may share an id, and must not share a body.
        marked = RUNNING.set(running)
        try:
            outcome = await self._make_call(open_, tool, tool_args, tool_context)
        finally:
            RUNNING.reset(marked)
            _DELEGATED.reset(delegated)
        if running.interrupt is not None:  # ADK's own pause goes on up; on our path it was only a failed call
            raise running.interrupt
        if open_ is not None:
            open_.outcomes.append(outcome)
            # A tool of ADK may set it, and its bare result would leave as the answer.
            tool_context.actions.skip_summarization = None
        if outcome.status is Status.PARKED:
            ask(self._runtime.store, SessionCall(tool, tool_args, tool_context, _turn_of(open_, tool_context)), outcome)
            # A pause is no result for the model: asked again, it would make the same call again.
            tool_context.actions.skip_summarization = True
        return describe_outcome(outcome)

    async def _make_call(
        self, open_: _Open | None, tool: BaseTool, arguments: dict[str, Any], tool_context: ToolContext
    ) -> Outcome:
        call_id = tool_context.function_call_id or ""
        call_id = call_id if call_id.isprintable() and len(call_id) <= _LONGEST_ID else ""
        if tool_context.tool_confirmation is not None:
            call = SessionCall(tool, arguments, tool_context, _turn_of(open_, tool_context))
            answered = await take_answer(self._answers, call, None if open_ is None else open_.turn)
            if answered is not None:
                return answered
        if open_ is not None:
            return await open_.turn.call(tool.name, arguments, call_id=call_id)
        actor = getattr(tool_context, "agent_name", "") or "adk"
        details: dict[str, Any] = {"call_id": call_id} if call_id else {}
        details |= {"turn": _turn_of(open_, tool_context), "on_behalf_of": user_of(tool_context)}
        return await self._runtime.call(tool.name, arguments, actor=actor, **details)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        """An unknown tool: before_tool has answered for it already, unless ADK could not even begin."""
        return describe_outcome(
            await self._runtime.call(tool.name, tool_args, actor="adk", on_behalf_of=user_of(tool_context))
        )

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """Nothing of an invocation is kept."""
        await self._clear(invocation_context.invocation_id)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """Nothing of an invocation is kept, also when it failed."""
        await self._clear(invocation_context.invocation_id)

    async def _clear(self, invocation: str) -> None:
        for key in [key for key in self._open if key[0] == invocation]:
            await self._end(self._open.pop(key))
        for key in [key for key in self._let_out if key[0] == invocation]:
            self._let_out.pop(key)
        self._first.pop(invocation, None)

    async def _end(self, open_: _Open) -> None:
        """A turn that ADK gave up: if its time is up, it has ended so; otherwise nobody got an answer."""
        turn = open_.turn
        if turn.result is None and turn.left_s <= 0:
            await turn.finish(None)
            self._note_result(open_)
        await turn.__aexit__(None, None, None)

    def has_turn(self, waited: Waited) -> bool:
        """Whether a turn for what is waited for has begun and not ended."""
        return any(open_.waited is waited for open_ in self._open.values())

    async def abort(self, waited: Waited) -> None:
        """The runner was aborted while an agent was working on what is waited for."""
        for key in [key for key, open_ in self._open.items() if open_.waited is waited]:
            await self._end(self._open.pop(key))

    def _note_result(self, open_: _Open) -> None:
        asked = open_.turn.asked
        if open_.waited is not None and (asked.parent is None or asked.carried is not None):
            open_.waited.result = open_.turn.result

    def _let_out_answer(self, key: tuple[str, str, str], answer: str) -> str:
        self._let_out[key] = answer
        return answer

    def _key(self, context: Any, agent: str) -> tuple[str, str, str]:
        # Private to ADK, and the only place that tells parallel branches of one agent apart.
        branch = context._invocation_context.branch or ""
        return context.invocation_id, branch, agent

    def _of(self, context: Any) -> _Open | None:
        return self._open.get(self._key(context, context.agent_name))


def _turn_of(open_: _Open | None, context: Any) -> str:
    """The id of the turn that a call belongs to; an agent without an `Agent` of ours has one for an invocation."""
    return f"adk-{context.invocation_id}" if open_ is None else open_.turn.id
