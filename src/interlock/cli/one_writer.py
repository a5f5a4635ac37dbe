"""One command at a time changes the files of a folder: what another has written meanwhile is read before it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Wait until nobody else is in here; on a system without such locks (Windows) nobody waits."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def replace_file(file: Path, content: bytes) -> None:
    """Put something in place of what is there, whole or not at all, with the rights that it had."""
    beside = file.with_name(f"{file.name}.{os.getpid()}.new")
    beside.write_bytes(content)
    if file.exists():
        beside.chmod(file.stat().st_mode & 0o7777)
    os.replace(beside, file.resolve())
