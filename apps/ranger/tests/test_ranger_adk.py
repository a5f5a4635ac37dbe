"""RANGER on ADK: `adk run`, `adk eval` and the web server's API enforce what a program enforces."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from google.adk.agents import LlmAgent

from interlock.adapters.adk import InterlockLlm, InterlockRunner, LocalLlm
from interlock.answers import App, TurnOutcome, TurnResult, TurnStatus
from interlock_ranger.adk import TEMPERATURE, adk_model, build_adk_app
from interlock_ranger.agents import SPECIALISTS
from ranger_parts import PATIENCE_S, Case
from scripted import PLANS, Competent

HERE = Path(__file__).parent
AGENTS = HERE.parent / "agents"
NAMES = ("trail_assessor", "burn_analyst", "cruising_assistant", "nepa_advisor", "coordinator")
CASES: dict[str, list[Case]] = json.loads(PLANS.read_text())
POLL_S = 0.25
Done = subprocess.CompletedProcess[str]

# Every process loads ADK anew, which takes seconds of processor time: only a hang should end a test.
pytestmark = pytest.mark.timeout(2 * PATIENCE_S)
slow = pytest.mark.slow


def environment(tmp_path: Path) -> dict[str, str]:
    """The settings of a subprocess: the competent model, a ledger of its own."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "INTERLOCK_MODEL": "python:scripted:Competent",
        "INTERLOCK_STORE": f"sqlite:///{tmp_path / 'ledger.db'}",
        "PYTHONWARNINGS": "ignore",
    }


def adk(*arguments: str, tmp_path: Path) -> Done:
    command = [str(Path(sys.executable).parent / "adk"), *arguments]
    return subprocess.run(
        command,
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Done]:
    """`adk run` and `adk eval` of every agent, a few processes at a time."""
    folder = tmp_path_factory.mktemp("adk")
    shutil.copytree(AGENTS, folder / "agents", ignore=shutil.ignore_patterns("__pycache__", ".adk"))

    def run(agent: str) -> Done:
        question = case_of(agent)["q"]
        return adk(
            "run",
            str(AGENTS / agent),
            question,
            "--in_memory",
            "--jsonl",
            tmp_path=_make_folder(folder, f"run-{agent}"),
        )

    def evaluate(agent: str) -> Done:
        # The coordinator's specialists work side by side: their order is open.
        own = AGENTS / agent / "eval_config.json"
        config = str(own if own.exists() else AGENTS / "eval_config.json")
        sets = folder / "agents" / agent / "trajectories.evalset.json"
        arguments = (str(sets.parent), str(sets), "--config_file_path", config, "--log_level", "ERROR")
        return adk("eval", *arguments, tmp_path=_make_folder(folder, f"eval-{agent}"))

    with ThreadPoolExecutor(3) as pool:
        runs, evaluations = pool.map(run, NAMES), pool.map(evaluate, NAMES)
        found = {("run", agent): done for agent, done in zip(NAMES, runs, strict=True)}
        return found | {("eval", agent): done for agent, done in zip(NAMES, evaluations, strict=True)}


