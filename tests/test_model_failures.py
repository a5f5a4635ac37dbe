"""A model that fails: the turn ends as such, its record is there, and nobody sees a traceback."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Runtime
from interlock.answers import Answers, TurnOutcome, TurnResult, TurnStatus, run_turn
from interlock.cli.main import main
from interlock.models import ModelFailed, Proposal, Reply, Request
from interlock.policy import parse_policy
from tests.test_turns import AGENT, OPEN, QUESTION, opened, own_records, tools


class Failing:
    """A model whose reply is whatever a function makes of the request."""

    name, instructable = "failing", True

    def __init__(self, reply: Callable[[Request], Any]) -> None:
        self._reply = reply
        self.asked = 0

    async def reply(self, request: Request) -> Any:
        self.asked += 1
        return self._reply(request)

    async def close(self) -> None:
        raise RuntimeError("it cannot be closed either")


def raising(error: BaseException) -> Callable[[Request], Any]:
    def reply(_request: Request) -> Any:
        raise error

    return reply


async def ask(runtime: Runtime, model: Failing, question: str = QUESTION) -> TurnResult:
    async with Answers(runtime).turn(question, agent=AGENT) as turn:
        return await run_turn(turn, model)


@pytest.mark.parametrize("question", [QUESTION, "hello there"])
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (raising(ValueError("key 4711 is wrong")), "the model failing raised ValueError"),
        (raising(TimeoutError()), "raised TimeoutError"),
        (raising(SystemExit(3)), "raised SystemExit"),
        (raising(asyncio.CancelledError()), "cancelled itself"),
        (raising(ModelFailed("no connection")), "no connection"),
        (lambda _request: None, "returned NoneType, and not a Reply"),
    ],
)
async def test_whatever_a_model_raises_ends_the_turn(
    reply: Callable[[Request], Any], words: str, question: str, caplog: pytest.LogCaptureFixture
) -> None:
    runtime, model = opened(), Failing(reply)
    with caplog.at_level(logging.ERROR, logger="interlock"):
        result = await ask(runtime, model, question)
    assert (result.outcome, result.status, result.verified) == (TurnOutcome.NO_REPLY, TurnStatus.NO_REPLY, False)
    assert words in result.answer
    assert (model.asked, result.model_calls, result.ticket) == (1, 1, None)
    assert "4711" not in result.answer
    assert ("Traceback" in caplog.text) == ("raised" in words)
    assert [r.status for r in await own_records(runtime, result.turn)] == ["opened", "finished"]
    assert (await Answers(runtime).result(result.turn)).outcome is TurnOutcome.NO_REPLY
    await runtime.close()


async def test_where_the_tools_have_succeeded_their_results_leave() -> None:
    def reply(request: Request) -> Reply:
        if any(message.role == "tool" for message in request.messages):
            raise ValueError
        return Reply(proposals=(Proposal("classify_damage", {"trail_id": "Waldo Lake"}),))

    runtime = opened()
    result = await ask(runtime, Failing(reply))
    assert (result.outcome, result.status) == (TurnOutcome.PASSED, TurnStatus.RENDERED)
    assert "41.5" in result.answer
    assert "raised ValueError" in result.reason
    await runtime.close()


APP = """
from interlock.answers import App
from tests.test_model_failures import Failing, raising
from tests.test_turns import AGENT, tools

APP = App(name="mine", agents=(AGENT,), tools=tuple(tools()))
BROKEN = Failing(raising(ValueError("key 4711 is wrong")))
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "failing_app.py").write_text(APP)
    (tmp_path / "policy.toml").write_text(OPEN)
    (tmp_path / "interlock.toml").write_text(
        'apps = ["failing_app:APP"]\nmodel = "python:failing_app:BROKEN"\nstore = "sqlite:///t.db"\n'
    )
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "failing_app", raising=False)
    return tmp_path


def test_a_failed_model_is_a_sentence_a_listed_turn_and_a_figure(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", "mine", QUESTION, "--quiet"]) == 1
    said = capsys.readouterr()
    assert "There is no answer to this: the model failing raised ValueError" in said.out
    assert "Traceback" not in said.out
    assert main(["turns", "list", "--outcome", "no_reply", "--json"]) == 0
    (turn,) = json.loads(capsys.readouterr().out)
    assert (turn["status"], turn["outcome"]) == ("no_reply", "NO_REPLY")
    assert main(["metrics", "enforcement", "--json"]) == 1
    (line,) = json.loads(capsys.readouterr().out)["agents"]
    assert (line["turns"], line["outcomes"], line["combined"]) == (1, {"NO_REPLY": 1}, 0.0)


def test_going_on_with_a_turn_that_is_not_there_is_a_mistake_of_the_caller(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", "mine", "--turn", "nosuch"]) == 2
    assert "there is no turn 'nosuch'" in capsys.readouterr().err


def test_a_turn_that_was_cancelled_or_killed_is_listed(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def leave() -> list[str]:
        asked = asyncio.Event()

        class Waits(Failing):
            async def reply(self, request: Request) -> Any:
                asked.set()
                await asyncio.Event().wait()

        runtime = Runtime.open(f"sqlite:///{workspace}/t.db", policy=parse_policy(OPEN), tools=tools())
        async with runtime:
            cancelled = Answers(runtime).turn(QUESTION, agent=AGENT)

            async def work() -> TurnResult:
                async with cancelled:
                    return await run_turn(cancelled, Waits(raising(ValueError())))

            task = asyncio.create_task(work())
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            killed = Answers(runtime).turn(QUESTION, agent=AGENT)
            await killed.__aenter__()
            async with Answers(runtime).turn(QUESTION, agent=AGENT) as asks:
                await asks.ask("which one?")
            reopened = await Answers(runtime).reopen(asks.id, agent=AGENT)
            await reopened.__aenter__()
        return [cancelled.id, killed.id, asks.id]

    left = asyncio.run(leave())
    assert main(["turns", "list", "--json"]) == 0
    rows = {row["turn"]: (row["status"], row["outcome"]) for row in json.loads(capsys.readouterr().out)}
    assert rows == dict(zip(left, [("abandoned", None), ("open", None), ("open", None)], strict=True))
    assert main(["turns", "list"]) == 0
    out = capsys.readouterr().out
    assert "nobody got an answer, 0 model calls: CancelledError" in out
    assert "it has not ended" in out
    assert main(["turns", "list", "--outcome", "PASSED", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
