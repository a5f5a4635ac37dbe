"""What a CSV file of tree data holds: columns and groups in figures, and the cells that cannot be right."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path

import msgspec

from interlock import Result
from interlock.errors import InvalidInput
from interlock_ranger.evidence import (
    DataSource,
    DatedBy,
    Evidence,
    Finding,
    Part,
    Recommendation,
    Step,
    Today,
    build_result,
    compute_confidence,
)
from interlock_ranger.intake.cruise_tables import FLAGS
from interlock_ranger.intake.tables import Table, TableRow
from interlock_ranger.intake.text import file_digest
from interlock_ranger.records import Fire, Species
from interlock_ranger.rules import get_rule
from interlock_ranger.timber.csv_files import CsvFolders, read_csv, shorten
from interlock_ranger.timber.csv_numbers import ColumnNumbers

LISTED = 20
"""So many groups and problems a result has at the most."""
LISTED_COLUMNS = 60
NAMED = 8
"""So many groups are named in the summary, with up to `NAMED_MEANS` means each."""
NAMED_MEANS = 4
_ALIASES = {
    "dbh_in": ("dbh_in", "dbh", "diameter"),
    "height_ft": ("height_ft", "height", "ht"),
    "defect_pct": ("defect_pct", "defect"),
    "species": ("species", "species_code", "spp"),
    "dead": ("dead",),
    "synthetic": ("synthetic",),
}
_DATES = re.compile(r"(?:^|_)(?:on|date)$", re.I)
"""Columns of days: measured_on, date, cruise_date."""


class Comparison(StrEnum):
    EQUALS = "equals"
    AT_LEAST = "at_least"
    AT_MOST = "at_most"


class Filter(Part):
    """Keep only rows whose column compares so."""

    column: str
    compare: Comparison
    value: str | float


class Column(Part):
    """One column in figures."""

    name: str
    numeric: bool
    filled: int
    """Cells that are used: in a column of figures, those that the mean is of."""
    missing: int
    unusable: int = 0
    """Filled cells of a column of figures that are no figure, or more than one; each is a problem."""
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


class CellProblem(Part):
    """A cell that is not what it should be."""

    row: int
    column: str
    message: str
    rule: str = "timber.csv"


class Shelf(msgspec.Struct, frozen=True):
    """Where files are looked for, and the fires whose own files may be among them."""

    folders: CsvFolders
    fires: tuple[Fire, ...]


class CsvSummary(Finding):
    file: str
    encoding: str
    delimiter: str
    rows: int
    rows_kept: int
    columns: tuple[Column, ...]
    group_by: str | None
    groups: tuple[Group, ...]
    problem_count: int
    problems: tuple[CellProblem, ...]
    """The first of them; `unknown_species` and `problem_count` are about all."""
    unknown_species: tuple[str, ...]
    quality_pct: float
    untrusted: bool = True


def summarise_file(
    shelf: Shelf, name: str, group_by: str | None, filters: Sequence[Filter], today: Today
) -> Result[CsvSummary]:
    file = shelf.folders.find(name)
    read = read_csv(file)
    table = read.table
    group_by = _spell_column(group_by, table.columns)
    filters = [item.model_copy(update={"column": _spell_column(item.column, table.columns)}) for item in filters]
    _check_columns(name, table.columns, (*((group_by,) if group_by else ()), *(item.column for item in filters)))
    numbers = {
        column: ColumnNumbers((row.cells[column] for row in table.rows), table.delimiter) for column in table.columns
    }
    kept = [row for row in table.rows if all(_matches(row.cells, item, numbers[item.column]) for item in filters)]
    rows = [row.cells for row in kept]
    columns = tuple(_summarise_column(column, rows, numbers[column]) for column in table.columns)
    # By the names in the file: those of a Column are cut short where they are shown.
    numeric = [name for name, column in zip(table.columns, columns, strict=True) if column.numeric]
    problems = (*_find_problems(numbers, numeric, kept), *_find_undecided(table.rows, filters, numbers))
    unknown = _list_unknown_species(table.columns, kept)
    bad_rows = len({problem.row for problem in problems} & {row.number for row in kept})
    sources = (_source(shelf, file, name, table),)
    evidence = Evidence(
        reasoning=(
            Step(rule="timber.csv", text=f"{len(rows)} of {len(table.rows)} rows kept by {len(filters)} filters"),
            Step(rule="timber.csv", text=f"{len(problems)} cells out of range, missing or not known"),
        ),
        recommendations=(Recommendation(rule="timber.csv", text=f"correct {bad_rows} rows before the file is used"),)
        * bool(bad_rows),
        confidence=compute_confidence(today(), sources, len(rows) - bad_rows, max(1, len(rows))),
        data_sources=sources,
    )
    summary = CsvSummary(
        file=name,
        encoding=read.encoding,
        delimiter=table.delimiter,
        rows=len(table.rows),
        rows_kept=len(rows),
        columns=columns[:LISTED_COLUMNS],
        group_by=group_by,
        groups=_summarise_groups(rows, group_by, {name: numbers[name] for name in numeric}) if group_by else (),
        problem_count=len(problems),
        problems=problems[:LISTED],
        unknown_species=unknown,
        quality_pct=round(100 * (1 - bad_rows / len(rows)), 1) if rows else 0.0,
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    return build_result(summary, _summarise(summary, columns))


def _source(shelf: Shelf, file: Path, name: str, table: Table) -> DataSource:
    owner = next((fire for fire in shelf.fires if fire.folder.resolve() == file.parent.resolve()), None)
    dated, dated_by = _date(owner, file, table)
    return DataSource(
        file=name,
        dated=dated,
        dated_by=dated_by,
        sha256=file_digest(file),
        synthetic=_is_synthetic(table, file.name) if owner is None else owner.facts.synthetic,
    )


def _is_synthetic(table: Table, name: str) -> bool:
    """By what a file says of itself; a name counts only where no column says anything."""
    labels = [row.cells[column] for column in table.columns if column.casefold() == "synthetic" for row in table.rows]
    said = [FLAGS[label.casefold()] for label in labels if label.casefold() in FLAGS]
    # One row is enough: a figure made of real and of invented data is invented.
    return any(said) if said else name.startswith("synthetic-")


def _date(owner: Fire | None, file: Path, table: Table) -> tuple[date, DatedBy]:
    """The oldest day that the rows name, else the fire's date for the file, else that of the file."""
    days = [
        day
        for column in table.columns
        if _DATES.search(column)
        for row in table.rows
        if (day := _parse_day(row.cells[column])) is not None
    ]
    if days:
        return min(days), DatedBy.DATA
    if owner is not None:
        return owner.date_of(file.name), DatedBy.DATA
    return datetime.fromtimestamp(file.stat().st_mtime, UTC).date(), DatedBy.FILE


