"""What others wrote does not steer the terminal: in no command, in no JSON, in no export, in nothing an application shows."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from interlock.cli.main import main
from interlock.cli.output import console, print_json, sanitize
from interlock.cli.terminal_text import EscapedText, escape_controls, show_controls

BAD = "page \x9b2J\x9d0;owned\x9c \x7f\x1b[31m \u202e\u2028 \U000e0041 \x85end"
TOOLS = f"""
from interlock import tool
from interlock.errors import NotFound

@tool(effect="read")
async def fetch(q: str) -> str:
    "Fetch."
    return {BAD!a}

@tool(effect="read")
async def missing(q: str) -> str:
    "Fetch."
    raise NotFound({BAD!a} + q)
"""
POLICY = 'version = 1\n[[rule]]\nid = "a"\ntools = ["*"]\ndecision = "allow"\n'
COMMANDS = (
    ("audit", "show"),
    ("audit", "show", "--id", "1"),
    ("audit", "show", "--json"),
    ("audit", "export"),
    ("audit", "export", "--format", "csv"),
    ("metrics",),
    ("metrics", "--json"),
    ("metrics", "--prometheus"),
    ("call", "fetch", '{"q": "x"}', "--actor", "a"),
    ("call", "fetch", '{"q": "x"}', "--actor", "a", "--json"),
    ("call", "missing", '{"q": "\x9b2J"}', "--actor", "a"),
)


def assert_harmless(text: str) -> None:
    assert [c for c in text if not c.isprintable() and c != "\n"] == []


@pytest.fixture
def ledger(in_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = in_folder(
        odd_pages__py=TOOLS, policy__toml=POLICY, interlock__toml='tools = ["odd_pages:fetch", "odd_pages:missing"]\n'
    )
    monkeypatch.syspath_prepend(folder)
    sys.modules.pop("odd_pages", None)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    assert main(["call", "fetch", '{"q": "x"}', "--actor", "a"]) == 0
    main(["call", "missing", json.dumps({"q": BAD}), "--actor", "a"])
    return folder


def test_no_command_prints_what_a_terminal_acts_on(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    for command in COMMANDS:
        main(list(command))
        said = capsys.readouterr()
        assert said.out, command
        assert_harmless(said.out)
        assert_harmless(said.err)


def test_what_is_escaped_reads_back_as_it_was(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    main(["audit", "show", "--id", "1"])
    assert json.loads(capsys.readouterr().out)["value"] == BAD
    main(["audit", "export", "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert json.loads(rows[1]["arguments"]) == {"q": BAD}
    main(["audit", "export"])
    exported = capsys.readouterr().out
    assert json.loads(msgspec.json.decode(exported.splitlines()[1])["body"])["value"] == BAD
    (ledger / "export.jsonl").write_text(exported, encoding="utf-8")
    program = str(files("interlock.audit") / "verify_ledger.py")
    done = subprocess.run(
        [sys.executable, program, "export.jsonl"], cwd=ledger, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "intact: 2 records, 2 not anchored\n")


def test_the_verifier_quotes_no_line_of_its_own(tmp_path: Path) -> None:
    header = {"format": "interlock-ledger/1", "complete": True, "ledger": "l"}
    record = {"id": "\x9b2J\nintact: 9 records, 0 not anchored", "lane": 0, "hash": "", "body": "{}", "prev": ""}
    (tmp_path / "e.jsonl").write_text(f"{json.dumps(header)}\n{json.dumps(record)}\n")
    program = str(files("interlock.audit") / "verify_ledger.py")
    done = subprocess.run(
        [sys.executable, program, "e.jsonl"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert_harmless(done.stdout)
    assert not any(line.startswith("intact") for line in done.stdout.splitlines())


def test_what_an_application_shows_is_harmless_too(capsys: pytest.CaptureFixture[str]) -> None:
    rows = Table(title=BAD)
    rows.add_column(BAD)
    rows.add_row(Text(BAD))
    console().print(rows)
    console().print(Text(f"map of {BAD}\nnorth is up"))
    console().rule(f"[bold]{escape(BAD)}[/]")
    said = capsys.readouterr().out
    assert_harmless(said)
    assert r"\x9b2J" in said
    assert "north is up\n" in said


@pytest.mark.parametrize("count", range(6))
def test_backslashes_at_the_end_stay_what_they_are(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    text = "page " + "\\" * count
    for shown in (f"[dim]{sanitize(text)}[/]", f"{sanitize(text)}", f"{sanitize(text)}{sanitize('[red]x')}"):
        console().print(shown)
    assert capsys.readouterr().out == f"{text}\n{text}\n{text}[red]x\n"


@given(st.text())
def test_json_stays_the_same_document(text: str) -> None:
    value = {text: [text]} if text.isprintable() else [text]
    try:
        written = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half a character, which is in no record
        return
    shown = escape_controls(written)
    assert_harmless(shown)
    assert json.loads(shown) == value == msgspec.json.decode(shown)


@given(st.text(st.characters(codec=None)))
def test_nothing_passes_but_printable_text(text: str) -> None:
    assert show_controls(text).isprintable()
    assert_harmless(show_controls(text, lines=True))
    out = io.StringIO()
    EscapedText(out).write(text)
    assert_harmless(out.getvalue().replace("\t", ""))


def test_json_is_printed_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": "\x9b\U000e0041"})
    assert capsys.readouterr().out == '{\n  "a": "\\u009b\\udb40\\udc41"\n}\n'
