"""Numbers of chunks: the document's in the upper part, so that it need not be looked up, and the position below."""

from __future__ import annotations

_BITS = 20
"""More positions than a document may have chunks; statements have the same number."""
_BELOW = (1 << _BITS) - 1


def chunk_number(document: int, position: int) -> int:
    """The number of a chunk."""
    return document << _BITS | position


def document_number(chunk: int) -> int:
    """The document of a chunk."""
    return chunk >> _BITS


def position_of(chunk: int) -> int:
    """Its place in the document."""
    return chunk & _BELOW


def number_range(document: int, first: int = 0, last: int = _BELOW) -> tuple[int, int]:
    """The numbers that the chunks of a document may have, between two positions."""
    return chunk_number(document, max(0, first)), chunk_number(document, min(last, _BELOW))
