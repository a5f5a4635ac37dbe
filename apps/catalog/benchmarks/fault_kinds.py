"""The kinds of faults that are planted."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

import mechanical_faults
import semantic_faults
from interlock_catalog.contracts import Doc
from mechanical_faults import CatalogIndex, FaultyDocs

CHECKS, JUDGEMENT = "checks", "judgement"


class FaultKind(msgspec.Struct, frozen=True):
    """One kind of fault: whom it can happen to, and what it does."""

    name: str
    needs: str
    make: Callable[[Doc, CatalogIndex, random.Random], FaultyDocs | None]
    fits: Callable[[Doc, CatalogIndex], bool] = lambda _doc, _index: True
    text: bool = False
    """Fixed by any good text."""


KINDS: tuple[FaultKind, ...] = (
    # First those that only few exercises can have: later there might be none left for them.
    FaultKind("movement_wrong", JUDGEMENT, semantic_faults.movement_wrong, semantic_faults.has_usual_movement),
    FaultKind("movement_missing", JUDGEMENT, semantic_faults.movement_missing, semantic_faults.has_usual_movement),
    FaultKind("category_wrong", JUDGEMENT, semantic_faults.category_wrong, semantic_faults.has_usual_category),
    FaultKind("plane_missing", JUDGEMENT, semantic_faults.plane_missing, semantic_faults.has_usual_plane),
    FaultKind("muscles_wrong", JUDGEMENT, semantic_faults.muscles_wrong, semantic_faults.has_usual_muscles),
    FaultKind("name_case", CHECKS, mechanical_faults.name_case, mechanical_faults.has_plain_words),
    FaultKind("name_spacing", CHECKS, mechanical_faults.name_spacing),
    FaultKind("name_prefix", CHECKS, mechanical_faults.name_prefix, mechanical_faults.is_prefixable),
    FaultKind("missing_qualifier", CHECKS, mechanical_faults.missing_qualifier, mechanical_faults.is_qualified),
    FaultKind("wrong_qualifier", CHECKS, mechanical_faults.wrong_qualifier),
    FaultKind("stale_slug", CHECKS, mechanical_faults.stale_slug),
    FaultKind(
        "equipment_spelling", CHECKS, mechanical_faults.equipment_spelling, mechanical_faults.has_equipment_synonym
    ),
    FaultKind("equipment_doubled", CHECKS, mechanical_faults.equipment_doubled),
    FaultKind("muscle_spelling", CHECKS, mechanical_faults.muscle_spelling),
    FaultKind("shares_percent", CHECKS, mechanical_faults.shares_percent),
    FaultKind("shares_twice", CHECKS, mechanical_faults.shares_twice),
    FaultKind("share_missing", CHECKS, mechanical_faults.share_missing, mechanical_faults.has_secondary),
    FaultKind("muscle_category", CHECKS, mechanical_faults.muscle_category),
    FaultKind("level_spelling", CHECKS, mechanical_faults.level_spelling, mechanical_faults.has_level_synonym),
    FaultKind("split_spelling", CHECKS, mechanical_faults.split_spelling),
    FaultKind("notes_doubled", CHECKS, mechanical_faults.notes_doubled),
    FaultKind("markup", CHECKS, mechanical_faults.markup),
    FaultKind("retired_field", CHECKS, mechanical_faults.retired_field),
    FaultKind("variant_key", CHECKS, mechanical_faults.variant_key),
    FaultKind("one_sided", CHECKS, mechanical_faults.one_sided, mechanical_faults.is_named_one_sided),
    FaultKind("alias_to_merged", CHECKS, semantic_faults.alias_to_merged, semantic_faults.has_alias),
    FaultKind("alias_lost", CHECKS, semantic_faults.alias_lost),
    FaultKind("alias_shadows", CHECKS, semantic_faults.alias_shadows, semantic_faults.has_sibling),
    FaultKind("alias_two_targets", CHECKS, semantic_faults.alias_two_targets, semantic_faults.has_alias),
    FaultKind("duplicate", CHECKS, semantic_faults.duplicate, mechanical_faults.is_prefixable),
    FaultKind("near_duplicate", JUDGEMENT, semantic_faults.near_duplicate, semantic_faults.has_name_synonym),
    FaultKind("description_missing", JUDGEMENT, semantic_faults.description_missing, text=True),
    FaultKind("description_short", JUDGEMENT, semantic_faults.description_short, text=True),
    FaultKind("description_placeholder", JUDGEMENT, semantic_faults.description_placeholder, text=True),
    FaultKind("description_of_another", JUDGEMENT, semantic_faults.description_of_another, text=True),
    FaultKind("notes_missing", JUDGEMENT, semantic_faults.notes_missing, text=True),
    FaultKind("mistakes_missing", JUDGEMENT, semantic_faults.mistakes_missing, text=True),
    FaultKind("uses_missing", JUDGEMENT, semantic_faults.uses_missing, text=True),
    FaultKind("suitability_missing", JUDGEMENT, semantic_faults.suitability_missing, text=True),
    FaultKind("tags_missing", JUDGEMENT, semantic_faults.tags_missing, text=True),
)
