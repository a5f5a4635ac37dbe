"""CSV files that people bring: found only in allowed folders, read in any common encoding, checked, summarised."""

from __future__ import annotations

import csv
import io
import math
import re
import statistics
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import msgspec

from interlock import Result
from interlock.errors import Forbidden, InvalidInput, NotFound, TooLarge
from interlock_ranger.evidence import DataSource, Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.fires import digest
from interlock_ranger.rules import rule
from interlock_ranger.timber.species import Species

LARGEST = 20_000_000
SHOWN = 20
CLIPPED = 40
_ENCODINGS = ("utf-8-sig", "cp1252")
_ODD_PATH = re.compile(r"(?:^|[/\\])\.\.(?:[/\\]|$)|^[/~]|^\w:|\\|\x00")
_MEASURED = re.compile(r"_(?:in|ft|pct|acres|on)$|^(?:dbh|height|ht|baf|tree)$", re.I)
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_ALIASES = {
    "dbh_in": ("dbh_in", "dbh", "diameter"),
    "height_ft": ("height_ft", "height", "ht"),
    "defect_pct": ("defect_pct", "defect"),
    "species": ("species", "species_code", "spp"),
}


class Compare(StrEnum):
    """How a filter compares."""

    EQUALS = "equals"
    AT_LEAST = "at_least"
    AT_MOST = "at_most"


class Filter(Part):
    """Keep only rows whose column compares so."""

    column: str
    compare: Compare
    value: str | float


class Column(Part):
    """One column in figures."""

    name: str
    numeric: bool
    filled: int
    missing: int
    mean: float | None = None
    median: float | None = None
    least: float | None = None
    most: float | None = None
    distinct: int | None = None


class Group(Part):
    """The rows that share a value."""

    value: str
    rows: int
    means: dict[str, float]


class Problem(Part):
    """A cell that is not what it should be."""

    row: int
    column: str
    said: str
    rule: str = "timber.csv"


class Table(Finding):
    """What a file holds."""

    file: str
    encoding: str
    delimiter: str
    rows: int
    rows_kept: int
    columns: tuple[Column, ...]
    group_by: str | None
    groups: tuple[Group, ...]
    problem_count: int
    problems: tuple[Problem, ...]
    quality_pct: float
    untrusted: bool = True


class Sheet(msgspec.Struct, frozen=True):
    """A file as rows."""

    names: list[str]
    rows: list[dict[str, str]]
    encoding: str
    delimiter: str


class Shelf:
    """The folders that files may be read from, and the files in them."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [folder.resolve() for folder in folders]

    def files(self) -> dict[str, Path]:
        """Files by the path that they are called by."""
        return {
            str(file.relative_to(folder)): file
            for folder in self._folders
            for file in sorted(folder.rglob("*.csv"))
            if file.resolve().is_relative_to(folder)
        }

    def names(self) -> Callable[[str], dict[str, tuple[str, ...]]]:
        """Known values for an argument: what is there when it is asked."""

        def named(text: str) -> dict[str, tuple[str, ...]]:
            """A path that leads elsewhere stands for no file, however like one it looks."""
            return {} if _ODD_PATH.search(text) else {name: _called(name) for name in self.files()}

        return named

    def columns(self) -> Callable[[str], tuple[str, ...]]:
        """The columns of all files that rows can be grouped by: names, not measurements."""

        def named(_text: str) -> tuple[str, ...]:
            heads = [_head(file) for file in self.files().values()]
            return tuple(dict.fromkeys(name for head in heads for name in head if not _MEASURED.search(name)))

        return named

    def find(self, name: str) -> Path:
        """The file of a name; nothing outside the folders, whatever the name says."""
        files = self.files()
        if name in files:
            return files[name]
        odd = Path(name)
        if odd.is_absolute() or ".." in odd.parts:
            raise Forbidden("files are named relative to the allowed folders; a path may not lead out of them")
        raise NotFound(f"there is no file {name!r} in the allowed folders", hints=tuple(files)[:6])


def _head(file: Path) -> list[str]:
    """The names in the first line of a file."""
    with file.open("rb") as source:
        raw = source.readline(10_000)
    text = raw.decode("utf-8-sig", errors="replace") if raw[:2] not in (b"\xff\xfe", b"\xfe\xff") else ""
    return [name for part in re.split(r"[,;\t|]", text) if (name := _clipped(part.strip().strip('"')))]


def _called(name: str) -> tuple[str, ...]:
    """What people call a file: by its name, with the folder before it, with the folder's words."""
    path = Path(name)
    words = [word for word in path.parent.name.split("-") if word and not word.isdigit()]
    folders = tuple(dict.fromkeys((" ".join(words), words[0]))) if words else ()
    return (path.name, path.stem, *(f"{folder} {path.name}" for folder in folders))


