"""Values in the result of a change that say how it was before: `old_start`, `previousSlot`, `from: 48, to: 36`.

So are objects: `from: {room: 115}, to: {room: 327}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from itertools import islice

from interlock.answers.grounding import Source
from interlock.answers.grounding.field_names import snake_name
from interlock.values import Json

_FORMER = re.compile(r"(?:old|previous|prev|prior|former|before|original|was)(?=$|_)|[a-z_]+_(?:before|was)$")
_SPAN = re.compile(r"\d{1,2}:\d\d|\d{4}-\d\d-\d\d")
"""Between times and days "from" and "to" are a span, and not what it was and is."""
_MOST = 400


def former_paths(source: Source) -> frozenset[str]:
    """The paths of the values that were so before the change."""
    about = source.about if isinstance(source.about, Mapping) else {}
    found = _find(source.value, "$", former=False, given=frozenset(map(str, about.values())))
    return frozenset(islice(found, _MOST))


def _find(value: Json, path: str, *, former: bool, given: Set[str]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _find(
                item, f"{path}.{key}", former=former or _is_former(str(key), item, value, given), given=given
            )
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _find(item, f"{path}[{number}]", former=former, given=given)
    elif former and value is not None:
        yield path


def _is_former(key: str, item: Json, beside: Mapping[str, Json], given: Set[str]) -> bool:
    """Whether a field says how it was. Of two things that the call was given, the first is still there after it."""
    name = snake_name(key)
    if _FORMER.match(name):
        return not isinstance(item, bool)  # `old_keys_blocked` says of what was there before how it is now
    if name != "from":
        return False
    other = next((value for to, value in beside.items() if snake_name(to) == "to"), None)
    if isinstance(item, Mapping):
        return isinstance(other, Mapping) and item.keys() == other.keys() and given.isdisjoint(map(str, item.values()))
    return other is not None and not isinstance(other, Mapping) and not _SPAN.match(str(item))
