"""Known values: what somebody calls a thing becomes its id, a question where several fit, or nothing on file.

A tool says which values an argument can have (`known_values={"road_id": ROADS}`), and one resolver does the rest, the
same for every model: exact ids and names first, then whole words, then small misspellings. Digits are never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import EnumMeta
from functools import lru_cache
from typing import Any

import msgspec

from interlock.canonical import Refusal
from interlock.config import TextLimits
from interlock.errors import ContractError
from interlock.tools.name_index import NameIndex, kind_words
from interlock.values import FieldProblem, Json, Rewrite, shorten

Known = Mapping[str, str | Sequence[str]]
"""Values, and the name or names each goes by."""
KnownValues = Known | Iterable[str] | EnumMeta | Callable[[str], Known | Iterable[str]]
"""Known values, or a function that finds those worth considering for a text."""

RULE = "known_values"
_SHOWN = 4
_MOST_GUESSED = 100
"""So many names of one list may be something else than values or their exact names."""


class Unclear(msgspec.Struct, frozen=True):
    """An argument that names no value, or more than one."""

    field: str
    said: str
    fits: tuple[str, ...]
    """The values that fit, if there are several; of very many, the first."""
    names: tuple[str, ...]
    """What they are called; of the nearest, if none fits."""
    more: int = 0
    """How many fit beside those that are named."""

    @property
    def several(self) -> bool:
        """Whether somebody has to choose."""
        return bool(self.fits)

    @property
    def message(self) -> str:
        """A question, or what is nearest."""
        said = repr(self.said)  # whole, as no longer name is compared: what is cut cannot be redacted
        if self.several:
            choices = [*self.names, f"one of {self.more:,} more"] if self.more else self.names
            return f"which {self.field} is meant by {said}: {_join_choices(choices)}?"
        nearest = f"; the nearest are {', '.join(self.names)}" if self.names else ""
        return f"there is no {self.field} {said} on file{nearest}"


def check_known_values(where: str, given: Any) -> dict[str, KnownValues]:
    """The option of a tool; a sentence for what cannot say which values an argument has."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ContractError(f"{where} is a mapping from arguments to the values they can have, not {given!r}")
    for field, known in given.items():
        if isinstance(known, str) or not (callable(known) or isinstance(known, Iterable)):
            raise ContractError(f"{where} of {field!r} are values, values with names, or a function that finds them")
    return dict(given)


def names_of_values(known_values: KnownValues, text: str) -> dict[str, tuple[str, ...]]:
    """Each value with everything it is called, itself included."""
    if isinstance(known_values, EnumMeta):
        members: Mapping[str, Any] = known_values.__members__
        return {str(member.value): (str(member.value),) for member in members.values()}
    found = known_values(text) if callable(known_values) else known_values
    if not isinstance(found, Mapping):
        return {value: (value,) for value in found}
    return {value: (value, *((names,) if isinstance(names, str) else tuple(names))) for value, names in found.items()}


def resolve(
    known_values: Mapping[str, KnownValues], arguments: Json, limits: TextLimits | None = None
) -> tuple[Json, tuple[Rewrite, ...]] | Unclear:
    """Arguments with every known value in place of what was said for it; or the first that is unclear.

    `Refusal` for a name that is longer than the limits allow, before it is compared with anything.
    """
    if not isinstance(arguments, dict):
        return arguments, ()
    changed, rewrites = dict(arguments), []
    for field, known in known_values.items():
        said = arguments.get(field)
        if not isinstance(said, list | str):
            continue
        names = _Names(field, known, limits or TextLimits())
        meant: list[Json] = []
        for item in said if isinstance(said, list) else [said]:
            one = names.resolve(item) if isinstance(item, str) else item
            if isinstance(one, Unclear):
                return one
            meant.append(one)
        changed[field] = meant if isinstance(said, list) else meant[0]
        if changed[field] != said:
            rewrites.append(Rewrite(field=field, before=said, after=changed[field], rule=RULE))
    return changed, tuple(rewrites)


@lru_cache(maxsize=32)
def _index_of(known: tuple[tuple[str, tuple[str, ...]], ...], kinds: frozenset[str]) -> NameIndex:
    """Kept by the names themselves: what changes is read anew, and the rest is read once, not for every call."""
    return NameIndex(dict(known), kinds)


class _Names:
    """The known values of one argument, read once for all that is said for it."""

    def __init__(self, field: str, known_values: KnownValues, limits: TextLimits) -> None:
        self._field, self._known_values, self._limits = field, known_values, limits
        self._finds = callable(known_values) and not isinstance(known_values, EnumMeta)
        self._known: dict[str, tuple[str, ...]] | None = None
        self._index: NameIndex | None = None
        self._guessed = 0

    def resolve(self, said: str) -> str | Unclear:
        """The value that is meant."""
        # A function is given whole sentences (a request that is passed on), so it may be given as much as a question.
        if self._finds:
            self._refuse_long(said, self._limits.max_question_chars, "max_question_chars")
            self._known = self._index = None
        if self._known is None:
            self._known = names_of_values(self._known_values, said)
        # Before names are compared: an id is itself, also where another value goes by that name.
        if said in self._known:
            return said
        self._refuse_long(said, self._limits.max_name_chars, "max_name_chars")
        self._guessed += 1
        if self._guessed > _MOST_GUESSED:
            message = f"more than {_MOST_GUESSED} of its items are no known values; give the values themselves"
            raise Refusal(FieldProblem(self._field, message))
        if self._index is None:
            kinds = kind_words(self._field)
            known = self._known
            self._index = NameIndex(known, kinds) if self._finds else _index_of(tuple(known.items()), kinds)
        fits = self._index.match(said)
        return fits[0] if len(fits) == 1 else self._ask(said, fits, self._known, self._index)

    def _ask(self, said: str, fits: tuple[str, ...], known: Known, index: NameIndex) -> Unclear:
        shown = (fits or index.nearest(said, _SHOWN))[:_SHOWN]
        names = tuple(_show_value(value, known[value]) for value in shown)
        return Unclear(self._field, said, fits[:_MOST_GUESSED], names, max(0, len(fits) - _SHOWN))

    def _refuse_long(self, said: str, limit: int, setting: str) -> None:
        if len(said) > limit:
            message = f"{len(said):,} characters are held against no known value: at most {limit:,} are ({setting})"
            raise Refusal(FieldProblem(self._field, message))


def match_values(said: str, known: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The values that a text can mean: one, several, or none. For many texts, make one `NameIndex`."""
    return NameIndex(known).match(said)


def nearest_values(said: str, known: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The values whose names look most like a text, best first."""
    return NameIndex(known).nearest(said, _SHOWN)


def _show_value(value: str, names: Sequence[str]) -> str:
    name = next((name for name in names if name != value), "")
    return f"{shorten(name)} ({shorten(value)})" if name else shorten(value)


def _join_choices(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
