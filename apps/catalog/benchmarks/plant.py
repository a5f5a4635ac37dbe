"""Plants faults in the clean catalog, each with what is right, so that finding and fixing can be measured.

`python apps/catalog/benchmarks/plant.py` writes seed/demonstration.json of the package: the faults of
`interlock catalog init`. A test holds that the file is what this writes.
"""

from __future__ import annotations

import argparse
import copy
import random
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import msgspec

from interlock_catalog.contracts import Doc, value_at
from interlock_catalog.seed import build_clean_catalog
from interlock_catalog.seed.demonstration import FILE, Edit, FaultFile, PlantedCatalog, PlantedFault, apply_faults

sys.path.insert(0, str(Path(__file__).parent))
from fault_kinds import KINDS, FaultKind
from mechanical_faults import CatalogIndex, FaultyDocs

SEED = 20_260_101
PER_KIND = 7
MAX_SHARE_OF_FAMILY = 0.4
"""Of a family so many exercises have a fault at most: the majority has to be right for siblings to tell anything."""
COMMAND = "python apps/catalog/benchmarks/plant.py"


def plant_faults(clean: Mapping[str, Doc], *, seed: int = SEED, per_kind: int = PER_KIND) -> PlantedCatalog:
    """A copy of the catalog with about so many faults of every kind, at most one to an exercise; always the same."""
    faults, index = list[PlantedFault](), CatalogIndex(clean)
    chance = random.Random(seed)
    taken: set[str] = set()
    per_family: Counter[str] = Counter()
    for kind in KINDS:
        count = 0
        for key in _candidates(index, kind, taken, per_family, chance):
            family = str(clean[key]["family_slug"])
            if count == per_kind:
                break
            if per_family[family] >= max(1, int(MAX_SHARE_OF_FAMILY * len(index.families[family]))):
                continue
            faulty = kind.make(copy.deepcopy(clean[key]), index, chance)
            if faulty is not None:
                faults.append(_build_fault(kind, key, faulty, clean))
                taken.add(key)
                per_family[family] += 1
                count += 1
    docs = apply_faults(copy.deepcopy(dict(clean)), tuple(faults))
    return PlantedCatalog(docs, tuple(faults))


def _candidates(
    index: CatalogIndex, kind: FaultKind, taken: set[str], per_family: Mapping[str, int], chance: random.Random
) -> list[str]:
    """Exercises that can have this fault, in an order by chance, those of untouched families first."""
    docs = index.docs
    fits = [key for key in index.exercises if key not in taken and kind.fits(docs[key], index)]
    chance.shuffle(fits)
    return sorted(fits, key=lambda key: per_family.get(str(docs[key]["family_slug"]), 0))


def _build_fault(kind: FaultKind, key: str, faulty: FaultyDocs, clean: Mapping[str, Doc]) -> PlantedFault:
    target = faulty.target or key
    right = {field: value_at(clean.get(target), field) for field in faulty.fields} if target in clean else {}
    return PlantedFault(
        kind=kind.name,
        family=str(clean[key]["family_slug"]),
        target=target,
        field=faulty.fields[0],
        needs=kind.needs,
        right=faulty.right or ({} if kind.text else right),
        text=kind.text,
        merged_into=faulty.merged_into,
        edits=tuple(_build_edit(name, doc, key, clean) for name, doc in faulty.docs.items()),
    )


def _build_edit(name: str, doc: Doc, origin: str, clean: Mapping[str, Doc]) -> Edit:
    """What differs from the document as it was; a new exercise is a copy of the one that it was made from."""
    copy_of = origin if name not in clean and name.startswith("exercise:") else ""
    before = clean.get(copy_of or name, {})
    assert set(before) <= set(doc), f"{name}: an edit sets fields, and removes none"
    return Edit(
        name, {field: value for field, value in doc.items() if field not in before or before[field] != value}, copy_of
    )


def encode_faults(catalog: PlantedCatalog) -> bytes:
    """The faults as a file, a line each."""
    head = msgspec.json.encode(FaultFile(COMMAND, ()))
    lines = b",\n".join(msgspec.json.encode(fault, order="deterministic") for fault in catalog.faults)
    return head.replace(b"[]", b"[\n" + lines + b"\n]") + b"\n"


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED, help="which faults (default: those of the demonstration)")
    parser.add_argument("--out", type=Path, default=FILE, help="where to (default: the package)")
    given = parser.parse_args()
    catalog = plant_faults(build_clean_catalog(), seed=given.seed)
    given.out.write_bytes(encode_faults(catalog))
    print(f"{given.out}: {len(catalog.faults)} faults, {given.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
