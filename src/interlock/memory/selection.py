"""Which chunks a search means, by their documents."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import TypedDict, TypeVar

import msgspec

from interlock.canonical import nearest
from interlock.errors import InvalidInput
from interlock.memory.documents import DocumentKind
from interlock.memory.limits import MemoryLimits, refuse_unknown_options
from interlock.values import Trust, shorten

E = TypeVar("E", bound=StrEnum)
_HIGHEST = "\U0010ffff"
_LOWEST = "\x01"


class Filters(TypedDict, total=False):
    """What a search may be held to."""

    namespace: str | tuple[str, ...]
    kind: DocumentKind | str | tuple[DocumentKind | str, ...]
    trust: Trust | str
    source: str
    """Where it comes from; with `*` at the end, where that begins."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Filters that were looked at."""

    now_us: int
    namespaces: Collection[str] | None = None
    kinds: Collection[DocumentKind] | None = None
    trust: Trust | None = None
    source: tuple[str, str] | None = None
    """The first source that is meant, and the first one after all that are."""


def select(filters: Filters, namespaces: Collection[str] | None, now_us: int, limits: MemoryLimits) -> Selection:
    """A selection of filters; `namespaces` were looked at before."""
    refuse_unknown_options("Memory.search", filters, Filters.__annotations__)
    kinds, trust, source = filters.get("kind"), filters.get("trust"), filters.get("source")
    if kinds is not None:
        kinds = tuple(kinds) if isinstance(kinds, list | tuple | set | frozenset) else (kinds,)
    return Selection(
        now_us=now_us,
        namespaces=namespaces,
        kinds=None if kinds is None else tuple(find_member(DocumentKind, "kind", kind) for kind in kinds),
        trust=None if trust is None else find_member(Trust, "trust", trust),
        source=None if source is None else source_range(limits.check_name("source", source, needed=True)),
    )


def source_range(source: str) -> tuple[str, str]:
    """From where to where the sources are that a text means, in the order of code points."""
    # Sources are printable, so that nothing stands between one and itself with the lowest character behind it.
    return (source[:-1], source[:-1] + _HIGHEST) if source.endswith("*") else (source, source + _LOWEST)


def find_member(kind: type[E], what: str, value: object) -> E:
    """The member that a value names, or a sentence about those that there are."""
    try:
        return kind(str(value))
    except ValueError:
        names = [member.value for member in kind]
        close = nearest(str(value)[:100], names, 1)
        way_out = f"; did you mean {close[0]!r}?" if close else ""
        raise InvalidInput(f"{what} is {', '.join(names)}, not {shorten(repr(value))}{way_out}") from None
