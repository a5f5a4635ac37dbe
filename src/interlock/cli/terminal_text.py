"""What may reach a terminal: printable characters, and the end of a line. Whatever else somebody wrote is shown as an
escape: control characters (C0, DEL, C1), marks that turn or hide text, blanks that are none, halves of characters."""

from __future__ import annotations

from typing import TextIO


def show_controls(text: str, *, lines: bool = False) -> str:
    r"""Text for people: what may not reach a terminal is written as Python does (`\x9b`). `lines` keeps their ends."""
    if text.isprintable():
        return text
    return "".join(c if _may_pass(c, "\n" if lines else "") else ascii(c)[1:-1] for c in text)


def escape_controls(text: str) -> str:
    r"""Text for programs: what may not reach a terminal is written as JSON does (`\u009b`).

    In JSON such a character stands between quotation marks only, so it stays the same document.
    """
    if text.isprintable():
        return text
    return "".join(c if _may_pass(c, "\n\t") else escape_units(c) for c in text)


class EscapedText:
    """A stream for programs, in front of one that may be a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        """Write it with `escape_controls`; the number of characters that were given."""
        self._out.write(escape_controls(text))
        return len(text)


def _may_pass(letter: str, kept: str) -> bool:
    return letter.isprintable() or letter in kept


def escape_units(letter: str) -> str:
    """A character as JSON writes it without using it."""
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
