"""The commands around turns: ask, turns, metrics enforcement, and the review of answers."""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from interlock import Runtime
from interlock.answers import Answers, TurnResult, run_turn
from interlock.answers.intents import Classified
from interlock.answers.requirements import NOTHING
from interlock.cli.ask import describe_recognised
from interlock.cli.main import main
from interlock.policy import parse_policy
from interlock.principals import default_principal
from interlock.testing import make_scripted
from tests.test_turns import AGENT, OPEN, QUESTION, REVIEWED, SCRIPT, tools

DISTRICT = Path(__file__).parent.parent / "examples" / "district"


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[str, TurnResult]]:
    """A file with a few turns in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(OPEN)
    (tmp_path / "interlock.toml").write_text('store = "sqlite:///t.db"\n')

    async def make() -> dict[str, TurnResult]:
        runtime = Runtime.open(f"sqlite:///{tmp_path}/t.db", policy=parse_policy(OPEN), tools=tools())
        found = {}
        async with runtime:
            for name in ("obedient", "skips once", "claims success", "hallucinates"):
                async with Answers(runtime).turn(QUESTION, agent=AGENT, principal="user:somebody") as turn:
                    found[name] = await run_turn(turn, make_scripted(name, SCRIPT))
            async with Answers(runtime).turn("brief me", agent=AGENT, requires="list_trails") as parent:
                await parent.call("list_trails", {})
                async with Answers(runtime).turn(QUESTION, agent=AGENT, parent=parent.id) as child:
                    await run_turn(child, make_scripted("obedient", SCRIPT))
                found["parent"] = await parent.finish("There are three trails, waldo-lake-3536 among them.")  # type: ignore[assignment]
        return found

    return tmp_path / "t.db", asyncio.run(make())


def test_turns_are_listed_and_shown(ledger: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _, found = ledger
    assert main(["turns", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 6
    assert main(["turns", "list", "--outcome", "ESCALATED"]) == 0
    assert "ESCALATED" in capsys.readouterr().out
    assert main(["turns", "show", found["skips once"].turn]) == 0
    out = capsys.readouterr().out
    for words in (QUESTION, "needs classify_damage", "retry", "missing classify_damage", "41.5", "RETRY_SUCCEEDED"):
        assert words in out
    assert main(["turns", "show", found["parent"].turn]) == 0
    out = capsys.readouterr().out
    assert "delegated to" in out
    assert out.count("classify_damage") >= 1
    assert main(["turns", "show", found["parent"].turn, "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert any("child" in record for record in whole["records"])
    assert main(["turns", "show", "nope"]) == 2
    assert "no turn 'nope'" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "value"), [("--outcome", "NONSENSE"), ("--newest", "-3"), ("--newest", "many")])
def test_a_list_of_what_cannot_be_is_refused(ledger: Any, option: str, value: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["turns", "list", option, value])
    assert ended.value.code == 2


def test_outcomes_are_named_in_any_case_and_calls_are_counted_since_a_time(
    ledger: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["turns", "list", "--outcome", "passed", "--json"]) == 0
    assert {turn["outcome"] for turn in json.loads(capsys.readouterr().out)} == {"PASSED"}
    counts = []
    for since in ("2000-01-01", "2999-01-01"):
        assert main(["metrics", "--since", since, "--json"]) == 0
        counts.append(json.loads(capsys.readouterr().out)["lines"])
    assert (len(counts[0]) > 0, counts[1]) == (True, [])


def test_enforcement_is_measured_and_alarms(ledger: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "enforcement", "--json"]) == 1
    (line,) = json.loads(capsys.readouterr().out)["agents"]
    assert (line["turns"], line["required"]) == (6, 6)
    assert line["first_pass"] == pytest.approx(3 / 6)
    assert line["combined"] == pytest.approx(5 / 6)
    assert line["escalated"] == pytest.approx(1 / 6)
    assert line["retried_intents"] == ["damage"]
    assert set(line["alarms"]) == {"first_pass", "combined", "escalated"}
    assert main(["metrics", "enforcement"]) == 1
    out = capsys.readouterr().out
    assert "> 90 %" in out
    assert "tried again" in out
    assert main(["metrics", "enforcement", "--since", "2999-01-01"]) == 0


def test_tables_are_whole_in_a_pipe(
    ledger: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["metrics", "enforcement"]) == 1
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["agent", "turns", "needed", "tools", "first", "pass", "combined", "escalated", "overhead"] in rows
    assert next(row for row in rows if row[:3] == ["trails", "6", "6"])[3:6] == ["50.0%", "83.3%", "16.7%"]
    assert main(["metrics"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert next(row for row in rows if row[:2] == ["trails", "classify_damage"])[-2] == "ok"


def test_an_answer_is_reviewed_from_the_command_line(
    ledger: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, found = ledger
    ticket, turn = found["claims success"].ticket, found["claims success"].turn
    assert main(["review", "list"]) == 0
    assert "answer" in capsys.readouterr().out
    assert main(["review", "show", ticket]) == 0
    out = capsys.readouterr().out
    assert QUESTION in out
    assert "done successfully" in out
    assert main(["review", "resume", ticket]) == 1
    assert "whether an answer may leave" in capsys.readouterr().err
    approve = ["review", "approve", ticket, "--answer", "Class 3, checked by hand.", "--reason", "looked"]
    assert main(approve) == 1
    assert f"from the account {default_principal()}, in the name of user:somebody" in capsys.readouterr().err
    for module in ("interlock.cli.review", "interlock.operations.approvals"):
        monkeypatch.setattr(f"{module}.default_principal", lambda: "os:boss")
    assert main(approve) == 0
    capsys.readouterr()
    assert main(["turns", "show", turn]) == 0
    out = capsys.readouterr().out
    assert "Class 3, checked by hand." in out
    assert "corrected" in out
    assert main(["review", "deny", ticket]) == 1


def test_the_commands_that_are_suggested_find_the_same_ledger(
    ledger: Any, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Typed as they are printed, from another folder."""
    _, found = ledger
    turn = found["obedient"].turn
    assert main(["turns", "show", turn]) == 0
    assert "--store" not in capsys.readouterr().out  # found here anyway
    for option in (["--store", "sqlite:///t.db"], ["--config", "interlock.toml"]):
        assert main(["turns", "show", turn, *option]) == 0
        printed = capsys.readouterr().out.partition("turn: interlock ")[2].splitlines()[0]
        assert option[0] in printed
        with monkeypatch.context() as elsewhere:
            elsewhere.chdir(tmp_path_factory.mktemp("elsewhere"))
            assert main(shlex.split(printed)) == 0
        assert QUESTION in capsys.readouterr().out
    ticket = found["claims success"].ticket
    assert main(["review", "show", ticket, "--store", "sqlite:///t.db"]) == 0
    assert capsys.readouterr().out.count("t.db") == 2


