"""plots.csv and trees.csv: every cell checked, every tree on a plot that there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    problems = (*_find_foreign(table, file, TREE_COLUMNS, _MORE_TREE_COLUMNS), *_find_twice(table), *_find_equal(table))
    return _read_rows(table, file, _check_tree, _build_tree, problems)


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
    problems = tuple(_find_foreign(table, file, PLOT_COLUMNS, _MORE_PLOT_COLUMNS))
    return _read_rows(table, file, _check_plot, build_plot, problems)


def _read_columns(text: str, file: str, columns: tuple[str, ...]) -> Table:
    table = parse_table(text, file)
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise InvalidInput(f"it has no column {', '.join(missing)}; it has {', '.join(table.columns)}")
    return table


def _find_foreign(table: Table, file: str, columns: tuple[str, ...], others: tuple[str, ...]) -> Iterator[InputProblem]:
    for name in table.columns:
        if name not in (*columns, *others):
            yield InputProblem(
                file=file, place="its header", way_out=f"there is no column {show_value(name)}; take it out"
            )


def _read_rows(
    table: Table,
    file: str,
    check: Callable[[str, TableRow], Iterator[InputProblem]],
    build: Callable[[Mapping[str, str]], Any],
    problems: tuple[InputProblem, ...] = (),
) -> Checked:
    records, places, found = [], [], list(problems)
    for row in table.rows:
        wrong = [*_find_uneven(file, row)]
        # Of a row whose cells are not where they belong, each cell would be told again.
        wrong += () if row.broken or row.absent else check(f"row {row.number}", row)
        found += wrong
        if not wrong:
            records.append(build(row.cells))
            places.append(f"row {row.number}")
    labelled = table.rows if "synthetic" in table.columns else ()
    labels = tuple((f"row {row.number}", row.cells["synthetic"]) for row in labelled)
    ids = tuple(row.cells["plot_id"] for row in table.rows)
    return Checked(tuple(records), tuple(found), tuple(places), labels, ids)


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
    return {**cells, "species": cells["species"].upper(), "dead": cells["dead"].casefold()}


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
    sizes = _SIZES.get(row.cells["plot_type"], {})
    allowed = {**_PLOT, **sizes}
    yield from check_fields("plots.csv", place, _read_cells(row.cells, allowed), allowed)
    try:
        date.fromisoformat(row.cells["measured_on"])
    except ValueError:
        value = row.cells["measured_on"]
        yield InputProblem(
            file="plots.csv", place=place, field="measured_on", value=value, way_out="give a date as YYYY-MM-DD"
        )


def _read_cells(cells: Mapping[str, str], allowed: Mapping[str, Allowed]) -> dict[str, object]:
    """Cells as what is allowed in them: figures where a number has to stand, and the text itself where none does."""
    typed: dict[str, object] = {}
    for name, limit in allowed.items():
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
