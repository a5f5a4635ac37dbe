"""How a command line is taken apart: options anywhere, and errors that say the way out."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from interlock.cli.main import main
from interlock.cli.parser import CommandParser, document_exits, parse_command


def build() -> CommandParser:
    top = CommandParser(prog="interlock")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    ask = commands.add_parser("ask")
    ask.add_argument("app")
    ask.add_argument("question", nargs="?")
    ask.add_argument("--agent")
    ask.add_argument("--tools", action="append")
    review = commands.add_parser("review")
    actions = review.add_subparsers(dest="action", metavar="ACTION", required=True)
    approve = actions.add_parser("approve")
    approve.add_argument("ticket")
    approve.add_argument("--reason", default="")
    approve.set_defaults(run=len)
    metrics = commands.add_parser("metrics")
    metrics.add_argument("what", nargs="?", choices=("calls", "enforcement"), default="calls")
    metrics.add_argument("--since")
    return top


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("ask ranger --agent x why?", {"app": "ranger", "question": "why?", "agent": "x"}),
        ("ask --agent x ranger why?", {"app": "ranger", "question": "why?", "agent": "x"}),
        ("ask ranger why? --agent x", {"app": "ranger", "question": "why?", "agent": "x"}),
        ("ask ranger --agent x", {"app": "ranger", "question": None}),
        ("ask ranger --agent x -- --why?", {"app": "ranger", "question": "--why?", "agent": "x"}),
        ("ask ranger -- -5°?", {"app": "ranger", "question": "-5°?"}),
        ("ask ranger --tools a why? --tools b", {"question": "why?", "tools": ["a", "b"]}),
        (
            "review approve --reason fine t1",
            {"command": "review", "action": "approve", "ticket": "t1", "reason": "fine"},
        ),
        ("review approve t1 --reason fine", {"ticket": "t1", "reason": "fine", "run": len}),
        ("metrics", {"what": "calls"}),
        ("metrics --since 7d enforcement", {"what": "enforcement", "since": "7d"}),
    ],
)
def test_options_may_stand_anywhere(words: str, meant: dict[str, Any]) -> None:
    assert meant.items() <= vars(parse_command(build(), words.split())).items()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("ask", "the following arguments are required: app"),
        ("ask a b c", "unrecognized arguments: c"),
        ("ask a --nope b", "unrecognized arguments: --nope"),
        ("metrics nope", "invalid choice: 'nope'"),
        ("review", "the following arguments are required: ACTION"),
        ("review aprove t1", "invalid choice: 'aprove'"),
        ("review --reason x approve t1", "--reason: options come after the ACTION: interlock review ACTION --reason"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse_command(build(), words.split())
    assert stop.value.code == 2
    assert sentence in capsys.readouterr().err


def test_an_option_before_the_command_is_shown_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--store", "sqlite:///x.db", "audit", "show"]) == 2
    said = "interlock: --store: options come after the command: interlock COMMAND --store …; see interlock --help\n"
    assert capsys.readouterr().err == said


def test_a_command_that_takes_all_that_is_left_is_parsed_as_argparse_does() -> None:
    top = CommandParser(prog="interlock")
    one = top.add_subparsers(dest="command").add_parser("run")
    one.add_argument("--first")
    one.add_argument("rest", nargs=argparse.REMAINDER)
    assert parse_command(top, ["run", "--first", "a", "b", "--c"]).rest == ["b", "--c"]


def test_exit_codes_are_part_of_the_help() -> None:
    parser = argparse.ArgumentParser()
    document_exits(parser, done="all is well", store=False)
    text = " ".join(parser.format_help().partition("exit codes:")[2].split())
    assert (
        text
        == "0 all is well; 2 the command, a setting or a file it names is wrong, or what it names is not there; 130 interrupted"
    )
