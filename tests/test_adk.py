"""ADK: the plugin governs every call and every answer, whatever the model does, in the agent loop itself."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

pytest.importorskip("google.adk")
warnings.filterwarnings("ignore", module="google")

from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.apps import App  # noqa: E402
from google.adk.runners import InMemoryRunner  # noqa: E402
from google.adk.tools.agent_tool import AgentTool  # noqa: E402
from google.genai import types  # noqa: E402

from interlock import Runtime  # noqa: E402
from interlock.adapters.adk import (  # noqa: E402
    AdkTool,
    InterlockLlm,
    InterlockPlugin,
    InterlockRunner,
    LocalLlm,
    bypasses,
    delegations,
    govern,
)
from interlock.answers import Agent, Intent, TurnOutcome, TurnStatus  # noqa: E402
from interlock.answers.constrained import constrain  # noqa: E402
from interlock.answers.intents import Classifier  # noqa: E402
from interlock.errors import ConfigError  # noqa: E402
from interlock.models import Model, Proposal, Reply, Request, Usage  # noqa: E402
from interlock.policy import parse_policy  # noqa: E402
from interlock.ports import Query  # noqa: E402
from interlock.testing import BEHAVIOURS, FirstChoice, Script, make_scripted  # noqa: E402
from tests.test_turns import AGENT, ANSWER, EXPECTED, NAMES, OPEN, QUESTION, SCRIPT, tools  # noqa: E402

CONFIRMED = OPEN.replace('vouched = ["user"]', 'vouched = ["adk"]\nself_approval = true')
"""Whoever asked may confirm in the session, as ADK's users expect it: the policy says so."""

pytestmark = pytest.mark.filterwarnings("ignore")


def application(
    model: Any, *, runtime: Runtime | None = None, agent: Agent = AGENT, **more: Any
) -> tuple[App, Runtime]:
    contracts = tools(more.pop("ran", None))
    runtime = runtime or Runtime.open("memory://", policy=parse_policy(more.pop("policy", OPEN)), tools=contracts)
    root = LlmAgent(
        name=agent.name, model=InterlockLlm(model), instruction="Answer.", tools=[AdkTool(t) for t in contracts], **more
    )
    return App(name="trails", root_agent=root, plugins=[InterlockPlugin(runtime, {agent.name: agent})]), runtime


def use(app: App, llm: type[InterlockLlm], model: Model) -> None:
    """Put another model under the root agent."""
    assert isinstance(app.root_agent, LlmAgent)
    app.root_agent.model = llm(model)


def plugin_of(app: App) -> InterlockPlugin:
    (plugin,) = app.plugins
    assert isinstance(plugin, InterlockPlugin)
    return plugin


@pytest.mark.parametrize("name", BEHAVIOURS)
async def test_whatever_the_model_does(name: str) -> None:
    model = make_scripted(name, SCRIPT)
    agent = AGENT if name != "hangs" else msgspec.structs.replace(AGENT, deadline_s=0.3)
    app, runtime = application(model, agent=agent)
    result = await InterlockRunner(app).ask(QUESTION)
    assert (result.outcome.value, result.status.value) == EXPECTED[name]
    assert model.calls <= 5
    if result.status is TurnStatus.VERIFIED:
        assert result.answer == ANSWER
    else:
        assert "class 9" not in result.answer
        assert "fair condition" not in result.answer
    assert not plugin_of(app)._open
    await runtime.close()


@pytest.mark.parametrize("name", BEHAVIOURS)
async def test_whatever_the_model_does_later_in_a_session(name: str) -> None:
    agent = AGENT if name != "hangs" else msgspec.structs.replace(AGENT, deadline_s=0.3)
    model = make_scripted(name, SCRIPT)
    app, runtime = application(make_scripted("obedient", SCRIPT), agent=agent)
    runner = InterlockRunner(app)
    before = await runner.ask(QUESTION, session_id="s")
    use(app, InterlockLlm, model)
    result = await runner.ask(QUESTION, session_id="s")
    assert before.status is TurnStatus.VERIFIED
    assert (result.outcome.value, result.status.value) == EXPECTED[name]
    assert result.status is not TurnStatus.VERIFIED or result.answer == ANSWER
    await runtime.close()


