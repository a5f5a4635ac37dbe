"""The kinds of faults that are planted."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

import interlock_catalog.seed.faulty as faulty
import interlock_catalog.seed.graver as graver
from interlock_catalog.contracts import Doc
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
    Kind("movement_wrong", JUDGEMENT, graver.movement_wrong, graver.usual_movement),
    Kind("movement_missing", JUDGEMENT, graver.movement_missing, graver.usual_movement),
    Kind("category_wrong", JUDGEMENT, graver.category_wrong, graver.usual_category),
    Kind("plane_missing", JUDGEMENT, graver.plane_missing, graver.usual_plane),
    Kind("muscles_wrong", JUDGEMENT, graver.muscles_wrong, graver.usual_muscles),
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
    Kind("alias_to_merged", CHECKS, graver.alias_to_merged, graver.has_alias),
    Kind("alias_lost", CHECKS, graver.alias_lost),
    Kind("alias_shadows", CHECKS, graver.alias_shadows, graver.has_sibling),
    Kind("alias_two_targets", CHECKS, graver.alias_two_targets, graver.has_alias),
    Kind("duplicate", CHECKS, graver.duplicate, faulty.prefixable),
    Kind("near_duplicate", JUDGEMENT, graver.near_duplicate, graver.renameable),
    Kind("description_missing", JUDGEMENT, graver.description_missing, text=True),
    Kind("description_short", JUDGEMENT, graver.description_short, text=True),
    Kind("description_placeholder", JUDGEMENT, graver.description_placeholder, text=True),
    Kind("description_of_another", JUDGEMENT, graver.description_of_another, text=True),
    Kind("notes_missing", JUDGEMENT, graver.notes_missing, text=True),
    Kind("mistakes_missing", JUDGEMENT, graver.mistakes_missing, text=True),
    Kind("uses_missing", JUDGEMENT, graver.uses_missing, text=True),
    Kind("suitability_missing", JUDGEMENT, graver.suitability_missing, text=True),
    Kind("tags_missing", JUDGEMENT, graver.tags_missing, text=True),
)
