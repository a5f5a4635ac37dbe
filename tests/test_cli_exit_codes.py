"""Every command ends with exactly the exit codes that its help names."""

from __future__ import annotations

import io
import json
import re
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlock.cli.main import OWN_COMMANDS, build_overview, main
from interlock.cli.options import add_common
from interlock.cli.parser import EXITS, CommandParser
from interlock.config import payload_key_file
from tests.conftest import expect
from tests.test_cli_changes import POLICY, TOOLS, leave_shop
from tests.test_turns import QUESTION

pytestmark = pytest.mark.slow

APP = """
from interlock.answers import App
from interlock.testing import make_scripted
from tests.test_turns import AGENT, SCRIPT, tools

APP = App(name="trails", agents=(AGENT,), tools=tuple(tools()))
OBEDIENT, BOASTING = make_scripted("obedient", SCRIPT), make_scripted("claims success", SCRIPT)
"""
SETTINGS = 'tools = ["shop:TOOLS"]\napps = ["trails_app:APP"]\nstore = "sqlite:///x.db"\n'
CASES = '[[case]]\nname = "c"\ntool = "mail"\narguments = { to = "a" }\nexpect = "EXPECTED"\n'
IDLE = '[[rule]]\nid = "idle"\ntools = ["mail"]\ndecision = "allow"\nwhen = "false"\n'
FILES = {
    "shop.py": TOOLS,
    "trails_app.py": APP,
    "policy.toml": POLICY,
    "trails.toml": 'version = 1\nmode = "apply"\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n',
    "idle.toml": POLICY + IDLE,
    "bare.toml": 'version = 1\n[[rule]]\nid = "some"\ntools = ["mail"]\ndecision = "allow"\n',
    "interlock.toml": SETTINGS,
    "set.json": '[{"tool": "set_title", "arguments": {"id": "a", "title": "x"}}]',
    "bad-set.json": '[{"tool": "nope", "arguments": {}}]',
    "good.toml": CASES.replace("EXPECTED", "allow"),
    "bad.toml": CASES.replace("EXPECTED", "deny"),
    "call.json": '{"tool": "mail", "arguments": {"to": "a"}}',
    "deep.toml": "a = " + "[" * 5_000 + "]" * 5_000,
    "deep.json": '[{"tool": "mail", "arguments": ' + '{"a": ' * 5_000 + "1" + "}" * 5_001 + "]",
    "deep-call.json": '{"tool": "mail", "arguments": ' + '{"a": ' * 5_000 + "1" + "}" * 5_001,
    "not-a-ledger.db": "this is not a ledger " * 400,
}
TITLE = ("call", "set_title", '{"id": "a", "title": "x"}', "--run", "r", "--turn", "t")
LOST = ("call", "mail", '{"to": "lost"}', "--turn", "t")
ASKED = ("ask", "trails", QUESTION, "--policy", "trails.toml", "--model")
OBEDIENT, BOASTING = (*ASKED, "python:trails_app:OBEDIENT"), (*ASKED, "python:trails_app:BOASTING")
PARKED = ("call", "set_title", '{"id": "precious", "title": "x"}')
NO_POLICY = ("--policy", "none.toml")


MCP = (sys.executable, str(Path(__file__).with_name("mcp_files_server.py")), "docs")
ADDED = ("mcp", "add", "files", "--", *MCP)
ODD = (*ADDED[:2], "odd", "--", sys.executable, MCP[1].replace("files_", "odd_"), "done", "twice-listed")


class Case(NamedTuple):
    """A command, how it ends, and what was done before it."""

    command: str
    code: int
    arguments: tuple[str, ...] = ()
    before: tuple[tuple[str, ...], ...] = ()


