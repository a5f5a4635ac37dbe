"""What an import makes of its source: ids that are rewritten, where each field goes, and what is added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from interlock_catalog.source_records import SourceRecord


class Place(msgspec.Struct, frozen=True):
    """Where a field of the source goes."""

    fields: tuple[str, ...]
    """Fields of an exercise; the first holds it as it is, but for an id."""
    note: str = ""

    @property
    def sentence(self) -> str:
        return f"{', '.join(self.fields)}{f' ({self.note})' if self.note else ''}"


# Beside what `importer` does, which a test holds it against: both change together.
PLACES: Mapping[str, Place] = MappingProxyType(
    {
        "name": Place(("name", "name_slug", "family_slug", "variant_key"), "the last three are made of it"),
        "id": Place(("id",), "in small letters, digits and hyphens; made of the name where there is none"),
        "force": Place(("movement.type",)),
        "level": Place(("metadata.level",)),
        "mechanic": Place(("category",)),
        "equipment": Place(("equipment",)),
        "category": Place(("stimulus_tags",), "but category, where there is no mechanic"),
        "primaryMuscles": Place(
            ("muscles.primary", "muscles.category", "movement.split"), "the last two are made of those that are known"
        ),
        "secondaryMuscles": Place(("muscles.secondary",)),
        "instructions": Place(("execution_notes", "description"), "the first one is also the description"),
    }
)
ADDED = (
    "not in the source: status draft, metadata.unilateral false, and for each family_slug a family (of equipment other,"
    " and of what its exercises have) with an alias"
)


class ImportAccount(msgspec.Struct, frozen=True):
    """What an import changes, before anything is written."""

    rewritten: dict[str, str]
    """Ids as the source has them, and as they become."""
    made: int
    """Ids that the source does not have, and that are made of names."""
    fields: dict[str, str]
    """The fields that the records have, and where each goes."""
    added: str = ADDED


def give_account(records: Sequence[SourceRecord]) -> ImportAccount:
    """What becomes of these records."""
    return ImportAccount(
        rewritten={
            record.id: record.exercise_id for record in records if record.id and record.id != record.exercise_id
        },
        made=sum(not record.id for record in records),
        fields={name: PLACES[name].sentence for name in _used_fields(records)},
    )


def _used_fields(records: Sequence[SourceRecord]) -> list[str]:
    fields = msgspec.structs.fields(SourceRecord)
    return [field.encode_name for field in fields if any(getattr(record, field.name) for record in records)]
