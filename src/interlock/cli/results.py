"""Standard output as the results of a command go there: what becomes of the text changes no verdict.

A command has done its work when it prints. A reader that has gone, a full disk or another encoding must not make it say
that it failed, or that the command line was wrong; and what a tool or a module prints is no result.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, TextIO, cast

from interlock.cli.terminal_text import escape_units


class ResultStream:
    """Writes to a stream for as long as that can be written to, and remembers why it could not."""

    lost: OSError | None

    def __init__(self, inner: TextIO | None) -> None:
        self._inner = inner
        self.encoding = getattr(inner, "encoding", None) or "utf-8"
        self.lost = None if inner is not None else OSError(errno.EBADF, "standard output is closed")

    def write(self, text: str) -> int:
        """Write it; what the encoding of the stream cannot hold is written as JSON does."""
        if self._inner is not None and self.lost is None:
            try:
                self._write(self._inner, text)
            except OSError as error:
                self.lost = error
        return len(text)

    def _write(self, inner: TextIO, text: str) -> None:
        try:
            inner.write(text)
        except UnicodeEncodeError:
            inner.write(_as_encoded(text, self.encoding))

    def flush(self) -> None:
        if self._inner is None or self.lost is not None:
            return
        try:
            self._inner.flush()
        except OSError as error:
            self.lost = error

    def isatty(self) -> bool:
        return self._inner is not None and self._inner.isatty()

    def fileno(self) -> int:
        if self._inner is None:
            raise OSError(errno.EBADF, "standard output is closed")
        return self._inner.fileno()

    @property
    def is_read(self) -> bool:
        """Whether nobody was kept from reading what they wanted: one who has read enough has gone by himself."""
        return self.lost is None or isinstance(self.lost, BrokenPipeError)

    def let_go(self) -> None:
        """What is left in the stream's own buffer is not tried again, and not complained of, when Python ends."""
        inner = sys.__stdout__
        if self.lost is not None and inner is not None and inner is self._inner:
            _point_nowhere(inner)


class _Bytes(io.RawIOBase):
    """The bytes of standard error, for whoever writes no text; what cannot be written is left out."""

    def __init__(self, inner: BinaryIO) -> None:
        self._inner = inner

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with suppress(OSError):
            self._inner.write(data)
            self._inner.flush()
        return len(data)


class ErrorStream(io.TextIOBase):
    """Standard error: what cannot be written there is left out, and nobody who writes hears of it."""

    def __init__(self, inner: TextIO) -> None:
        self._inner = inner
        self._lost = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._inner.encoding or "utf-8"

    @property
    def buffer(self) -> BinaryIO:
        return cast(BinaryIO, _Bytes(self._inner.buffer))

    def write(self, text: str) -> int:
        try:
            self._inner.write(text)
        except OSError:
            self._lost = True
        return len(text)

    def flush(self) -> None:
        try:
            self._inner.flush()
        except OSError:
            self._lost = True

    def isatty(self) -> bool:
        return self._inner.isatty()

    def fileno(self) -> int:
        return self._inner.fileno()

    def let_go(self) -> None:
        """What is left in the stream's own buffer changes no exit code when Python ends."""
        self.flush()
        if self._lost and self._inner is sys.__stderr__:
            _point_nowhere(self._inner)


class _Prints(ErrorStream):
    """`sys.stdout` while a command runs: whatever is printed by others goes to standard error."""

    def __init__(self, results: ResultStream) -> None:
        super().__init__(sys.stderr)
        self.results = results


def _point_nowhere(stream: TextIO) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def result_stream() -> TextIO:
    """Where results are written to."""
    results: TextIO = getattr(sys.stdout, "results", sys.stdout)
    return results


@contextmanager
def results_to(results: ResultStream) -> Iterator[None]:
    """Have what is printed by others kept out of the results."""
    before, sys.stdout = sys.stdout, cast(TextIO, _Prints(results))
    try:
        yield
    finally:
        sys.stdout = before


@contextmanager
def standard_streams() -> Iterator[ResultStream]:
    """Streams that can be used whatever the process was started with: a closed one reads as empty, or is not there."""
    before = sys.stdin, sys.stdout, sys.stderr
    results = ResultStream(sys.stdout)
    with open(os.devnull, "r+", encoding="utf-8") as nothing:
        errors = ErrorStream(before[2] or nothing)
        sys.stdin, sys.stdout, sys.stderr = before[0] or nothing, cast(TextIO, results), cast(TextIO, errors)
        try:
            yield results
        finally:
            errors.let_go()
            sys.stdin, sys.stdout, sys.stderr = before


def _as_encoded(text: str, encoding: str) -> str:
    """The text with escapes for what an encoding has no letters for."""
    return "".join(letter if _fits(letter, encoding) else escape_units(letter) for letter in text)


def _fits(letter: str, encoding: str) -> bool:
    try:
        letter.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
