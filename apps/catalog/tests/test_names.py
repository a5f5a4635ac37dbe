"""Names lead where they say: `get` takes the closest, a run takes no name away, an import makes none up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.main import main
from interlock_catalog.shortening import shorten


def make_catalog(folder: Path, capsys: pytest.CaptureFixture[str], *records: dict[str, Any]) -> str:
    """A catalog of these records, every family of which may be changed."""
    file, home = folder / "source.json", str(folder / "home")
    file.write_text(json.dumps(records), encoding="utf-8")
    assert main(["catalog", "init", "--home", home, "--from", str(file)]) == 0
    assert main(["catalog", "enable", "--home", home, "--all"]) == 0
    capsys.readouterr()
    return home


def run(home: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["catalog", "run", "--home", home, "--apply", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def get(home: str, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The id of what is found by a name."""
    assert main(["catalog", "get", "--home", home, name]) == 0, capsys.readouterr().err
    return str(json.loads(capsys.readouterr().out)["exercise"]["id"])


def refuse(home: str, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said where a name leads to nothing."""
    assert main(["catalog", "get", "--home", home, name]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


def test_a_run_takes_no_name_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The import makes an alias of the family under that slug, so that the old name could not become one."""
    records = (
        {"name": "Planche (¾)", "equipment": "barbell", "id": "three-quarters"},
        {"name": "Wide Planche", "equipment": "dumbbell", "id": "wide"},
        {"name": "Barbell Row", "equipment": "barbell", "id": "row"},
    )
    home = make_catalog(tmp_path, capsys, *records)
    report = run(home, capsys)
    assert [get(home, str(record["name"]), capsys) for record in records] == ["three-quarters", "wide", "row"]
    assert get(home, "Wide Planche (Dumbbell)", capsys) == "wide"
    assert get(home, "Planche", capsys) == "three-quarters"
    held = [
        (issue["target"], issue["evidence"])
        for family in report["families"]
        for issue in family["result"]["unresolved"]
        if issue["code"] == "held_name"
    ]
    assert [target for target, _said in held] == ["exercise:three-quarters"]
    assert "'Planche ¾ (Barbell)'" in held[0][1]
    assert "family 'planche'" in held[0][1]
    assert run(home, capsys)["run"]["counts"] == {}


def test_nothing_that_was_not_given_becomes_part_of_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = make_catalog(
        tmp_path,
        capsys,
        {"name": "Pull-up", "id": "a"},
        {"name": "Weighted Pull-Up", "equipment": "barbell", "id": "b"},
        {"name": "Wide pull-up", "equipment": "dumbbell", "id": "c"},
        {"name": "Kniebeuge mit Langhantel", "id": "d"},
    )
    run(home, capsys)
    assert main(["catalog", "list", "--home", home, "--json"]) == 0
    rows = {row["id"]: (row["name"], row["equipment"]) for row in json.loads(capsys.readouterr().out)}
    assert rows["a"] == ("Pull-Up", [])
    assert rows["b"][0] == "Weighted Pull-Up (Barbell)"
    assert rows["c"][0] == "Wide Pull-Up (Dumbbell)"
    assert rows["d"] == ("Kniebeuge mit Langhantel", [])


def test_the_closest_name_is_found_and_of_equals_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = make_catalog(
        tmp_path,
        capsys,
        {"name": "Push Up", "id": "a"},
        {"name": "Push-up", "id": "b"},
        {"name": "Pull-Up", "id": "c"},
        {"name": "懸垂 Pull-Up", "id": "d"},
        {"name": "Dip", "id": "e"},
        {"name": "Dip", "id": "f"},
        {"name": "Sit-Up", "id": "push-up"},
        {"name": "Wide Jump Squat", "id": "g"},
    )
    assert get(home, "Push Up", capsys) == "a"
    assert get(home, "Push-up", capsys) == "b"
    assert get(home, "PUSH-UP", capsys) == "b"
    assert get(home, "push-up", capsys) == "push-up"  # an id goes first
    assert get(home, "懸垂 Pull-Up", capsys) == "d"
    assert get(home, "sit  up", capsys) == "push-up"
    for name, ids in (("push, up", "a, b"), ("Dip", "e, f"), ("Pull Up", "c, d")):
        assert f"{name!r} can be 2 exercises; name one by its id: {ids}" in refuse(home, name, capsys)
    # Letters that a slug has no place for are not left out in silence.
    assert "there is no exercise '引体 Pull-Up' (perhaps" in refuse(home, "引体 Pull-Up", capsys)
    told = refuse(home, "Jump Squat", capsys)
    assert f"is a family, and no exercise; `interlock catalog list --family jump-squat --home {home}`" in told


def test_a_report_says_each_thing_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = make_catalog(tmp_path, capsys, {"name": "Barbell Curl", "equipment": "barbell", "id": "a"})
    assert main(["catalog", "run", "--home", home]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  for a person (high): exercise:a category: is empty" in lines


def test_what_is_cut_says_so() -> None:
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd", 3) == "ab…"
