"""A catalog as it would be: what a run has only planned so far laid over what is there, for what it plans next."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from interlock import Context
from interlock.values import Versioned
from interlock_catalog.backends.port import Backend, Docs, Search, Write
from interlock_catalog.contracts import Doc
from interlock_catalog.document_keys import DocumentKind, kind_of

PlannedStates = dict[str, Doc | None]
"""Documents by key, as changes that are planned would leave them; None: removed."""
# Of the task, and not of the backend: the same tools serve a run that only plans and, beside it, one that applies.
_PLANNED: ContextVar[Mapping[str, Doc | None]] = ContextVar("interlock_catalog_planned")
_VERSION = "planned"
"""That of a document which is not there yet: no document that is has it."""


@contextmanager
def planning() -> Iterator[PlannedStates]:
    """Within this, and in this task alone, tools plan on top of the states that are put in here."""
    states = PlannedStates()
    token = _PLANNED.set(states)
    try:
        yield states
    finally:
        _PLANNED.reset(token)


class PlannedView:
    """A backend with what is planned in this task laid over it; without any of that, the backend itself."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def read_many(self, keys: Iterable[str]) -> Docs:
        wanted = list(keys)
        return _lay_over(await self._backend.read_many(wanted), lambda key, _doc: key in wanted)

    async def exercises(self, *, family: str | None = None, after: str = "", limit: int = 200) -> Docs:
        found = await self._backend.exercises(family=family, after=after, limit=limit)
        if family is None:  # a page: nothing is judged by one
            return found
        return _lay_over(found, lambda key, doc: _has(DocumentKind.EXERCISE, key, doc, "family_slug", [family]))

    async def aliases_of(self, exercises: Iterable[str], families: Iterable[str] = ()) -> Docs:
        ids, slugs = list(exercises), list(families)
        found = await self._backend.aliases_of(ids, slugs)
        return _lay_over(
            found,
            lambda key, doc: (
                _has(DocumentKind.ALIAS, key, doc, "exercise_id", ids)
                or _has(DocumentKind.ALIAS, key, doc, "family_slug", slugs)
            ),
        )

    async def find_by_name(self, slugs: Iterable[str]) -> Docs:
        wanted = list(slugs)
        found = await self._backend.find_by_name(wanted)
        return _lay_over(found, lambda key, doc: _has(DocumentKind.EXERCISE, key, doc, "name_slug", wanted))

    async def families(self, *, after: str = "", limit: int = 200) -> Docs:
        return await self._backend.families(after=after, limit=limit)

    async def aliases(self, *, after: str = "", limit: int = 500) -> Docs:
        return await self._backend.aliases(after=after, limit=limit)

    async def searches(self, *, after: str = "", limit: int = 500) -> list[Search]:
        return await self._backend.searches(after=after, limit=limit)

    async def write(self, write: Write, context: Context | None = None) -> None:
        """Write; refused where something is only planned, as it was decided on what is not there."""
        if _PLANNED.get({}):
            raise RuntimeError("nothing is written while changes are only planned")
        await self._backend.write(write, context)

    async def fence(self, tokens: dict[str, int], ledger: str) -> None:
        await self._backend.fence(tokens, ledger)

    async def close(self) -> None:
        await self._backend.close()


def _lay_over(found: Docs, matches: Callable[[str, Doc], bool]) -> Docs:
    """What was found, but for what is planned otherwise, with what is planned and matches."""
    planned = _PLANNED.get({})
    if not planned:
        return found
    kept = {key: doc for key, doc in found.items() if key not in planned}
    added = {
        key: Versioned(doc, found[key].version if key in found else _VERSION)
        for key, doc in planned.items()
        if doc is not None and matches(key, doc)
    }
    return dict(sorted({**kept, **added}.items()))


def _has(kind: DocumentKind, key: str, doc: Doc, field: str, values: Collection[str]) -> bool:
    return kind_of(key) is kind and doc.get(field) in values
