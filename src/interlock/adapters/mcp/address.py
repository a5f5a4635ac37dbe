"""How a server is reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict


class ServerAddress(TypedDict, total=False):
    """How a server is reached: the command that starts it, or its address."""

    command: Sequence[str]
    url: str
    env: Mapping[str, str]
    """Variables that a command gets beside those that the SDK hands on."""
    cwd: str
    headers: Mapping[str, str]
    """Headers of requests to its address: what it knows us by."""
    secrets: Callable[[], Mapping[str, str]]
    """More of the one or the other, read whenever it is connected to: one that is not there does not stop the rest."""
    sse: bool
    """Its address speaks only the older transport."""
    roots: bool
    """Whether it is told the folders of its clients (default: yes)."""
