"""`interlock argo` and `interlock ask argo`, as a user types them, on the embedded model."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from argo_testing import LocalWeb
from interlock.cli.main import main

HOUSE = "# House\n\nThe boiler was serviced on 12 March 2024 by Lindt Heating for 240 euros.\n"
TRIP = "# Norway\n\nWe took the night train from Oslo to Bergen. The cabin cost 95 euros.\n"


@pytest.fixture(autouse=True)
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "house.md").write_text(HOUSE)
    (folder / "trip.md").write_text(TRIP)
    (folder / "picture.png").write_bytes(b"\x89PNG")
    return folder


def printed(capsys: pytest.CaptureFixture[str], *command: str, ends: int = 0) -> Any:
    """What a command prints with --json."""
    capsys.readouterr()
    assert main([*command, "--json"]) == ends
    return json.loads(capsys.readouterr().out)


def test_a_folder_is_taken_in_found_and_forgotten(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [one["status"] for one in printed(capsys, "argo", "ingest", str(notes), "--mine")] == ["ok", "ok"]
    (notes / "house.md").write_text(HOUSE.replace("240", "310"))
    assert main(["argo", "ingest", str(notes / "house.md"), "--mine"]) == 0
    found = printed(capsys, "argo", "memory", "search", "heating maintenance")["hits"]
    assert ("310 euros" in found[0]["snippet"], found[0]["trust"]) == (True, "trusted")
    state = printed(capsys, "argo", "memory", "show")["state"]
    assert state["documents"] == 2  # the file in place of what was known of it before
    assert main(["argo", "memory", "show", found[0]["chunk"]]) == 0
    assert "310 euros" in capsys.readouterr().out
    gone = printed(capsys, "argo", "memory", "forget", "--source", str(notes / "house.md"), "--reason", "moved")
    assert gone["documents"] == 1
    assert "310" not in str(printed(capsys, "argo", "memory", "search", "heating maintenance"))
    assert b"310 euros" not in Path("argo-memory.db").read_bytes()


def test_what_was_taken_in_is_undone(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["argo", "ingest", str(notes)]) == 0
    run = capsys.readouterr().out.split("interlock argo undo ")[1].split()[0]
    assert printed(capsys, "argo", "memory", "show")["state"]["documents"] == 2
    assert [one["status"] for one in printed(capsys, "argo", "undo", run)] == ["ok", "ok"]
    assert printed(capsys, "argo", "memory", "show")["state"]["documents"] == 0
    assert b"night train" not in Path("argo-memory.db").read_bytes()
    assert main(["argo", "undo", run]) == 1


def test_what_is_not_there_is_said(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["argo", "ingest", str(notes / "nothing.md")]) == 2
    assert "no such file or folder" in capsys.readouterr().err
    (notes / "some.bin").write_bytes(b"\x00\x01\xff" * 100)
    assert main(["argo", "ingest", str(notes / "some.bin")]) == 1
    assert "this is no text" in capsys.readouterr().err
    (notes / "empty").mkdir()
    assert main(["argo", "ingest", str(notes / "empty")]) == 2
    assert main(["argo", "memory", "show", "0123"]) == 1
    assert main(["argo", "memory", "forget", "--source", "nowhere", "--reason", "x"]) == 1
    Path("argo.toml").write_text("[llm]\n")
    assert main(["argo", "memory", "show"]) == 2
    assert "nothing reads 'llm'" in capsys.readouterr().err


def test_a_page_is_taken_in_by_its_address(web: LocalWeb, capsys: pytest.CaptureFixture[str]) -> None:
    Path("argo.toml").write_text('[security]\nweb_allowed_networks = ["127.0.0.0/8"]\n')
    assert main(["argo", "ingest", f"{web.address}/bridge", f"{web.address}/nothing"]) == 1
    found = printed(capsys, "argo", "memory", "search", "Tamar Bridge")["hits"]
    assert [(one["kind"], one["trust"]) for one in found] == [("web", "untrusted")]


@pytest.mark.slow
def test_notes_answer_questions_and_say_which(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["argo", "ingest", str(notes), "--mine"]) == 0
    for question, said in (
        ("When was the boiler serviced?", "According to House: The boiler was serviced on 12 March 2024"),
        ("What did the cabin on the train to Bergen cost?", "The cabin cost 95 euros"),
    ):
        result = printed(capsys, "ask", "argo", question)
        assert (result["status"], said in result["answer"]) == ("verified", True), result
        assert result["sources"]
    quick = printed(capsys, "ask", "argo", "When was the boiler serviced?", "--work", "quick")
    assert (quick["status"], "12 March 2024" in quick["answer"]) == ("verified", True), quick
    assert main(["ask", "argo", "When was the boiler serviced?", "--work", "research"]) == 2  # no search is set up
    assert "it offers ingest, quick" in capsys.readouterr().err
    remembered = printed(capsys, "ask", "argo", "Remember that I am allergic to nuts.")
    assert "Done: remember" in remembered["answer"]
    assert "allergic to nuts" in printed(capsys, "ask", "argo", "What am I allergic to?")["answer"]


@pytest.mark.slow
def test_a_conversation_in_the_terminal(
    notes: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["argo", "ingest", str(notes), "--mine"]) == 0
    said = "When was the boiler serviced?\n:sources\n:stats\n:facts\n:tools\n:work quick\n:work\n:nope\n:work nope\n:help\n:new b\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    assert main(["argo", "chat", "--session", "a"]) == 0
    shown = capsys.readouterr()
    assert "The boiler was serviced on 12 March 2024" in shown.out
    assert "12 March 2024 ←" in shown.out
    assert "1 questions, 1 calls" in shown.out
    assert "there is no :nope" in shown.err
    assert "no way of working 'nope'" in shown.err
