"""Starting: what --help and --version load, and the commands that applications bring."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from interlock.cli.main import OWN_COMMANDS, main

HEAVY = ("interlock.answers", "interlock.models", "interlock.runtime", "pydantic", "rich", "cel_expr_python", "cryptography")  # fmt: skip
LOADED = """
import runpy, sys
sys.argv = ["interlock", *sys.argv[1:]]
try:
    runpy.run_module("interlock", run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
print(*sorted(sys.modules), file=sys.stderr)
"""


def loaded_by(*arguments: str, folder: Path | None = None) -> list[str]:
    """The modules that a command leaves behind."""
    command = [sys.executable, "-c", LOADED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True, cwd=folder)
    return done.stderr.split()


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ()], ids=["help", "version", "nothing"])
def test_nothing_heavy_is_loaded_to_say_what_there_is(arguments: tuple[str, ...]) -> None:
    loaded = loaded_by(*arguments)
    assert "interlock.cli.main" in loaded
    assert [name for name in loaded if name.startswith(HEAVY)] == []
    commands = {f"interlock.cli.{command.module}" for command in OWN_COMMANDS}
    assert commands.intersection(loaded) == set()


def test_the_version_is_told_without_looking_for_applications() -> None:
    assert "importlib.metadata" not in loaded_by("--version")


def test_a_command_that_prints_json_loads_no_rich(tmp_path: Path) -> None:
    loaded = loaded_by("config", "show", "--json", folder=tmp_path)
    assert [name for name in loaded if name.startswith(("rich", *HEAVY))] == []


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with a distribution in it that brings two commands, one of them broken."""
    info = tmp_path / "brought-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\nSummary: All of 100 % of it\n")
    (info / "entry_points.txt").write_text(
        "[interlock.commands]\nbrought = brought_cli:register\nbroken = brought_nowhere:register\n"
    )
    (tmp_path / "brought_cli.py").write_text(
        "def register(commands, common):\n"
        "    parser = commands.add_parser('brought', help='ours')\n"
        "    actions = parser.add_subparsers(dest='action', required=True)\n"
        "    one = actions.add_parser('say')\n"
        "    one.add_argument('words', nargs='+')\n"
        "    one.add_argument('--loud', action='store_true')\n"
        "    common(one)\n"
        "    one.set_defaults(run=lambda given: print(given.command, given.action, given.words, given.loud) or 0)\n"
        "    rest = actions.add_parser('rest')\n"
        "    rest.add_argument('words', nargs='...')\n"
        "    rest.set_defaults(run=lambda given: print(given.words) or 0)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_the_command_of_an_application_is_listed_by_its_summary_and_loaded_when_used(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "brought   All of 100 % of it" in out
    assert "brought_cli" not in sys.modules
    assert main(["brought", "say", "a", "--loud", "b"]) == 0
    assert capsys.readouterr().out == "brought say ['a', 'b'] True\n"
    assert main(["brought", "rest", "a", "--loud", "b"]) == 0
    assert capsys.readouterr().out == "['a', '--loud', 'b']\n"


def test_a_command_that_cannot_be_loaded_is_an_error_of_its_own(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["broken"]) == 2
    assert "the command 'broken' of brought_nowhere cannot be loaded" in capsys.readouterr().err
    assert main(["brough"]) == 2
    assert capsys.readouterr().err == "interlock: there is no command 'brough'; did you mean 'brought'?\n"
    assert main(["zzzzzzzzzz"]) == 2
    assert "see interlock --help" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "other"), [("audit", "interlock itself"), ("brought", "brought_cli")])
def test_two_commands_of_one_name_are_refused(
    installed: Path, capsys: pytest.CaptureFixture[str], name: str, other: str
) -> None:
    info = installed / "second-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: second\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[interlock.commands]\n{name} = second_cli:register\n")
    assert main([]) == 2
    error = capsys.readouterr().err
    assert f"the command {name!r} is brought by" in error
    assert other in error
    assert "second_cli" in error


def test_a_command_of_ours_cannot_be_taken_away(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (installed / "brought-1.0.dist-info" / "entry_points.txt").write_text(
        "[interlock.commands]\nconfig = brought_cli:register\n"
    )
    assert main(["config", "show", "--json"]) == 0
    assert '"store"' in capsys.readouterr().out
