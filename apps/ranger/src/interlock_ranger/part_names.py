"""What the parts of fires are called. A name belongs to a part of one fire, also where two fires use one id."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

import msgspec

from interlock_ranger.records import Fire

Names = tuple[str, ...]


class PartKind(StrEnum):
    SECTOR = "sector"
    TRAIL = "trail"
    STAND = "stand"
    PLOT = "plot"
    PLACE = "place"


class NamedPart(msgspec.Struct, frozen=True):
    """What one value of an argument stands for."""

    names: Names
    ids: dict[str, str]
    """Of the part in each fire that has it, by the fire."""


def name_parts(fires: Mapping[str, Fire], kind: PartKind) -> dict[str, NamedPart]:
    """The parts of all fires by their values: an id, and `fire/id` for names that an id has in one fire only."""
    own: dict[str, dict[str, Names]] = {}
    for fire in fires.values():
        for key, names in _NAMES[kind](fire).items():
            own.setdefault(key, {})[fire.id] = names
    found = dict[str, NamedPart]()
    for key, by_fire in own.items():
        shared = frozenset.intersection(*(frozenset(map(str.casefold, names)) for names in by_fire.values()))
        first = next(iter(by_fire.values()))
        found[key] = NamedPart(tuple(name for name in first if name.casefold() in shared), dict.fromkeys(by_fire, key))
        for fire_id, names in by_fire.items():
            if rest := tuple(name for name in names if name.casefold() not in shared):
                found[_qualify(fire_id, key, own)] = NamedPart(rest, {fire_id: key})
    return found


def _qualify(fire_id: str, key: str, taken: Mapping[str, object]) -> str:
    value = f"{fire_id}/{key}"
    while value in taken:
        value = f"{fire_id}/{value}"
    return value


def _name_sectors(fire: Fire) -> Iterator[tuple[str, Names]]:
    for key, sector in fire.sectors.items():
        yield key, (sector.name, f"sector {key}", *_short_forms(key), sector.name.replace("Mountain", "Mtn"))


def _name_trails(fire: Fire) -> Iterator[tuple[str, Names]]:
    for key, trail in fire.trails.items():
        short = (trail.name.replace("Mountain", "Mtn"),) if "Mountain" in trail.name else ()
        yield key, (trail.name, f"trail {key.rpartition('-')[2]}", *short)


def _short_forms(sector_id: str) -> Names:
    """B-04 as people write it: B-4, B4, B04."""
    letters, _, digits = sector_id.rpartition("-")
    plain = digits.lstrip("0")
    return (f"{letters}-{plain}", f"{letters}{plain}", f"{letters}{digits}") if letters and plain else ()


_NAMES: dict[PartKind, Callable[[Fire], dict[str, Names]]] = {
    PartKind.SECTOR: lambda fire: dict(_name_sectors(fire)),
    PartKind.TRAIL: lambda fire: dict(_name_trails(fire)),
    PartKind.STAND: lambda fire: {key: (stand.name,) for key, stand in fire.stands.items()},
    PartKind.PLOT: lambda fire: {key: (f"plot {key}",) for key in fire.plots},
    PartKind.PLACE: lambda fire: {key: (place.name,) for key, place in fire.facts.places.items()},
}
