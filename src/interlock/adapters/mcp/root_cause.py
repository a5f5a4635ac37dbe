"""What went wrong at the bottom, as people are told it: the SDK wraps it in groups."""

from __future__ import annotations

from interlock.errors import ConfigError


def root_cause(error: BaseException) -> str:
    """The first error that is no group, in words."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, ConfigError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