async def test_a_streaming_client_sees_no_rejected_draft() -> None:
    from google.adk.agents.run_config import RunConfig, StreamingMode
    from google.adk.models.llm_response import LlmResponse

    class Streaming(InterlockLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            async for response in super().generate_content_async(llm_request, stream):
                for part in (response.content.parts if response.content else None) or []:
                    if part.text:
                        for word in part.text.split():
                            yield LlmResponse(
                                content=types.Content(role="model", parts=[types.Part(text=word + " ")]), partial=True
                            )
                yield response

    app, runtime = application(make_scripted("skips until forced", SCRIPT))
    use(app, Streaming, make_scripted("skips until forced", SCRIPT))
    runner = InMemoryRunner(app=app)
    session = await runner.session_service.create_session(app_name=app.name, user_id="u")
    seen = []
    async for event in runner.run_async(
        user_id="u",
        session_id=session.id,
        new_message=types.Content(role="user", parts=[types.Part(text=QUESTION)]),
        run_config=RunConfig(streaming_mode=StreamingMode.SSE),
    ):
        seen += [part.text for part in (event.content.parts if event.content else None) or [] if part.text]
    assert "".join(seen).strip() == ANSWER
    await runtime.close()


async def test_static_any_loops_and_the_ladder_does_not() -> None:
    """The seed's infinite loop: a model that honours mode=ANY literally never answers while it is set."""
    calls = 0

    class Literal(InterlockLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            nonlocal calls
            calls += 1
            config = llm_request.config.tool_config
            mode = config.function_calling_config.mode if config and config.function_calling_config else None
            results = any(part.function_response for content in llm_request.contents for part in content.parts or [])
            from google.adk.models.llm_response import LlmResponse

            if mode == types.FunctionCallingConfigMode.ANY or not results:
                call = types.FunctionCall(name="classify_damage", args={"trail_id": "Waldo Lake"})
                part = types.Part(function_call=call)
            else:
                part = types.Part(text=ANSWER)
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    from google.adk.agents.invocation_context import LlmCallsLimitExceededError
    from google.adk.agents.run_config import RunConfig

    def classify_damage(trail_id: str) -> dict[str, Any]:
        """Damage."""
        return {"damage_class": 3}

    any_mode = types.GenerateContentConfig(
        tool_config=types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode="ANY"))
    )
    literal: type[InterlockLlm] = Literal
    bare = LlmAgent(
        name="bare", model=literal(make_scripted("obedient", SCRIPT)), tools=[classify_damage],
        generate_content_config=any_mode,
    )  # fmt: skip
    runner = InMemoryRunner(agent=bare, app_name="bare")
    session = await runner.session_service.create_session(app_name="bare", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    with pytest.raises(LlmCallsLimitExceededError):
        async for _ in runner.run_async(
            user_id="u", session_id=session.id, new_message=message, run_config=RunConfig(max_llm_calls=20)
        ):
            pass
    assert calls >= 20
    calls = 0
    app, runtime = application(make_scripted("obedient", SCRIPT))
    use(app, Literal, make_scripted("obedient", SCRIPT))
    result = await InterlockRunner(app).ask(QUESTION)
    assert result.verified
    assert calls <= 5
    await runtime.close()


@pytest.mark.slow
async def test_two_hundred_invocations_at_once() -> None:
    names = ["obedient", "never calls", "hallucinates", "skips until forced"]
    contracts = tools()
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=contracts)

    async def one(n: int) -> None:
        name = names[n % 4]
        agent = msgspec.structs.replace(AGENT, deadline_s=120.0)
        app, _ = application(make_scripted(name, SCRIPT), runtime=runtime, agent=agent)
        result = await InterlockRunner(app).ask(QUESTION)
        assert (result.outcome.value, result.status.value) == EXPECTED[name]
        assert len(result.records) <= 1

    await asyncio.gather(*map(one, range(200)))
    await runtime.close()


