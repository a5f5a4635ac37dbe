"""A catalog without a fault, from the tables of this folder."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from interlock_catalog.changes import alias_to
from interlock_catalog.contracts import Doc, muscle_groups
from interlock_catalog.naming import doc_id, joined_name, variant_key
from interlock_catalog.vocabulary import slug

HERE = Path(__file__).parent
_SEARCHES = "searches.toml"


@cache
def _families() -> tuple[dict[str, Any], ...]:
    files = sorted(file for file in HERE.glob("*.toml") if file.name != _SEARCHES)
    return tuple(family for file in files for family in tomllib.loads(file.read_text(encoding="utf-8"))["family"])


def clean_catalog() -> dict[str, Doc]:
    """Every document by key: families, exercises, aliases and the log of searches."""
    docs: dict[str, Doc] = {}
    for family in _families():
        docs[f"family:{family['slug']}"] = _family(family)
        docs[f"alias:{family['slug']}"] = alias_to(family["slug"], family_slug=family["slug"])
        for given in family["exercise"]:
            exercise = _exercise(family, given)
            docs[f"exercise:{exercise['id']}"] = exercise
            for alias in given.get("aliases", []):
                docs[f"alias:{slug(alias)}"] = alias_to(slug(alias), exercise_id=exercise["id"])
    return docs | dict(_searches())


def _family(family: dict[str, Any]) -> Doc:
    used = list(dict.fromkeys(given["equipment"][0] for given in family["exercise"]))
    return {
        "slug": family["slug"],
        "base_name": family["base_name"],
        "status": "active",
        "default_equipment": family["default_equipment"],
        "allowed_equipments": used,
        "known_collisions": [],
    }


def _exercise(family: dict[str, Any], given: dict[str, Any]) -> Doc:
    it = {**family, **given}
    name = joined_name(given["base"], given["equipment"][0])
    description = f"{family['description'].replace('{name}', given['base'])} {given['note']}"
    return {
        "id": doc_id(family["slug"], name),
        "name": name,
        "name_slug": slug(name),
        "family_slug": family["slug"],
        "variant_key": variant_key(given["base"], family["base_name"], given["equipment"][0]),
        "equipment": given["equipment"],
        "category": it["category"],
        "muscles": {
            "primary": it["primary"],
            "secondary": it["secondary"],
            "category": muscle_groups(it["primary"]),
            "contribution": it["contribution"],
        },
        "metadata": {"level": it["level"], "plane_of_motion": it["plane"], "unilateral": it["unilateral"]},
        "movement": dict(it["movement"]),
        "description": description,
        "execution_notes": list(family["execution_notes"]),
        "common_mistakes": list(family["common_mistakes"]),
        "suitability_notes": list(family["suitability_notes"]),
        "programming_use_cases": list(family["programming_use_cases"]),
        "stimulus_tags": list(family["stimulus_tags"]),
        "status": "approved",
        "merged_into": None,
        "merge_lineage": [],
    }


def _searches() -> Iterator[tuple[str, Doc]]:
    written = tomllib.loads((HERE / _SEARCHES).read_text(encoding="utf-8"))["search"]
    for number, search in enumerate(written):
        key = f"search:{number:05}"
        yield key, {"query": search["query"], "hits": search["hits"], "count": search["count"]}


def meanings() -> dict[str, str]:
    """What each failed search means, for whoever judges a scout: a full name, or ''."""
    written = tomllib.loads((HERE / _SEARCHES).read_text(encoding="utf-8"))["search"]
    return {search["query"]: search["means"] for search in written if not search["hits"]}
