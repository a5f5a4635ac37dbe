"""What is known of the fields of a result: from one's own books, filled in by outsiders, free text, a model's prose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any

from interlock.values import Trust, Value


class Label(StrEnum):
    """How far a value is believed that stands there: a closed set, the most believed first."""

    USER = "user"
    """The user's own words."""
    PERSON = "person"
    """Somebody who decides a ticket has filled it in, or has vouched for its source."""
    CONSTANT = "constant"
    """A choice or a default of the tool itself, or what the application or an operator fills in."""
    OWN = "own"
    """Declared as trusted: from one's own books."""
    PLAIN = "plain"
    """Nothing was declared."""
    OUTSIDERS = "outsiders"
    """Anybody may fill it in."""
    FREE = "free"
    """Free text."""
    ECHO = "echo"
    """What a tool was asked by, and has returned: that there is such a thing, and nothing more."""
    MODEL = "model"
    """A model's prose: proves nothing."""


class FieldLabels(Value, frozen=True):
    """What a tool declares of the fields of its results, by their names at any depth or by dotted paths."""

    free: frozenset[str] = frozenset()
    outsiders: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    default: Label = Label.PLAIN
    by_words: bool = False
    """Whether a name of a field stands for all in whose names it is a word: `from` for `fromAddress`."""

    def of(self, path: tuple[str, ...]) -> Label:
        """The label of a leaf: the innermost field on the way to it that is declared decides."""
        is_short = len(path[0]) <= _SHORT_PATH if len(path) == 1 else sum(map(len, path)) <= _SHORT_PATH
        return _kept_label(self, path) if is_short else self.find(path)

    def find(self, path: tuple[str, ...]) -> Label:
        """The same, looked up anew."""
        for end in range(len(path), 0, -1):
            names = {path[end - 1], ".".join(path[:end]), *(_words_of(path[end - 1]) if self.by_words else ())}
            for declared, label in (
                (self.outsiders, Label.OUTSIDERS),
                (self.free, Label.FREE),
                (self.own, Label.OWN),
            ):
                if names & declared:
                    return label
        return self.default

    def of_parts(self, path: tuple[str, ...]) -> Label:
        """The label of what stands in a longer text there. That a tool is trusted says nothing of it: names and texts
        in one's own books are often by others. That a field is named as one's own does."""
        label = self.of(path)
        named = not self.own.isdisjoint((*path, *(".".join(path[:end]) for end in range(1, len(path) + 1))))
        return Label.PLAIN if label is Label.OWN and not named else label


@lru_cache(maxsize=4_096)
def _kept_label(labels: FieldLabels, path: tuple[str, ...]) -> Label:
    return labels.find(path)


_SHORT_PATH = 200
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_OF_ITSELF = frozenset(("id", "ids", "number", "count", "date", "time", "at", "size", "length", "type", "status"))


def _words_of(name: str) -> set[str]:
    """The words of a field's name; what ends in "id" or "date" is one, whatever it is of."""
    words = [word.lower() for word in _PARTS.findall(name)]
    return set() if words and words[-1] in _OF_ITSELF else {*words, "_".join(words)}


SAID_BY_A_MODEL = FieldLabels(default=Label.MODEL)
"""Of what another agent says: where a value in it comes from is known by the records of that agent's own turn."""


def labels_of(given: Mapping[str, Any]) -> FieldLabels:
    """The labels of a tool by its options: `trust`, and `free`, `outsiders` and `own` names of fields.

    What is trusted as a whole is one's own, but for what it names; elsewhere fields go by their usual names, too.
    """
    own = given.get("own", frozenset())
    free, outsiders = given.get("free", frozenset()), given.get("outsiders", frozenset())
    trust = given.get("trust")
    if trust is Trust.TRUSTED:
        return FieldLabels(free, outsiders, own, Label.OWN)
    usual = usual_labels()
    free, outsiders = (free | (usual.free - outsiders)) - own, (outsiders | (usual.outsiders - free)) - own
    default = Label.OUTSIDERS if trust is Trust.UNTRUSTED else Label.PLAIN
    return FieldLabels(free, outsiders, own, default, by_words=True)


@cache
def usual_labels() -> FieldLabels:
    """What fields hold where a tool declares nothing, by their names."""
    fields = read_roles()["fields"]
    return FieldLabels(free=frozenset(fields["free"]), outsiders=frozenset(fields["outsiders"]), by_words=True)


@cache
def read_roles() -> dict[str, dict[str, list[str]]]:
    """The table of roles and of usual names of fields."""
    from importlib.resources import files  # here: most programs never ask

    from interlock.toml_text import parse_toml

    return parse_toml((files("interlock.tools") / "tables" / "roles.toml").read_text(encoding="utf-8"))
