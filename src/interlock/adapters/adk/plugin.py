"""`InterlockPlugin`: every tool call of every ADK agent on the one path, and every answer through `finish`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextvars import ContextVar
from typing import Any

import msgspec
from google.adk.agents import BaseAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from interlock.adapters.adk.bypasses import refuse_bypasses
from interlock.adapters.adk.llm import HINTS, InterlockLlm
from interlock.adapters.adk.tools import PENDING
from interlock.errors import NotAllowed
from interlock.runtime import Runtime
from interlock.turn import Again, Agent, Turn, TurnResult
from interlock.turn.loop import shown
from interlock.turn.slots import slots
from interlock.turn.statements import statements
from interlock.values import Outcome, Status

AGAIN = "interlock_again"
"""A call that the plugin puts in place of a draft that cannot leave; its result tells the model what is missing."""
_RECORDS, _WAITING, _TICKETS = "interlock_records", "interlock_waiting", "interlock_tickets"
_MOST_RECORDS = 50
_PARENT: ContextVar[str | None] = ContextVar("interlock_adk_parent", default=None)
_BLOCKED = ("SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "RECITATION", "SPII")


class _Open:
    """One agent's turn in one invocation."""

    def __init__(self, turn: Turn, follows: bool) -> None:
        self.turn = turn
        self.follows = follows
        self.begun = False
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
        self._agents = dict(agents)
        self._allow = frozenset(allow)
        self._instruct = instruct
        self._open: dict[tuple[str, str, str], _Open] = {}
        self._requests: dict[tuple[str, str], str] = {}
        self._checked: set[int] = set()
        self.results: dict[str, TurnResult] = {}
        """The result of the root agent's turn in each invocation that `InterlockRunner` waits for."""

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Refuse an agent tree with a way around."""
        root = invocation_context.agent
        if id(root) not in self._checked:
            refuse_bypasses(root, self._allow)
            self._checked.add(id(root))

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: Any) -> types.Content | None:
        """Open the agent's turn, as a child of the one that delegated to it."""
        known = self._agents.get(agent.name)
        if known is None:
            return None
        state, key = callback_context.state, self._key(callback_context, agent.name)
        question = self._requests.pop((key[0], agent.name), None) or _text(callback_context.user_content)
        since, _, waiting = str(state.get(_WAITING) or "").partition("|")
        if waiting and (since == key[0] or not question.strip()):  # the same invocation goes on after a confirmation
            turn = await self._runtime.reopen(waiting, agent=known)
        else:
            given = [int(number) for number in state.get(_RECORDS) or ()]
            details: dict[str, Any] = {"given": given}
            if _PARENT.get() is not None:
                details["parent"] = _PARENT.get()
            turn = self._runtime.turn(question or "(no text)", agent=known, **details)
        await turn.__aenter__()
        model = getattr(agent, "canonical_model", None)
        self._open[key] = _Open(turn, model.follows if isinstance(model, InterlockLlm) else True)
        return None

    async def after_agent_callback(self, *, agent: BaseAgent, callback_context: Any) -> types.Content | None:
        """Close the turn; one that waits for a person, or was handed over, ends here without a model's answer."""
        open_ = self._open.pop(self._key(callback_context, agent.name), None)
        if open_ is None:
            return None
        turn, said = open_.turn, None
        if turn.result is None and any(outcome.status is Status.PARKED for outcome in open_.outcomes):
            result = await turn.finish(None)
            said = _content(result.answer) if isinstance(result, TurnResult) else None
        self._remember(callback_context, turn)
        await turn.__aexit__(None, None, None)
        return said

    async def before_model_callback(self, *, callback_context: Any, llm_request: LlmRequest) -> LlmResponse | None:
        """Tell the model what holds, force where that is due, and stop where the bound is reached."""
        open_ = self._of(callback_context)
        if open_ is None:
            return None
        turn = open_.turn
        if not open_.begun:
            open_.begun = True
            open_.again = await turn.begin(follows=open_.follows)
        if turn.replies >= turn.most_replies or turn.left_s <= 0:
            result = await turn.finish(None)
            assert isinstance(result, TurnResult)  # no reply is left, so it is an end
            return LlmResponse(content=_content(result.answer))
        llm_request.tools_dict[AGAIN] = _AgainTool()
        if self._instruct:
            llm_request.append_instructions([turn.instructions])
        forced = None if open_.again is None else open_.again.tool
        open_.again = None
        if forced is not None:
            llm_request.config.tool_config = _only(forced)
        self._hint(open_, forced)
        return None

    async def after_model_callback(self, *, callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        """A text is a draft: it leaves if it may. Calls go their way. Fragments of a draft are held back."""
        open_ = self._of(callback_context)
        if open_ is None or open_.turn.result is not None:
            return None
        parts = (llm_response.content.parts if llm_response.content is not None else None) or []
        if llm_response.partial:
            return LlmResponse(content=types.Content(role="model", parts=[]), partial=True)
        if any(part.function_call is not None for part in parts):
            open_.turn.replies += 1
            calls = [part for part in parts if part.function_call is not None]
            return None if len(calls) == len(parts) else _replaced(llm_response, calls)
        reason = str(getattr(llm_response.finish_reason, "value", llm_response.finish_reason or ""))
        code = str(llm_response.error_code or "")
        refused = next((word for word in (reason, code) if word in _BLOCKED), "")
        text = "".join(part.text or "" for part in parts if not part.thought)
        return await self._finish(open_, text, f"the provider refused ({refused})" if refused else "", llm_response)

    async def on_model_error_callback(
        self, *, callback_context: Any, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """A model that fails gave no answer; what is known by then may still be enough."""
        open_ = self._of(callback_context)
        return None if open_ is None else await self._finish(open_, "", "", LlmResponse())

    async def _finish(self, open_: _Open, text: str, blocked: str, before: LlmResponse) -> LlmResponse:
        step = await open_.turn.finish(text, blocked=blocked)
        if isinstance(step, TurnResult):
            return LlmResponse(content=_content(step.answer), usage_metadata=before.usage_metadata)
        open_.again = step
        call = types.FunctionCall(name=AGAIN, args={"instruction": step.prompt})
        return _replaced(before, [types.Part(function_call=call)])

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """The call on the one path; whatever comes of it is what the model sees, and ADK runs nothing itself."""
        if tool.name == AGAIN:
            return {"instruction": tool_args.get("instruction", "")}
        open_ = self._of(tool_context)
        call_id = tool_context.function_call_id or ""
        PENDING.put(call_id, tool, tool_context)
        inner = getattr(tool, "agent", None)
        if inner is not None:
            self._requests[tool_context.invocation_id, inner.name] = str(tool_args.get("request", ""))
        before = _PARENT.set(None if open_ is None else open_.turn.id)
        try:
            outcome = await self._called(open_, tool, tool_args, tool_context)
        finally:
            _PARENT.reset(before)
            PENDING.drop(call_id)
        if open_ is not None:
            open_.outcomes.append(outcome)
        if outcome.status is Status.PARKED:
            self._ask(tool_context, outcome)
        found: dict[str, Any] = msgspec.json.decode(shown(outcome)) if len(shown(outcome)) < 12_000 else {
            "status": outcome.status.value, "summary": outcome.summary
        }  # fmt: skip
        return found

    async def _called(
        self, open_: _Open | None, tool: BaseTool, arguments: dict[str, Any], tool_context: ToolContext
    ) -> Outcome:
        call_id = tool_context.function_call_id or ""
        confirmation = tool_context.tool_confirmation
        if confirmation is not None:
            decided = await self._decided(tool_context, confirmation.confirmed)
            if decided is not None:
                return decided
        if open_ is not None:
            return await open_.turn.call(tool.name, arguments, call_id=call_id)
        actor = getattr(tool_context, "agent_name", "") or "adk"
        details: dict[str, Any] = {"call_id": call_id} if call_id else {}
        return await self._runtime.call(
            tool.name, arguments, actor=actor, turn=f"adk-{tool_context.invocation_id}", **details
        )

    async def _decided(self, tool_context: ToolContext, confirmed: bool) -> Outcome | None:
        """What a person said in the session about a call that waits; its ticket is spent once."""
        ticket = (tool_context.state.get(_TICKETS) or {}).get(tool_context.function_call_id)
        if ticket is None:
            return None
        try:
            by = f"adk:{tool_context.user_id}"
            await self._runtime.decide(ticket, approve=confirmed, by=by, reason="in the session")
        except NotAllowed:
            pass  # it was decided before; what was decided holds
        outcome = await self._runtime.resume(ticket)
        spent = outcome.problem is not None and "spent already" in outcome.problem.message
        return None if spent else outcome

    def _ask(self, tool_context: ToolContext, outcome: Outcome) -> None:
        """A parked call asks for confirmation in the session; its ticket can be decided there or anywhere else."""
        known = dict(tool_context.state.get(_TICKETS) or {})
        known[tool_context.function_call_id or ""] = outcome.ticket
        tool_context.state[_TICKETS] = known
        tool_context.request_confirmation(hint=outcome.summary, payload={"ticket": outcome.ticket})
        tool_context.actions.skip_summarization = True

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        """An unknown tool: before_tool has answered for it already, unless ADK could not even begin."""
        outcome = await self._runtime.call(tool.name, tool_args, actor="adk")
        found: dict[str, Any] = msgspec.json.decode(shown(outcome))
        return found

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """Nothing of an invocation is kept."""
        await self._clear(invocation_context.invocation_id)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """Nothing of an invocation is kept, also when it failed."""
        await self._clear(invocation_context.invocation_id)

    async def _clear(self, invocation: str) -> None:
        for key in [key for key in self._open if key[0] == invocation]:
            await self._open.pop(key).turn.__aexit__(None, None, None)
        for pair in [pair for pair in self._requests if pair[0] == invocation]:
            self._requests.pop(pair)

    def _remember(self, callback_context: Any, turn: Turn) -> None:
        """What the next turn of the session may rest on, and which turn waits."""
        result, state = turn.result, callback_context.state
        if result is None:
            return
        if turn.asked.parent is None:
            self.results[callback_context.invocation_id] = result
        known = [*(state.get(_RECORDS) or ()), *result.records]
        state[_RECORDS] = list(dict.fromkeys(known))[-_MOST_RECORDS:]
        waits = result.outcome.value == "WAITING"
        state[_WAITING] = f"{callback_context.invocation_id}|{turn.id}" if waits else ""

    def _hint(self, open_: _Open, forced: str | None) -> None:
        """For a model that can only be constrained: known values of the forced call, or statements for an answer."""
        if open_.follows:
            HINTS.set({})
            return
        tool = next((tool for tool in open_.turn.tools if tool.name == forced), None)
        leads, facts = statements([outcome for outcome in open_.outcomes if outcome.ok])
        HINTS.set(
            {"lead": "; ".join(leads), "facts": facts}
            if tool is None
            else {"slots": slots(tool, open_.turn.asked.question)}
        )

    def _key(self, context: Any, agent: str) -> tuple[str, str, str]:
        branch = context._invocation_context.branch or ""
        return context.invocation_id, branch, agent

    def _of(self, context: Any) -> _Open | None:
        return self._open.get(self._key(context, context.agent_name))


def _only(tool: str) -> types.ToolConfig:
    """A configuration of its own: ADK's is shared with the agent, and changing it there would hold for ever."""
    return types.ToolConfig(
        function_calling_config=types.FunctionCallingConfig(
            mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=[tool]
        )
    )


def _replaced(before: LlmResponse, parts: list[types.Part]) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=before.usage_metadata)


def _content(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


def _text(content: types.Content | None) -> str:
    return "" if content is None else " ".join(part.text for part in content.parts or () if part.text)
