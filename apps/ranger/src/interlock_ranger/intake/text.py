"""Text of files, in whatever encoding a spreadsheet or an editor wrote it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from interlock.errors import InvalidInput

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_TABLE_ENCODINGS = ("utf-8-sig", "cp1252")
"""In this order: nearly every file can be read as Windows-1252, few that are not UTF-8 can be read as that."""


class DecodedText(NamedTuple):
    text: str
    encoding: str


def file_digest(file: Path) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def decode_table(raw: bytes, name: str) -> DecodedText:
    """A table in UTF-8, UTF-16 or Windows-1252; the mark that Excel puts first is taken off."""
    return _decode(raw, name, _TABLE_ENCODINGS, "UTF-8, UTF-16 nor Windows-1252")


def decode_json(raw: bytes, name: str) -> str:
    """JSON in UTF-8 or UTF-16, with or without a mark; it is never in Windows-1252, which would be a guess."""
    return _decode(raw, name, _TABLE_ENCODINGS[:1], "UTF-8 nor UTF-16").text


def _decode(raw: bytes, name: str, encodings: tuple[str, ...], tried: str) -> DecodedText:
    # By its mark and first: most UTF-16 can be read as Windows-1252 without an error, too.
    for encoding in ("utf-16",) if raw[:2] in _UTF16_MARKS else encodings:
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\x00" in text:
            raise InvalidInput(
                f"{name} holds NUL characters, as UTF-16 without its mark does, or no text at all; save it as UTF-8"
            )
        return DecodedText(text, encoding.removesuffix("-sig"))
    raise InvalidInput(f"{name} is neither {tried} text; save it as UTF-8")
