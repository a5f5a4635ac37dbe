"""The kinds of faults that are planted."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from interlock_catalog.contracts import Doc
from interlock_catalog.seed import faulty
from interlock_catalog.seed.faulty import Around, Spoiled

CHECKS, JUDGEMENT = "checks", "judgement"


class Kind(msgspec.Struct, frozen=True):
    """One kind of fault: whom it can happen to, and what it does."""

    name: str
    needs: str
    spoil: Callable[[Doc, Around, random.Random], Spoiled | None]
    fits: Callable[[Doc, Around], bool] = lambda _doc, _around: True
    text: bool = False
    """Mended by any good text."""


KINDS: tuple[Kind, ...] = (
    # first those that only few exercises can have
    Kind("movement_wrong", JUDGEMENT, faulty.movement_wrong, faulty.usual_movement),
    Kind("movement_missing", JUDGEMENT, faulty.movement_missing, faulty.usual_movement),
    Kind("category_wrong", JUDGEMENT, faulty.category_wrong, faulty.usual_category),
    Kind("plane_missing", JUDGEMENT, faulty.plane_missing, faulty.usual_plane),
    Kind("muscles_wrong", JUDGEMENT, faulty.muscles_wrong, faulty.usual_muscles),
    Kind("name_case", CHECKS, faulty.name_case, faulty.plain_words),
    Kind("name_spacing", CHECKS, faulty.name_spacing),
    Kind("name_prefix", CHECKS, faulty.name_prefix, faulty.prefixable),
    Kind("missing_qualifier", CHECKS, faulty.missing_qualifier, faulty.of_several_equipments),
    Kind("wrong_qualifier", CHECKS, faulty.wrong_qualifier),
    Kind("stale_slug", CHECKS, faulty.stale_slug),
    Kind("equipment_spelling", CHECKS, faulty.equipment_spelling, faulty.respellable_equipment),
    Kind("equipment_doubled", CHECKS, faulty.equipment_doubled),
    Kind("muscle_spelling", CHECKS, faulty.muscle_spelling),
    Kind("shares_percent", CHECKS, faulty.shares_percent),
    Kind("shares_twice", CHECKS, faulty.shares_twice),
    Kind("share_missing", CHECKS, faulty.share_missing, faulty.has_secondary),
    Kind("muscle_category", CHECKS, faulty.muscle_category),
    Kind("level_spelling", CHECKS, faulty.level_spelling, faulty.respellable_level),
    Kind("split_spelling", CHECKS, faulty.split_spelling),
    Kind("notes_doubled", CHECKS, faulty.notes_doubled),
    Kind("markup", CHECKS, faulty.markup),
    Kind("retired_field", CHECKS, faulty.retired_field),
    Kind("variant_key", CHECKS, faulty.variant_key),
    Kind("one_sided", CHECKS, faulty.one_sided, faulty.named_one_sided),
    Kind("alias_to_merged", CHECKS, faulty.alias_to_merged, faulty.has_alias),
    Kind("alias_lost", CHECKS, faulty.alias_lost),
    Kind("alias_shadows", CHECKS, faulty.alias_shadows, faulty.has_sibling),
    Kind("alias_two_targets", CHECKS, faulty.alias_two_targets, faulty.has_alias),
    Kind("duplicate", CHECKS, faulty.duplicate, faulty.prefixable),
    Kind("near_duplicate", JUDGEMENT, faulty.near_duplicate, faulty.renameable),
    Kind("description_missing", JUDGEMENT, faulty.description_missing, text=True),
    Kind("description_short", JUDGEMENT, faulty.description_short, text=True),
    Kind("description_placeholder", JUDGEMENT, faulty.description_placeholder, text=True),
    Kind("description_of_another", JUDGEMENT, faulty.description_of_another, text=True),
    Kind("notes_missing", JUDGEMENT, faulty.notes_missing, text=True),
    Kind("mistakes_missing", JUDGEMENT, faulty.mistakes_missing, text=True),
    Kind("uses_missing", JUDGEMENT, faulty.uses_missing, text=True),
    Kind("suitability_missing", JUDGEMENT, faulty.suitability_missing, text=True),
    Kind("tags_missing", JUDGEMENT, faulty.tags_missing, text=True),
)
