"""Files that nobody but their owner can read: made so, whatever the umask says; of others it is said who can."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

_log = logging.getLogger("interlock")
PRIVATE = 0o600


def make_private(file: Path) -> None:
    """Make an empty file for its owner alone, if there is none; one that others can read stays so, with a warning.

    What goes wrong is left to whoever opens the file next: it says so in the words of its own kind.
    """
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    except FileExistsError:
        warn_if_readable(file)
    except OSError:
        return
    else:
        _close_private(descriptor)


def warn_if_readable(file: Path) -> None:
    """Say that others can read a file, where they can."""
    try:
        found = file.stat()
    except OSError:
        return
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISREG(found.st_mode) and mode & 0o077:
        _log.warning("%s: others on this machine can open it (mode %04o); chmod 600 it if they should not", file, mode)


def write_private(file: Path, text: bytes) -> None:
    """Write a file whole, for its owner alone; of several processes that do so at once, the first one's stays."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    # Made with its mode: there is no moment in which others could open it.
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    with os.fdopen(os.dup(descriptor), "wb") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())  # before it has its name: a crash must not leave an empty file
    _close_private(descriptor)
    try:
        os.link(fresh, file)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()


def _close_private(descriptor: int) -> None:
    """A umask can only take rights away, and may have taken the owner's."""
    os.fchmod(descriptor, PRIVATE)
    os.close(descriptor)
