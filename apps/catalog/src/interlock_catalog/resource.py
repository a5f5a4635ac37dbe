"""The catalog as a resource: what the engine reads before a change, and restores when one is undone."""

from __future__ import annotations

from collections.abc import Sequence

from interlock import Context
from interlock.errors import InDoubt
from interlock.values import Versioned
from interlock_catalog.backends import Backend, Docs, Write
from interlock_catalog.contracts import Doc, Json
from interlock_catalog.document_keys import RESOURCE


class Catalog:
    """Keyed documents: exercise:ID, alias:SLUG, family:SLUG."""

    name = RESOURCE

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    async def read_state(self, key: str) -> Versioned | None:
        """A document with its version."""
        return (await self.backend.read_many([key])).get(key)

    async def read_states(self, keys: Sequence[str]) -> Docs:
        """Several documents in one go."""
        return await self.backend.read_many(keys)

    async def restore(self, key: str, state: Json, context: Context) -> None:
        """Put a document back, or remove it."""
        await self.backend.write(Write("restore", {key: state}), context)

    async def restore_all(self, states: dict[str, Json], context: Context) -> None:
        """Put documents back together."""
        await self.backend.write(Write("restore", states), context)

    async def fence(self, tokens: dict[str, int], ledger: str) -> None:
        """Refuse writes under older tokens from now on."""
        await self.backend.fence(tokens, ledger)

    async def change(self, op: Write, found: Docs, context: Context) -> None:
        """Write what differs, at the versions it was decided on, and read it back."""
        differ = {key: state for key, state in op.states.items() if state != _value(found, key)}
        if not differ:
            return
        # A document that is not there has none to compare.
        versions = {key: found[key].version for key in differ if key in found}
        await self.backend.write(Write(op.op, differ, versions, op.arguments), context)
        now = await self.backend.read_many(differ)
        wrong = sorted(key for key, state in differ.items() if _value(now, key) != state)
        if wrong:
            # It was accepted, and so may have landed in part: not a failure, after which it would be tried again.
            raise InDoubt(f"{', '.join(wrong)} was written, but does not read back the same")


def _value(found: Docs, key: str) -> Doc | None:
    return found[key].value if key in found else None


def family_lock(family_slug: str) -> str:
    """The key that is locked while a family is worked on."""
    return f"{RESOURCE}/lease:{family_slug}"
