"""The statements of a text: sentences, items of lists, rows of tables, each with what it stands under."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

LONGEST = 400
_WORDS_OF_A_LEAD = 12
_BREAK = re.compile(
    r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|No|Nr|ca|pp)\.)(?<!\b(?:Mrs|e\.g|i\.e|Par|Art|Sec|Fig|Nos)\.)[\"'”’)]*\s+"
    r"(?=[\"'“‘(`]?[^\W\d_a-z])|(?<=[a-z]{4}[.!?])\s+(?=\d)"
)
_ITEM = re.compile(r"[ \t]*(?:>+[ \t]*)?(?:[-*+•]|(\d{1,3})[.)])[ \t]+")
_QUOTED = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.M)
"""Marks of somebody else's lines in a mail."""
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(.+?)[ \t#]*")
_RULE = re.compile(r"[ \t]*(?:[-*_=~`][ \t]*){3,}")
_ROW_RULE = re.compile(r"[ \t]*\|?[ \t:|-]+\|?[ \t]*")
_EMPHASIS = re.compile(r"`+|\*{1,3}|(?<!\w)_{1,2}(?=\w)|(?<=\w)_{1,2}(?!\w)")
"""Marks of Markdown that nobody reads aloud; an answer is read without them."""
_SEPARATORS = (";", ",", "\t")
_FEWEST_ROWS, _FEWEST_CELLS = 2, 2


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """One statement as it stands in a text."""

    text: str
    under: str = ""
    """What it stands under and does not say itself: headings, the line before a list."""
    before: str = ""
    """The sentence before it, which may say what "it" is."""


def split_statements(text: str, heading: str = "") -> list[Statement]:
    """The statements of a text, in their order."""
    found: list[Statement] = []
    for block, under in _blocks(text, heading):
        for part in _parts(block):
            rows = _table_rows(part)
            made = [Statement(text=row, under=under) for row in rows] if rows else list(_prose(part, under))
            found += [one for one in made if len(one.text) <= LONGEST and _says_something(one.text)]
    return found


def _says_something(text: str) -> bool:
    """Whether it is more than a single word that something else stands under."""
    return len(text.split()) > 1 or any(map(str.isdigit, text))


def _parts(lines: list[str]) -> list[list[str]]:
    """Lines with bars by themselves: a table may stand right under a sentence."""
    parts: list[list[str]] = []
    for line in lines:
        if parts and _has_bars(parts[-1][-1]) == _has_bars(line):
            parts[-1].append(line)
        else:
            parts.append([line])
    return parts


def _has_bars(line: str) -> bool:
    return line.count("|") > 1


def _blocks(text: str, heading: str) -> Iterator[tuple[list[str], str]]:
    """Runs of lines without an empty one between them, and what they stand under."""
    lines, under, lead = list[str](), heading, ""
    for line in (*_QUOTED.sub("", text).splitlines(), ""):
        said = _HEADING.fullmatch(line)
        if said is None and line.strip() and not _RULE.fullmatch(line):
            lines.append(line)
            continue
        if lines:
            yield lines, _join(under, lead)
            last = plain_text(lines[-1])
            is_lead = last.endswith(":") and len(last.split()) <= _WORDS_OF_A_LEAD
            lead, lines = last.rstrip(":") if is_lead else "", []
        if said is not None:
            title = plain_text(said[1])
            under, lead = heading if title in heading else _join(heading, title), ""


def _prose(lines: list[str], under: str) -> Iterator[Statement]:
    """Items by themselves; other lines together, as sentences. A sentence knows the one before it."""
    lead, held, number = "", list[str](), 0
    for line in (*lines, None):
        item = None if line is None else _ITEM.match(line)
        # A line that is broken before "15." goes on; an item has the number after the one before it.
        if item is not None and item[1] and int(item[1]) not in (1, number + 1) and held:
            item = None
        number = int(item[1]) if item is not None and item[1] else number
        if (line is None or item is not None or _is_field(line)) and held:
            yield from _sentences(" ".join(held), _join(under, lead))
            last = held[-1]
            lead = plain_text(last).rstrip(":") if last.rstrip().endswith(":") else lead
            held = []
        if line is not None:
            held.append(line[item.end() :] if item is not None else line)


def _is_field(line: str) -> bool:
    """Whether a line is a name with its value: "Rent: 720 EUR"."""
    name, colon, value = line.partition(": ")
    starts = name.strip()[:1]
    return bool(colon and value.strip()) and len(name.split()) <= 4 and "." not in name and not starts.islower()


def _sentences(text: str, under: str) -> Iterator[Statement]:
    before = ""
    for sentence in _BREAK.split(plain_text(text)):
        yield Statement(text=sentence, under=under, before=before)
        before = sentence


def _table_rows(lines: list[str]) -> list[str]:
    """The rows of a table, each cell with the name of its column; nothing where it is none."""
    if len(lines) < _FEWEST_ROWS:
        return []
    if all("|" in line for line in lines):
        cells = [_cells(line.strip().strip("|"), "|") for line in lines if not _ROW_RULE.fullmatch(line)]
    else:
        separator = next((one for one in _SEPARATORS if _is_table(lines, one)), "")
        if not separator:
            return []
        cells = [_cells(line, separator) for line in lines]
    if len(cells) < _FEWEST_ROWS or len(cells[0]) < _FEWEST_CELLS:
        return []
    names, rows = cells[0], cells[1:]
    return [
        "; ".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=False) if cell)
        for row in rows
    ]


def _is_table(lines: list[str], separator: str) -> bool:
    counts = {line.count(separator) for line in lines}
    return len(counts) == 1 and counts.pop() >= _FEWEST_CELLS and not any(". " in line for line in lines[:1])


def _cells(line: str, separator: str) -> list[str]:
    return [plain_text(cell) for cell in line.split(separator)]


def plain_text(text: str) -> str:
    """A text without marks of Markdown, on one line."""
    return " ".join(_EMPHASIS.sub("", text).split())


def _join(*parts: str) -> str:
    return " > ".join(part for part in parts if part)
