"""What a command shows of the log: what it waits for, always; with --verbose everything, tracebacks too."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _OneLine(logging.Formatter):
    """Lines as other remarks of a command look; what others wrote does not steer the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        text = "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in super().format(record))
        return f"interlock: {text}"


@contextmanager
def shown_log(*, verbose: bool) -> Iterator[None]:
    """Show the log on standard error while a command runs."""
    log = logging.getLogger("interlock" if verbose else "interlock.waiting")
    handler, level = logging.StreamHandler(sys.stderr), log.level
    handler.setFormatter(_OneLine())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
