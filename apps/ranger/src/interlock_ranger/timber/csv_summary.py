"""What a CSV file of tree data holds: columns and groups in figures, and the cells that cannot be right."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from interlock import Result
from interlock.errors import InvalidInput
from interlock_ranger.evidence import (
    DataSource,
    Evidence,
    Finding,
    Part,
    Recommendation,
    Step,
    Today,
    build_result,
    compute_confidence,
)
from interlock_ranger.fires import file_digest
from interlock_ranger.rules import get_rule
from interlock_ranger.timber.csv_files import CsvFolders, read_csv, shorten
from interlock_ranger.timber.species import Species

LISTED = 20
"""So many groups and problems a result has at the most."""
LISTED_COLUMNS = 60
NAMED = 8
"""So many groups are named in the summary, with up to `NAMED_MEANS` means each."""
NAMED_MEANS = 4
_FIRST_ROW = 2
"""Rows are numbered as in the file: the first line is the header."""
# 1,200 and -1,234,567.5; not 30,5, which is a decimal comma, and not 12,34.
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_ALIASES = {
    "dbh_in": ("dbh_in", "dbh", "diameter"),
    "height_ft": ("height_ft", "height", "ht"),
    "defect_pct": ("defect_pct", "defect"),
    "species": ("species", "species_code", "spp"),
}
Rows = Mapping[int, Mapping[str, str]]
"""Rows by their number in the file."""


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


class CellProblem(Part):
    """A cell that is not what it should be."""

    row: int
    column: str
    message: str
    rule: str = "timber.csv"


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
    quality_pct: float
    untrusted: bool = True


def summarise_file(
    folders: CsvFolders, name: str, group_by: str | None, filters: Sequence[Filter], today: Today
) -> Result[CsvSummary]:
    file = folders.find(name)
    table = read_csv(file)
    group_by = _spell_column(group_by, table.columns)
    filters = [item.model_copy(update={"column": _spell_column(item.column, table.columns)}) for item in filters]
    _check_columns(name, table.columns, (*((group_by,) if group_by else ()), *(item.column for item in filters)))
    kept = {n: row for n, row in enumerate(table.rows, _FIRST_ROW) if all(_matches(row, item) for item in filters)}
    rows = list(kept.values())
    columns = tuple(_summarise_column(column, rows) for column in table.columns)
    # By the names in the file: those of a Column are cut short where they are shown.
    numeric = [name for name, column in zip(table.columns, columns, strict=True) if column.numeric]
    problems = _find_problems(table.columns, kept)
    bad_rows = len({problem.row for problem in problems})
    sources = (_source(file, name, today),)
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
        encoding=table.encoding,
        delimiter=table.delimiter,
        rows=len(table.rows),
        rows_kept=len(rows),
        columns=columns[:LISTED_COLUMNS],
        group_by=group_by,
        groups=_summarise_groups(rows, group_by, numeric) if group_by else (),
        problem_count=len(problems),
        problems=problems[:LISTED],
        quality_pct=round(100 * (1 - bad_rows / len(rows)), 1) if rows else 0.0,
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    return build_result(summary, _summarise(summary, columns))


def _source(file: Path, name: str, today: Today) -> DataSource:
    written = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
    # The files of a fire are ours; whatever else lies in the folders is somebody's.
    synthetic = (file.parent / "fire.json").exists() or file.name.startswith("synthetic-")
    # A file may be dated tomorrow by another machine's clock; no source is younger than today.
    return DataSource(file=name, dated=min(written, today()), sha256=file_digest(file), synthetic=synthetic)


def _check_columns(name: str, columns: Sequence[str], wanted: Sequence[str]) -> None:
    for column in wanted:
        if column not in columns:
            raise InvalidInput(f"{name} has no column {column!r}; it has {', '.join(map(shorten, columns))}")


def _spell_column(name: str | None, columns: Sequence[str]) -> str | None:
    """A column as the file spells it, whatever the case it was asked for in."""
    return next((other for other in columns if name is not None and other.casefold() == name.casefold()), name)


def _matches(row: Mapping[str, str], item: Filter) -> bool:
    cell = row[item.column]
    number, bound = parse_number(cell), parse_number(str(item.value))
    if item.compare is Comparison.EQUALS:
        # As text and as a number: psme is PSME, and 20 is 20.0.
        return cell.casefold() == str(item.value).casefold() or (number is not None and number == bound)
    if bound is None:
        raise InvalidInput(f"filter on {item.column}: {item.compare.value} needs a number, not {item.value!r}")
    return number is not None and (number >= bound if item.compare is Comparison.AT_LEAST else number <= bound)


def parse_number(text: str) -> float | None:
    """A figure; commas only where they part thousands, as "30,5" is no three hundred and five."""
    plain = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
    try:
        number = float(plain)
    except ValueError:
        return None
    # float() also reads "nan" and "inf", and one such cell would spoil the mean of its column.
    return number if math.isfinite(number) else None


def _summarise_column(name: str, rows: Sequence[Mapping[str, str]]) -> Column:
    """A column counts as numeric if most of its filled cells are numbers; the others are problems, not a reason."""
    filled = [row[name] for row in rows if row[name] != ""]
    numbers = [n for cell in filled if (n := parse_number(cell)) is not None]
    counts = {"name": shorten(name), "filled": len(filled), "missing": len(rows) - len(filled)}
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


def _summarise_groups(rows: Sequence[Mapping[str, str]], group_by: str, numeric: Sequence[str]) -> tuple[Group, ...]:
    """The largest groups first."""
    by_value: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        by_value.setdefault(row[group_by], []).append(row)
    others = [name for name in numeric if name != group_by]
    largest = sorted(by_value.items(), key=lambda item: -len(item[1]))[:LISTED]
    return tuple(
        Group(value=shorten(value) or "(empty)", rows=len(own), means=_means(own, others)) for value, own in largest
    )


def _means(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> dict[str, float]:
    numbers = {name: [n for row in rows if (n := parse_number(row[name])) is not None] for name in columns}
    return {shorten(name): round(statistics.fmean(own), 2) for name, own in numbers.items() if own}


def _find_problems(columns: Sequence[str], rows: Rows) -> tuple[CellProblem, ...]:
    plain = {name.strip().lower(): name for name in columns}
    # Backwards, so that of two columns of one kind the first alias wins: dbh_in before dbh.
    kinds = {kind: plain[alias] for kind, names in _ALIASES.items() for alias in names[::-1] if alias in plain}
    return tuple(
        CellProblem(row=number, column=column, message=message)
        for number, row in rows.items()
        for kind, column in kinds.items()
        if (message := _cell_problem(kind, row[column]))
    )


def _cell_problem(kind: str, cell: str) -> str:
    """What is wrong with a cell of a column of trees; nothing, if it is as it should be."""
    if cell == "":
        return "empty"
    if kind == "species":
        return "" if cell.upper() in Species.__members__ else "unknown species code"
    number = parse_number(cell)
    if number is None:
        return "not a number"
    low, high = get_rule("timber.csv").values[kind]
    return "" if low <= number <= high else f"{number:g} is outside {low} to {high}"


def _summarise(summary: CsvSummary, columns: Sequence[Column]) -> str:
    figures = ", ".join(f"{c.name} mean {c.mean:g} ({c.least:g} to {c.most:g})" for c in columns if c.mean is not None)
    groups = "; ".join(map(_summarise_group, summary.groups[:NAMED]))
    missing = sum(column.missing for column in columns)
    return (
        f"{summary.file}: {summary.rows_kept} of {summary.rows} rows, {len(columns)} columns;"
        f" {figures or 'no numeric column'}; {missing} empty cells; {summary.problem_count} problems in tree columns,"
        f" {summary.quality_pct} % of rows clean of them" + (f"; by {summary.group_by}: {groups}" if groups else "")
    )


def _summarise_group(group: Group) -> str:
    means = "".join(f", mean {name} {mean:g}" for name, mean in list(group.means.items())[:NAMED_MEANS])
    return f"{group.value}: {group.rows} rows{means}"
