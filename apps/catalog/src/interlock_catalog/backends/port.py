"""The port to wherever the catalog is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from interlock import Context
from interlock.values import Versioned
from interlock_catalog.contracts import Doc, Json

Docs = dict[str, Versioned]
"""Documents by key (exercise:ID, alias:SLUG, family:SLUG), in the order of their keys."""


class Write(msgspec.Struct, frozen=True):
    """Documents that are written together, or not at all; None removes one."""

    op: str
    """The operation that this is: a tool's name, or `restore`."""
    states: dict[str, Doc | None]
    versions: dict[str, str] = {}
    """The versions on which it was decided; a document at another one refuses the whole."""
    arguments: dict[str, Json] = {}


class Search(msgspec.Struct, frozen=True):
    """What people searched for, how often, and how much they found."""

    id: str
    query: str
    hits: int
    count: int


class Backend(Protocol):
    """A catalog. Pages are in the order of their keys; `after` is the last key of the page before."""

    async def read_many(self, keys: Iterable[str]) -> Docs:
        """Those of the documents that exist."""
        ...

    async def families(self, *, after: str = "", limit: int = 200) -> Docs:
        """A page of families."""
        ...

    async def exercises(self, *, family: str | None = None, after: str = "", limit: int = 200) -> Docs:
        """A page of exercises, or all of a family."""
        ...

    async def aliases(self, *, after: str = "", limit: int = 500) -> Docs:
        """A page of aliases."""
        ...

    async def aliases_of(self, exercises: Iterable[str], families: Iterable[str] = ()) -> Docs:
        """The aliases that point at these exercises or families."""
        ...

    async def find_by_name(self, slugs: Iterable[str]) -> Docs:
        """The exercises with one of these name slugs."""
        ...

    async def searches(self, *, after: str = "", limit: int = 500) -> list[Search]:
        """A page of the log of searches."""
        ...

    async def write(self, write: Write, context: Context | None = None) -> None:
        """Write documents together, under the context's idempotency key and fencing tokens."""
        ...

    async def fence(self, tokens: dict[str, int], ledger: str) -> None:
        """Refuse writes under older tokens of this ledger from now on."""
        ...

    async def close(self) -> None: ...
