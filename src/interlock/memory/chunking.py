"""Documents to chunks, by their structure: headings, paragraphs, lists, code. Each is a slice of the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise

import msgspec

MOST_CHARS = 500
"""Of a chunk: about the 128 tokens that the weights of MiniLM read; what is beyond them has no part in the vector."""
OVERLAP_CHARS = 80
"""Where a paragraph has to be cut, so that a sentence that lies across the cut is whole on one side."""
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r"(=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,9}[.)])[ \t]+\S")
_SENTENCE = re.compile(r"[.!?…。！？][\"'”’)\]]*\s+|\n")
_LONGEST_HEADING = 200
_HEADING_PATH = 300
_BETWEEN = " > "


class ChunkText(msgspec.Struct, frozen=True, gc=False):
    """One part of a text: where it stands, and under which headings."""

    start: int
    end: int
    heading: str


class _BlockKind(StrEnum):
    HEADING = "heading"
    TEXT = "text"
    LIST = "list"
    CODE = "code"


class _Block(msgspec.Struct, frozen=True, gc=False):
    kind: _BlockKind
    start: int
    end: int
    level: int = 0
    """Of a heading."""
    title: str = ""


class _Line(msgspec.Struct, frozen=True, gc=False):
    start: int
    end: int
    text: str


def split_chunks(text: str, most: int = MOST_CHARS, overlap: int = OVERLAP_CHARS) -> Iterator[ChunkText]:
    """The chunks of a text, in its order: whole blocks under one heading together, up to `most` characters."""
    path: list[_Block] = []
    held: list[_Block] = []
    for block in _blocks(text):
        if block.kind is _BlockKind.HEADING:
            below = [*(above for above in path if above.level < block.level), block]
            if not (_is_heading_alone(held) and below[-2:-1] == held and _fits_path(below)):
                yield from _pack(text, held, _path(path), most, overlap)
            held, path = [block], below
        else:
            held.append(block)
    yield from _pack(text, held, _path(path), most, overlap)


def _is_heading_alone(blocks: Sequence[_Block]) -> bool:
    return len(blocks) == 1 and blocks[0].kind is _BlockKind.HEADING


def _fits_path(headings: Sequence[_Block]) -> bool:
    """Whether all of them stand in the path of what is below; a heading alone is kept by nothing else."""
    return sum(len(heading.title) + len(_BETWEEN) for heading in headings) <= _HEADING_PATH


def _path(headings: Sequence[_Block]) -> str:
    return _BETWEEN.join(heading.title[:_LONGEST_HEADING] for heading in headings)[:_HEADING_PATH]


def _pack(text: str, blocks: Sequence[_Block], heading: str, most: int, overlap: int) -> Iterator[ChunkText]:
    """Blocks under one heading as few chunks; one that is too long by itself is cut."""
    start = end = -1
    for block in blocks:
        for piece_start, piece_end in _pieces(text, block, most, overlap):
            if start >= 0 and piece_end - start <= most:
                end = piece_end
                continue
            if start >= 0:
                yield ChunkText(start, end, heading)
            start, end = piece_start, piece_end
    if start >= 0:
        yield ChunkText(start, end, heading)


def _pieces(text: str, block: _Block, most: int, overlap: int) -> Iterator[tuple[int, int]]:
    """A block whole, or cut: lists and code between lines, other text between sentences and with an overlap."""
    if block.end - block.start <= most:
        yield block.start, block.end
        return
    between_lines = block.kind in (_BlockKind.CODE, _BlockKind.LIST)
    start = block.start
    while block.end - start > most:
        cut = _cut(text, start, start + most, between_lines=between_lines)
        yield start, _strip_end(text, start, cut)
        again = cut if between_lines else _sentence_start(text, max(start + 1, cut - overlap), cut)
        start = _skip_space(text, max(again, start + 1), block.end)
    if start < block.end:
        yield start, block.end


def _cut(text: str, start: int, limit: int, *, between_lines: bool) -> int:
    """Where a chunk that begins at `start` ends, at `limit` at the latest: behind a sentence, a line, a word."""
    least = start + (limit - start) // 2
    line = text.rfind("\n", least, limit)
    if between_lines and line > 0:
        return line + 1
    ends = [found.end() for found in _SENTENCE.finditer(text, least, limit)]
    if ends:
        return ends[-1]
    space = max(text.rfind(" ", least, limit), text.rfind("\t", least, limit), line)
    return space + 1 if space >= least else limit


def _sentence_start(text: str, least: int, cut: int) -> int:
    """The beginning of the last sentence, or else word, that begins between `least` and the cut."""
    found = _SENTENCE.search(text, least, cut)
    if found is not None and found.end() < cut:
        return found.end()
    space = text.find(" ", least, cut)
    return space + 1 if 0 <= space < cut - 1 else cut


def _strip_end(text: str, start: int, end: int) -> int:
    while end > start + 1 and text[end - 1].isspace():
        end -= 1
    return end


def _skip_space(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start


def _blocks(text: str) -> Iterator[_Block]:
    """Headings, fenced code, lists and paragraphs, one after the other."""
    lines = _lines(text)
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.text.strip():
            at += 1
            continue
        heading = _heading(lines, at)
        if heading is not None:
            block, at = heading
        elif _FENCE.match(line.text):
            last = _fence_end(lines, at)
            block, at = _Block(_BlockKind.CODE, line.start, lines[last].end), last + 1
        else:
            last = _paragraph_end(lines, at)
            kind = _BlockKind.LIST if _ITEM.match(line.text) else _BlockKind.TEXT
            block, at = _Block(kind, line.start, lines[last].end), last + 1
        yield block


def _lines(text: str) -> list[_Line]:
    ends = [-1, *(found.start() for found in re.finditer("\n", text)), len(text)]
    return [_Line(before + 1, end, text[before + 1 : end]) for before, end in pairwise(ends)]


def _heading(lines: Sequence[_Line], at: int) -> tuple[_Block, int] | None:
    """A heading of either form, and the place of the line behind it."""
    line = lines[at]
    marked = _HEADING.fullmatch(line.text) if len(line.text) <= _LONGEST_HEADING else None
    if marked is not None:
        return _Block(_BlockKind.HEADING, line.start, line.end, len(marked[1]), marked[2].strip()), at + 1
    below = lines[at + 1] if at + 1 < len(lines) else None
    if below is None or _UNDERLINE.fullmatch(below.text) is None or len(below.text.strip()) < 3:
        return None
    if len(line.text) > _LONGEST_HEADING or _ITEM.match(line.text) or (at and lines[at - 1].text.strip()):
        return None
    level = 1 if below.text.startswith("=") else 2
    return _Block(_BlockKind.HEADING, line.start, below.end, level, line.text.strip()), at + 2


def _fence_end(lines: Sequence[_Line], at: int) -> int:
    """The line that closes a fence, or else the last one: what is open stays code."""
    opened = _FENCE.match(lines[at].text)
    assert opened is not None
    for place in range(at + 1, len(lines)):
        closing = lines[place].text.strip()
        if closing.startswith(opened[1]) and not closing.strip(opened[1][0]):
            return place
    return len(lines) - 1


def _paragraph_end(lines: Sequence[_Line], at: int) -> int:
    """The last line before a blank one, a heading or code."""
    for place in range(at + 1, len(lines)):
        text = lines[place].text
        if not text.strip() or _FENCE.match(text) or (len(text) <= _LONGEST_HEADING and _HEADING.fullmatch(text)):
            return place - 1
    return len(lines) - 1
