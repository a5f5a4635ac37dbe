"""Files below roots: what is opened is what was checked, also if somebody swaps a folder for a link in between."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import IO, Any

from interlock.errors import Forbidden, NotFound

_SWAPPED = (errno.ELOOP, errno.ENOTDIR)


def open_within(path: str | os.PathLike[str], roots: Sequence[str], mode: str = "r", **options: Any) -> IO[Any]:
    """Open a file as `open` does, if it is below one of the roots, links and `..` followed.

    A rule of the pack `roots` looks at a path before the tool runs; a link that is put there afterwards would lead the
    tool elsewhere. Here each folder is opened from the one above it, and none of them may be a link by then.
    `Forbidden` if the path leads out, or what it leads to is swapped meanwhile. A hard link below a root is below it.
    """
    if os.fspath(path).startswith("~"):
        raise Forbidden(f"{os.fspath(path)!r}: a path is not expanded; write it out")
    real = os.path.realpath(path)
    root = _root_of(real, roots)
    if root is None:
        raise Forbidden(f"{os.fspath(path)!r} is outside {', '.join(roots)}")
    *folders, name = os.path.relpath(real, root).split(os.sep)
    try:
        held = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for folder in folders:
                below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held)
                os.close(held)
                held = below
            return open(name, mode, opener=lambda last, flags: _open_last(last, flags, held), **options)
        finally:
            os.close(held)
    except FileNotFoundError:
        raise NotFound(f"there is no {os.fspath(path)!r}") from None
    except OSError as error:
        if error.errno not in _SWAPPED:
            raise
        raise Forbidden(f"{os.fspath(path)!r} leads elsewhere since it was looked at") from None


def _open_last(name: str, flags: int, folder: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)


def _root_of(real: str, roots: Sequence[str]) -> str | None:
    """The root that a resolved path is below; roots may be links themselves."""
    for root in map(os.path.realpath, roots):
        if real.startswith(root.rstrip(os.sep) + os.sep):
            return root
    return None
