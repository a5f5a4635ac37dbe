"""What a name stands for: the same for the tool and for the server."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.errors import Ambiguous, NotFound
from interlock_catalog.backends import Backend
from interlock_catalog.contracts import Doc, Json, is_live
from interlock_catalog.document_keys import alias_key, name_of
from interlock_catalog.vocabulary import is_lossless_slug, slug

_MAX_SHOWN = 10


async def look_up_name(backend: Backend, name: str) -> dict[str, Json]:
    """The exercise or family that a name stands for, and whether it is its own (`by`: name) or an alias.

    A closer likeness goes first: the very name, the very alias, the name in other capitals, the same slug. Ambiguous
    where several are alike; NotFound where nothing is, or only what has lost letters of the name (hints say what).
    """
    wanted = slug(name)
    named = {name_of(key): doc.value for key, doc in (await backend.find_by_name([wanted])).items()}
    live = {identity: doc for identity, doc in named.items() if is_live(doc)}
    found = (await backend.read_many([alias_key(wanted)])).get(alias_key(wanted)) if wanted else None
    alias: Doc = found.value if found is not None and isinstance(found.value, dict) else {}
    if same := [identity for identity, doc in live.items() if doc.get("name") == name]:
        return _choose(name, same)
    if name == wanted and alias.get("exercise_id"):
        return {**alias, "by": "alias"}
    if same := [identity for identity, doc in live.items() if _fold(str(doc.get("name"))) == _fold(name)]:
        return _choose(name, same)
    if live and is_lossless_slug(name):
        return _choose(name, sorted(live))
    # An alias of an exercise may have been made of a name with such letters; that a family has it says nothing.
    if alias.get("exercise_id") or (alias and is_lossless_slug(name)):
        return {**alias, "by": "alias"}
    raise NotFound(f"nothing in the catalog is called {name!r}", hints=tuple(sorted(live)[:_MAX_SHOWN]))


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())


def _choose(name: str, ids: Sequence[str]) -> dict[str, Json]:
    if len(ids) == 1:
        return {"exercise_id": ids[0], "by": "name"}
    shown = ", ".join(sorted(ids)[:_MAX_SHOWN])
    more = f" and {len(ids) - _MAX_SHOWN} more" if len(ids) > _MAX_SHOWN else ""
    raise Ambiguous(f"{name!r} can be {len(ids)} exercises; name one by its id: {shown}{more}")