def _parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _check_columns(name: str, columns: Sequence[str], wanted: Sequence[str]) -> None:
    for column in wanted:
        if column not in columns:
            raise InvalidInput(f"{name} has no column {column!r}; it has {', '.join(map(shorten, columns))}")


def _spell_column(name: str | None, columns: Sequence[str]) -> str | None:
    """A column as the file spells it, whatever the case it was asked for in."""
    return next((other for other in columns if name is not None and other.casefold() == name.casefold()), name)


def _matches(row: Mapping[str, str], item: Filter, numbers: ColumnNumbers) -> bool:
    cell = row[item.column]
    number, bound = numbers.read(cell), _read_bound(item)
    if item.compare is Comparison.EQUALS:
        # As text and as a number: psme is PSME, and 20 is 20.0.
        return cell.casefold() == str(item.value).casefold() or (number is not None and number == bound)
    if bound is None:
        raise InvalidInput(f"filter on {item.column}: {item.compare.value} needs a number, not {item.value!r}")
    return number is not None and (number >= bound if item.compare is Comparison.AT_LEAST else number <= bound)


def _read_bound(item: Filter) -> float | None:
    return ColumnNumbers((), ",").read(str(item.value))


def _find_undecided(
    rows: Sequence[TableRow], filters: Sequence[Filter], numbers: Mapping[str, ColumnNumbers]
) -> Iterator[CellProblem]:
    """Rows of which nobody can tell whether a filter keeps them; they are left out, and that is said."""
    for item in filters:
        if item.compare is Comparison.EQUALS:
            continue
        for row in rows:
            cell, own = row.cells[item.column], numbers[item.column]
            if cell != "" and own.read(cell) is None:
                message = f"left out, as it cannot be compared: {own.explain(cell)}"
                yield CellProblem(row=row.number, column=shorten(item.column), message=message)


def _summarise_column(name: str, rows: Sequence[Mapping[str, str]], numbers: ColumnNumbers) -> Column:
    """A column is one of figures if most of its filled cells look like some; the others are problems, not a reason."""
    filled = [row[name] for row in rows if row[name] != ""]
    missing = len(rows) - len(filled)
    if sum(map(numbers.looks_like_one, filled)) * 2 <= len(filled):
        distinct = len(set(filled))
        return Column(name=shorten(name), filled=len(filled), missing=missing, numeric=False, distinct=distinct)
    figures = [figure for cell in filled if (figure := numbers.read(cell)) is not None]
    return Column(
        name=shorten(name),
        filled=len(figures),
        missing=missing,
        unusable=len(filled) - len(figures),
        numeric=True,
        mean=round(statistics.fmean(figures), 3) if figures else None,
        median=round(statistics.median(figures), 3) if figures else None,
        least=min(figures, default=None),
        most=max(figures, default=None),
    )


