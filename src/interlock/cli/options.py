"""The options that every command takes, and how times are written on the command line."""

from __future__ import annotations

import argparse
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

from interlock.config import Loaded, Settings, default_key_file, load_settings, parse_duration
from interlock.errors import ConfigError

_AGO = re.compile(r"\d{1,9}[smhd]")


def add_common(parser: argparse.ArgumentParser) -> None:
    """Options that every command takes."""
    group = parser.add_argument_group("settings")
    group.add_argument("--config", metavar="FILE", help="settings file (default: interlock.toml, if there is one)")
    group.add_argument("--store", metavar="URL", help="memory://, sqlite:///FILE or postgresql://…")
    group.add_argument("--policy", metavar="FILE", help="the policy")
    group.add_argument("--tools", metavar="MODULE:NAME", action="append", help="where tools are found (repeatable)")
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
    parser.add_argument(
        "--verbose", action="store_true", help="show the log on standard error: each record, and tracebacks of tools"
    )


def load_command_settings(given: argparse.Namespace) -> Loaded:
    """The settings for one command."""
    named = {
        "store": given.store,
        "policy": given.policy,
        "tools": tuple(given.tools) if given.tools else None,
    }
    return load_settings(given.config, given=named)


def store_option(given: argparse.Namespace) -> str:
    """What another command needs beside its name to find the same ledger; nothing where it is found anyway."""
    if given.store is None:
        return "" if given.config is None else f" --config {shlex.quote(str(Path(given.config).resolve()))}"
    scheme, _, file = given.store.partition(":///")
    # The address of a database on a server may hold a password, and whoever typed it knows it.
    return f" --store {shlex.quote(f'sqlite:///{Path(file).resolve()}')}" if scheme == "sqlite" else ""


def parse_count(text: str) -> int:
    """How many: a whole number above nothing, for argparse."""
    if not text.isascii() or not text.isdigit() or int(text[:12]) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of things; write 20")
    return int(text)


def parse_time(text: str | None) -> int | None:
    """A time that somebody wrote, in microseconds: a date, a date and time, or so long ago."""
    if text is None:
        return None
    try:
        if _AGO.fullmatch(text):
            found = datetime.now(UTC) - timedelta(seconds=parse_duration(text))
        else:
            found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ConfigError(f"{text!r} is not a time; write 2026-01-31, 2026-01-31T12:00:00Z or 2h") from None
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1e6)


def find_key_file(settings: Settings, given: str | None) -> Path:
    """The file of the signing key."""
    return Path(given or settings.audit_key or default_key_file()).expanduser()
