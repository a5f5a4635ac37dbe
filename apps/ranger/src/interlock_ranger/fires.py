"""The fires of a folder: found by their names and by the parts of them that people name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from interlock.errors import Ambiguous, ConfigError, NotFound
from interlock_ranger.intake.fire_folder import FILES, read_fire
from interlock_ranger.records import Fire


class Fires:
    """The fires of a folder, read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # By any of its files: a folder without fire.json is half a fire, and not none.
        found = sorted({path.parent for name in FILES for path in folder.glob(f"*/{name}")})
        if not found:
            raise ConfigError(f"{folder}: there is no fire here; a fire is a folder with {', '.join(FILES)}")
        fires, refused = list[Fire](), list[str]()
        for item in reversed(found):
            try:
                fires.append(read_fire(item))
            except ConfigError as error:
                # With one folder the error itself goes on: it holds the problems as values.
                if len(found) == 1:
                    raise
                refused.append(str(error))
        if refused:
            raise ConfigError("\n".join(refused))
        self.by_id = {fire.id: fire for fire in fires}
        if len(self.by_id) < len(fires):
            names = ", ".join(f"{fire.folder.name} ({fire.id})" for fire in fires)
            raise ConfigError(f"{folder}: two fires have one fire_id: {names}; give each its own")

    def names(self) -> dict[str, tuple[str, ...]]:
        """Fires by id, with what they are called."""
        return {
            key: (f"{f.facts.name} {f.facts.year}", f"{f.facts.name} fire", f.facts.name, f"{f.facts.year} fire")
            for key, f in self.by_id.items()
        }

    def sector_names(self) -> dict[str, tuple[str, ...]]:
        """Sectors of all fires, with what they are called."""
        return {
            key: (s.name, f"sector {key}", *_short_forms(key), s.name.replace("Mountain", "Mtn"))
            for f in self.by_id.values()
            for key, s in f.sectors.items()
        }

    def trail_names(self) -> dict[str, tuple[str, ...]]:
        """Trails of all fires, with what they are called."""
        return {
            key: (
                t.name,
                f"trail {key.rpartition('-')[2]}",
                *((t.name.replace("Mountain", "Mtn"),) * ("Mountain" in t.name)),
            )
            for f in self.by_id.values()
            for key, t in f.trails.items()
        }

    def place_names(self) -> dict[str, str]:
        """Places of all fires."""
        return {key: place.name for f in self.by_id.values() for key, place in f.facts.places.items()}

    def stand_names(self) -> dict[str, str]:
        """Stands of all fires."""
        return {key: stand.name for f in self.by_id.values() for key, stand in f.stands.items()}

    def plot_names(self) -> dict[str, str]:
        """Plots of all fires."""
        return {key: f"plot {key}" for f in self.by_id.values() for key in f.plots}

    def find(self, fire_id: str | None, **parts: str | None) -> Fire:
        """The fire that is named, or that a named part of one belongs to; several fit: somebody has to say which."""
        # Looked up even if the fire is named: that a part is of another fire is told, and not passed over.
        owners_of = {kind: self._find_owners(kind, part) for kind, part in parts.items() if part is not None}
        if fire_id is not None:
            fire = self._get(fire_id)
            for kind, found in owners_of.items():
                if fire.id not in found:
                    names = " and ".join(owner.facts.name for owner in found.values())
                    raise NotFound(f"{fire.facts.name} has no {kind} {parts[kind]!r}; it is of {names}")
            return fire
        owners = _common_owners(list(owners_of.values()))
        if len(owners) == 1:
            return next(iter(owners.values()))
        if len(self.by_id) == 1 and not owners:
            return next(iter(self.by_id.values()))
        names = " or ".join(f"{fire.facts.name} ({key})" for key, fire in (owners or self.by_id).items())
        raise Ambiguous(f"which fire is meant: {names}?", hints=tuple(owners or self.by_id))

    def _get(self, fire_id: str) -> Fire:
        if fire_id not in self.by_id:
            raise NotFound(f"there is no fire {fire_id!r} on file", hints=tuple(self.by_id))
        return self.by_id[fire_id]

    def _find_owners(self, kind: str, part: str) -> dict[str, Fire]:
        """Every fire with a part of that name: two fires may both have a sector A-1."""
        found = {key: fire for key, fire in self.by_id.items() if part in _part_ids(fire, kind)}
        if found:
            return found
        known = tuple(name for fire in self.by_id.values() for name in _part_ids(fire, kind))
        raise NotFound(f"there is no {kind} {part!r} on file", hints=known[:6])


def _common_owners(found: Sequence[dict[str, Fire]]) -> dict[str, Fire]:
    """The fires that have all of the named parts; where none has, all that have one of them."""
    every = {key: fire for owners in found for key, fire in owners.items()}
    return {key: fire for key, fire in every.items() if all(key in owners for owners in found)} or every


def _short_forms(sector_id: str) -> tuple[str, ...]:
    """B-04 as people write it: B-4, B4, B04."""
    letters, _, digits = sector_id.rpartition("-")
    plain = digits.lstrip("0")
    return (f"{letters}-{plain}", f"{letters}{plain}", f"{letters}{digits}") if letters and plain else ()


def _part_ids(fire: Fire, kind: str) -> Sequence[str]:
    ids: dict[str, Sequence[str]] = {
        "sector": tuple(fire.sectors),
        "trail": tuple(fire.trails),
        "stand": tuple(fire.stands),
        "plot": tuple(fire.plots),
        "place": tuple(fire.facts.places),
    }
    return ids[kind]
