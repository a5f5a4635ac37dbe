"""Invariants: what must hold after every change, whoever makes it; checked when it is planned and under the lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from interlock_catalog.backends import Backend
from interlock_catalog.changes import PATCHABLE, content_digest
from interlock_catalog.contracts import Doc, Json, find_new_violations, find_violations, is_live, is_within, value_at
from interlock_catalog.document_keys import alias_key, exercise_key, family_key, name_of
from interlock_catalog.naming import build_exercise_id, split_name
from interlock_catalog.normalise import family_facts, primary_equipment
from interlock_catalog.vocabulary import slug as slug_of

States = Mapping[str, Json]
_IDENTITY = ("name", "name_slug", "family_slug", "equipment", "status")
"""The fields by which exercises are told apart: only a change of these can clash with another document."""


class _Change(msgspec.Struct, frozen=True):
    """One exercise before and after."""

    before: Doc | None
    after: Doc


async def check_upsert(backend: Backend, arguments: States, before: States, after: States) -> list[str]:
    """An exercise is valid in what was touched, no worse elsewhere, and in the family that is locked."""
    identity = str(arguments["exercise_id"])
    was, becomes = before[exercise_key(identity)], after[exercise_key(identity)]
    found = list(_check_patches(arguments, was))
    if was is None:
        found += _check_new(arguments, becomes)
    elif not is_live(was):
        found.append(f"{identity!r} is {was.get('status')}: it is not changed any more")
    else:
        touched = {str(change["field"]) for change in arguments["changes"]}
        found += _new_violations(was, becomes, touched)
        found += _check_family(was, arguments)
    return found + await _check_identity(backend, {identity: _Change(was, becomes)})


async def check_normalise(backend: Backend, arguments: States, before: States, after: States) -> list[str]:
    """Every exercise of the page is no worse than it was, and still the only one of its name."""
    found: list[str] = []
    changes: dict[str, _Change] = {}
    for item in arguments["items"]:
        identity = str(item["exercise_id"])
        was, becomes = before[exercise_key(identity)], after[exercise_key(identity)]
        if was is None:
            found.append(f"there is no exercise {identity!r}")
            continue
        # Nothing counts as touched: what was wrong may stay for somebody else to fix, but nothing may become wrong.
        found += _new_violations(was, becomes, set())
        found += _check_family(was, arguments)
        changes[identity] = _Change(was, becomes)
        old = item.get("old_slug")
        if old and after[alias_key(old)].get("exercise_id") != identity:
            found.append(f"alias {old!r} is taken, and does not lead to {identity!r}")
        found += await _name_clashes(backend, {old}, identity) if old else await _lost_names(backend, changes[identity])
    return found + await _check_identity(backend, changes)


async def _lost_names(backend: Backend, change: _Change) -> list[str]:
    """A name that goes without becoming an alias, and that is an alias of something else: that would be found by it."""
    was, before = change.before or {}, value_at(change.before, "name_slug")
    # A slug that is not that of the name is itself the fault, and nobody knows the exercise by it.
    if not _is_renamed(change) or not before or slug_of(str(was.get("name", ""))) != before:
        return []
    alias = (await backend.read_many([alias_key(before)])).get(alias_key(before))
    if alias is None or (alias.value.get("exercise_id") == was.get("id") and not alias.value.get("family_slug")):
        return []
    return [f"{was.get('id')!r} would not be found by its name any more: {alias_key(before)} leads elsewhere"]


async def check_merge(backend: Backend, arguments: States, before: States, _after: States) -> list[str]:
    """Both are live and of the one family, and no alias is left that points at what is gone."""
    source, target = str(arguments["source_id"]), str(arguments["target_id"])
    family, aliases = str(arguments["family_slug"]), {str(alias) for alias in arguments["aliases"]}
    if source == target:
        return ["an exercise is not merged into itself"]
    found = []
    for identity in (source, target):
        doc = before[exercise_key(identity)]
        if doc is None or not is_live(doc):
            found.append(f"{identity!r} is {'not there' if doc is None else doc.get('status')}: it cannot be merged")
        elif doc.get("family_slug") != family:
            found.append(
                f"{identity!r} is of family {doc.get('family_slug')!r}, not {family!r}: merges stay in a family"
            )
        elif content_digest(doc) != arguments["digests"][identity]:
            found.append(f"{identity!r} is not what was looked at any more")
    # Read now and not taken from the plan: an alias may have come since.
    pointing = await backend.aliases_of([source])
    left = sorted(key for key in pointing if name_of(key) not in aliases)
    if left:
        found.append(f"{', '.join(left)} would be left pointing at {source!r}")
    for alias in sorted(aliases):
        doc = before[alias_key(alias)]
        if doc is not None and doc.get("exercise_id") not in (source, target):
            found.append(f"alias {alias!r} points elsewhere, and is not taken away")
    return found + await _name_clashes(backend, aliases, target, without=source)


async def check_alias(backend: Backend, arguments: States, before: States, after: States) -> list[str]:
    """A new alias was unmapped, and has one live target in the family that is locked."""
    slug = str(arguments["alias_slug"])
    was, becomes = before[alias_key(slug)], after[alias_key(slug)]
    found = [violation.message for violation in find_violations("alias", becomes)]
    if was is not None and was != becomes:
        found.append(f"alias {slug!r} is mapped already; delete_alias with a replacement moves it")
    return found + await _check_target(backend, becomes, str(arguments["of_family"]))


async def check_replacement(backend: Backend, arguments: States, before: States, after: States) -> list[str]:
    """An alias goes only for another one that is valid."""
    slug, replacement = str(arguments["alias_slug"]), arguments["replacement"]
    other = str(replacement["alias_slug"])
    found = [f"there is no alias {slug!r}"] if before[alias_key(slug)] is None else []
    becomes = after[alias_key(other)]
    found += [violation.message for violation in find_violations("alias", becomes)]
    was = before[alias_key(other)]
    if other != slug and was is not None and was != becomes:
        found.append(f"alias {other!r} is mapped already, to something else")
    return found + await _check_target(backend, becomes, str(arguments["of_family"]))


async def check_approval(_backend: Backend, arguments: States, before: States, _after: States) -> list[str]:
    """Only a valid draft is approved, and only as it was when that was decided."""
    identity = str(arguments["exercise_id"])
    was = before[exercise_key(identity)]
    if was is None or was.get("status") != "draft":
        return [f"{identity!r} is {'not there' if was is None else was.get('status')}: only a draft is approved"]
    found = [f"{violation.field}: {violation.message}" for violation in find_violations("exercise", was)]
    if content_digest(was) != arguments["digest"]:
        found.append(f"{identity!r} is not what was looked at any more")
    return found + list(_check_family(was, arguments))


def _check_patches(arguments: States, was: Doc | None) -> Iterator[str]:
    for change in arguments["changes"]:
        field = str(change["field"])
        if field not in PATCHABLE:
            yield f"{field!r} is not a field that may be set; those are {', '.join(PATCHABLE)}"
        elif value_at(was, field) != change["before"]:
            yield f"{field} is not what the change was decided on any more"


def _check_new(arguments: States, doc: Doc) -> Iterator[str]:
    if doc.get("id") != build_exercise_id(str(arguments["family_slug"]), str(doc.get("name", ""))):
        yield "the id of a new exercise is that of its family and name"
    if doc.get("family_slug") != arguments["family_slug"]:
        yield "a new exercise belongs to the family that is locked"
    for violation in find_violations("exercise", doc):
        yield f"{violation.field}: {violation.message}"


def _new_violations(was: Doc, becomes: Doc, touched: set[str]) -> Iterator[str]:
    """Violations that a change makes, and those that it leaves in the fields that it touches."""
    new = find_new_violations("exercise", was, becomes)
    for violation in find_violations("exercise", becomes):
        if violation in new or any(is_within(field, violation.field) for field in touched):
            yield f"{violation.field}: {violation.message}"


def _check_family(was: Doc, arguments: States) -> Iterator[str]:
    if was.get("family_slug") != arguments["family_slug"]:
        yield f"{was.get('id')!r} is of family {was.get('family_slug')!r}, not {arguments['family_slug']!r}"


async def _check_identity(backend: Backend, changes: Mapping[str, _Change]) -> list[str]:
    """Names are unique and say the equipment where the family needs it; a family that is moved to exists."""
    moved = {
        identity: change
        for identity, change in changes.items()
        if is_live(change.after)
        and any(value_at(change.before, field) != value_at(change.after, field) for field in _IDENTITY)
    }
    if not moved:
        return []
    found = await _check_names(backend, changes, {i: change for i, change in moved.items() if _is_renamed(change)})
    for identity, change in moved.items():
        found += await _check_qualifier(backend, change, identity)
    return found


def _is_renamed(change: _Change) -> bool:
    """Whether it comes to have its name now: one that was there before may have a namesake that was there, too."""
    was_live = change.before is not None and is_live(change.before)
    return not was_live or value_at(change.before, "name_slug") != value_at(change.after, "name_slug")


async def _check_names(backend: Backend, changes: Mapping[str, _Change], renamed: Mapping[str, _Change]) -> list[str]:
    """A name that is given is nobody else's, neither as a name nor as an alias."""
    if not renamed:
        return []
    found = []
    slugs = {str(change.after.get("name_slug")): identity for identity, change in renamed.items()}
    if len(slugs) < len(renamed):
        found.append("two of them would have the same name")
    for key, other in (await backend.find_by_name(slugs)).items():
        identity = name_of(key)
        slug = str(other.value.get("name_slug"))
        # One that this very change renames has its old name in the catalog and another one afterwards.
        still = changes[identity].after if identity in changes else other.value
        if is_live(still) and still.get("name_slug") == slug and slugs.get(slug) != identity:
            found.append(f"{identity!r} has the name slug {slug!r} already")
    return found + await _alias_clashes(backend, slugs)


