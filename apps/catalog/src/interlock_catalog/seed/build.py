"""The clean catalog, from the tables of this folder."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from interlock_catalog.changes import build_alias
from interlock_catalog.contracts import Doc, muscle_groups
from interlock_catalog.document_keys import DocumentKey, DocumentKind, alias_key, exercise_key, family_key
from interlock_catalog.naming import build_exercise_id, join_name, variant_key
from interlock_catalog.vocabulary import slug

SEARCHES = Path(__file__).with_name("searches.toml")


@cache
def _read_families() -> tuple[dict[str, Any], ...]:
    files = sorted(file for file in SEARCHES.parent.glob("*.toml") if file != SEARCHES)
    return tuple(family for file in files for family in tomllib.loads(file.read_text(encoding="utf-8"))["family"])


def build_clean_catalog() -> dict[str, Doc]:
    """Every document by key: families, exercises, aliases and the log of searches."""
    docs: dict[str, Doc] = {}
    for family in _read_families():
        docs[family_key(family["slug"])] = _build_family(family)
        docs[alias_key(family["slug"])] = build_alias(family["slug"], family_slug=family["slug"])
        for given in family["exercise"]:
            exercise = _build_exercise(family, given)
            docs[exercise_key(exercise["id"])] = exercise
            for alias in given.get("aliases", []):
                docs[alias_key(slug(alias))] = build_alias(slug(alias), exercise_id=exercise["id"])
    return docs | _build_searches()


def _build_family(family: dict[str, Any]) -> Doc:
    used = list(dict.fromkeys(given["equipment"][0] for given in family["exercise"]))
    return {
        "slug": family["slug"],
        "base_name": family["base_name"],
        "status": "active",
        "default_equipment": family["default_equipment"],
        "allowed_equipments": used,
        "known_collisions": [],
    }


def _build_exercise(family: dict[str, Any], given: dict[str, Any]) -> Doc:
    it = {**family, **given}
    name = join_name(given["base"], given["equipment"][0])
    description = f"{family['description'].replace('{name}', given['base'])} {given['note']}"
    return {
        "id": build_exercise_id(family["slug"], name),
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


def _build_searches() -> dict[str, Doc]:
    """The log of searches; what each means, which the table says too, is for whoever judges the scout."""
    rows = tomllib.loads(SEARCHES.read_text(encoding="utf-8"))["search"]
    return {
        DocumentKey(DocumentKind.SEARCH, f"{number:05}").text: {
            "query": row["query"],
            "hits": row["hits"],
            "count": row["count"],
        }
        for number, row in enumerate(rows)
    }
