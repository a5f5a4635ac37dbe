"""The catalog of `interlock catalog init`: the clean one with the faults of demonstration.json, which is plain data.

The file is written by `python apps/catalog/benchmarks/plant.py`; what plants faults is there, and not in the package.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from interlock_catalog.contracts import Doc, Json
from interlock_catalog.seed.build import build_clean_catalog

FILE = Path(__file__).with_name("demonstration.json")


class Edit(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a fault makes of one document."""

    key: str
    values: dict[str, Json]
    """The fields that it sets."""
    copy_of: str = ""
    """For a new document: the one of which it is a copy, but for these fields."""


class PlantedFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One planted fault: where it is, how it is made, and what its fix is known to be."""

    kind: str
    family: str
    target: str
    """The key of the document that is wrong."""
    field: str
    needs: str
    """checks (can be fixed without judgement) or judgement."""
    right: dict[str, Json] = {}
    """The values that the fields of the target must have in the end; empty where any good text will do."""
    text: bool = False
    merged_into: str | None = None
    edits: tuple[Edit, ...] = ()


class PlantedCatalog(msgspec.Struct, frozen=True):
    """Documents by key, and the faults in them."""

    docs: dict[str, Doc]
    faults: tuple[PlantedFault, ...]


class FaultFile(msgspec.Struct, frozen=True):
    """What demonstration.json holds."""

    written_by: str
    faults: tuple[PlantedFault, ...]


def build_demonstration() -> PlantedCatalog:
    """The clean catalog with the faults of the file."""
    faults = msgspec.json.decode(FILE.read_bytes(), type=FaultFile).faults
    return PlantedCatalog(apply_faults(build_clean_catalog(), faults), faults)


def apply_faults(clean: dict[str, Doc], faults: tuple[PlantedFault, ...]) -> dict[str, Doc]:
    """A copy of a clean catalog with these faults in it."""
    made = dict(clean)
    for fault in faults:
        for edit in fault.edits:
            made[edit.key] = {**clean.get(edit.copy_of or edit.key, {}), **edit.values}
    return made