def _make_folder(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def case_of(agent: str) -> Case:
    return CASES[agent][-1 if agent == "coordinator" else 1]


@slow
@pytest.mark.parametrize("agent", NAMES)
def test_adk_run(agent: str, together: dict[tuple[str, str], Done]) -> None:
    case, done = case_of(agent), together["run", agent]
    assert done.returncode == 0, done.stderr[-2000:]
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    parts = [part for event in events for part in (event.get("content") or {}).get("parts", [])]
    called = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
    assert set(called) >= {call["name"] for call in case["calls"]}
    text = [part["text"] for event in events if event["author"] == agent
            for part in (event.get("content") or {}).get("parts", []) if "text" in part][-1]  # fmt: skip
    assert "SYNTHETIC" in text or "DRAFT" in text or "FANEC" in text


@slow
@pytest.mark.parametrize("agent", NAMES)
def test_adk_eval_of_the_trajectories(agent: str, together: dict[tuple[str, str], Done]) -> None:
    done = together["eval", agent]
    assert f"Tests passed: {len(CASES[agent])}" in done.stdout, done.stdout[-1500:] + done.stderr[-1500:]
    assert "Tests failed: 0" in done.stdout
    assert done.returncode == 0


@slow
def test_a_wrong_trajectory_fails_the_evaluation(tmp_path: Path) -> None:
    shutil.copytree(AGENTS, tmp_path / "agents", ignore=shutil.ignore_patterns("__pycache__", ".adk"))
    folder = tmp_path / "agents" / "burn_analyst"
    sets = folder / "trajectories.evalset.json"
    sets.write_text(sets.read_text().replace('"assess_severity"', '"classify_mtbs"'))
    arguments = ("--config_file_path", str(AGENTS / "eval_config.json"), "--log_level", "ERROR")
    done = adk("eval", str(folder), str(sets), *arguments, tmp_path=tmp_path)
    assert "Tests failed: 1" in done.stdout
    assert done.returncode == 1


def with_delegated_calls(calls: list[Case]) -> list[Case]:
    """Calls, each followed by those that it delegates to."""
    known = {case["q"]: case["calls"] for own in CASES.values() for case in own}
    return [one for call in calls for one in (call, *known.get(call["args"].get("request", ""), []))]


def test_evaluation_sets_and_plans_are_the_same() -> None:
    for agent in NAMES:
        cases = json.loads((AGENTS / agent / "trajectories.evalset.json").read_text())["eval_cases"]
        made = [
            (turn["user_content"]["parts"][0]["text"], turn["intermediate_data"]["tool_uses"])
            for case in cases
            for turn in case["conversation"]
        ]
        assert made == [(case["q"], with_delegated_calls(case["calls"])) for case in CASES[agent]]


def open_runner(agent: str, app: App, model: InterlockLlm) -> InterlockRunner:
    return InterlockRunner(build_adk_app(agent, app=app, model=model, store="memory://"))


@pytest.mark.parametrize("agent", NAMES)
async def test_the_same_turn_as_in_a_plain_loop(agent: str, app: App) -> None:
    runner = open_runner(agent, app, InterlockLlm(Competent()))
    for case in CASES[agent]:
        result = await runner.ask(case["q"])
        assert result.outcome is TurnOutcome.PASSED, result
        assert set(result.tools) == {call["name"] for call in case["calls"]}


@slow
async def test_a_hundred_questions_over_five_agents_at_once(app: App) -> None:
    runners = {agent: open_runner(agent, app, InterlockLlm(Competent())) for agent in NAMES}
    work = [(agent, CASES[agent][n % len(CASES[agent])]) for n in range(20) for agent in NAMES]

    async def ask(number: int, agent: str, case: Case) -> tuple[Case, TurnResult]:
        return case, await runners[agent].ask(case["q"], user_id=f"user-{number}")

    for case, result in await asyncio.gather(*(ask(n, *item) for n, item in enumerate(work))):
        assert result.outcome is TurnOutcome.PASSED
        assert set(result.tools) == {call["name"] for call in case["calls"]}


@slow
async def test_the_embedded_model_passes_by_itself_and_asks_back_where_a_question_is_unclear(app: App) -> None:
    """It is wrapped: to the turn it is a model like any other, in ADK as in a plain loop."""
    runner = open_runner("burn_analyst", app, LocalLlm())
    clear = await runner.ask("How badly did Cedar Creek burn?")
    assert (clear.status, clear.outcome) == (TurnStatus.VERIFIED, TurnOutcome.PASSED)
    assert clear.tools == ("assess_severity",)
    assert clear.answer.startswith("SYNTHETIC DATA. Cedar Creek: 127,311 acres")
    unclear = await runner.ask("How bad was the burn severity?")
    assert (unclear.status, unclear.outcome) == (TurnStatus.ASKED, TurnOutcome.ASKED)
    assert unclear.answer == "Which fire is meant: Cedar Creek (cedar-creek-2022) or Bootleg (bootleg-2021)?"


def test_the_agents_are_thin_and_as_the_decision_says(app: App) -> None:
    made = build_adk_app("coordinator", app=app, model=InterlockLlm(Competent()), store="memory://")
    root = made.root_agent
    assert isinstance(root, LlmAgent)
    assert root.generate_content_config is not None
    assert root.generate_content_config.temperature == TEMPERATURE == 0.1
    calling = root.generate_content_config.model_dump(mode="json")["tool_config"]["function_calling_config"]
    assert calling["mode"] == "AUTO"
    modes = {agent.name: agent.mode for agent in root.sub_agents if isinstance(agent, LlmAgent)}
    assert modes == dict.fromkeys(SPECIALISTS, "single_turn")
    for name in NAMES:
        lines = (AGENTS / name / "agent.py").read_text().splitlines()
        assert len(lines) <= 8


def test_the_model_is_one_setting() -> None:
    assert adk_model("google:gemini-2.5-flash") == "gemini-2.5-flash"  # ADK's own client, with GOOGLE_API_KEY
    assert isinstance(adk_model("local"), LocalLlm)
    given = InterlockLlm(Competent())
    assert adk_model(given) is given
    made = adk_model("python:scripted:Competent")
    assert isinstance(made, InterlockLlm)
    assert made.model == "python:scripted:Competent"


@slow
def test_adk_web_shows_the_five_agents_and_enforces(tmp_path: Path) -> None:
    """The server that `adk web` is: a real process on loopback."""
    with serve(tmp_path) as client:
        names: list[str] = client.get("/list-apps").json()
        assert set(NAMES) <= set(names)
        session = client.post("/apps/burn_analyst/users/kim/sessions", json={}).json()["id"]
        body = {"app_name": "burn_analyst", "user_id": "kim", "session_id": session,
                "new_message": {"role": "user", "parts": [{"text": CASES["burn_analyst"][0]["q"]}]}}  # fmt: skip
        events = client.post("/run", json=body).json()
        texts = [p["text"] for e in events for p in (e.get("content") or {}).get("parts", []) if "text" in p]
        assert "SYNTHETIC DATA. Cedar Creek" in texts[-1]


@contextmanager
def serve(folder: Path) -> Iterator[httpx.Client]:
    """`adk web` over the agents, from when it answers until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shutil.copytree(AGENTS, folder / "agents", ignore=shutil.ignore_patterns("__pycache__", ".adk"))
    command = [str(Path(sys.executable).parent / "adk"), "web", str(folder / "agents"), "--port", str(port)]
    log = folder / "server.log"
    with log.open("w") as target:
        server = subprocess.Popen(command, env=environment(folder), cwd=folder, stdout=target, stderr=target)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
            _wait_until_up(server, client, log)
            yield client
    finally:
        server.terminate()
        try:
            server.wait(timeout=600)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_until_up(server: subprocess.Popen[bytes], client: httpx.Client, log: Path) -> None:
    """Until the server answers; one that has ended will not."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text()[-2000:]
        try:
            client.get("/list-apps")
            return
        except httpx.TransportError:
            time.sleep(POLL_S)
    raise AssertionError(f"the server did not come up: {log.read_text()[-2000:]}")
