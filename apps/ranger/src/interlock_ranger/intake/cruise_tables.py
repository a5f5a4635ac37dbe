"""plots.csv and trees.csv: every cell checked, every tree on a plot that there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from interlock.errors import InvalidInput
from interlock_ranger.intake.fire_json import SLOPE_PCT, Checked
from interlock_ranger.intake.problems import (
    Allowed,
    InputProblem,
    OneOf,
    Range,
    check_fields,
    keep_sound,
    one_of,
    parse_figure,
    show_value,
)
from interlock_ranger.intake.tables import Table, TableRow, parse_table
from interlock_ranger.records import Plot, PlotType, Species, Tree

FLAGS = {"yes": True, "true": True, "1": True, "y": True, "no": False, "false": False, "0": False, "n": False}
"""What people write for yes and no, in any case."""
DBH_IN = (1, 120)
HEIGHT_FT = (10, 400)
_TREE: dict[str, Allowed] = {
    "species": one_of(Species),
    "dbh_in": Range(low=DBH_IN[0], high=DBH_IN[1], hint="inches"),
    "height_ft": Range(low=HEIGHT_FT[0], high=HEIGHT_FT[1], hint="feet"),
    "defect_pct": Range(low=0, high=100, hint="percent"),
    "dead": OneOf(tuple(FLAGS)),
}
TREE_COLUMNS = ("plot_id", *_TREE)
_MORE_TREE_COLUMNS = ("tree", "synthetic")
PLOT_COLUMNS = ("plot_id", "stand_id", "plot_type", "baf", "plot_acres", "slope_pct", "measured_on")
_MORE_PLOT_COLUMNS = ("sector_id", "synthetic")
"""That may be there, too; every other column is refused, as nobody would read it."""
_BAF = Range(low=0.5, high=200, hint="square feet an acre for each tree")
_PLOT_ACRES = Range(low=0.001, high=5, hint="acres")
_PLOT: dict[str, Allowed] = {"plot_type": one_of(PlotType), "slope_pct": SLOPE_PCT}
_SIZES: dict[str, dict[str, Allowed]] = {
    PlotType.VARIABLE: {"baf": _BAF, "plot_acres": OneOf(("",))},
    PlotType.FIXED: {"plot_acres": _PLOT_ACRES, "baf": OneOf(("",))},
}
"""A plot has the one size that its kind has; the cell of the other stays empty."""


def read_trees(text: str) -> Checked:
    file = "trees.csv"
    table = _read_columns(text, file, TREE_COLUMNS)
    problems = [*_check_columns(table, file, TREE_COLUMNS, _MORE_TREE_COLUMNS), *_find_twice(table)]
    if _is_whole(table, TREE_COLUMNS):
        problems += _find_equal(table)
    return _read_rows(table, file, _check_tree, _build_tree if _is_whole(table, TREE_COLUMNS) else None, problems)


def read_plots(text: str, trees: tuple[Tree, ...]) -> Checked:
    """The plots, each with the trees that were tallied on it."""
    tallied: dict[str, list[Tree]] = {}
    for tree in trees:
        tallied.setdefault(tree.plot_id, []).append(tree)

    def build_plot(cells: Mapping[str, str]) -> Plot:
        return Plot(
            plot_id=cells["plot_id"],
            stand_id=cells["stand_id"],
            plot_type=PlotType(cells["plot_type"]),
            baf=parse_figure(cells["baf"]),
            plot_acres=parse_figure(cells["plot_acres"]),
            slope_pct=float(cells["slope_pct"]),
            measured_on=date.fromisoformat(cells["measured_on"]),
            trees=tuple(tallied.get(cells["plot_id"], ())),
            sector_id=cells.get("sector_id", ""),
        )

    file = "plots.csv"
    table = _read_columns(text, file, PLOT_COLUMNS)
    problems = [*_check_columns(table, file, PLOT_COLUMNS, _MORE_PLOT_COLUMNS)]
    return _read_rows(table, file, _check_plot, build_plot if _is_whole(table, PLOT_COLUMNS) else None, problems)


def _read_columns(text: str, file: str, columns: tuple[str, ...]) -> Table:
    table = parse_table(text, file)
    # Without it nobody knows which plot a row is about, so there is nothing to be said of the rows.
    if "plot_id" not in table.columns:
        raise InvalidInput(_tell_missing(table, columns))
    return table


def _is_whole(table: Table, columns: tuple[str, ...]) -> bool:
    return set(columns) <= set(table.columns)


def _tell_missing(table: Table, columns: tuple[str, ...]) -> str:
    missing = [name for name in columns if name not in table.columns]
    return f"it has no column {', '.join(missing)}; it has {', '.join(table.columns)}"


def _check_columns(
    table: Table, file: str, columns: tuple[str, ...], others: tuple[str, ...]
) -> Iterator[InputProblem]:
    if not _is_whole(table, columns):
        yield InputProblem(file=file, place="its header", way_out=_tell_missing(table, columns))
    for name in table.columns:
        if name not in (*columns, *others):
            yield InputProblem(
                file=file, place="its header", way_out=f"there is no column {show_value(name)}; take it out"
            )


def _read_rows(
    table: Table,
    file: str,
    check: Callable[[str, TableRow], Iterator[InputProblem]],
    build: Callable[[Mapping[str, str]], Any] | None,
    problems: Sequence[InputProblem],
) -> Checked:
    """Every row, checked in the columns that are there; without a column that has to be there nothing is built."""
    records, places, sound, found = list[Any](), list[str](), list[Mapping[str, str]](), list(problems)
    for row in table.rows:
        place, uneven = f"row {row.number}", bool(row.broken or row.absent)
        # Of a row whose cells are not where they belong, each cell would be told again, and is held against nothing.
        wrong = [*_find_uneven(file, row), *(() if uneven else check(place, row))]
        found += wrong
        places.append(place)
        sound.append({} if uneven else keep_sound(row.cells, place, wrong))
        if not wrong and build is not None:
            records.append(build(row.cells))
    labelled = table.rows if "synthetic" in table.columns else ()
    labels = tuple((f"row {row.number}", row.cells["synthetic"]) for row in labelled)
    ids = tuple(row.cells["plot_id"] for row in table.rows)
    return Checked(tuple(records), tuple(found), tuple(places), labels, ids, tuple(sound))


def _find_uneven(file: str, row: TableRow) -> Iterator[InputProblem]:
    """Cells without a column, columns without a cell, and a cell that has taken in the rows below it."""
    for column in row.broken:
        yield InputProblem(
            file=file,
            place=f"row {row.begins}",
            field=column,
            value=show_value(row.cells[column]),
            way_out=f"it holds a line end, so that the lines to {row.number} would be one row; take the quotation mark"
            " out that opens there",
        )
    for column in row.absent:
        way_out = f"has no cell for {show_value(column)}; every row has a cell for every column, also an empty one"
        yield InputProblem(file=file, place=f"row {row.number}", way_out=way_out)
    if row.beyond:
        yield InputProblem(
            file=file,
            place=f"row {row.number}",
            field="cells without a column",
            value=str(row.beyond),
            way_out="quote a cell that holds a delimiter, or name the column",
        )


def _check_tree(place: str, row: TableRow) -> Iterator[InputProblem]:
    yield from check_fields("trees.csv", place, _read_cells(_normal_tree(row.cells), _TREE), _TREE)


def _normal_tree(cells: Mapping[str, str]) -> dict[str, str]:
    """Codes in capitals and flags in small letters, as they are compared."""
    normal: dict[str, Callable[[str], str]] = {"species": str.upper, "dead": str.casefold}
    return {**cells, **{name: rule(cells[name]) for name, rule in normal.items() if name in cells}}


def _build_tree(cells: Mapping[str, str]) -> Tree:
    plain = _normal_tree(cells)
    return Tree(
        plot_id=plain["plot_id"],
        species=Species(plain["species"]),
        dbh_in=float(plain["dbh_in"]),
        height_ft=float(plain["height_ft"]),
        dead=FLAGS[plain["dead"]],
        defect_pct=float(plain["defect_pct"]),
    )


def _check_plot(place: str, row: TableRow) -> Iterator[InputProblem]:
    sizes = _SIZES.get(row.cells.get("plot_type", ""), {})
    allowed = {**_PLOT, **sizes}
    yield from check_fields("plots.csv", place, _read_cells(row.cells, allowed), allowed)
    value = row.cells.get("measured_on")
    try:
        date.fromisoformat(value) if value is not None else None
    except ValueError:
        yield InputProblem(
            file="plots.csv",
            place=place,
            field="measured_on",
            value=show_value(value),
            way_out="give a date as YYYY-MM-DD",
        )


def _read_cells(cells: Mapping[str, str], allowed: Mapping[str, Allowed]) -> dict[str, object]:
    """Cells as what is allowed in them: figures where a number has to stand, and the text itself where none does."""
    typed: dict[str, object] = {}
    for name, limit in ((name, limit) for name, limit in allowed.items() if name in cells):
        figure = parse_figure(cells[name]) if isinstance(limit, Range) else None
        typed[name] = cells[name] if figure is None else figure
    return typed


def _find_twice(table: Table) -> Iterator[InputProblem]:
    """Trees of one number on one plot: tallied twice, a tree stands for twice as much timber."""
    if "tree" not in table.columns:
        return
    seen: set[tuple[str, str | float]] = set()
    for row in table.rows:
        key = (row.cells["plot_id"], _tree_number(row.cells["tree"]))
        if key in seen and key[1] != "":
            yield InputProblem(
                file="trees.csv",
                place=f"row {row.number}",
                field="tree",
                value=f"{key[0]} {row.cells['tree']}",
                way_out="a tree of a plot may be there once only",
            )
        seen.add(key)


def _tree_number(cell: str) -> str | float:
    """As it is compared: 07 is 7."""
    figure = parse_figure(cell)
    return cell.casefold() if figure is None else figure


def _find_equal(table: Table) -> Iterator[InputProblem]:
    """Rows that say the same as an earlier one: without a number nobody can tell two trees from one pasted twice."""
    seen: dict[tuple[object, ...], int] = {}
    for row in table.rows:
        if row.cells.get("tree"):
            continue
        first = seen.setdefault(_comparable(row.cells), row.number)
        if first != row.number:
            yield InputProblem(
                file="trees.csv",
                place=f"row {row.number}",
                way_out=f"is row {first} again in every column; take it out, or number the trees of a plot in a column"
                " tree",
            )


def _comparable(cells: Mapping[str, str]) -> tuple[object, ...]:
    """A row by what it says, not by how it is written: 29.20 is 29.2, and true is yes."""
    plain = _normal_tree(cells)
    said = {**_read_cells(plain, _TREE), "plot_id": plain["plot_id"], "dead": FLAGS.get(plain["dead"], plain["dead"])}
    return tuple(said.values())