GOES_ON = """
from interlock.answers import App
from interlock.testing import make_scripted
from tests.test_turns import AGENT, TELL, Intent, tools
import msgspec

TELLER = msgspec.structs.replace(AGENT, name="teller", intents=(Intent(name="tell", requires="notify", keywords=("tell",)),))
APP = App(name="mine", agents=(AGENT, TELLER), tools=tuple(tools()))
OBEDIENT = make_scripted("obedient", TELL)
"""


def test_an_answer_that_waits_names_the_commands_that_go_on_with_it(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Typed as they are printed, from another folder, by somebody else."""
    (tmp_path / "goes_on.py").write_text(GOES_ON)
    (tmp_path / "policy.toml").write_text(REVIEWED)
    (tmp_path / "interlock.toml").write_text(
        f'apps = ["goes_on:APP"]\nmodel = "python:goes_on:OBEDIENT"\nstore = "sqlite:///{tmp_path}/t.db"\n'
    )
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    config = ["--config", "interlock.toml"]
    assert main(["ask", "mine", "tell the crew", "--agent", "teller", *config]) == 0
    said = capsys.readouterr()
    assert "recognised tell (by its keywords)" in said.err
    typed = [shlex.split(line.partition("interlock ")[2]) for line in said.out.splitlines() if "interlock " in line]
    show, approve, ask, resume, turn = typed
    assert [words[:2] for words in typed] == [
        ["review", "show"], ["review", "approve"], ["ask", "mine"], ["review", "resume"], ["turns", "show"],
    ]  # fmt: skip
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert main(show) == 0
    for module in ("interlock.cli.review", "interlock.operations.approvals"):
        monkeypatch.setattr(f"{module}.default_principal", lambda: "os:boss")
    assert main(approve) == 0
    capsys.readouterr()
    assert main(ask) == 0
    assert "The crew was told: true." in capsys.readouterr().out
    assert main(turn) == 0
    tree = " ".join(capsys.readouterr().out.split())
    assert ("intent notify: about to change notify/crew" in tree, "intent intent" in tree) == (True, False)
    assert main(resume) == 1  # it was made already


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Classified(NOTHING), "recognised nothing in particular"),
        (Classified(NOTHING, ("stock",), "both", 0.5), "perhaps it is stock (by keywords and examples)"),
        (Classified(NOTHING, ("stock",), "semantic", 0.9), "recognised stock (by its examples)"),
    ],
)
def test_what_a_question_was_taken_for_is_said_no_surer_than_it_is(found: Classified, words: str) -> None:
    assert describe_recognised(found) == words


@pytest.mark.slow
def test_ask_with_the_embedded_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "district"
    shutil.copytree(DISTRICT, folder, ignore=shutil.ignore_patterns("__pycache__", "*.db*"))
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    assert main(["ask", "district", "How much timber is in plot 47-bravo?"]) == 0
    captured = capsys.readouterr()
    assert "46.0 MBF per acre" in captured.out
    assert "value.mbf_per_acre" in captured.out
    assert "estimate_volume" in captured.err
    assert "interlock turns show" in captured.out
    assert main(["ask", "district", "Should I close the lake trail in winter?", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["status"] == "asked"
    assert "Waldo Lake Trail" in result["answer"]
    assert main(["ask", "distrct", "x"]) == 2
    assert "did you mean 'district'?" in capsys.readouterr().err
    assert main(["ask", "district", "x", "--agent", "nobody"]) == 2
    assert "district-ranger" in capsys.readouterr().err
    assert main(["ask", "district", "x", "--model", "gemini"]) == 2


TOWN = '''
from pathlib import Path
from interlock import tool
from interlock.answers import Agent, App, Intent
from interlock.testing import FirstChoice

PLACES = {"waldo-lake": "Waldo Lake", "cedar-creek": "Cedar Creek"}


@tool(effect="read", known_values={"place_id": PLACES})
async def count_trees(place_id: str) -> dict:
    """Fallen trees at a place."""
    return {"count": 41 if place_id == "waldo-lake" else 36, "place": PLACES[place_id]}


INTENT = Intent(name="trees", requires="count_trees", keywords=("trees",))
AGENT = Agent(name="trees", tools=("count_trees",), intents=(INTENT,), semantic=False)
APP = App(name="town", agents=(AGENT,), tools=(count_trees,))
'''


def test_a_session_is_asked_listed_and_shown(
    in_folder: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = 'apps = ["town:APP"]\nmodel = "python:interlock.testing:FirstChoice"\nstore = "sqlite:///t.db"\n'
    folder = in_folder(town__py=TOWN, interlock__toml=settings, policy__toml=OPEN)
    monkeypatch.syspath_prepend(str(folder))

    def ask(*arguments: str) -> dict[str, Any]:
        assert main(["ask", "town", *arguments, "--json"]) == 0
        return dict(json.loads(capsys.readouterr().out))

    first = ask("How many trees at Waldo Lake?", "--session", "mine")
    second = ask("what about Cedar Creek?", "--session", "mine")
    assert (first["answer"], second["answer"]) == ("count 41.", "count 36.")
    other = ask("How many trees?", "--session", "other")
    assert other["status"] == "asked"
    assert main(["turns", "list", "--session", "mine", "--json"]) == 0
    assert [row["turn"] for row in json.loads(capsys.readouterr().out)] == [second["turn"], first["turn"]]
    assert main(["turns", "show", second["turn"]]) == 0
    assert "session mine" in capsys.readouterr().out
    assert ask("--turn", other["turn"], "Cedar Creek")["answer"] == "count 36."
    assert main(["turns", "show", other["turn"]]) == 0
    assert "replied place_id of count_trees" in capsys.readouterr().out
    assert main(["ask", "town", "--turn", other["turn"], "--session", "mine", "x"]) == 2
    assert main(["ask", "town", "How many trees?"]) == 0
    assert "to answer: interlock ask town --turn" in capsys.readouterr().out
    assert main(["ask", "town", "How many trees at Waldo Lake?", "--stream"]) == 0
    assert capsys.readouterr().out.count("count 41.") == 1
