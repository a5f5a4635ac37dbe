"""Faults that are planted in a clean catalog, each with what is right: so that finding and mending can be measured."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Mapping

import msgspec

import interlock_catalog.seed.faulty as faulty
from interlock_catalog.contracts import Doc, Json, value_at
from interlock_catalog.seed.kinds import KINDS, Kind

SEED = 20_260_101
EACH = 7
MOST_PER_FAMILY = 0.4


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """One fault: where it is, and how it is known to be mended."""

    kind: str
    family: str
    target: str
    """The key of the document that is wrong."""
    field: str
    needs: str
    """checks (can be mended without judgement) or judgement."""
    right: dict[str, Json] = {}
    """The values that the fields of the target must have in the end; empty where any good text will do."""
    text: bool = False
    merged_into: str | None = None


def plant(docs: Mapping[str, Doc], *, seed: int = SEED, each: int = EACH) -> tuple[dict[str, Doc], list[Planted]]:
    """A copy of the catalog with about `each` faults of every kind, at most one to an exercise; and what is right."""
    made, planted = copy.deepcopy(dict(docs)), list[Planted]()
    chance, around = random.Random(seed), faulty.Around(docs)  # the same faults every time
    taken: set[str] = set()
    per_family: Counter[str] = Counter()
    for kind in KINDS:
        count = 0
        for key in _candidates(around, kind, taken, per_family, chance):
            family = str(docs[key]["family_slug"])
            if count == each:
                break
            if per_family[family] >= max(1, int(MOST_PER_FAMILY * len(around.families[family]))):
                continue
            fault = _planted(kind, key, made, around, chance)
            if fault is not None:
                planted.append(fault)
                taken.add(key)
                per_family[family] += 1
                count += 1
    return made, planted


def _candidates(
    around: faulty.Around, kind: Kind, taken: set[str], per_family: Mapping[str, int], chance: random.Random
) -> list[str]:
    """Exercises to which this fault can happen, in an order by chance, those of untouched families first."""
    docs = around.docs
    fits = [key for key in around.exercises if key not in taken and kind.fits(docs[key], around)]
    chance.shuffle(fits)
    return sorted(fits, key=lambda key: per_family.get(str(docs[key]["family_slug"]), 0))


def _planted(
    kind: Kind, key: str, made: dict[str, Doc], around: faulty.Around, chance: random.Random
) -> Planted | None:
    docs = around.docs
    changed = kind.spoil(copy.deepcopy(docs[key]), around, chance)
    if changed is None:
        return None
    made.update(changed.docs)
    target = changed.target or key
    right = {field: value_at(docs.get(target), field) for field in changed.fields} if target in docs else {}
    return Planted(
        kind=kind.name,
        family=str(docs[key]["family_slug"]),
        target=target,
        field=changed.fields[0],
        needs=kind.needs,
        right=changed.right or ({} if kind.text else right),
        text=kind.text,
        merged_into=changed.merged_into,
    )