async def test_a_parked_call_is_confirmed_in_the_session_and_made_once() -> None:
    ran: list[str] = []
    policy = CONFIRMED + '[[rule]]\nid = "ask"\ntools = ["notify"]\ndecision = "review"\nreason = "mail"\n'
    tell = Intent(name="tell", requires="notify", keywords=("tell",))
    agent = Agent(name="trails", tools=NAMES, intents=(tell,), semantic=False)
    script = Script("notify", {"to": "crew"}, "The crew was told.")
    app, runtime = application(make_scripted("obedient", script), agent=agent, policy=policy, ran=ran)
    runner = InMemoryRunner(app=app)
    session = await runner.session_service.create_session(app_name=app.name, user_id="lead")

    async def send(part: types.Part) -> list[Any]:
        message = types.Content(role="user", parts=[part])
        return [e async for e in runner.run_async(user_id="lead", session_id=session.id, new_message=message)]

    events = await send(types.Part(text="please tell the crew"))
    asked = [
        part.function_call
        for event in events
        for part in (event.content.parts if event.content else None) or []
        if part.function_call and part.function_call.name == "adk_request_confirmation"
    ]
    assert len(asked) == 1
    assert ran == []
    assert any(
        "approval" in (part.text or "") for e in events for part in (e.content.parts if e.content else None) or []
    )
    yes = types.FunctionResponse(id=asked[0].id, name="adk_request_confirmation", response={"confirmed": True})
    events = await send(types.Part(function_response=yes))
    texts = [part.text for e in events for part in (e.content.parts if e.content else None) or [] if part.text]
    assert ran == ["mail crew"]
    assert any("The crew was told." in text for text in texts), [(e.author, e.content) for e in events]
    await send(types.Part(function_response=yes))
    assert ran == ["mail crew"]
    await runtime.close()


class Costly:
    """Calls once, answers, and says what each reply cost."""

    name, instructable = "costly", True

    def __init__(self) -> None:
        self._replies = [
            Reply(proposals=(Proposal("classify_damage", {"trail_id": "Waldo Lake"}),), usage=Usage(1000, 100)),
            Reply(ANSWER, usage=Usage(7, 3)),
        ]

    async def reply(self, request: Request) -> Reply:
        return self._replies.pop(0)

    async def close(self) -> None: ...


async def test_what_every_reply_cost_is_counted() -> None:
    app, runtime = application(Costly())
    result = await InterlockRunner(app).ask(QUESTION)
    assert (result.outcome, result.usage) == (TurnOutcome.PASSED, Usage(1007, 103))
    await runtime.close()


async def test_tools_of_adk_and_delegation_take_the_path() -> None:
    def area(acres: float) -> dict[str, float]:
        """Hectares of so many acres."""
        return {"hectares": round(acres * 0.404686, 1)}

    specialist_agent = Agent(
        name="surveyor", tools=("area",), semantic=False,
        intents=(Intent(name="area", requires="area", keywords=("hectares",)),),
    )  # fmt: skip
    answer = "That is 40.5 hectares."
    sub = LlmAgent(
        name="surveyor", description="Knows areas.", mode="single_turn",
        model=InterlockLlm(make_scripted("obedient", Script("area", {"acres": 100.0}, answer))), tools=[area],
    )  # fmt: skip
    boss = LlmAgent(
        name="boss", sub_agents=[sub],
        model=InterlockLlm(make_scripted("obedient", Script("surveyor", {"request": "100 acres in hectares?"}, f"They say: {answer}"))),
    )  # fmt: skip
    boss_agent = Agent(
        name="boss", tools=("surveyor", "transfer_to_agent"), semantic=False,
        intents=(Intent(name="area", requires="surveyor", keywords=("hectares",)),),
    )  # fmt: skip
    contracts = [govern(area, effect="read"), *delegations(boss)]
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=contracts)
    app = App(
        name="area", root_agent=boss,
        plugins=[InterlockPlugin(runtime, {"boss": boss_agent, "surveyor": specialist_agent})],
    )  # fmt: skip
    result = await InterlockRunner(app).ask("How many hectares are 100 acres?")
    assert (result.outcome, result.answer) == (TurnOutcome.PASSED, f"They say: {answer}")
    records = [r async for r in runtime.store.records(Query())]
    called = [(r.tool, r.status) for r in records if r.kind == "call"]
    assert ("area", "ok") in called
    assert ("surveyor", "ok") in called
    children = [r.content().arguments for r in records if r.status == "delegated"]
    assert [child["agent"] for child in children] == ["surveyor"]
    # A model that can only choose passes on what the sub-agent said, which ADK hands over as a bare text.
    boss.model = InterlockLlm(constrain(FirstChoice()))
    result = await InterlockRunner(app).ask("How many hectares are 100 acres?")
    assert (result.outcome, result.answer) == (TurnOutcome.PASSED, answer)
    await runtime.close()


