"""CSV files that people bring: found only in allowed folders, read in any common encoding."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from interlock.errors import Forbidden, InvalidInput, NotFound, TooLarge
from interlock_ranger.intake.tables import Table, find_delimiter, parse_table
from interlock_ranger.intake.text import decode_table

LARGEST_BYTES = 20_000_000
LONGEST_TEXT = 40
"""Somebody else's words are shown up to so many characters."""
_LONGEST_HEADER = 10_000
# Matches ../x.csv, /etc/passwd, ~/x, C:x and a\b; must not match deep/wide.csv or a..b.csv.
_LEADS_ELSEWHERE = re.compile(r"(?:^|[/\\])\.\.(?:[/\\]|$)|^[/~]|^\w:|\\|\x00")
"""A step up, a root, a home, a drive, a backslash or a NUL."""
# Matches dbh_in, Height, plot_acres and measured_on; must not match species or stand_id, by which people group.
_MEASURED = re.compile(r"_(?:in|ft|pct|acres|on)$|^(?:dbh|height|ht|baf|tree)$", re.I)
"""Columns of figures, which rows are not grouped by: those that end in a unit, and the usual names of measurements."""


class CsvFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as rows, and the encoding that it was in."""

    table: Table
    encoding: str


class CsvFolders:
    """The folders that files may be read from, and the files in them."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))

    def files(self) -> dict[str, Path]:
        """Files by the path that they are called by; a link that leads out of its folder is none."""
        shared = Counter(relative for folder in self._folders for relative in _files_of(folder))
        found: dict[str, Path] = {}
        for folder in self._folders:
            for relative, file in _files_of(folder).items():
                # A name that two folders have stands for neither: both are then called with their folder before it.
                name = f"{folder.name}/{relative}" if shared[relative] > 1 else relative
                while name in found:
                    name = f"{folder.name}/{name}"
                found[name] = file
        return found

    def names(self) -> Callable[[str], dict[str, tuple[str, ...]]]:
        """Known values for an argument: what is there when it is asked."""

        def find_names(text: str) -> dict[str, tuple[str, ...]]:
            """A path that leads elsewhere stands for no file, however like one it looks."""
            return {} if _LEADS_ELSEWHERE.search(text) else {name: _aliases(name) for name in self.files()}

        return find_names

    def columns(self) -> Callable[[str], tuple[str, ...]]:
        """The columns of all files that rows can be grouped by: names, not measurements."""

        def find_columns(_text: str) -> tuple[str, ...]:
            headers = [_read_header(file) for file in self.files().values()]
            return tuple(dict.fromkeys(name for names in headers for name in names if not _MEASURED.search(name)))

        return find_columns

    def find(self, name: str) -> Path:
        """The file of a name; nothing outside the folders, whatever the name says."""
        files = self.files()
        # The list holds only what lies inside, so a name on it needs no further look.
        if name in files:
            return files[name]
        path = Path(name)
        if path.is_absolute() or ".." in path.parts:
            raise Forbidden("files are named relative to the allowed folders; a path may not lead out of them")
        raise NotFound(f"there is no file {name!r} in the allowed folders", hints=tuple(files)[:6])


def _files_of(folder: Path) -> dict[str, Path]:
    return {
        str(file.relative_to(folder)): file
        for file in sorted(folder.rglob("*"))
        # In any case, as TALLY.CSV is what some programs write.
        if file.suffix.lower() == ".csv" and file.is_file() and file.resolve().is_relative_to(folder)
    }


def read_csv(file: Path) -> CsvFile:
    """Rows of a file in UTF-8, UTF-16 or Windows-1252, with commas, semicolons, tabs or bars."""
    # Before it is read: a file of gigabytes must not be taken into memory to find that out.
    if file.stat().st_size > LARGEST_BYTES:
        raise TooLarge(f"{file.name} is over {LARGEST_BYTES // 1_000_000} MB; split it")
    decoded = decode_table(file.read_bytes(), file.name)
    return CsvFile(table=parse_table(decoded.text, file.name), encoding=decoded.encoding)


def shorten(text: str) -> str:
    """Somebody else's words, short and on one line."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain if len(plain) <= LONGEST_TEXT else plain[: LONGEST_TEXT - 1] + "…"


def _read_header(file: Path) -> list[str]:
    """The names in the first line of a file; none if it is no text."""
    with file.open("rb") as source:
        # With a bound, as a file without a line break would be read to its end.
        raw = source.read(_LONGEST_HEADER)
    try:
        # Cut at an even byte, as UTF-16 has two for a character.
        text = decode_table(raw[: len(raw) // 2 * 2] if len(raw) == _LONGEST_HEADER else raw, file.name).text
    except InvalidInput:
        return []
    header = next(iter(text.splitlines()), "")
    names = next(csv.reader([header], delimiter=find_delimiter(header)), [])
    return [name for part in names if (name := shorten(part.strip()))]


def _aliases(name: str) -> tuple[str, ...]:
    """What people call a file: by its name, with the folder before it, with the folder's words."""
    path = Path(name)
    # The year of cedar-creek-2022 is left out: people say "cedar creek trees.csv".
    words = [word for word in path.parent.name.split("-") if word and not word.isdigit()]
    folders = tuple(dict.fromkeys((" ".join(words), words[0]))) if words else ()
    return (path.name, path.stem, *(f"{folder} {path.name}" for folder in folders))
