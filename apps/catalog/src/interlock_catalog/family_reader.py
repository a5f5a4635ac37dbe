"""Reading a whole family in as few requests as that takes, and handing it to whoever works on it."""

from __future__ import annotations

from interlock.errors import NotFound
from interlock_catalog.backends import Backend, Docs
from interlock_catalog.contracts import is_live
from interlock_catalog.document_keys import alias_key, exercise_key, family_key, name_of
from interlock_catalog.snapshot import Snapshot


async def has_family(backend: Backend, slug: str) -> bool:
    """Whether there is a family of that slug, or at least exercises that say they are of it."""
    return bool(await backend.read_many([family_key(slug)])) or bool(await backend.exercises(family=slug))


async def read_family(backend: Backend, slug: str) -> Snapshot:
    """A family with its exercises, the aliases that concern it, and what those point at elsewhere."""
    found = await backend.read_many([family_key(slug)])
    members = _documents(await backend.exercises(family=slug))
    if not found and not members:
        raise NotFound(f"there is no family {slug!r}")
    ids = {name_of(key) for key in members}
    names = {str(doc.value.get("name_slug")) for doc in members.values() if is_live(doc.value)}
    aliases = _documents(await backend.aliases_of(ids, [slug]))
    # An alias with the name of an exercise may point into another family, and is not found by its target here.
    more = await backend.read_many(alias_key(name) for name in names if name and alias_key(name) not in aliases)
    aliases |= _documents(more)
    away = {
        str(target)
        for doc in (*members.values(), *aliases.values())
        for target in (doc.value.get("merged_into"), doc.value.get("exercise_id"))
        if isinstance(target, str) and target and target not in ids
    }
    elsewhere = _documents(await backend.read_many(exercise_key(target) for target in away)) if away else {}
    everything: Docs = {**found, **members, **aliases}
    return Snapshot(
        slug=slug,
        family=found[family_key(slug)].value if found else None,
        exercises={name_of(key): doc.value for key, doc in members.items()},
        aliases={name_of(key): doc.value for key, doc in sorted(aliases.items())},
        elsewhere={name_of(key): doc.value for key, doc in elsewhere.items()},
        versions={key: doc.version for key, doc in everything.items()},
    )


def _documents(found: Docs) -> Docs:
    """Those that are documents at all: something else under a key is for a person to look at."""
    return {key: doc for key, doc in found.items() if isinstance(doc.value, dict)}


class SnapshotCache:
    """Families that were read and not yet worked on: the tool `open_family` puts them here, the pipeline takes them.

    A tool's result is recorded, so it holds versions and a digest and not the documents themselves.
    """

    def __init__(self) -> None:
        self._snapshots: dict[tuple[str, str], Snapshot] = {}

    def put(self, turn: str, snapshot: Snapshot) -> None:
        """Keep a family for whoever asked for it."""
        self._snapshots[turn, snapshot.slug] = snapshot

    def take(self, turn: str, slug: str) -> Snapshot | None:
        """A family that was read for this turn, once."""
        return self._snapshots.pop((turn, slug), None)
