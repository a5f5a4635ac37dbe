"""A PDF writer of one font and no pictures, and the reader that goes with it."""

import re
import textwrap
import zlib
from itertools import chain

LINES_PER_SHEET = 46
COLUMNS = 88


def _literal(text: str) -> bytes:
    """A PDF string in the encoding of the standard fonts; what that encoding lacks becomes a question mark."""
    raw = text.encode("cp1252", errors="replace")
    return b"(" + raw.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)") + b")"


def _lines(paragraphs: tuple[str, ...]) -> list[str]:
    wrapped = (textwrap.wrap(paragraph, COLUMNS, break_on_hyphens=False) for paragraph in paragraphs)
    return list(chain.from_iterable([*lines, ""] for lines in wrapped))


def _sheet_stream(lines: list[str], invisible: frozenset[str]) -> bytes:
    """One page of text. Lines of an invisible paragraph are set in text mode 3, which paints nothing."""
    drawn = [b"BT /F1 11 Tf 14 TL 56 786 Td"]
    for line in lines:
        mode = b"3 Tr " if line in invisible else b"0 Tr "
        drawn.append(mode + _literal(line) + b" Tj T*")
    drawn.append(b"ET")
    return b"\n".join(drawn)


def write_pdf(title: str, paragraphs: tuple[str, ...], *, invisible: str = "", packed: bool = False) -> bytes:
    """A whole document: catalogue, sheets, font, information and the cross-reference table."""
    lines = _lines((title, *paragraphs, *((invisible,) if invisible else ())))
    unseen = frozenset(textwrap.wrap(invisible, COLUMNS, break_on_hyphens=False))
    sheets = [lines[i : i + LINES_PER_SHEET] for i in range(0, len(lines), LINES_PER_SHEET)]
    first_sheet = 5
    kids = b" ".join(b"%d 0 R" % (first_sheet + 2 * i) for i in range(len(sheets)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [" + kids + b"] /Count %d >>" % len(sheets),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Title " + _literal(title) + b" /Producer (local web) >>",
    ]
    for i, sheet in enumerate(sheets):
        stream = _sheet_stream(sheet, unseen)
        packing = b""
        if packed:
            stream, packing = zlib.compress(stream, 9), b" /Filter /FlateDecode"
        resources = b"/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 595 842]"
        contents = b"/Contents %d 0 R" % (first_sheet + 2 * i + 1)
        objects.append(b"<< /Type /Page /Parent 2 0 R " + resources + b" " + contents + b" >>")
        objects.append(b"<< /Length %d%s >>\nstream\n" % (len(stream), packing) + stream + b"\nendstream")
    return _assemble(objects)


def _assemble(objects: list[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for offset in offsets:
        out += b"%010d 00000 n \n" % offset
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def pdf_text(document: bytes) -> str:
    """All the text of a document that write_pdf made, one line for each line on the sheet."""
    lines = []
    for packing, stream in re.findall(rb"<< /Length \d+([^>]*)>>\nstream\n(.*?)\nendstream", document, re.DOTALL):
        plain = zlib.decompress(stream) if b"Flate" in packing else stream
        for literal in re.findall(rb"\(((?:\\.|[^\\)])*)\) Tj", plain):
            lines.append(re.sub(rb"\\(.)", rb"\1", literal).decode("cp1252", errors="replace"))
    return "\n".join(lines)


def pdf_faults(document: bytes) -> list[str]:
    """Why a document is not well-formed: every offset of its table must lead to the object that it names."""
    faults = [] if document.startswith(b"%PDF-1.") and document.endswith(b"%%EOF\n") else ["no PDF head or end"]
    starts = re.findall(rb"startxref\n(\d+)\n", document)
    if not starts or not document[int(starts[0]) :].startswith(b"xref\n"):
        return [*faults, "startxref leads nowhere"]
    table = re.findall(rb"(\d{10}) 00000 n ", document[int(starts[0]) :])
    for number, offset in enumerate(table, start=1):
        if not document[int(offset) :].startswith(b"%d 0 obj" % number):
            faults.append(f"object {number} is not where the table says")
    return faults