def read_sheet(file: Path) -> Sheet:
    """Rows of a file in UTF-8, UTF-16 or Windows-1252, with commas, semicolons, tabs or bars."""
    if file.stat().st_size > LARGEST:
        raise TooLarge(f"{file.name} is over {LARGEST // 1_000_000} MB; split it")
    raw = file.read_bytes()
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text, encoding = raw.decode("utf-16"), "utf-16"
    else:
        text, encoding = _decoded(raw, file.name)
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[:4096], ",;\t|")
        delimiter = dialect.delimiter
    except csv.Error:
        delimiter = ","
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, restkey="(beyond)")
    names = [name for name in reader.fieldnames or [] if name]
    if not names:
        raise InvalidInput(f"{file.name} has no header line with column names")
    rows = [{name: (row.get(name) or "").strip() for name in names} for row in reader]
    return Sheet(names, rows, encoding, delimiter)


def _decoded(raw: bytes, name: str) -> tuple[str, str]:
    for encoding in _ENCODINGS:
        try:
            return raw.decode(encoding), encoding.removesuffix("-sig")
        except UnicodeDecodeError:
            continue
    raise InvalidInput(f"{name} is neither UTF-8, UTF-16 nor Windows-1252 text")


def analysed(shelf: Shelf, name: str, group_by: str | None, filters: Sequence[Filter], today: Today) -> Result[Table]:
    """A file in figures."""
    file = shelf.find(name)
    sheet = read_sheet(file)
    group_by = _as_spelled(group_by, sheet.names)
    filters = [item.model_copy(update={"column": _as_spelled(item.column, sheet.names)}) for item in filters]
    for wanted in (*((group_by,) if group_by else ()), *(item.column for item in filters)):
        if wanted not in sheet.names:
            raise InvalidInput(f"{name} has no column {wanted!r}; it has {', '.join(map(_clipped, sheet.names))}")
    kept = {n: row for n, row in enumerate(sheet.rows, 2) if all(_keeps(row, item) for item in filters)}
    rows = list(kept.values())
    columns = tuple(_column(column, rows) for column in sheet.names)
    problems = tuple(_problems(sheet, kept))
    bad = len({problem.row for problem in problems})
    dated = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
    sources = (DataSource(file=name, dated=min(dated, today()), sha256=digest(file), synthetic=_is_ours(file)),)
    value = {
        "file": name,
        "encoding": sheet.encoding,
        "delimiter": sheet.delimiter,
        "rows": len(sheet.rows),
        "rows_kept": len(rows),
        "columns": columns[:60],
        "group_by": group_by,
        "groups": _groups(rows, group_by, columns) if group_by else (),
        "problem_count": len(problems),
        "problems": problems[:SHOWN],
        "quality_pct": round(100 * (1 - bad / len(rows)), 1) if rows else 0.0,
        "reasoning": (
            Step(rule="timber.csv", said=f"{len(rows)} of {len(sheet.rows)} rows kept by {len(filters)} filters"),
            Step(rule="timber.csv", said=f"{len(problems)} cells out of range, missing or not known"),
        ),
        "recommendations": (
            (Recommendation(rule="timber.csv", text=f"correct {bad} rows before the file is used"),) if bad else ()
        ),
    }
    trust = confidence(today(), sources, len(rows) - bad, max(1, len(rows)))
    return finding(Table, _said(value, columns), value, sources, trust)


def _as_spelled(name: str | None, names: Sequence[str]) -> str | None:
    """A column as the file spells it, whatever the case it was asked for in."""
    return next((other for other in names if name is not None and other.casefold() == name.casefold()), name)


