"""`interlock catalog`."""

from typing import Any


def register(commands: Any, common: Any) -> None:
    """Nothing yet."""