async def test_a_tool_that_nobody_registered_is_refused() -> None:
    ran = []

    def rogue(x: int = 0) -> int:
        """Not under contract."""
        ran.append(x)
        return 7

    script = Script("rogue", {"x": 1}, "It is 7.")
    contracts = tools()
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=contracts)
    root = LlmAgent(name="trails", model=InterlockLlm(make_scripted("obedient", script)), tools=[rogue])
    app = App(name="t", root_agent=root, plugins=[InterlockPlugin(runtime, {"trails": AGENT})])
    result = await InterlockRunner(app).ask(QUESTION)
    assert ran == []
    assert result.outcome is TurnOutcome.ESCALATED
    await runtime.close()


async def test_an_agent_without_requirements_is_governed_all_the_same() -> None:
    app, runtime = application(make_scripted("obedient", SCRIPT))
    plugin_of(app)._agents.clear()
    with pytest.raises(ConfigError, match="no Agent of ours"):
        await InterlockRunner(app).ask(QUESTION)
    called = [r async for r in runtime.store.records(Query()) if r.kind == "call"]
    assert [record.tool for record in called] == ["classify_damage"]
    await runtime.close()


async def test_ways_around_are_refused_at_the_start() -> None:
    from google.adk.code_executors import BuiltInCodeExecutor
    from google.adk.tools.google_search_tool import google_search

    inner = LlmAgent(name="inner", model="x")
    root = LlmAgent(
        name="trails", model=InterlockLlm(make_scripted("obedient", SCRIPT)), code_executor=BuiltInCodeExecutor(),
        tools=[google_search, AgentTool(inner, include_plugins=False)],
    )  # fmt: skip
    names = {name for name, _ in bypasses(root)}
    assert names == {"trails.code_executor", "google_search", "inner"}
    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=tools())
    app = App(name="t", root_agent=root, plugins=[InterlockPlugin(runtime, {"trails": AGENT})])
    with pytest.raises(Exception, match="allow="):
        await InterlockRunner(app).ask(QUESTION)
    allowed = InterlockPlugin(runtime, {"trails": AGENT}, allow=names)
    from interlock.adapters.adk import refuse_bypasses

    refuse_bypasses(root, allowed._allow)
    with pytest.raises(ConfigError, match="first of its plugins"):
        InterlockRunner(App(name="t", root_agent=inner))
    await runtime.close()


