"""The exercises of `interlock catalog init --from FILE`, and what is said about them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from interlock.cli.output import console, notes, sanitize
from interlock.errors import ConfigError
from interlock_catalog.contracts import Doc
from interlock_catalog.counts import format_count

if TYPE_CHECKING:
    from interlock_catalog.import_account import ImportAccount

_MAX_COMPLAINTS = 20
_MAX_IDS = 5
_PARTLY = "not all of this can be imported, so nothing was; correct it, or leave this out with --skip:"


class Import(msgspec.Struct, frozen=True):
    """The documents of a file, what was left out of it, and what was made of the rest."""

    docs: dict[str, Doc]
    skipped: list[str]
    account: ImportAccount


def read_import(file: Path, *, skip: bool) -> Import:
    """What a file holds; ConfigError if not all of it can be imported, unless that is to be left out."""
    from interlock_catalog.import_account import give_account
    from interlock_catalog.importer import import_exercises
    from interlock_catalog.source_records import read_source_file

    found = read_source_file(file)
    if found.complaints and not skip:
        raise ConfigError(_describe_complaints(file, found.complaints))
    if not found.records:
        raise ConfigError(_describe_complaints(file, found.complaints, "nothing of this can be imported:"))
    return Import(import_exercises(found.records), found.complaints, give_account(found.records))


def _describe_complaints(file: Path, complaints: list[str], lead: str = _PARTLY) -> str:
    shown = [f"  {complaint}" for complaint in complaints[:_MAX_COMPLAINTS]]
    more = [f"  … and {len(complaints) - _MAX_COMPLAINTS} more"] if len(complaints) > _MAX_COMPLAINTS else []
    return "\n".join([f"{file}: {lead}", *shown, *more])


def print_import(found: Import, *, json: bool) -> None:
    """Say what becomes of the source; among the results, or beside them where those are JSON."""
    out, account = notes() if json else console(), found.account
    for complaint in found.skipped:
        out.print(f"skipped: {sanitize(complaint)}")
    if account.rewritten:
        some = [f"{old!r} → {new!r}" for old, new in list(account.rewritten.items())[:_MAX_IDS]]
        more = len(account.rewritten) - len(some)
        rest = f", and {more:,} more (--json has all)" if more else ""
        count = format_count(len(account.rewritten), "id")
        out.print(f"{count} rewritten in small letters, digits and hyphens: {sanitize(', '.join(some))}{rest}")
    if account.made:
        out.print(f"{format_count(account.made, 'id')} made of the name, where the source has none")
    if account.fields:
        out.print("where the fields go:")
        for name, place in account.fields.items():
            out.print(f"  {name} → {sanitize(place)}")
        out.print(f"  [dim]{sanitize(account.added)}[/]")
