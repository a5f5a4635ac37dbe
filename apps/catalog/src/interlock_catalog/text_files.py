"""Text of files that people bring: UTF-8, and where it is not, which line it is and what to do."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from interlock.errors import ConfigError

HALF_CHARACTER = "half a character, as in a text that was cut; write it whole, or take it out"
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_BEFORE = 30
"""So much of the line is shown before what cannot be read."""


def read_utf8(file: Path) -> str:
    """The text of a file, without a mark at its beginning and with plain line ends; else ConfigError with the line."""
    raw = file.read_bytes().removeprefix(codecs.BOM_UTF8)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}, {_describe_bytes(raw, error)}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _describe_bytes(raw: bytes, error: UnicodeDecodeError) -> str:
    if raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "line 1: it is in UTF-16; save it as UTF-8"
    begins = raw.rfind(b"\n", 0, error.start) + 1
    line, before = raw.count(b"\n", 0, error.start) + 1, raw[begins : error.start].decode()[-_MAX_BEFORE:]
    where = f"after {before!r}" if before else "at its beginning"
    way_out = "save the file as UTF-8, or correct it there"
    return f"line {line}: the byte 0x{raw[error.start]:02x} {where} is no UTF-8; {way_out}"


def read_json_lines(
    file: Path, otherwise: str, build: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Iterator[tuple[int, Any]]:
    """The lines that hold something, with their numbers; ConfigError with the line that is no JSON.

    `otherwise` is what is said of such a line before the reason.
    """
    # Not `splitlines`, which also parts a line where a text has a separator of its own (U+2028).
    for number, line in enumerate(read_utf8(file).split("\n"), 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line, object_pairs_hook=build)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{file}:{number}: {otherwise}: {error.msg}, column {error.colno}") from None
        except RecursionError:
            raise ConfigError(f"{file}:{number}: {otherwise}: it is nested too deeply") from None
        except ValueError as error:
            raise ConfigError(f"{file}:{number}: {otherwise}: {error}") from None
        # The text is whole, so that half a character can only stand there escaped.
        half = find_half_character(json.dumps(item, ensure_ascii=False)) if "\\u" in line else None
        if half is not None:
            raise ConfigError(f"{file}:{number}: holds {half}, which is {HALF_CHARACTER}")
        yield number, item


def find_half_character(text: str) -> str | None:
    """The first half of a surrogate pair, as it is escaped: no file or database can hold one."""
    found = _SURROGATE.search(text)
    return None if found is None else ascii(found[0])[1:-1]
