"""CSV files that people bring: found only in allowed folders, read in any common encoding."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from interlock.errors import Forbidden, InvalidInput, NotFound, TooLarge

LARGEST_BYTES = 20_000_000
LONGEST_TEXT = 40
"""Somebody else's words are shown up to so many characters."""
_LONGEST_HEADER = 10_000
_SNIFFED = 4096
"""So much of a file is looked at to find its delimiter."""
_DELIMITERS = ",;\t|"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_ENCODINGS = ("utf-8-sig", "cp1252")
"""In this order: nearly every file can be read as Windows-1252, few that are not UTF-8 can be read as that."""
# Matches ../x.csv, /etc/passwd, ~/x, C:x and a\b; must not match deep/wide.csv or a..b.csv.
_LEADS_ELSEWHERE = re.compile(r"(?:^|[/\\])\.\.(?:[/\\]|$)|^[/~]|^\w:|\\|\x00")
"""A step up, a root, a home, a drive, a backslash or a NUL."""
# Matches dbh_in, Height, plot_acres and measured_on; must not match species or stand_id, by which people group.
_MEASURED = re.compile(r"_(?:in|ft|pct|acres|on)$|^(?:dbh|height|ht|baf|tree)$", re.I)
"""Columns of figures, which rows are not grouped by: those that end in a unit, and the usual names of measurements."""


class CsvFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as rows."""

    columns: list[str]
    rows: list[dict[str, str]]
    encoding: str
    delimiter: str


class CsvFolders:
    """The folders that files may be read from, and the files in them."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [folder.resolve() for folder in folders]

    def files(self) -> dict[str, Path]:
        """Files by the path that they are called by; a link that leads out of its folder is none."""
        return {
            str(file.relative_to(folder)): file
            for folder in self._folders
            for file in sorted(folder.rglob("*.csv"))
            if file.resolve().is_relative_to(folder)
        }

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


def read_csv(file: Path) -> CsvFile:
    """Rows of a file in UTF-8, UTF-16 or Windows-1252, with commas, semicolons, tabs or bars."""
    # Before it is read: a file of gigabytes must not be taken into memory to find that out.
    if file.stat().st_size > LARGEST_BYTES:
        raise TooLarge(f"{file.name} is over {LARGEST_BYTES // 1_000_000} MB; split it")
    text, encoding = _decode(file.read_bytes(), file.name)
    delimiter = _sniff_delimiter(text)
    # Cells beyond the header get a name that is no column, and so are dropped below.
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, restkey="(beyond)")
    columns = [name for name in reader.fieldnames or [] if name]
    if not columns:
        raise InvalidInput(f"{file.name} has no header line with column names")
    rows = [{name: (row.get(name) or "").strip() for name in columns} for row in reader]
    return CsvFile(columns=columns, rows=rows, encoding=encoding, delimiter=delimiter)


def shorten(text: str) -> str:
    """Somebody else's words, short and on one line."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain if len(plain) <= LONGEST_TEXT else plain[: LONGEST_TEXT - 1] + "…"


def _decode(raw: bytes, name: str) -> tuple[str, str]:
    """The text, and the encoding that it was in."""
    # By its mark and first: most UTF-16 can be read as Windows-1252 without an error, too.
    if raw[:2] in _UTF16_MARKS:
        return raw.decode("utf-16"), "utf-16"
    for encoding in _ENCODINGS:
        try:
            return raw.decode(encoding), encoding.removesuffix("-sig")
        except UnicodeDecodeError:
            continue
    raise InvalidInput(f"{name} is neither UTF-8, UTF-16 nor Windows-1252 text")


def _sniff_delimiter(text: str) -> str:
    try:
        return csv.Sniffer().sniff(text[:_SNIFFED], _DELIMITERS).delimiter
    except csv.Error:  # one column alone has none
        return ","


def _read_header(file: Path) -> list[str]:
    """The names in the first line of a file; none for UTF-16, whose lines do not end with a single byte."""
    with file.open("rb") as source:
        # With a bound, as a file without a line break would be read to its end.
        raw = source.readline(_LONGEST_HEADER)
    text = raw.decode("utf-8-sig", errors="replace") if raw[:2] not in _UTF16_MARKS else ""
    return [name for part in re.split(f"[{_DELIMITERS}]", text) if (name := shorten(part.strip().strip('"')))]


def _aliases(name: str) -> tuple[str, ...]:
    """What people call a file: by its name, with the folder before it, with the folder's words."""
    path = Path(name)
    # The year of cedar-creek-2022 is left out: people say "cedar creek trees.csv".
    words = [word for word in path.parent.name.split("-") if word and not word.isdigit()]
    folders = tuple(dict.fromkeys((" ".join(words), words[0]))) if words else ()
    return (path.name, path.stem, *(f"{folder} {path.name}" for folder in folders))