async def _check_qualifier(backend: Backend, change: _Change, identity: str) -> list[str]:
    """A name says its equipment if the exercises of the family differ in theirs; the whole family has to be read."""
    doc, family = change.after, str(change.after.get("family_slug"))
    stays = change.before is not None and change.before.get("family_slug") == family
    # With a qualifier in its own family a name can break nothing, and without equipment there is none to say:
    # the family need not be read.
    if stays and (split_name(str(doc.get("name", "")))[1] is not None or primary_equipment(doc) is None):
        return []
    family_doc = (await backend.read_many([family_key(family)])).get(family_key(family))
    if family_doc is None:
        return [f"there is no family {family!r}"]
    members = {key: found.value for key, found in (await backend.exercises(family=family)).items()}
    facts = family_facts(family_doc.value, {**members, exercise_key(identity): doc}.values())
    if facts.qualified and split_name(str(doc.get("name", "")))[1] is None:
        return [f"{doc.get('name')!r}: the family has several equipments, so its names say which"]
    return []


async def _name_clashes(backend: Backend, slugs: set[str], identity: str, without: str = "") -> list[str]:
    """An alias must not have the name of another live exercise, nor a name that of an alias to another one."""
    found = []
    for key, other in (await backend.find_by_name(slugs)).items():
        name = name_of(key)
        if is_live(other.value) and name not in (identity, without):
            found.append(f"{name!r} is called that")
    return found + await _alias_clashes(backend, dict.fromkeys(slugs, identity), without)


