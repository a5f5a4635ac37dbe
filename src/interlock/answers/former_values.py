"""Values in the result of a change that say how it was before: `old_start`, `previousSlot`, `from: 48, to: 36`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from interlock.answers.grounding import Source
from interlock.values import Json

_FORMER = re.compile(r"(?:old|previous|prev|prior|former|before|original|was)(?=$|_|[A-Z])|[a-z_]+_(?:before|was)$")
_TO = {"from": "to", "From": "To"}
_SPAN = re.compile(r"\d{1,2}:\d\d|\d{4}-\d\d-\d\d")
"""Between times and days "from" and "to" are a span, and not what it was and is."""
_MOST = 400


def former_paths(source: Source) -> frozenset[str]:
    """The paths of the values that were so before the change."""
    return frozenset(path for path, _left in zip(_find(source.value, "$", former=False), range(_MOST), strict=False))


def _find(value: Json, path: str, *, former: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _find(item, f"{path}.{key}", former=former or _is_former(str(key), item, value))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _find(item, f"{path}[{number}]", former=former)
    elif former and value is not None:
        yield path


def _is_former(key: str, item: Json, beside: Mapping[str, Json]) -> bool:
    if _FORMER.match(key):
        return True
    other = beside.get(_TO.get(key, ""))
    return other is not None and not isinstance(other, Mapping) and not _SPAN.match(str(item))
