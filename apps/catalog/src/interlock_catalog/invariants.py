"""What must hold after every change, whoever makes it: checked on the simulated state, and again under the lease."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interlock_catalog.backends import Backend
from interlock_catalog.changes import PATCHABLE, known_by
from interlock_catalog.contracts import Doc, Json, faults, live, value_at
from interlock_catalog.naming import doc_id, split_name
from interlock_catalog.normalise import facts_of

States = Mapping[str, Json]
_IDENTITY = ("name", "name_slug", "family_slug", "equipment", "status")


async def after_upsert(backend: Backend, arguments: States, before: States, after: States) -> list[str]:
    """An exercise is right in what was touched, no worse elsewhere, and in the family whose lease is held."""
    identity = str(arguments["exercise_id"])
    was, becomes = before[f"exercise:{identity}"], after[f"exercise:{identity}"]
    found = list(_patches(arguments, was))
    if was is None:
        found += _created(arguments, becomes)
    elif not live(was):
        found.append(f"{identity!r} is {was.get('status')}: it is not changed any more")
    else:
        touched = {str(change["field"]) for change in arguments["changes"]}
        found += _no_worse(was, becomes, touched)
        found += _in_family(was, arguments)
    found += await _identity(backend, {identity: (was, becomes)})
    return found


async def after_normalise(backend: Backend, arguments: States, before: States, after: States) -> list[str]:
    """Every exercise of the page is no worse than it was, and still the only one of its name."""
    found: list[str] = []
    pairs: dict[str, tuple[Doc | None, Doc]] = {}
    for item in arguments["items"]:
        identity = str(item["exercise_id"])
        was, becomes = before[f"exercise:{identity}"], after[f"exercise:{identity}"]
        if was is None:
            found.append(f"there is no exercise {identity!r}")
            continue
        found += _no_worse(was, becomes, set())
        found += _in_family(was, arguments)
        pairs[identity] = (was, becomes)
        old = item.get("old_slug")
        if old and after[f"alias:{old}"].get("exercise_id") != identity:
            found.append(f"alias {old!r} is taken, and does not lead to {identity!r}")
        found += await _shadowing(backend, {old}, identity) if old and was.get("name_slug") != old else []
    return found + await _identity(backend, pairs)


async def after_merge(backend: Backend, arguments: States, before: States, _after: States) -> list[str]:
    """Both are live and of the one family, and nothing is left that points at what is gone."""
    source, target = str(arguments["source_id"]), str(arguments["target_id"])
    family, held = str(arguments["family_slug"]), {str(alias) for alias in arguments["aliases"]}
    if source == target:
        return ["an exercise is not merged into itself"]
    found = []
    for identity in (source, target):
        doc = before[f"exercise:{identity}"]
        if doc is None or not live(doc):
            found.append(f"{identity!r} is {'not there' if doc is None else doc.get('status')}: it cannot be merged")
        elif doc.get("family_slug") != family:
            found.append(
                f"{identity!r} is of family {doc.get('family_slug')!r}, not {family!r}: merges stay in a family"
            )
        elif known_by(doc) != arguments["seen"][identity]:
            found.append(f"{identity!r} is not what was looked at any more")
    pointing = await backend.aliases_of([source])
    left = sorted(key for key in pointing if key.partition(":")[2] not in held)
    if left:
        found.append(f"{', '.join(left)} would be left pointing at {source!r}")
    for alias in sorted(held):
        doc = before[f"alias:{alias}"]
        if doc is not None and doc.get("exercise_id") not in (source, target):
            found.append(f"alias {alias!r} points elsewhere, and is not taken away")
    return found + await _shadowing(backend, held, target, without=source)


async def after_alias(backend: Backend, arguments: States, before: States, after: States) -> list[str]:
    """A new alias was unmapped, and has one live target in the family whose lease is held."""
    slug = str(arguments["alias_slug"])
    was, becomes = before[f"alias:{slug}"], after[f"alias:{slug}"]
    found = [fault.message for fault in faults("alias", becomes)]
    if was is not None and was != becomes:
        found.append(f"alias {slug!r} is mapped already; delete_alias with a replacement moves it")
    return found + await _target(backend, becomes, str(arguments["of_family"]))


async def after_replacement(backend: Backend, arguments: States, before: States, after: States) -> list[str]:
    """An alias goes only for another mapping that is right."""
    slug, replacement = str(arguments["alias_slug"]), arguments["replacement"]
    other = str(replacement["alias_slug"])
    found = [f"there is no alias {slug!r}"] if before[f"alias:{slug}"] is None else []
    becomes = after[f"alias:{other}"]
    found += [fault.message for fault in faults("alias", becomes)]
    was = before[f"alias:{other}"]
    if other != slug and was is not None and was != becomes:
        found.append(f"alias {other!r} is mapped already, to something else")
    return found + await _target(backend, becomes, str(arguments["of_family"]))


async def after_approval(_backend: Backend, arguments: States, before: States, _after: States) -> list[str]:
    """Only a draft without a fault is released, and only as it was when that was decided."""
    identity = str(arguments["exercise_id"])
    was = before[f"exercise:{identity}"]
    if was is None or was.get("status") != "draft":
        return [f"{identity!r} is {'not there' if was is None else was.get('status')}: only a draft is approved"]
    found = [f"{fault.field}: {fault.message}" for fault in faults("exercise", was)]
    if known_by(was) != arguments["seen"]:
        found.append(f"{identity!r} is not what was looked at any more")
    return found + list(_in_family(was, arguments))


def _patches(arguments: States, was: Doc | None) -> Iterator[str]:
    for change in arguments["changes"]:
        field = str(change["field"])
        if field not in PATCHABLE:
            yield f"{field!r} is not a field that may be set; those are {', '.join(PATCHABLE)}"
        elif value_at(was, field) != change["before"]:
            yield f"{field} is not what the change was decided on any more"


def _created(arguments: States, doc: Doc) -> Iterator[str]:
    if doc.get("id") != doc_id(str(arguments["family_slug"]), str(doc.get("name", ""))):
        yield "the id of a new exercise is that of its family and name"
    if doc.get("family_slug") != arguments["family_slug"]:
        yield "a new exercise belongs to the family whose lease is held"
    for fault in faults("exercise", doc):
        yield f"{fault.field}: {fault.message}"


def _no_worse(was: Doc, becomes: Doc, touched: set[str]) -> Iterator[str]:
    before = {(fault.field, fault.code) for fault in faults("exercise", was)}
    for fault in faults("exercise", becomes):
        mine = any(fault.field == field or field.startswith(f"{fault.field}.") for field in touched)
        if mine or (fault.field, fault.code) not in before:
            yield f"{fault.field}: {fault.message}"


def _in_family(was: Doc, arguments: States) -> Iterator[str]:
    if was.get("family_slug") != arguments["family_slug"]:
        yield f"{was.get('id')!r} is of family {was.get('family_slug')!r}, not {arguments['family_slug']!r}"


async def _identity(backend: Backend, pairs: Mapping[str, tuple[Doc | None, Doc]]) -> list[str]:
    """Names are unique and say the equipment where the family needs it; a family that is moved to exists."""
    moved = {
        identity: becomes
        for identity, (was, becomes) in pairs.items()
        if live(becomes) and any(value_at(was, field) != value_at(becomes, field) for field in _IDENTITY)
    }
    if not moved:
        return []
    found = []
    slugs = {str(doc.get("name_slug")): identity for identity, doc in moved.items()}
    if len(slugs) < len(moved):
        found.append("two of them would have the same name")
    for key, other in (await backend.named(slugs)).items():
        identity = key.partition(":")[2]
        slug = str(other.value.get("name_slug"))
        now = pairs.get(identity)
        still = other.value if now is None else now[1]
        if live(still) and still.get("name_slug") == slug and slugs.get(slug) != identity:
            found.append(f"{identity!r} has the name slug {slug!r} already")
    found += await _aliased(backend, slugs)
    for identity, doc in moved.items():
        found += await _in_its_family(backend, doc, pairs[identity][0], identity)
    return found


async def _in_its_family(backend: Backend, doc: Doc, was: Doc | None, identity: str) -> list[str]:
    family = str(doc.get("family_slug"))
    stays = was is not None and was.get("family_slug") == family
    if stays and split_name(str(doc.get("name", "")))[1] is not None:
        return []
    held = (await backend.read_many([f"family:{family}"])).get(f"family:{family}")
    if held is None:
        return [f"there is no family {family!r}"]
    members = {key: found.value for key, found in (await backend.exercises(family=family)).items()}
    facts = facts_of(held.value, {**members, f"exercise:{identity}": doc}.values())
    if facts.qualified and split_name(str(doc.get("name", "")))[1] is None:
        return [f"{doc.get('name')!r}: the family has several equipments, so its names say which"]
    return []


async def _shadowing(backend: Backend, slugs: set[str], identity: str, without: str = "") -> list[str]:
    """An alias must not bear the name of another live exercise, nor a name that of an alias to another one."""
    found = []
    for key, other in (await backend.named(slugs)).items():
        name = key.partition(":")[2]
        if live(other.value) and name not in (identity, without):
            found.append(f"{name!r} is called that")
    return found + await _aliased(backend, dict.fromkeys(slugs, identity), without)


async def _aliased(backend: Backend, slugs: Mapping[str, str], without: str = "") -> list[str]:
    """Names that are aliases of something else."""
    found = []
    for key, held in (await backend.read_many([f"alias:{slug}" for slug in slugs])).items():
        target = held.value.get("exercise_id")
        if target not in (None, slugs[key.partition(":")[2]], without):
            found.append(f"{key} points at {target!r}")
    return found


async def _target(backend: Backend, alias: Doc, family: str) -> list[str]:
    exercise, own = alias.get("exercise_id"), alias.get("family_slug")
    if own is not None:
        held = await backend.read_many([f"family:{own}"])
        return [] if held and own == family else [f"there is no family {own!r} here"]
    found = (await backend.read_many([f"exercise:{exercise}"])).get(f"exercise:{exercise}")
    if found is None or not live(found.value):
        what = "not there" if found is None else found.value.get("status")
        return [f"its target {exercise!r} is {what}"]
    if found.value.get("family_slug") != family:
        return [f"its target {exercise!r} is of family {found.value.get('family_slug')!r}, not {family!r}"]
    named = await backend.named([str(alias.get("alias_slug"))])
    others = [key for key, doc in named.items() if live(doc.value) and key != f"exercise:{exercise}"]
    return [f"{others[0]} is called that itself"] if others else []