DONE = (
    Case("ask", 0, OBEDIENT[1:]),
    Case("turns list", 0),
    Case("turns show", 0, ("{turn}",), (OBEDIENT,)),
    Case("call", 0, TITLE[1:]),
    Case("plan-set", 0, ("set.json", "--name", "n")),
    Case("shadow", 0),
    Case("undo", 0, ("--run", "r"), (TITLE,)),
    Case("replay", 0, ("--run", "r"), (TITLE, ("undo", "--run", "r", "--yes"))),
    Case("recover", 0),
    Case("review list", 0),
    Case("review show", 0, ("{ticket}",), (PARKED,)),
    Case("review approve", 0, ("{ticket}",), (PARKED,)),
    Case("review deny", 0, ("{ticket}",), (PARKED,)),
    Case("review edit", 0, ("{ticket}", '{"id": "a"}'), (PARKED,)),
    Case("review remind", 0),
    Case("review resume", 0, ("{ticket}",), (PARKED, ("review", "approve", "{ticket}"))),
    Case("review token", 0, ("deployer",)),
    Case("halt", 0, ("--tool", "mail")),
    Case("unhalt", 0, ("--tool", "mail"), (("halt", "--tool", "mail"),)),
    Case("tools list", 0),
    Case("tools show", 0, ("mail",)),
    Case("policy check", 0),
    Case("policy coverage", 0),
    Case("policy test", 0, ("good.toml",)),
    Case("policy explain", 0, ("call.json",)),
    Case("audit show", 0),
    Case("audit export", 0),
    Case("audit verify", 0, (), (("audit", "anchor"),)),
    Case("audit anchor", 0),
    Case("audit rotate", 0, (), (("audit", "anchor"),)),
    Case("audit key", 0, (), (("audit", "anchor"),)),
    Case("audit accept", 0, ("--reason", "so"), (("go-back",),)),
    Case("audit verifier", 0),
    Case("audit purge", 0, ("--older-than", "1d")),
    Case("audit forget", 0, ("--record", "1", "--reason", "r")),
    Case("mcp add", 0, ("files", "--", *MCP)),
    Case("mcp remove", 0, ("files",), (ADDED,)),
    Case("mcp list", 0, (), (ADDED,)),
    Case("mcp show", 0, ("files",), (ADDED,)),
    Case("mcp pin", 0, ("files",), (ADDED,)),
    Case("mcp profile", 0),
    Case("mcp serve", 0),
    Case("metrics", 0),
    Case("config show", 0),
)
SECOND = ("call", "set_title", '{"id": "second", "title": "x"}')
READERS: list[sqlite3.Connection] = []
WRONG = (
    Case("ask", 1, BOASTING[1:]),
    Case("ask", 1, (*ASKED[1:3], *NO_POLICY)),
    Case("call", 1, ("nope",)),
    Case("plan-set", 1, ("bad-set.json", "--name", "n")),
    Case("shadow", 1, NO_POLICY),
    Case("undo", 1, ("--run", "nope")),
    Case("replay", 1, ("--run", "nope")),
    Case("recover", 1, (), (LOST,)),
    Case("review approve", 1, ("{ticket}",), (PARKED, ("review", "deny", "{ticket}"))),
    Case("review approve", 1, ("{ticket}", "--resume", *NO_POLICY), (PARKED,)),
    Case("review deny", 1, ("{ticket}",), (PARKED, ("review", "deny", "{ticket}"))),
    Case("review edit", 1, ("{ticket}", "{}"), (PARKED,)),
    Case("review resume", 1, ("{ticket}",), (PARKED,)),
    Case("mcp list", 1, (), (ADDED, ("change-tools",))),
    Case("mcp show", 1, ("files",), (ADDED, ("change-tools",))),
    Case("mcp pin", 1, ("odd",), (ODD,)),
    Case("mcp profile", 1, ("memory", "--test", "files"), (ADDED,)),
    Case("unhalt", 1, ("--tool", "mail")),
    Case("tools list", 1, ("--actor", "a", *NO_POLICY)),
    Case("policy check", 1, ("--policy", "idle.toml")),
    Case("policy check", 1, ("--policy", "deep.toml")),
    Case("policy coverage", 1, ("--policy", "bare.toml")),
    Case("policy test", 1, ("bad.toml",)),
    Case("policy explain", 1, ("call.json", *NO_POLICY)),
    Case("audit verify", 1, (), (("tamper",),)),
    Case("audit anchor", 1, ("--publish", "git:nowhere")),
    Case("audit rotate", 1, ("--publish", "git:nowhere"), (("audit", "anchor"),)),
    Case("audit accept", 1, ("--reason", "so")),
    Case("audit purge", 1, ("--older-than", "1d", "--yes"), (("read-on",), SECOND)),
    Case("audit forget", 1, ("--actor", "nobody", "--reason", "r")),
    Case("metrics", 1, ("enforcement",), (BOASTING,)),
)
NAMED = (
    Case("ask", 2, ("nope", "x")),
    Case("turns show", 2, ("nope",)),
    Case("call", 2, ("mail", "{nonsense")),
    Case("plan-set", 2, ("none.json", "--name", "n")),
    Case("shadow", 2, ("--since", "yesterday")),
    Case("undo", 2),
    *(Case(f"review {action}", 2, ("nope",)) for action in ("show", "approve", "deny", "resume")),
    Case("review edit", 2, ("nope", "{}")),
    Case("halt", 2),
    Case("unhalt", 2),
    Case("tools show", 2, ("nope",)),
    Case("policy test", 2, ("set.json",)),
    Case("policy test", 2, ("deep.toml",)),
    Case("policy explain", 2, ("none.json",)),
    Case("policy explain", 2, ("set.json",)),
    Case("policy explain", 2, ("deep-call.json",)),
    Case("plan-set", 2, ("deep.json", "--name", "n")),
    Case("config show", 2, ("--config", "deep.toml")),
    Case("audit show", 2, ("--id", "99")),
    Case("audit verify", 2, ("--anchors", "none")),
    Case("audit verifier", 2, ("--nope",)),
    Case("audit verify", 4),
    Case("audit verify", 5, (), (("audit", "anchor"), ("lose-payload-key",))),
    Case("audit anchor", 2, ("--publish", "ftp://x")),
    Case("audit rotate", 2),
    Case("audit key", 2),
    Case("audit purge", 2),
    Case("metrics", 2, ("enforcement", "--prometheus")),
    Case("audit forget", 2, ("--record", "99", "--reason", "r")),
)


