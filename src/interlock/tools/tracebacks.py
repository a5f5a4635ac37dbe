"""Exceptions of a tool's own code as its developer needs them: where it went wrong, redacted, short, without noise.

A model is told the class alone (`errors.from_exception`): what an exception says was written for nobody in particular,
and quotes whatever was at hand.
"""

from __future__ import annotations

import logging
import os
import sysconfig
import traceback
from pathlib import Path

from interlock.tools.redaction import Redactor
from interlock.values import clean

_log = logging.getLogger("interlock")
_MOST_FRAMES = 20
_MOST_LINKS = 8
"""Exceptions that are shown of one chain of causes."""
_LONGEST = 8000
_OURS = str(Path(__file__).parents[1]) + os.sep
_STDLIB = sysconfig.get_path("stdlib") + os.sep
_SITE = f"site-packages{os.sep}"
_SHOWN_PARTS = 3


def log_traceback(what: str, error: BaseException, redactor: Redactor | None) -> str:
    """Write the traceback of an exception to the log, and give it back."""
    text = format_traceback(error, redactor)
    _log.error("%s raised %s\n%s", what, type(error).__name__, text)
    return text


def format_traceback(error: BaseException, redactor: Redactor | None) -> str:
    """The traceback, redacted and then cut in its middle, with paths that say no more than is needed."""
    try:
        whole = traceback.TracebackException.from_exception(error, limit=-_MOST_FRAMES, compact=True)
        _tidy(whole, _MOST_LINKS)
        text = "".join(whole.format())
    except Exception as fault:  # noqa: BLE001 - an exception may be made so that it cannot even be shown
        text = f"{type(error).__name__} (its traceback cannot be shown: {type(fault).__name__})"
    text = clean(text).rstrip()
    if redactor is not None:
        text = redactor.text(text)
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def _tidy(whole: traceback.TracebackException, links: int) -> None:
    """Leave out the frames that led into the tool, and shorten the paths of the others; of what caused it, too."""
    frames = list(whole.stack)
    first = next((place for place, frame in enumerate(frames) if not _leads_in(frame.filename)), 0)
    whole.stack[:] = [_shorten(frame) for frame in frames[first:]]
    if links <= 1:
        whole.__cause__ = whole.__context__ = None
    for other in (whole.__cause__, whole.__context__, *(whole.exceptions or ())):
        if other is not None:
            _tidy(other, links - 1)


def _leads_in(path: str) -> bool:
    return path.startswith(_OURS) or (path.startswith(_STDLIB) and _SITE not in path)


def _shorten(frame: traceback.FrameSummary) -> traceback.FrameSummary:
    return traceback.FrameSummary(
        _short_path(frame.filename), frame.lineno, frame.name, lookup_line=False, line=frame.line
    )


def _short_path(path: str) -> str:
    """The path below where packages lie, below the working directory, or its end."""
    if _SITE in path:
        return path.rpartition(_SITE)[2]
    for root in (_STDLIB, str(Path(_OURS).parent) + os.sep, os.getcwd() + os.sep):
        if path.startswith(root):
            return path.removeprefix(root)
    parts = Path(path).parts
    return path if len(parts) <= _SHOWN_PARTS else os.sep.join(("…", *parts[-_SHOWN_PARTS:]))
