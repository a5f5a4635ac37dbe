"""The one way in which something of ours is loaded later than the module that names it.

A package says where its names come from, and the module that has a name is loaded when it is first asked for; what only
a function needs of a heavy module it imports itself, and says why. Type checkers see the imports under TYPE_CHECKING.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def load_on_first_use(package: str, where: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a package: `where` has the module of each name."""

    def load(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(where[name]), name)

    return load
