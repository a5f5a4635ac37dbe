"""Which thing a value is about: the objects that it stands in, and the names and ids that those go by."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from interlock.values import Json

_BARE = re.compile(r"[\W_]+")
_KEYS = re.compile(r"^(?:id|name|title|label|code|key|slug|ref|reference|number|no|sku|email)$")
_KEY_ENDS = re.compile(r"^(?P<kind>.+?)_(?:id|name|title|label|code|no|nr|number|ref|key|sku)$")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
STATES = frozenset({"status", "state", "stage", "phase", "condition", "type", "method", "mode", "severity", "channel"})
_NO_NAMES = frozenset(
    {
        "unit",
        "units",
        "currency",
        "time",
        "note",
        "notes",
        "comment",
        "description",
        "text",
        "message",
        "body",
        "content",
        "summary",
        "reason",
    }
)
_MAY_NAME = frozenset({"text", "reason", "description"})
"""Of these a short one that tells the rows of a list apart is what they are called: the lines of a bill."""
_FEW_WORDS = 4
_LONGEST_NAME = 80
_MOST_WORDS = 8
_MOST_ROWS = 500
"""In a longer list no other field is taken for a name than those that are called so."""


def plain_name(text: str) -> str:
    """A name as it is compared: words in lower case, whatever stands between them."""
    if text.isascii() and text.isalnum():
        return text.lower()
    return " ".join(_BARE.sub(" ", text.lower()).split())


class Row:
    """One object of a result, with what it goes by; the rows around it say more about it."""

    __slots__ = ("names", "of_call", "parent")

    def __init__(self, parent: Row | None, names: Mapping[str, frozenset[str]], *, of_call: bool = False) -> None:
        self.parent, self.names = parent, names
        self.of_call = of_call
        """Made of the arguments of a call, around all that it returned."""

    def chain(self) -> Iterator[Row]:
        """The row and those around it, from the inside."""
        row: Row | None = self
        while row is not None:
            yield row
            row = row.parent

    def names_of_kind(self, kind: str) -> frozenset[str]:
        """What the nearest of them goes by that has a name of this kind."""
        return next((row.names[kind] for row in self.chain() if kind in row.names), frozenset())


NOWHERE = Row(None, {})


def kind_of_argument(name: str) -> str:
    """`order_id` and `order` are names of the same kind of thing."""
    match = _KEY_ENDS.match(_CAMEL.sub("_", name).lower())
    return name.lower() if match is None else match["kind"]


def names_of(
    value: Mapping[str, Json], where: str, varying: Collection[str] | None = None
) -> dict[str, frozenset[str]]:
    """What an object goes by, by kind: its own id and name, those of what it belongs to, and what tells it apart.

    `varying`: of an object in a list, the fields in which the objects of the list differ.
    """
    found: dict[str, set[str]] = {}
    for key, item in value.items():
        if type(item) is not str and type(item) is not int and not isinstance(item, str):
            continue
        name = str(key)
        way, kind, may_be_number = _way_of_naming(name) if len(name) <= _LONGEST_NAME else _find_way(name)
        if way == _NEVER or not (isinstance(item, str) or may_be_number):
            continue
        said = str(item)
        if way == _IF_TELLING and not (key in varying if varying is not None else said[:1].isupper()):
            continue
        if way == _IF_LISTED and not (varying and key in varying and said.count(" ") < _FEW_WORDS):
            continue
        plain = plain_name(said)
        if plain and len(plain) <= _LONGEST_NAME and plain.count(" ") < _MOST_WORDS and not _is_sentence(said):
            kind = where if way == _OWN else kind
            if kind in found:
                found[kind].add(plain)
            else:
                found[kind] = {plain}
    return {kind: frozenset(names) for kind, names in found.items()}


_NEVER, _OWN, _OF_KIND, _IF_TELLING, _IF_LISTED = range(5)


def _find_way(key: str) -> tuple[int, str, bool]:
    """How the value of a key can be a name, of which kind, and whether a number there is one."""
    lower = _CAMEL.sub("_", key).lower()
    number = "id" in lower
    if lower in _NO_NAMES:
        return (_IF_LISTED if lower in _MAY_NAME else _NEVER), lower, number
    if _KEYS.match(lower):
        return _OWN, "", number
    if _KEY_ENDS.match(lower):
        return _OF_KIND, kind_of_argument(lower), number
    return (_OF_KIND if lower in STATES else _IF_TELLING), lower, number


_way_of_naming = lru_cache(maxsize=4096)(_find_way)  # tables have the same keys in each row


def _is_sentence(text: str) -> bool:
    """Whether a text says something, rather than names something: "There are 7 things.", not "Miller & Co."."""
    return text.rstrip()[-1:] in (".", "!", "?") and text.count(" ") > 2


def varying_fields(items: Sequence[Json]) -> frozenset[str]:
    """The fields with texts that tell the objects of a list apart: not all of them have the same."""
    rows = [item for item in items if isinstance(item, dict)]
    if not 2 <= len(rows) <= _MOST_ROWS:
        return frozenset()
    seen: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for key, value in row.items():
            if isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME:
                seen[key].add(value)
    return frozenset(key for key, values in seen.items() if len(values) > 1)