async def test_the_next_question_may_rest_on_what_was_found_before() -> None:
    listing = Intent(name="listing", requires="list_trails", keywords=("which trails",))
    agent = msgspec.structs.replace(AGENT, intents=(*AGENT.intents, listing))
    app, runtime = application(make_scripted("obedient", SCRIPT), agent=agent)
    runner = InterlockRunner(app)
    first = await runner.ask(QUESTION, session_id="s")
    assert first.verified
    reminds = Script("list_trails", {}, "There is waldo-lake-3536; I said class 3, 41.5 trees.")

    class Reminds(InterlockLlm):
        """Calls, whatever the session holds of earlier calls."""

        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            from google.adk.models.llm_response import LlmResponse

            last = (llm_request.contents[-1].parts or [])[-1]
            called = last.function_response is not None
            call = types.Part(function_call=types.FunctionCall(name=reminds.tool, args={}))
            part = types.Part(text=reminds.answer) if called else call
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    use(app, Reminds, make_scripted("obedient", SCRIPT))
    second = await runner.ask("Which trails are there?", session_id="s")
    assert second.status is TurnStatus.VERIFIED
    assert f"record {first.records[0]}" in {claim.source for claim in second.claims}
    await runtime.close()


def agents_folder(tmp_path: Path) -> Path:
    """A folder as ADK's own commands load it, with the plugin in its App."""
    folder = tmp_path / "agents" / "trails"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from . import agent\n")
    (folder / "agent.py").write_text(
        "from interlock.testing import make_scripted\n"
        "from tests.test_adk import application, SCRIPT\n"
        "app, runtime = application(make_scripted('skips until forced', SCRIPT))\n"
        "root_agent = app.root_agent\n"
    )
    return folder


ADK = str(Path(sys.executable).parent / "adk")
ROOT = str(Path(__file__).parent.parent)
AROUND = {"PYTHONPATH": ROOT, "PYTHONWARNINGS": "ignore"}


@pytest.mark.slow
def test_adk_run_enforces_it_too(tmp_path: Path) -> None:
    done = subprocess.run(
        [ADK, "run", "--in_memory", str(agents_folder(tmp_path)), QUESTION], capture_output=True, text=True, timeout=600,
        check=False, cwd=ROOT, env={**os.environ, **AROUND},
    )  # fmt: skip
    assert ANSWER in done.stdout, done.stdout + done.stderr
    assert "fair condition" not in done.stdout


@pytest.mark.slow
def test_adk_web_enforces_it_too(tmp_path: Path) -> None:
    folder = agents_folder(tmp_path).parent
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        ADK,
        "api_server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--session_service_uri",
        "memory://",
        str(folder),
    ]
    server = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **AROUND}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as client:
            for _ in range(200):
                try:
                    if client.get("/list-apps").status_code == 200:
                        break
                except httpx.TransportError:
                    time.sleep(0.2)
            session = client.post("/apps/trails/users/u/sessions", json={}).json()["id"]
            message = {"role": "user", "parts": [{"text": QUESTION}]}
            asked = {"app_name": "trails", "user_id": "u", "session_id": session, "new_message": message}
            events = client.post("/run", json=asked).json()
    finally:
        server.terminate()
        out = server.communicate(timeout=600)[0]
    said = [part["text"] for event in events for part in event.get("content", {}).get("parts", []) if part.get("text")]
    assert said == [ANSWER], out.decode()[-2000:]


async def test_an_agent_learns_its_intents_once_for_all_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def classifier(agent: Agent) -> Classifier:
        made.append(agent.name)
        return Classifier(agent.intents)

    monkeypatch.setattr(Agent, "classifier", classifier)
    app, runtime = application(make_scripted("obedient", SCRIPT), agent=AGENT)
    runner = InterlockRunner(app)
    for _ in range(2):
        await runner.ask(QUESTION)
    assert made == [AGENT.name]
    await runtime.close()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda llm: LocalLlm(timeout=5), "InterlockLlm takes no 'timeout'; did you mean 'timeout_s'?"),
        (lambda llm: llm("local", temperature=0), "it takes fallback, timeout_s, tools"),
        (lambda llm: llm(FirstChoice), "one such as MyModel()"),
        (lambda llm: llm(None), "model is the name of a model"),
        (lambda llm: llm(constrain(FirstChoice()), timeout_s=5), "a model that is open already takes no 'timeout_s'"),
    ],
)
def test_a_model_with_wrong_options_is_refused_in_a_sentence(make: Callable[[Any], object], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        make(InterlockLlm)
    assert sentence in str(refused.value)