def _keeps(row: dict[str, str], item: Filter) -> bool:
    cell = row[item.column]
    found, bound = _number(cell), _number(str(item.value))
    if item.compare is Compare.EQUALS:
        return cell.casefold() == str(item.value).casefold() or (found is not None and found == bound)
    if bound is None:
        raise InvalidInput(f"filter on {item.column}: {item.compare.value} needs a number, not {item.value!r}")
    return found is not None and (found >= bound if item.compare is Compare.AT_LEAST else found <= bound)


def _number(text: str) -> float | None:
    """A figure; commas only where they part thousands, as "30,5" is no three hundred and five."""
    plain = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
    try:
        found = float(plain)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _column(name: str, rows: Sequence[dict[str, str]]) -> Column:
    filled = [row[name] for row in rows if row[name] != ""]
    numbers = [n for cell in filled if (n := _number(cell)) is not None]
    counts = {"name": _clipped(name), "filled": len(filled), "missing": len(rows) - len(filled)}
    if filled and len(numbers) * 2 > len(filled):
        return Column(
            **counts,
            numeric=True,
            mean=round(statistics.fmean(numbers), 3),
            median=round(statistics.median(numbers), 3),
            least=min(numbers),
            most=max(numbers),
        )
    return Column(**counts, numeric=False, distinct=len(set(filled)))


def _groups(rows: Sequence[dict[str, str]], group_by: str, columns: Sequence[Column]) -> tuple[Group, ...]:
    kept: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        kept.setdefault(row[group_by], []).append(row)
    numeric = [column.name for column in columns if column.numeric and column.name != group_by]
    found = []
    for value, own in sorted(kept.items(), key=lambda item: -len(item[1]))[:SHOWN]:
        means = {}
        for name in numeric:
            numbers = [n for row in own if (n := _number(row[name])) is not None]
            if numbers:
                means[name] = round(statistics.fmean(numbers), 2)
        found.append(Group(value=_clipped(value) or "(empty)", rows=len(own), means=means))
    return tuple(found)


def _problems(sheet: Sheet, rows: dict[int, dict[str, str]]) -> list[Problem]:
    ranges = rule("timber.csv").values
    plain = {name.strip().lower(): name for name in sheet.names}
    columns = {kind: plain[alias] for kind, names in _ALIASES.items() for alias in names[::-1] if alias in plain}
    found = []
    for number, row in rows.items():  # as they are numbered in the file
        for kind, column in columns.items():
            cell = row[column]
            value = _number(cell)
            if cell == "":
                found.append(Problem(row=number, column=column, said="empty"))
            elif kind == "species":
                if cell.upper() not in Species.__members__:
                    found.append(Problem(row=number, column=column, said="unknown species code"))
            elif value is None:
                found.append(Problem(row=number, column=column, said="not a number"))
            elif not ranges[kind][0] <= value <= ranges[kind][1]:
                low, high = ranges[kind]
                found.append(Problem(row=number, column=column, said=f"{value:g} is outside {low} to {high}"))
    return found


def _clipped(text: str) -> str:
    """Somebody else's words, short and on one line."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain if len(plain) <= CLIPPED else plain[: CLIPPED - 1] + "…"


def _is_ours(file: Path) -> bool:
    return (file.parent / "fire.json").exists() or file.name.startswith("synthetic-")


def _said(value: dict[str, object], columns: Sequence[Column]) -> str:
    figures = ", ".join(f"{c.name} mean {c.mean:g} ({c.least:g} to {c.most:g})" for c in columns if c.mean is not None)
    groups: tuple[Group, ...] = value["groups"]  # type: ignore[assignment]
    split = "; ".join(
        f"{g.value}: {g.rows} rows" + "".join(f", mean {name} {mean:g}" for name, mean in list(g.means.items())[:4])
        for g in groups[:8]
    )
    missing = sum(column.missing for column in columns)
    return (
        f"{value['file']}: {value['rows_kept']} of {value['rows']} rows, {len(columns)} columns;"
        f" {figures or 'no numeric column'}; {missing} empty cells; {value['problem_count']} problems in tree columns,"
        f" {value['quality_pct']} % of rows clean of them" + (f"; by {value['group_by']}: {split}" if split else "")
    )
