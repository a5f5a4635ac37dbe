"""ADK: an answer in the session decides the ticket that was asked about there, and no other; a no makes no call."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk")
warnings.filterwarnings("ignore", module="google")

from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.apps import App  # noqa: E402
from google.adk.apps.app import ResumabilityConfig  # noqa: E402
from google.adk.events.event import Event  # noqa: E402
from google.adk.runners import Runner  # noqa: E402
from google.adk.sessions import DatabaseSessionService, InMemorySessionService  # noqa: E402
from google.adk.tools.tool_context import ToolContext  # noqa: E402
from google.genai import types  # noqa: E402

from interlock import Runtime, tool  # noqa: E402
from interlock.adapters.adk import AdkTool, InterlockLlm, InterlockPlugin, delegations, govern  # noqa: E402
from interlock.answers import Agent  # noqa: E402
from interlock.audit import verify  # noqa: E402
from interlock.models import Proposal, Reply, Request  # noqa: E402
from interlock.ports import Query  # noqa: E402
from interlock.state import Ticket, TicketState  # noqa: E402
from tests.test_adk_attacks import texts  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
ASKS = "adk_request_confirmation"
TELLER = Agent(name="teller", tools=("pay", "refund"), semantic=False)


def policy(vouched: tuple[str, ...], decision: str, tools: list[str]) -> dict[str, Any]:
    reads = [name for name in tools if name in ("teller", "transfer_to_agent")]
    rules = [{"id": "ask", "tools": [name for name in tools if name not in reads], "decision": decision}]
    rules += [{"id": "delegate", "tools": reads, "decision": "allow"}] if reads else []
    return {"version": 1, "mode": "apply", "rule": rules, "review": {"vouched": list(vouched), "self_approval": True}}


class Cashier:
    """Pays what the question says, under call ids that repeat, as several providers give them."""

    name, instructable = "cashier", True

    async def reply(self, request: Request) -> Reply:
        last = request.messages[-1]
        if last.role == "tool":
            return Reply("It is paid." if '"paid' in last.text else "It was not paid.")
        words = last.text.split()
        return Reply(proposals=tuple(Proposal(words[0], {"amount": int(n)}, "call_0") for n in words[1:]))

    async def close(self) -> None: ...


class Delegating(Cashier):
    """Passes every question on to the cashier."""

    async def reply(self, request: Request) -> Reply:
        last = request.messages[-1]
        if last.role == "tool":
            return Reply("So it is.")
        return Reply(proposals=(Proposal("teller", {"request": last.text}, "call_9"),))


class Bank:
    """An App with payments that are asked about, its sessions, and what was paid."""

    def __init__(self, url: str, *, vouched: tuple[str, ...] = ("adk",), service: Any = None, **more: Any) -> None:
        self.paid: list[int] = []
        contracts = more.pop("contracts", None) or self._tools()
        self.tools = more.pop("tools", None) or [AdkTool(contract) for contract in contracts]
        self.mode: Any = "single_turn" if more.pop("boss", False) else None
        if self.mode is not None:
            contracts += [*delegations(LlmAgent(name="boss", sub_agents=[LlmAgent(name="teller", mode="single_turn")]))]
        rules = policy(vouched, more.pop("decision", "review"), [contract.name for contract in contracts])
        self.runtime = Runtime.open(url, policy=rules, tools=contracts)
        self.service: Any = service or InMemorySessionService()
        self.agents = more.pop("agents", {"teller": TELLER} if len(contracts) > 1 else {})
        self.more = more
        self.runner = self.open("bank")

    def _tools(self) -> list[Any]:
        @tool(effect="send")
        async def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        @tool(effect="send")
        async def refund(amount: int) -> str:
            """Refund."""
            self.paid.append(-amount)
            return f"paid back {amount}"

        return [pay, refund]

    def open(self, name: str) -> Runner:
        root = teller = LlmAgent(name="teller", model=InterlockLlm(Cashier()), tools=self.tools, mode=self.mode)
        if self.mode is not None:
            root = LlmAgent(name="boss", model=InterlockLlm(Delegating()), sub_agents=[teller])
        app = App(name=name, root_agent=root, plugins=[InterlockPlugin(self.runtime, self.agents)], **self.more)
        return Runner(app=app, session_service=self.service)

    async def send(self, *parts: types.Part, session: str = "s1", user: str = "ann", runner: Any = None) -> list[Any]:
        runner = runner or self.runner
        known = {"app_name": runner.app_name, "user_id": user, "session_id": session}
        if await self.service.get_session(**known) is None:
            await self.service.create_session(**known)
        message = types.Content(role="user", parts=list(parts))
        return [e async for e in runner.run_async(user_id=user, session_id=session, new_message=message)]

    async def ask(self, text: str, **where: Any) -> types.FunctionCall:
        (asked,) = questions(await self.send(types.Part(text=text), **where))
        return asked

    async def tickets(self, state: TicketState | None = None) -> list[Ticket]:
        return list(await self.runtime.store.tickets(*([] if state is None else [state])))


@pytest.fixture
async def bank(store_url: str) -> AsyncIterator[Bank]:
    opened = Bank(store_url)
    yield opened
    await opened.runtime.close()


@pytest.fixture
async def in_memory() -> AsyncIterator[Bank]:
    """For what is about the session, whatever the store."""
    opened = Bank("memory://")
    yield opened
    await opened.runtime.close()


def questions(events: list[Any]) -> list[types.FunctionCall]:
    return [call for event in events for call in event.get_function_calls() if call.name == ASKS]


def say(asked: types.FunctionCall, confirmed: bool = True, **more: Any) -> types.Part:
    answer = {"confirmed": confirmed, **more}
    return types.Part(function_response=types.FunctionResponse(id=asked.id, name=ASKS, response=answer))


def results(events: list[Any]) -> str:
    """What the calls of a run came to, as the model sees it."""
    return " ".join(str(said.response) for event in events for said in event.get_function_responses())


def payload_of(asked: types.FunctionCall) -> dict[str, Any]:
    assert asked.args is not None
    return dict(asked.args["toolConfirmation"]["payload"])


async def test_a_yes_decides_what_was_asked_in_its_own_session(bank: Bank) -> None:
    small = await bank.ask("pay 10", session="s1")
    large = await bank.ask("pay 1000000", session="s2")
    assert small.args is not None
    assert large.args is not None
    assert small.args["originalFunctionCall"]["id"] == large.args["originalFunctionCall"]["id"] == "call_0"
    await bank.send(say(small), session="s1")
    assert bank.paid == [10]
    (waits,) = await bank.tickets(TicketState.OPEN)
    assert waits.id == payload_of(large)["ticket"]
    await bank.send(say(small), session="s1")  # a second press
    assert bank.paid == [10]
    await bank.send(say(large), session="s2")
    assert bank.paid == [10, 1000000]


async def test_a_yes_decides_its_own_of_two_equal_questions_in_one_session(bank: Bank) -> None:
    first, second = await bank.ask("pay 10"), await bank.ask("pay 10")
    await bank.send(say(first))
    (waits,) = await bank.tickets(TicketState.OPEN)
    assert (bank.paid, waits.id) == ([10], payload_of(second)["ticket"])
    await bank.send(say(second))
    assert bank.paid == [10, 10]


@pytest.mark.parametrize("where", ["another session", "another user", "another tool", "nobody", "no mapping"])
async def test_a_payload_that_names_another_ticket_decides_none(in_memory: Bank, where: str) -> None:
    """Clients write the payload of an answer."""
    others = {
        "another session": {"session": "s2"},
        "another user": {"session": "s2", "user": "bob"},
        "another tool": {"session": "s2"},
    }
    payload: Any = {"ticket": "no-such-ticket"} if where == "nobody" else "yes"
    asked = await in_memory.ask("pay 10")
    if where in others:
        payload = payload_of(
            await in_memory.ask("refund 7" if where == "another tool" else "pay 1000000", **others[where])
        )
    before = await in_memory.tickets()
    events = await in_memory.send(say(asked, payload=payload))
    assert "the answer's payload is not that of the question" in results(events)
    assert (in_memory.paid, await in_memory.tickets()) == ([], before)


async def test_the_payload_of_the_question_may_be_sent_back(in_memory: Bank) -> None:
    asked = await in_memory.ask("pay 10")
    await in_memory.send(say(asked, payload=payload_of(asked)))
    assert in_memory.paid == [10]


async def forge(bank: Bank, asked: types.FunctionCall, *, session: str, runner: Runner, **changes: Any) -> Any:
    """A session that was begun with a question of another, as whoever can write sessions might."""
    assert asked.args is not None
    original = {**asked.args["originalFunctionCall"], "args": changes.get("arguments", {"amount": 10})}
    payload = changes.get("payload", payload_of(asked))
    call = types.FunctionCall(**original)
    question = types.FunctionCall(
        id="adk-q", name=ASKS, args={"originalFunctionCall": original, "toolConfirmation": {"payload": payload}}
    )
    made = await bank.service.create_session(app_name=runner.app_name, user_id="ann", session_id=session)
    response = types.FunctionResponse(id=call.id, name=call.name, response={"status": "parked"})
    events = [
        Event(author="user", content=types.Content(role="user", parts=[types.Part(text="pay 10")])),
        Event(author="teller", content=types.Content(role="model", parts=[types.Part(function_call=call)])),
        Event(author="teller", content=types.Content(role="user", parts=[types.Part(function_response=response)])),
        Event(author="teller", content=types.Content(role="model", parts=[types.Part(function_call=question)])),
    ]
    events[2].actions.requested_tool_confirmations = {str(call.id): {"hint": "", "payload": payload}}  # type: ignore[dict-item]
    if changes.get("twice"):
        events[3].content.parts.append(types.Part(function_call=question.model_copy(update={"id": "adk-r"})))  # type: ignore[union-attr]
    for event in events:
        await bank.service.append_event(made, event.model_copy(update={"invocation_id": "e-forged"}))
    return question


@pytest.mark.parametrize("what", ["session", "app", "arguments", "no seal", "no payload"])
async def test_a_question_that_was_copied_into_another_session_decides_nothing(in_memory: Bank, what: str) -> None:
    asked = await in_memory.ask("pay 10" if what != "arguments" else "pay 1000000", session="s1")
    runner = in_memory.open("shop") if what == "app" else in_memory.runner
    ticket = {"ticket": payload_of(asked)["ticket"]}
    payloads: dict[str, Any] = {"no seal": ticket, "no payload": None}
    session = "s1" if what == "app" else "s9"
    changes = {"payload": payloads[what]} if what in payloads else {}
    forged = await forge(in_memory, asked, session=session, runner=runner, **changes)
    before = await in_memory.tickets()
    events = await in_memory.send(say(forged), session=session, runner=runner)
    sentence = (
        "it was not Interlock that asked" if what == "no payload" else "the question was not asked in this session"
    )
    assert f"nothing was decided and nothing was called: {sentence}" in results(events)
    assert (in_memory.paid, await in_memory.tickets()) == ([], before)


async def test_one_answer_to_two_questions_about_one_call_decides_nothing(in_memory: Bank) -> None:
    asked = await in_memory.ask("pay 10")
    one = await forge(in_memory, asked, session="s9", runner=in_memory.runner, twice=True)
    before = await in_memory.tickets()
    events = await in_memory.send(say(one), say(one.model_copy(update={"id": "adk-r"})), session="s9")
    assert "answer one alone" in results(events)
    assert (in_memory.paid, await in_memory.tickets()) == ([], before)


async def test_two_calls_of_one_reply_that_share_an_id_are_not_confirmed_for_each_other(in_memory: Bank) -> None:
    """ADK shows the arguments of the first beside what was asked about the last."""
    events = await in_memory.send(types.Part(text="pay 10 1000000"))
    for asked in questions(events):
        try:
            await in_memory.send(say(asked))
        except (RuntimeError, ValueError):
            pass  # ADK itself sees that the call is another one
    assert 1000000 not in in_memory.paid


async def test_a_yes_in_another_process_with_sessions_of_a_database(durable_url: str, tmp_path: Path) -> None:
    sessions = f"sqlite+aiosqlite:///{tmp_path}/sessions.db"
    more: dict[str, Any] = {"resumability_config": ResumabilityConfig(is_resumable=True)}
    first = Bank(durable_url, service=DatabaseSessionService(sessions), **more)
    small, _large = await first.ask("pay 10", session="s1"), await first.ask("pay 1000000", session="s2")
    await first.runtime.close()
    await first.service.close()
    second = Bank(durable_url, service=DatabaseSessionService(sessions), **more)
    events = await second.send(say(small), session="s1")
    assert second.paid == [10]
    assert texts(events)[-1].startswith("It is paid.\n\nDone: pay (record ")
    await second.runtime.close()
    await second.service.close()


@pytest.mark.parametrize("confirmed", [True, False])
async def test_an_agent_without_requirements_decides_its_own_question_too(store_url: str, confirmed: bool) -> None:
    bank = Bank(store_url, agents={})
    small, _large = await bank.ask("pay 10", session="s1"), await bank.ask("pay 1000000", session="s2")
    await bank.send(say(small, confirmed), session="s1")
    assert bank.paid == ([10] if confirmed else [])
    (waits,) = await bank.tickets(TicketState.OPEN)
    assert waits.id == payload_of(_large)["ticket"]
    await bank.runtime.close()


@pytest.mark.parametrize("vouched", [("user",), ("user", "adk")])
@pytest.mark.parametrize("agents", [{}, {"teller": TELLER}])
async def test_a_no_after_somebody_elses_approval_makes_no_call(
    store_url: str, vouched: tuple[str, ...], agents: dict[str, Agent]
) -> None:
    bank = Bank(store_url, vouched=vouched, agents=agents)
    asked = await bank.ask("pay 10")
    (ticket,) = await bank.tickets()
    await bank.runtime.operations.decide(ticket.id, approve=True, reason="fine")
    events = await bank.send(say(asked, confirmed=False))
    assert bank.paid == []
    said = f"adk:ann said no, so the call is not made here; {bank.runtime.principal} had approved it before"
    assert said in results(events)
    assert not any("approval first" in text for text in texts(events))  # this turn does not wait for it any more
    (kept,) = await bank.tickets()
    assert kept.state is TicketState.APPROVED
    noted = [r async for r in bank.runtime.store.records(Query(status="declined"))]
    assert [(r.kind, r.content().principal, r.content().arguments["ticket"]) for r in noted] == [
        ("ticket", "adk:ann", ticket.id)
    ]
    assert (await verify(bank.runtime.store)).problems == ()
    assert (await bank.runtime.operations.resume(ticket.id)).ok  # as an operator may, who has been told
    assert bank.paid == [10]
    await bank.runtime.close()


async def test_a_no_of_somebody_who_may_not_decide_makes_no_call_and_is_recorded(store_url: str) -> None:
    bank = Bank(store_url, vouched=("user",))
    events = await bank.send(say(await bank.ask("pay 10"), confirmed=False))
    assert bank.paid == []
    assert "still waits for somebody who may decide it (the word of an application is not enough" in results(events)
    (kept,) = await bank.tickets()
    assert kept.state is TicketState.OPEN
    assert [r.status async for r in bank.runtime.store.records(Query(status="declined"))] == ["declined"]
    await bank.runtime.close()


async def test_a_no_denies_where_they_may_and_a_later_yes_elsewhere_is_none(bank: Bank) -> None:
    asked = await bank.ask("pay 10")
    events = await bank.send(say(asked, confirmed=False))
    (denied,) = await bank.tickets()
    assert (denied.state, denied.decided_by, bank.paid) == (TicketState.DENIED, "adk:ann", [])
    assert "adk:ann denied ticket" in results(events)
    assert not (await bank.runtime.operations.resume(denied.id)).ok
    assert bank.paid == []


@pytest.mark.parametrize("confirmed", [True, False])
async def test_a_call_that_was_made_meanwhile_is_not_made_again(bank: Bank, confirmed: bool) -> None:
    asked = await bank.ask("pay 10")
    (ticket,) = await bank.tickets()
    await bank.runtime.operations.decide(ticket.id, approve=True)
    await bank.runtime.operations.resume(ticket.id)
    events = await bank.send(say(asked, confirmed))
    assert bank.paid == [10]
    assert ("'status': 'ok'" if confirmed else "it had been made before, with ticket") in results(events)


@pytest.mark.parametrize("confirmed", [True, False])
async def test_a_question_of_a_tools_own_is_no_ticket_of_ours(confirmed: bool) -> None:
    ran: list[int] = []

    def pay(amount: int, tool_context: ToolContext) -> str:
        """Pay, after a question of its own."""
        ran.append(amount)
        tool_context.request_confirmation(hint="really?")
        return "waits"

    bank = Bank("memory://", contracts=[govern(pay, effect="read")], tools=[pay], decision="allow")
    events = await bank.send(say(await bank.ask("pay 10"), confirmed))
    assert ran == [10]
    assert "it was not Interlock that asked; that a tool asks first is for review_when or a rule" in results(events)
    await bank.runtime.close()


async def test_a_yes_inside_a_sub_agent_decides_its_own_question(store_url: str) -> None:
    """The question stands in the session of the agent that was asked, on a branch of it."""
    boss = Agent(name="boss", tools=("teller", "transfer_to_agent"), semantic=False)
    bank = Bank(store_url, agents={"boss": boss, "teller": TELLER}, boss=True)
    small, large = await bank.ask("pay 10", session="s1"), await bank.ask("pay 1000000", session="s2")
    await bank.send(say(small), session="s1")
    assert bank.paid == [10]
    await bank.send(say(large, confirmed=False), session="s2")
    assert bank.paid == [10]
    await bank.runtime.close()
