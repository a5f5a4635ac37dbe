"""`interlock ranger` and `interlock ask ranger`, as a user types them."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

import interlock_ranger.app as ranger
from interlock.cli.main import main
from interlock.errors import ConfigError
from interlock_ranger.briefing import compose
from interlock_ranger.briefing.compose import Briefing
from ranger_parts import Composed, FireFolder, policy_text


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")


def test_the_briefing_in_one_go(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ranger", "briefing", "cedar-creek-2022", "--season", "winter", "--html", "b.html"]) == 0
    out = capsys.readouterr().out
    for word in ("SYNTHETIC DATA", "DRAFT", "Burn", "Trails", "Timber", "Compliance", "Waldo Lake Trail", "verified"):
        assert word in out
    assert "<svg" in Path("b.html").read_text()
    assert main(["turns", "list"]) == 0
    assert "coordinator" in capsys.readouterr().out
    assert main(["audit", "anchor"]) == 0
    assert main(["audit", "verify"]) == 0


@pytest.mark.parametrize("page", ["no/such/folder/b.html", "."])
def test_a_page_that_cannot_be_written_is_named_before_anybody_is_asked(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ranger", "briefing", "cedar-creek-2022", "--html", page, "--store", "sqlite:///own.db"]) == 2
    assert "cannot be written: name a file in a folder that there is" in capsys.readouterr().err
    assert not Path("own.db").exists()


@pytest.mark.parametrize(
    "command", [["briefing"], ["briefing", "--html", "b.html"], ["briefing", "--json"], ["export"]]
)
def test_without_one_of_the_specialists_there_is_no_briefing_but_a_sentence(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = ranger.open_ranger()
    text = policy_text(opened.app).replace('"estimate_volume", ', "")
    Path("p.toml").write_text(text, encoding="utf-8")
    strict = opened._replace(app=msgspec.structs.replace(opened.app, policy=Path("p.toml")))
    monkeypatch.setattr(ranger, "open_ranger", lambda **_: strict)
    more = ["--to", "out"] if command == ["export"] else []
    assert main(["ranger", command[0], "cedar-creek-2022", *command[1:], *more, "--store", "sqlite:///own.db"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "there is no briefing on Cedar Creek" in said.err
    assert "cruising_assistant" in said.err
    assert not Path("b.html").exists()
    assert not Path("out").exists()


def test_the_command_that_is_printed_works_where_the_user_stands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["ranger", "briefing", "bootleg-2021", "--store", "sqlite:///own.db"]) == 0
    shown = capsys.readouterr().out.rpartition("turn: interlock ")[2]
    assert main(shlex.split(shown)) == 0
    assert "coordinator" in capsys.readouterr().out


@pytest.mark.slow
def test_events_for_scripts_and_files_for_other_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ranger", "briefing", "bootleg", "--json"]) == 0
    assert {event["schema_version"] for event in json.loads(capsys.readouterr().out)} == {"1.1.0"}
    assert main(["ranger", "export", "bootleg-2021", "--to", "out", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert all(Path(name).is_file() for name in made["files"])
    assert {Path(name).name for name in made["files"]} == {
        "sectors.geojson", "trails.geojson", "damage.csv", "volume.csv", "events.json", "briefing.html",
    }  # fmt: skip
    assert main(["ranger", "export", "bootleg-2021", "--to", "out"]) == 0
    assert "briefing.html" in capsys.readouterr().out


def test_what_is_on_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ranger", "fires"]) == 0
    assert "127,311" in capsys.readouterr().out
    assert main(["ranger", "fires", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert main(["ranger", "rules", "--unverified"]) == 0
    out = capsys.readouterr().out
    assert "7 CFR 1b.4(d)(36)" in out
    assert "trails.closure-risk" not in out
    assert main(["ranger", "rules", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) > 80


def test_a_fire_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ranger", "briefing", "mosquito"]) == 2
    assert "on file are" in capsys.readouterr().err


@pytest.mark.slow
def test_a_question_with_its_table_map_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    """The embedded model, the coordinator, a specialist, and what they found."""
    question = "Which trails near Waldo Lake should stay closed this winter, and why?"
    assert main(["ask", "ranger", question]) == 0
    out = capsys.readouterr().out
    assert "3 of 3 trails should stay closed" in out
    assert "trails.closure-risk" in out
    assert "map of Cedar Creek (SYNTHETIC, north is up)" in out
    assert "Waldo Lake Trail: CLOSED" in out
    assert "← record" in out
    assert "sources: SYNTHETIC cedar-creek-2022/trails.json" in out
    assert "verified PASSED" in out


@pytest.mark.parametrize("action", ["briefing", "export", "fires", "rules"])
def test_every_command_says_what_its_exit_codes_mean(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ranger", action, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    codes = shown.partition("exit codes:")[2]
    assert "0 done" in codes
    assert "2 the command, a setting or a file of a fire is wrong" in codes
    assert ("1 there is no briefing: a specialist did not succeed" in codes) == (action in ("briefing", "export"))


def test_a_fire_that_cannot_be_used_is_a_sentence_and_exit_code_2(tmp_path: Path) -> None:
    """In a process of its own, as the application is loaded once."""
    folder = FireFolder(tmp_path / "data")
    folder.replace("trails.json", '"severity": 5', '"severity": 6')
    program = "import sys; from interlock.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = ["ask", "ranger", "How badly did Cedar Creek burn?"]
    ended = subprocess.run(
        [sys.executable, "-c", program, *words],
        env={**os.environ, "RANGER_DATA": str(folder.path.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 2, ended.stderr
    assert "severity '6'; give a whole number from 1 to 5" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_fire_that_cannot_be_used_is_named_and_the_others_go_on(
    tmp_path: Path,
    composed: dict[str, Composed],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    FireFolder(tmp_path / "data")
    bad = FireFolder(tmp_path / "data", "bootleg-2021")
    bad.edit("fire.json", lambda facts: {**facts, "year": 1999})
    monkeypatch.setenv("RANGER_DATA", str(tmp_path / "data"))
    assert main(["ranger", "fires", "--json"]) == 1
    said = capsys.readouterr()
    assert [row["fire_id"] for row in json.loads(said.out)] == ["cedar-creek-2022"]
    assert "bootleg-2021 cannot be used:" in said.err
    assert "year '1999'; it was ignited on 2021-07-06" in said.err
    made = composed["cedar-creek-2022"].briefing

    async def compose_again(*_: object) -> Briefing:
        return made

    monkeypatch.setattr(compose, "compose_briefing", compose_again)
    assert main(["ranger", "briefing", "cedar-creek-2022"]) == 1
    said = capsys.readouterr()
    assert "verified" in said.out
    assert "bootleg-2021 cannot be used:" in said.err
    assert main(["ranger", "briefing", "bootleg-2021"]) == 2
    assert "year '1999'" in capsys.readouterr().err
    # An answer may be about all fires, so one that is missing is not passed over there.
    with pytest.raises(ConfigError, match="bootleg-2021 cannot be used"):
        ranger.open_ranger()


def test_ctrl_c_ends_the_briefing_while_a_thread_of_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    released, done = threading.Event(), threading.Event()

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        released.wait(20)
        done.set()

    async def interrupted(*_: object) -> None:
        await asyncio.to_thread(work)

    monkeypatch.setattr(compose, "compose_briefing", interrupted)
    try:
        assert main(["ranger", "briefing", "cedar-creek-2022"]) == 130
        assert not done.is_set()
    finally:
        released.set()
