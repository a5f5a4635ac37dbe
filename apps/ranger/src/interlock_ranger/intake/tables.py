"""CSV as rows with their numbers: no cell is lost, and none is filed under another column's name."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from interlock.errors import InvalidInput

DELIMITERS = ",;\t|"
# "sep=;" and a line end, which Excel may write above the header; not "sep=" alone, nor a column that is called so.
_SAID_DELIMITER = re.compile(r"sep=([,;\t|])\r?\n")
_LINE_END = re.compile(r"\r\n|\r|\n")
_BEYOND = "(beyond)"
"""No column: what stands in a row behind the last column of the header."""


class TableRow(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    """The line of the file that the row ends on; the header is line 1."""
    cells: dict[str, str]
    beyond: int = 0
    """How many filled cells stand outside the named columns."""
    begins: int = 0
    """The line that the row begins on: an earlier one if a cell holds line ends."""
    broken: tuple[str, ...] = ()
    """Columns whose cell holds a line end: a quotation mark may have taken in the rows below it."""
    absent: tuple[str, ...] = ()
    """Columns that the row has no cell for, not even an empty one."""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    delimiter: str


def parse_table(text: str, name: str) -> Table:
    """Rows of a CSV text with commas, semicolons, tabs or bars."""
    said = _SAID_DELIMITER.match(text)
    delimiter = find_delimiter(text) if said is None else said[1]
    # newline="": line ends within quotes belong to their cell, and a lone CR of an old Mac ends a row.
    lines = io.StringIO(text[0 if said is None else said.end() :], newline="")
    # strict: a quotation mark that is never closed would take the rest of the file into its cell
    reader = csv.DictReader(lines, delimiter=delimiter, restkey=_BEYOND, strict=True)
    above = 0 if said is None else 1
    try:
        header = [column.strip() for column in reader.fieldnames or ()]
        columns = _check_header(header, name)
        reader.fieldnames = header
        rows = [_read_row(row, reader.line_num + above, columns) for row in reader]
    except csv.Error as error:
        raise InvalidInput(f"{name}, line {reader.line_num}: {error}; save it as plain CSV") from None
    # A line of delimiters alone, as spreadsheets leave below a table, is no row.
    filled = tuple(row for row in rows if row.beyond or any(row.cells.values()))
    return Table(columns=columns, rows=filled, delimiter=delimiter)


def find_delimiter(text: str) -> str:
    """The one of the usual delimiters that parts the header most often; a single column has none, and gets a comma."""
    header = next((line for line in text.splitlines() if line.strip()), "")
    # Outside of quotes only: "height, ft";"dbh, in" is parted by semicolons.
    plain = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=plain.count)


def _check_header(header: Sequence[str], name: str) -> tuple[str, ...]:
    columns = tuple(column for column in header if column)
    if not columns:
        raise InvalidInput(f"{name} has no header line with column names")
    twice = [column for column, count in Counter(columns).items() if count > 1]
    if twice:
        raise InvalidInput(
            f"{name} has more than one column {', '.join(map(repr, twice))}; give each a name of its own"
        )
    return columns


def _read_row(row: dict[str, str | list[str] | None], number: int, columns: Sequence[str]) -> TableRow:
    extra = row.get(_BEYOND) or ()
    # A column without a name has the name "", whatever stands in it.
    unnamed = [*extra, row.get("") or ""]
    said = {column: str(row.get(column) or "") for column in columns}
    texts = [*said.values(), *(cell for cell in unnamed if isinstance(cell, str))]
    return TableRow(
        number=number,
        cells={column: cell.strip() for column, cell in said.items()},
        beyond=sum(bool(cell.strip()) for cell in unnamed if isinstance(cell, str)),
        begins=number - sum(len(_LINE_END.findall(cell)) for cell in texts),
        broken=tuple(column for column, cell in said.items() if _LINE_END.search(cell)),
        absent=tuple(column for column in columns if row.get(column) is None),
    )
