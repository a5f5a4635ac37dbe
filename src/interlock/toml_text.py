"""TOML that somebody else has written: read with a bound on how deep it is nested."""

from __future__ import annotations

import re
from typing import Any

_DEEPEST = 64
_KEY_PART = r"(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')"
_DEEP_KEY = re.compile(rf"(?<![\w-]){_KEY_PART}(?:[ \t]*\.[ \t]*{_KEY_PART}){{{_DEEPEST},}}")
_TOO_DEEP = f"it is nested more than {_DEEPEST} levels deep; make it shallower"


def parse_toml(text: str) -> dict[str, Any]:
    """What a TOML text holds; `ValueError` says in a sentence why it cannot be read.

    What is nested without end is refused for all that read such files: whatever quotes it later would go as deep.
    """
    import tomllib  # whoever gives settings and policy as values reads no file

    if _DEEP_KEY.search(text) is not None:  # before it is read: tomllib takes the square of a key's length for it
        raise ValueError(_TOO_DEEP)
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    layer: list[Any] = [found]
    for _ in range(_DEEPEST):
        below = [part.values() if isinstance(part, dict) else part for part in layer if isinstance(part, dict | list)]
        layer = [item for items in below for item in items]
        if not layer:
            return found
    raise ValueError(_TOO_DEEP)
