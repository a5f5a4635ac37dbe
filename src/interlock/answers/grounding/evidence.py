"""What an answer may rest on: every value in the results, with the record, the path, and what it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from interlock.answers.grounding.claims import NO_UNIT, Units
from interlock.answers.grounding.value_path import ValuePath
from interlock.answers.grounding.words import Meanings
from interlock.values import Json, Value

T = TypeVar("T")
NO_DATE = (None, None, None)


class Source(Value, frozen=True):
    """One thing that was given to the turn: a result, the user's words, a record or chunk that was handed in."""

    id: str
    """`record 12`, `question`, or the id of a chunk."""
    value: Json
    apart: tuple[str, ...] = ()
    """Parts of an object that prove nothing: what a model said is in an error message, too."""
    echo: bool = False
    """The user's own words: they may be repeated, but prove nothing."""
    tool: str = ""
    """Which tool's result it is, where it is one."""
    about: Json = None
    """The arguments of the call: they prove nothing, but say what the result is about."""
    asked: bool = False
    """What a call asked for: an answer may say what was looked for or tried, and rest nothing else on it."""
    trusted: bool = True
    """False where the text is somebody else's: what it says may be repeated as theirs."""
    stale: tuple[str, ...] = ()
    """Fields that a later change of the turn has made untrue; `*`: all of them."""
    stale_names: tuple[str, ...] = ()
    """Of which things, by their plain names; of all if there are none."""
    stale_paths: frozenset[str] = frozenset()
    """Single values that a later change has made untrue, by their paths."""
    at_us: int = 0
    """When it was recorded, for one of an earlier turn: an answer that rests on it says so."""


class Fact(Value, frozen=True):
    """One value somewhere in a source."""

    source: str
    place: ValuePath
    number: Decimal | None = None
    units: Units = NO_UNIT
    money: Units = NO_UNIT
    """The currency that stands beside it, if it is an amount of money."""
    share: bool = False
    date: tuple[int | None, int | None, int | None] = NO_DATE
    text: str = ""
    truth: bool | None = None
    echo: bool = False
    minutes: int | None = None
    counted: bool = False
    """Not written there: the length of a list."""
    label: bool = False
    """Part of a name, not a value."""
    words: Meanings = frozenset()
    """What the names of its field and of the list it is in stand for."""
    own: Meanings = frozenset()
    """What the name of its field alone stands for."""
    around: Meanings = frozenset()
    """What the names of the objects stand for that it is in."""
    described: Meanings = frozenset()
    """What the words stand for with which its author describes the field."""
    asked: bool = False
    trusted: bool = True
    stale: bool = False
    prose: bool = False
    """Found within a longer text."""

    @property
    def is_key(self) -> bool:
        """Whether it is the name of a field, which is none of its values."""
        return self.text == self.place.field.key


class KnownFacts(tuple[Fact, ...]):
    """The facts of all sources, in the order in which they were read, with what was found out about all of them.

    An answer is checked more than once, and each check asks the same of the facts: which rows there are, by which
    names, which numbers. What has to look at all of them is worked out when it is first asked for, and kept.
    """

    def __init__(self, _facts: Iterable[Fact] = ()) -> None:
        self._kept: dict[tuple[object, ...], Any] = {}

    def once(self, make: Callable[..., T], *more: object) -> T:
        """What a function makes of them, and of things that last as long: it is called once for each of those."""
        key = (make, *map(id, more))
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = (make(self, *more), more)  # `more` is kept, so that no id is used again
        kept: T = found[0]
        return kept


def once(facts: Sequence[Fact], make: Callable[..., T], *more: object) -> T:
    """The same where facts may be any sequence, of which nothing is kept."""
    return facts.once(make, *more) if isinstance(facts, KnownFacts) else make(facts, *more)


class Evidence(Value, frozen=True):
    """The facts of all sources."""

    facts: KnownFacts = KnownFacts()
    cut: bool = False
    """Not everything was read: the sources are longer than the limit."""
    tools: Mapping[str, str] = {}
    """By source: the tool that returned it."""