def find_leaves() -> dict[str, CommandParser]:
    """Every command of ours that runs something, by its words."""
    top = CommandParser(prog="interlock")
    commands = top.add_subparsers(dest="command")
    for module in {command.module: None for command in OWN_COMMANDS}:
        import_module(f"interlock.cli.{module}").register(commands, add_common)
    found: dict[str, CommandParser] = {}
    for command in OWN_COMMANDS:
        parser = commands.choices[command.name]
        below = {"": parser} if parser.group is None else parser.group.choices
        found |= {f"{command.name} {name}".strip(): leaf for name, leaf in below.items()}
    return found


def documented(parser: CommandParser) -> set[int]:
    text = " ".join(parser.format_help().partition("exit codes:\n")[2].split())
    return {int(code) for code in re.findall(r"(?:^|; )(\d+) ", text)}


LEAVES = find_leaves()
BROKEN = tuple(
    case._replace(code=3, arguments=("--store", "sqlite:///not-a-ledger.db", *case.arguments), before=())
    for case in DONE
    if 3 in documented(LEAVES[case.command])
)
BAD_SETTING = tuple(
    case._replace(code=2, arguments=("--config", "none.toml", *case.arguments), before=())
    for case in DONE
    if case.command != "audit verifier"
)
ALL = (*DONE, *WRONG, *NAMED, *BAD_SETTING, *BROKEN)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Tools, an application, policies, and a ledger with one record."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))  # who serves ends with its client
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("interlock.cli.review.default_principal", lambda: "os:boss")
    monkeypatch.setattr("interlock.operations.approvals.default_principal", lambda: "os:boss")
    assert run("call", "set_title", '{"id": "first", "title": "x"}') == 0
    yield tmp_path
    while READERS:
        READERS.pop().close()
    leave_shop()
    sys.modules.pop("trails_app", None)


def run(*arguments: str) -> int:
    """The exit code of a command, however it comes."""
    if arguments == ("tamper",):
        with sqlite3.connect("x.db") as connection:
            connection.execute("UPDATE records SET actor = 'nobody'")
        connection.close()
        return 0
    if arguments == ("read-on",):  # somebody is in the middle of reading
        READERS.append(sqlite3.connect("x.db"))
        READERS[-1].execute("BEGIN")
        READERS[-1].execute("SELECT count(*) FROM records").fetchone()
        return 0
    if arguments == ("lose-payload-key",):
        expect(payload_key_file("", "sqlite:///x.db")).unlink()
        return 0
    if arguments == ("change-tools",):
        Path("other-tools").touch()
        return 0
    if arguments == ("go-back",):  # an older copy is put back
        shutil.copy("x.db", "older.db")
        assert main(SECOND) == 0
        shutil.copy("older.db", "x.db")
        return 0
    try:
        return main(arguments)
    except SystemExit as end:
        return int(end.code or 0)


def ask_for(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    run(*arguments, "--json")
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def fill(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Arguments with the ticket and the turn that there is by now."""
    names = {
        "{ticket}": lambda: ask_for(capsys, "review", "list", "--all")[0]["id"],
        "{turn}": lambda: ask_for(capsys, "turns", "list")[0]["turn"],
    }
    return [names[word]() if word in names else word for word in arguments]


@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.command}-{case.code}-{' '.join(case.arguments[-2:])}")
def test_a_command_ends_with_the_code_that_its_help_names(
    case: Case, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert case.code in documented(LEAVES[case.command])
    for command in case.before:
        run(*fill(command, capsys))
    arguments = [*case.command.split(), *(fill(case.arguments, capsys) if case.before else case.arguments)]
    capsys.readouterr()
    assert run(*arguments) == case.code, capsys.readouterr()
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert case.code in (0, 1, 4, 5) or "interlock" in error


@pytest.mark.parametrize("case", DONE, ids=lambda case: case.command)
def test_every_command_ends_with_130_when_it_is_interrupted(
    case: Case, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_arguments: Any, **_options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("interlock.cli.options.load_settings", interrupt)
    monkeypatch.setattr("interlock.cli.audit.files", interrupt)
    capsys.readouterr()
    assert run(*case.command.split(), *case.arguments) == 130
    assert capsys.readouterr().err == "interlock: interrupted\n"


def test_every_code_that_a_help_names_is_tried_and_no_other() -> None:
    tried: dict[str, set[int]] = {name: {130} for name in LEAVES}
    for case in ALL:
        tried[case.command].add(case.code)
    assert tried == {name: documented(leaf) for name, leaf in LEAVES.items()}
    assert [case.command for case in DONE] == list(LEAVES)


def test_one_table_says_what_the_codes_mean_in_the_overview_and_on_the_page() -> None:
    assert set(EXITS) == {code for leaf in LEAVES.values() for code in documented(leaf)}
    overview = " ".join(build_overview().format_help().split())
    page = (Path(__file__).parent.parent / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page.partition("## Exit codes")[2], re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == EXITS
    assert [code for code, meaning in EXITS.items() if f"{code} {meaning}" not in overview] == []
