"""What commands print: whole tables in pipes, whole names on terminals, colours as the environment wants them."""

from __future__ import annotations

import io
import logging
import sys

import pytest
from rich.tree import Tree

from interlock.answers import TurnResult, TurnStatus
from interlock.answers.ladder import TurnOutcome
from interlock.audit.verify_ledger import say
from interlock.cli.ask import show_answer
from interlock.cli.call import show
from interlock.cli.log import shown_log
from interlock.cli.output import console, format_count, notes, print_prose, print_tree, sanitize, table
from interlock.reasons import Reason
from interlock.values import Decision, Outcome, Problem, Status, Verdict

DIGEST = "sha256:" + "0123456789abcdef" * 4
NAMES = ("classify-the-damage-of-every-trail", "district-ranger-of-middle-fork")
WORDS = "verified 12  rendered 3  escalated 1  asked 4"


class Terminal(io.StringIO):
    """A terminal that keeps what was written to it."""

    def isatty(self) -> bool:
        return True


def write(monkeypatch: pytest.MonkeyPatch, out: io.StringIO, columns: int) -> io.StringIO:
    """Send results to `out`, which is so many columns wide."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", out)
    return out


def lines_of_a_table(out: io.StringIO) -> list[str]:
    rows = table("how they ended", ("tool", "agent", "calls", "outcomes"))
    rows.add_row(*NAMES, "1234567", WORDS)
    console().print(rows)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_in_a_pipe_a_table_is_as_wide_as_its_content(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_of_a_table(write(monkeypatch, io.StringIO(), 40))
    assert lines[2:] == [f"{NAMES[0]}  {NAMES[1]}  1234567  {WORDS}"]


@pytest.mark.parametrize("columns", [100, 80, 40])
def test_on_a_terminal_names_and_numbers_stay_whole_and_the_last_column_folds(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out = write(monkeypatch, Terminal(), columns)
    monkeypatch.setenv("NO_COLOR", "1")
    _, _, first, *rest = lines_of_a_table(out)
    assert first.startswith(f"{NAMES[0]}  {NAMES[1]}  1234567  ")
    assert rest, "the last column was to fold"
    assert " ".join([first.partition("1234567")[2], *rest]).split() == WORDS.split()


def test_what_a_command_waits_for_is_said_and_the_log_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    for verbose in (False, True):
        with shown_log(verbose=verbose):
            logging.getLogger("interlock.waiting").info("waiting for \x1b[31m a dead holder")
            logging.getLogger("interlock").warning("a call was denied")
        logging.getLogger("interlock.waiting").info("after the command")
        said = ["interlock: waiting for \\x1b[31m a dead holder", "interlock: a call was denied"]
        assert capsys.readouterr().err.splitlines() == (said if verbose else said[:1])


def test_a_table_without_rows_is_its_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    out = write(monkeypatch, io.StringIO(), 40)
    console().print(table("nothing", ("a", "b")))
    assert [line.rstrip() for line in out.getvalue().splitlines()] == ["nothing", "a  b"]


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_ids_and_digests_are_never_broken(monkeypatch: pytest.MonkeyPatch, kind: type[io.StringIO]) -> None:
    out = write(monkeypatch, kind(), 40)
    console().print(f"  the plan is {DIGEST}, and its risk is low")
    assert f"the plan is {DIGEST}, and its risk is low\n" in out.getvalue()


def test_prose_breaks_between_words_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "The trail is closed until the hazard trees along it are felled."
    out = write(monkeypatch, Terminal(), 30)
    print_prose(text)
    assert len(out.getvalue().splitlines()) == 3
    assert out.getvalue().split() == text.split()
    out = write(monkeypatch, io.StringIO(), 30)
    print_prose(text)
    assert out.getvalue() == f"{text}\n"


def test_a_tree_breaks_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree("question")
    tree.add(f"record 1: [dim]{sanitize('[not markup]')}[/] planned as {DIGEST} by somebody")
    out = write(monkeypatch, io.StringIO(), 40)
    print_tree(tree)
    assert out.getvalue() == f"question\n└── record 1: [not markup] planned as {DIGEST} by somebody\n"
    out = write(monkeypatch, Terminal(), 40)
    print_tree(tree)
    assert len(out.getvalue().splitlines()) > 2


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    for out, expected in ((Terminal(), "\x1b[32mok\x1b[0m\n"), (io.StringIO(), "ok\n")):
        write(monkeypatch, out, 80)
        console().print("[green]ok[/]")
        assert out.getvalue() == expected


def test_no_color_leaves_no_escape_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    out = write(monkeypatch, Terminal(), 80)
    monkeypatch.setenv("NO_COLOR", "1")
    console().print("[green]ok[/] [bold]and[/] [dim]well[/]")
    monkeypatch.setenv("FORCE_COLOR", "1")
    console().print("[green]ok[/]")
    assert out.getvalue() == "ok and well\nok\n"


@pytest.mark.parametrize("term", ["xterm", "dumb", ""])
def test_force_color_colours_a_pipe_and_moves_nothing_in_it(monkeypatch: pytest.MonkeyPatch, term: str) -> None:
    out = write(monkeypatch, io.StringIO(), 80)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys, "stderr", out)
    with notes().status("working"):
        console().print("[green]ok[/]")
    assert out.getvalue() == "\x1b[32mok\x1b[0m\n"


def test_one_is_not_many() -> None:
    assert [format_count(count, "record") for count in (0, 1, 2, 12_000)] == [
        "0 records",
        "1 record",
        "2 records",
        "12,000 records",
    ]


@pytest.mark.parametrize(
    ("status", "answer", "shown"),
    [
        (TurnStatus.RENDERED, "Nothing was lost.", True),  # the reason is a word of the answer by chance
        (TurnStatus.TIMED_OUT, "The request timed out.", True),
        (TurnStatus.TOOL_FAILED, "Unable to retrieve it. It is lost. Please try again.", False),
        (TurnStatus.TOOL_FAILED, "Unable to retrieve it, since it got l-o-s-t.", False),
        (TurnStatus.ASKED, "Which one is lost?", False),
    ],
)
def test_why_an_answer_is_what_it_is_stands_beside_it_unless_its_kind_says_so(
    monkeypatch: pytest.MonkeyPatch, status: TurnStatus, answer: str, shown: bool
) -> None:
    out = write(monkeypatch, io.StringIO(), 100)
    result = TurnResult("t", "plain", status, TurnOutcome.ESCALATED, False, answer, reason="lost")
    show_answer(result)
    assert ("(lost)" in out.getvalue()) is shown


@pytest.mark.parametrize(
    ("decision", "message", "shown"),
    [
        (Decision.DENY, "not here", False),
        (Decision.DENY, "not here (cleaned)", False),
        (Decision.ALLOW, "not here", True),  # a tool that says by chance what the rule that allowed it says
        (Decision.REVIEW, "waits for a person", True),
    ],
)
def test_what_a_refusing_rule_says_is_said_once_and_any_other_problem_beside_it(
    monkeypatch: pytest.MonkeyPatch, decision: Decision, message: str, shown: bool
) -> None:
    out = write(monkeypatch, io.StringIO(), 100)
    verdict = Verdict(decision=decision, rule="r", policy_version="1", reason="not here")
    problem = Problem(Reason.DENIED, message)
    show(Outcome(call_id="c", tool="t", status=Status.FAILED, verdict=verdict, problem=problem))
    assert "rule r: not here" in out.getvalue()
    assert (f"denied: {message}" in out.getvalue()) is shown


def test_the_verdict_of_the_stand_alone_verifier_is_a_value_and_not_its_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert say("not intact: the name of a file", intact=True) == 0
    assert say("intact", "in all of its parts", intact=False) == 1
    assert capsys.readouterr().out.splitlines()[0] == "not intact: the name of a file"
