"""How a command line is taken apart: command words first, then options and positionals in any order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended, as shells count it: 128 and the number of the signal."""
UNPINNED, UNREADABLE = 4, 5
VERIFY_EXITS = {
    UNPINNED: "nothing is wrong as far as can be seen, but no key was given to check signatures against",
    UNREADABLE: "records and chain are intact, but payloads are there whose key is not",
}
"""Those of `audit verify` alone; of several that apply, the first."""
EXITS = {
    0: "done, and nothing is wrong: also a call that found no data, or that was only planned",
    1: "done, and something is wrong: a call was denied, parked, failed or is in doubt, a rule is bad, a tool has no"
    " decision, a case fails, the ledger is not intact, a decision is not yours, nothing matches",
    2: "the command, a setting or a file it names is wrong, or what it names is not there",
    3: "the store cannot be used",
    **{code: f"audit verify: {meaning}" for code, meaning in VERIFY_EXITS.items()},
    INTERRUPTED: "interrupted (Ctrl-C)",
}
"""What the exit codes of all commands mean; the help of each says what they mean there."""


class CommandParser(argparse.ArgumentParser):
    """A parser that knows the commands below it."""

    group: argparse._SubParsersAction[CommandParser] | None = None
    after_dashes: str = ""
    """What all words behind `--` are called, where a command takes another one there."""

    def add_subparsers(self, **options: Any) -> Any:
        """Add commands below this one."""
        self.group = super().add_subparsers(**options)
        return self.group


def parse_command(parser: CommandParser, words: Sequence[str]) -> argparse.Namespace:
    """Follow the command words to their parser, then let options stand anywhere, also between positionals."""
    given, rest = argparse.Namespace(), list(words)
    while parser.group is not None and rest and rest[0] in parser.group.choices:
        setattr(given, parser.group.dest, rest[0])
        parser, rest = parser.group.choices[rest[0]], rest[1:]
    if parser.group is not None and rest and rest[0].startswith("-") and rest[0] not in ("-h", "--help"):
        what = parser.group.metavar or "command"
        parser.error(f"{rest[0]}: options come after the {what}: {parser.prog} {what} {rest[0]} …")
    if parser.after_dashes:
        own = rest.index("--") if "--" in rest else len(rest)
        setattr(given, parser.after_dashes, rest[own + 1 :])
        rest = rest[:own]
    try:
        return parser.parse_intermixed_args(rest, given)
    except TypeError:  # argparse cannot mix what takes all that is left: further commands, REMAINDER
        return parser.parse_args(rest, given)


def document_exits(
    parser: argparse.ArgumentParser,
    *,
    done: str = "done",
    wrong: str = "",
    store: bool = True,
    more: dict[int, str] | None = None,
) -> None:
    """Say in a command's help what its exit codes mean; without `wrong` it never ends with 1."""
    meanings = {0: done, 1: wrong, 2: EXITS[2], 3: EXITS[3] if store else "", INTERRUPTED: "interrupted"}
    meanings = dict(sorted({**meanings, **(more or {})}.items()))
    text = "; ".join(f"{code} {meaning}" for code, meaning in meanings.items() if meaning)
    parser.add_argument_group("exit codes", text)