async def _alias_clashes(backend: Backend, slugs: Mapping[str, str], without: str = "") -> list[str]:
    """Names that are aliases of something else."""
    found = []
    for key, alias in (await backend.read_many([alias_key(slug) for slug in slugs])).items():
        target = alias.value.get("exercise_id")
        # None is an alias of a family: the bare name of one may be that of an exercise.
        if target not in (None, slugs[name_of(key)], without):
            found.append(f"{key} points at {target!r}")
    return found


async def _check_target(backend: Backend, alias: Doc, family: str) -> list[str]:
    exercise, own = alias.get("exercise_id"), alias.get("family_slug")
    if own is not None:
        there = await backend.read_many([family_key(own)])
        return [] if there and own == family else [f"there is no family {own!r} here"]
    found = (await backend.read_many([exercise_key(exercise)])).get(exercise_key(exercise))
    if found is None or not is_live(found.value):
        what = "not there" if found is None else found.value.get("status")
        return [f"its target {exercise!r} is {what}"]
    if found.value.get("family_slug") != family:
        return [f"its target {exercise!r} is of family {found.value.get('family_slug')!r}, not {family!r}"]
    named = await backend.find_by_name([str(alias.get("alias_slug"))])
    others = [key for key, doc in named.items() if is_live(doc.value) and key != exercise_key(exercise)]
    return [f"{others[0]} is called that itself"] if others else []
