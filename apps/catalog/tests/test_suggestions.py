"""Commands that the catalog suggests work as they are printed, typed in the same place."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from pathlib import Path

import pytest

from catalog_testing import faulty_families, fill_catalog, prepare_home, read_catalog
from interlock.cli.main import main

HOME = "my home"
"""With a space, which a shell has to be told of."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


def type_in(command: str) -> int:
    """Do what a shell does with a command: variables first, then the words."""
    words = shlex.split(command)
    with pytest.MonkeyPatch.context() as patch:
        while "=" in words[0]:
            patch.setenv(*words.pop(0).split("=", 1))
        assert words.pop(0) == "interlock"
        return main(words)


def suggestion(text: str, pattern: str) -> str:
    """The one command in a text that a pattern finds."""
    found = re.findall(pattern, text.replace("\n", " "))
    assert found, text
    return str(found[0])


def test_from_an_empty_folder_to_the_first_run(capsys: pytest.CaptureFixture[str]) -> None:
    home = ["--home", HOME]
    assert main(["catalog", "runs", *home]) == 2
    init = suggestion(capsys.readouterr().err, "`(interlock catalog init [^`]*)`")
    Path("mine.json").write_text(json.dumps([{"name": "Bench Press", "equipment": "barbell"}]))
    assert type_in(f"{init} --from mine.json") == 0
    run = suggestion(capsys.readouterr().out, "now: (interlock .*)$").strip()
    assert type_in(run) == 0
    capsys.readouterr()
    assert main(["catalog", "validate", *home]) == 1
    assert suggestion(capsys.readouterr().err, r"\((interlock catalog run .*) shows which") == run
    assert main(["catalog", "show", "nothing", *home]) == 2
    assert type_in(suggestion(capsys.readouterr().err, "`(interlock catalog runs [^`]*)`")) == 0
    assert main(["catalog", "run", "--family", "nothing", *home]) == 2
    assert type_in(suggestion(capsys.readouterr().err, "`(interlock catalog list [^`]*)`")) == 0
    assert main(["catalog", "serve", "--tokens", "some.toml", *home]) == 2
    assert type_in(suggestion(capsys.readouterr().err, "`(interlock catalog token [^`]*)`")) == 0
    assert (Path(HOME) / "some.toml").exists()


@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_run_is_enabled_looked_at_and_taken_back_by_what_is_printed(
    by: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, docs = prepare_home(Path(HOME), enabled=""), faulty_families("squat")
    draft = next(key for key, doc in docs.items() if key.startswith("exercise:") and doc["status"] == "approved")
    docs[draft]["status"] = "draft"
    asyncio.run(fill_catalog(loaded, docs))
    home = ["--home", HOME] if by == "option" else []
    if by == "variable":
        monkeypatch.setenv("CATALOG_HOME", HOME)
    apply = ["catalog", "run", "--apply", "--family", "squat", *home]
    assert main(apply) == 2
    assert type_in(suggestion(capsys.readouterr().err, "(interlock catalog enable .*)$")) == 0
    assert main(apply) == 0
    shown = capsys.readouterr().out
    assert asyncio.run(read_catalog(loaded)) != docs
    assert type_in(suggestion(shown, r"\(([^()]*interlock review show [^()]*)\)")) == 0
    undo = suggestion(shown, r"undo it: (.*)$").strip()
    assert type_in(undo) == 0
    assert type_in(f"{undo} --yes") == 0
    assert asyncio.run(read_catalog(loaded)) == docs