def _summarise_groups(
    rows: Sequence[Mapping[str, str]], group_by: str, numeric: Mapping[str, ColumnNumbers]
) -> tuple[Group, ...]:
    """The largest groups first."""
    by_value: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        by_value.setdefault(row[group_by], []).append(row)
    others = {name: numbers for name, numbers in numeric.items() if name != group_by}
    largest = sorted(by_value.items(), key=lambda item: -len(item[1]))[:LISTED]
    return tuple(
        Group(value=shorten(value) or "(empty)", rows=len(own), means=_means(own, others)) for value, own in largest
    )


def _means(rows: Sequence[Mapping[str, str]], columns: Mapping[str, ColumnNumbers]) -> dict[str, float]:
    figures = {
        name: [figure for row in rows if (figure := numbers.read(row[name])) is not None]
        for name, numbers in columns.items()
    }
    return {shorten(name): round(statistics.fmean(own), 2) for name, own in figures.items() if own}


def _find_problems(
    numbers: Mapping[str, ColumnNumbers], numeric: Sequence[str], rows: Sequence[TableRow]
) -> tuple[CellProblem, ...]:
    """Cells that cannot be right, and everything that a mean leaves out."""
    plain = {name.strip().lower(): name for name in numbers}
    # Backwards, so that of two columns of one kind the first alias wins: dbh_in before dbh.
    kinds = {kind: plain[alias] for kind, names in _ALIASES.items() for alias in names[::-1] if alias in plain}
    others = [name for name in numeric if name not in kinds.values()]
    problems = list[CellProblem]()
    for row in rows:
        problems += _find_uneven(row)
        problems += [
            CellProblem(row=row.number, column=shorten(column), message=message)
            for kind, column in kinds.items()
            if (message := _cell_problem(kind, row.cells[column], numbers[column]))
        ]
        problems += [
            CellProblem(row=row.number, column=shorten(column), message=numbers[column].explain(cell))
            for column in others
            if (cell := row.cells[column]) != "" and numbers[column].read(cell) is None
        ]
    return tuple(problems)


def _find_uneven(row: TableRow) -> Iterator[CellProblem]:
    if row.beyond:
        yield CellProblem(row=row.number, column="", message=f"{row.beyond} filled cells stand in no named column")
    for column in row.broken:
        message = f"lines {row.begins} to {row.number} are one row: a quotation mark took them into this cell"
        yield CellProblem(row=row.number, column=shorten(column), message=message)
    if row.absent:
        message = f"the row ends before {len(row.absent)} of its columns"
        yield CellProblem(row=row.number, column=shorten(row.absent[0]), message=message)


def _list_unknown_species(columns: Sequence[str], rows: Sequence[TableRow]) -> tuple[str, ...]:
    """Every code that is not known, once."""
    own = [column for column in columns if column.strip().lower() in _ALIASES["species"]]
    codes = dict.fromkeys(row.cells[column].upper() for row in rows for column in own[:1] if row.cells[column])
    return tuple(shorten(code) for code in codes if code not in Species.__members__)[:LISTED_COLUMNS]


def _cell_problem(kind: str, cell: str, numbers: ColumnNumbers) -> str:
    """What is wrong with a cell of a column of trees; nothing, if it is as it should be."""
    if cell == "":
        return "empty"
    if kind == "species":
        return "" if cell.upper() in Species.__members__ else "unknown species code"
    if kind in ("dead", "synthetic"):
        return "" if cell.casefold() in FLAGS else f"{shorten(cell)!r} is none of {', '.join(FLAGS)}"
    number = numbers.read(cell)
    if number is None:
        return numbers.explain(cell)
    low, high = get_rule("timber.csv").values[kind]
    return "" if low <= number <= high else f"{number:g} is outside {low} to {high}"


def _summarise(summary: CsvSummary, columns: Sequence[Column]) -> str:
    figures = ", ".join(f"{c.name} mean {c.mean:g} ({c.least:g} to {c.most:g})" for c in columns if c.mean is not None)
    groups = "; ".join(map(_summarise_group, summary.groups[:NAMED]))
    missing = sum(column.missing for column in columns)
    return (
        f"{summary.file}: {summary.rows_kept} of {summary.rows} rows, {len(columns)} columns;"
        f" {figures or 'no numeric column'}; {missing} empty cells; {summary.problem_count} problems,"
        f" {summary.quality_pct} % of rows clean of them" + (f"; by {summary.group_by}: {groups}" if groups else "")
    )


def _summarise_group(group: Group) -> str:
    means = "".join(f", mean {name} {mean:g}" for name, mean in list(group.means.items())[:NAMED_MEANS])
    return f"{group.value}: {group.rows} rows{means}"
