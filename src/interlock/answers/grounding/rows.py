"""Which thing a value is about: the objects that it stands in, and the names and ids that those go by."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from interlock.answers.grounding.field_names import snake_name
from interlock.values import Json

_BARE = re.compile(r"[\W_]+")
_NO_LETTERS = {number: " " for number in range(128) if not chr(number).isalnum()}
"""The same for plain texts, of which there are most: a table is much faster than a pattern."""
_KEYS = re.compile(r"^(?:id|name|title|label|code|key|slug|ref|reference|number|no|sku|email)$")
_KEY_ENDS = re.compile(r"^(?P<kind>.+?)_(?:id|name|title|label|code|no|nr|number|ref|key|sku)$")
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
        "not_found",
    }
)
_MAY_NAME = frozenset({"text", "reason", "description"})
"""Of these a short one that tells the rows of a list apart is what they are called: the lines of a bill."""
_FEW_WORDS = 4
_LONGEST_NAME = 80
_MOST_WORDS = 12
_MOST_ROWS = 500
"""In a longer list no other field is taken for a name than those that are called so."""


def plain_name(text: str) -> str:
    """A name as it is compared: words in lower case, whatever stands between them."""
    if text.isascii():
        return text.lower() if text.isalnum() else " ".join(text.lower().translate(_NO_LETTERS).split())
    return " ".join(_BARE.sub(" ", text.lower()).split())


class Row(msgspec.Struct, eq=False, gc=False):
    """One object of a result, with what it goes by; the rows around it say more about it."""

    parent: Row | None
    names: Mapping[str, frozenset[str]]
    of_call: bool = False
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

    def names_around(self) -> dict[str, frozenset[str]]:
        """What it and those around it go by; of a kind the nearest."""
        return {kind: names for row in reversed([*self.chain()]) for kind, names in row.names.items()}


NOWHERE = Row(None, {})


def kind_of_argument(name: str) -> str:
    """`order_id` and `order` are names of the same kind of thing."""
    name = snake_name(name)
    match = _KEY_ENDS.match(name)
    return name if match is None else match["kind"]


def names_of(value: Mapping[str, Json], where: str) -> dict[str, frozenset[str]]:
    """What an object goes by, by kind: its own id and name, those of what it belongs to, and what tells it apart."""
    return NamesOfRows(where).find(value)


class NamesOfRows:
    """What the objects of a list go by: which of their keys can name them is found out once for objects alike."""

    def __init__(self, where: str, varying: Collection[str] | None = None) -> None:
        self._where, self._varying = where, varying
        """`varying`: the fields in which the objects of the list differ."""
        self._naming: dict[tuple[str, ...], list[tuple[str, str, bool, bool, int]]] = {}
        self._known: dict[str, frozenset[str]] = {}
        """Values that came before, each as a name; empty for one that is none."""

    def find(self, value: Mapping[str, Json]) -> dict[str, frozenset[str]]:
        """The names of one of them, by kind."""
        return self.find_all((value,))[0]

    def find_all(self, rows: Sequence[Mapping[str, Json]]) -> list[dict[str, frozenset[str]]]:
        """The names of several that have the same keys."""
        found: list[dict[str, frozenset[str]]] = [{} for _row in rows]
        keys = tuple(rows[0])
        naming = self._naming.get(keys)
        if naming is None:
            naming = self._naming[keys] = list(self._find_naming(keys))
        for key, kind, may_be_number, if_telling, most_words in naming:
            said = [_name_in(row[key], may_be_number, if_telling, most_words) for row in rows]
            for text in dict.fromkeys(said):
                if text not in self._known:
                    self._known[text] = _as_name(text)
            for names, text in zip(found, said, strict=True):
                name = self._known[text]
                if name:
                    names[kind] = names[kind] | name if kind in names else name
        return found

    def _find_naming(self, keys: Iterable[str]) -> Iterator[tuple[str, str, bool, bool, int]]:
        """The keys whose values can be names: of which kind, whether numbers and small letters do, how many words."""
        for key in keys:
            name = str(key)
            way, kind, may_be_number = _way_of_naming(name) if len(name) <= _LONGEST_NAME else _find_way(name)
            if way == _NEVER or (way == _IF_TELLING and self._varying is not None and key not in self._varying):
                continue
            if way == _IF_LISTED and not (self._varying and key in self._varying):
                continue
            if_telling = way == _IF_TELLING and self._varying is None
            most_words = _FEW_WORDS if way == _IF_LISTED else _MOST_WORDS
            yield key, self._where if way == _OWN else kind, may_be_number, if_telling, most_words


_NEVER, _OWN, _OF_KIND, _IF_TELLING, _IF_LISTED = range(5)


def _find_way(key: str) -> tuple[int, str, bool]:
    """How the value of a key can be a name, of which kind, and whether a number there is one."""
    lower = snake_name(key)
    number = "id" in lower
    if lower in _NO_NAMES:
        return (_IF_LISTED if lower in _MAY_NAME else _NEVER), lower, number
    if _KEYS.match(lower):
        return _OWN, "", number
    if _KEY_ENDS.match(lower):
        return _OF_KIND, kind_of_argument(lower), number
    return (_OF_KIND if lower in STATES else _IF_TELLING), lower, number


_way_of_naming = lru_cache(maxsize=4096)(_find_way)  # tables have the same keys in each row


def _name_in(item: Json, may_be_number: bool, if_telling: bool, most_words: int) -> str:
    """What a value says as a name; nothing if it can be none."""
    if type(item) is not str and not isinstance(item, str) and not (may_be_number and type(item) is int):
        return ""
    said = str(item)
    if most_words < _MOST_WORDS and said.count(" ") >= most_words:
        return ""
    return said if not if_telling or said[:1].isupper() else ""


def _as_name(text: str) -> frozenset[str]:
    """A text as a name; nothing if it is too long for one, or a sentence."""
    plain = plain_name(text)
    if plain and len(plain) <= _LONGEST_NAME and plain.count(" ") < _MOST_WORDS and not _is_sentence(text):
        return frozenset((plain,))
    return frozenset()


def _is_sentence(text: str) -> bool:
    """Whether a text says something, rather than names something: "There are 7 things.", not "Miller & Co."."""
    return text.count(" ") > 2 and text.rstrip()[-1:] in (".", "!", "?")


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
