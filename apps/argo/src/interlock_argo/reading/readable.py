"""The text that people read on a page or in a file: HTML, PDF and plain text."""

from __future__ import annotations

import csv
import io
import re
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any

import msgspec

from interlock.errors import ConfigError, Permanent

TEXT_FILES = frozenset({".txt", ".md", ".markdown", ".rst", ".org", ".csv", ".tsv"})
READABLE_FILES = TEXT_FILES | {".html", ".htm", ".pdf"}
_HTML = ("text/html", "application/xhtml+xml")
_PDF = "application/pdf"
_ROWS_OF = {"text/csv": "", "text/tab-separated-values": "\t"}
_SEPARATORS = ",;\t|"
_MOST_PAGES = 500
_LONGEST_FILE = 20_000_000
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+)$", re.MULTILINE)


class Readable(msgspec.Struct, frozen=True, kw_only=True):
    """A text with its title."""

    text: str
    title: str = ""


def read_content(content: bytes, kind: str, address: str = "") -> Readable:
    """The text of what came under a media type; `Permanent` where there is none to be had."""
    kind = kind.partition(";")[0].strip().lower()
    if kind in _HTML:
        return read_html(content, address)
    if kind == _PDF:
        return read_pdf(content)
    if kind in _ROWS_OF:
        return read_rows(content, _ROWS_OF[kind])
    if kind.startswith("text/") or kind in ("application/json", "application/xml"):
        if b"\0" in content:
            raise Permanent("this is no text: it has NUL bytes; HTML, PDF and plain text in UTF-8 can be read")
        text = content.decode("utf-8", errors="replace")
        return Readable(text=text, title=title_of(text))
    raise Permanent(f"{kind or 'content without a type'} cannot be read as text; HTML, PDF and plain text can")


def read_html(content: bytes, address: str = "") -> Readable:
    """What stands on a page, without its menus."""
    try:
        from trafilatura import bare_extraction
    except ImportError:
        raise ConfigError("reading pages needs trafilatura; install interlock-argo with its dependencies") from None
    found: Any = bare_extraction(content, url=address or None, include_tables=True, with_metadata=True)
    text = "" if found is None else str(found.text or "")
    if not text.strip():
        raise Permanent("no text was found on this page")
    return Readable(text=text, title=str(found.title or ""))


def read_rows(content: bytes, separator: str = "") -> Readable:
    """A table as text: one paragraph a row, each cell with the name of its column."""
    text = content.decode("utf-8-sig", errors="replace")
    first = text.partition("\n")[0]
    found = csv.reader(io.StringIO(text), delimiter=separator or max(_SEPARATORS, key=first.count))
    try:
        names, *rows = [row for row in found if any(cell.strip() for cell in row)]
    except (csv.Error, ValueError):
        return Readable(text=text)
    names = [" ".join(name.replace("_", " ").split()) for name in names]
    cells = ([(n, c.strip()) for n, c in zip_longest(names, row, fillvalue="") if c.strip()] for row in rows)
    return Readable(text="\n\n".join("; ".join(f"{n}: {c}" if n else c for n, c in row) for row in cells))


def read_pdf(content: bytes) -> Readable:
    """The text of a PDF, page by page."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError:
        raise ConfigError("reading PDF needs pypdf; install interlock-argo with its dependencies") from None
    try:
        reader = PdfReader(io.BytesIO(content))
        pages = [page.extract_text() for page, _number in zip(reader.pages, range(_MOST_PAGES), strict=False)]
        title = "" if reader.metadata is None else str(reader.metadata.title or "")
    except (PyPdfError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise Permanent(f"this PDF cannot be read ({type(error).__name__})") from None
    text = "\n\n".join(page.strip() for page in pages if page.strip())
    if not text:
        raise Permanent("this PDF has no text; its pages may be pictures")
    return Readable(text=text, title=title)


def read_open_file(file: IO[bytes], path: str) -> Readable:
    """The text of a file that is open, by the end of its name."""
    content = file.read(_LONGEST_FILE + 1)
    if len(content) > _LONGEST_FILE:
        raise Permanent(f"{path} has more than {_LONGEST_FILE:,} bytes; that much is not read at once")
    kinds = {".pdf": _PDF, ".html": _HTML[0], ".htm": _HTML[0], ".csv": "text/csv", ".tsv": "text/tab-separated-values"}
    kind = kinds.get(Path(path).suffix.lower(), "text/plain")
    return read_content(content, kind)


def read_local_file(path: str) -> Readable:
    """The text of a file that somebody has named."""
    with open(path, "rb") as file:
        return read_open_file(file, path)


def title_of(text: str) -> str:
    """The first heading of a text."""
    found = _HEADING.search(text[:2_000])
    return "" if found is None else found[1].strip()[:200]
