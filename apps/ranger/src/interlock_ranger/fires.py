"""The fires of a folder: found by their names and by the parts of them that people name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from interlock.errors import Ambiguous, ConfigError, NotFound
from interlock_ranger.intake.fire_folder import FILES, read_fire
from interlock_ranger.part_names import PartKind, name_parts
from interlock_ranger.records import Fire


class Found(NamedTuple):
    """A fire, and the ids in it of the parts that were named."""

    fire: Fire
    ids: dict[str, str | None]


class Fires:
    """The fires of a folder, read once.

    One that is refused is an error; with `skip_refused` it is kept in `refused`, if there is another that can be used.
    """

    def __init__(self, folder: Path, *, skip_refused: bool = False) -> None:
        self.folder = folder
        # By any of its files: a folder without fire.json is half a fire, and not none.
        found = sorted({path.parent for name in FILES for path in folder.glob(f"*/{name}")})
        if not found:
            raise ConfigError(f"{folder}: there is no fire here; a fire is a folder with {', '.join(FILES)}")
        fires = list[Fire]()
        self.refused: dict[str, ConfigError] = {}
        """Why each folder that cannot be used was refused."""
        for item in reversed(found):
            try:
                fires.append(read_fire(item))
            except ConfigError as error:
                # With one folder the error itself goes on: it holds the problems as values.
                if len(found) == 1:
                    raise
                self.refused[item.name] = error
        if self.refused and not (skip_refused and fires):
            raise ConfigError("\n".join(map(str, self.refused.values())))
        self.by_id = {fire.id: fire for fire in fires}
        if len(self.by_id) < len(fires):
            names = ", ".join(f"{fire.folder.name} ({fire.id})" for fire in fires)
            raise ConfigError(f"{folder}: two fires have one fire_id: {names}; give each its own")
        self._parts = {kind: name_parts(self.by_id, kind) for kind in PartKind}

    def names(self) -> dict[str, tuple[str, ...]]:
        """Fires by id, with what they are called."""
        return {
            key: (f"{f.facts.name} {f.facts.year}", f"{f.facts.name} fire", f.facts.name, f"{f.facts.year} fire")
            for key, f in self.by_id.items()
        }

    def part_names(self, kind: PartKind) -> dict[str, tuple[str, ...]]:
        """Parts of all fires by the values that `find` takes, with what they are called."""
        return {value: part.names for value, part in self._parts[kind].items()}

    def find(self, fire_id: str | None, **parts: str | None) -> Found:
        """The fire that is named, or that a named part of one belongs to; several fit: somebody has to say which."""
        # Looked up even if the fire is named: that a part is of another fire is told, and not passed over.
        ids_of = {kind: self._find_part(PartKind(kind), part) for kind, part in parts.items() if part is not None}
        fire = self._find_owner(ids_of) if fire_id is None else self._get(fire_id)
        for kind, ids in ids_of.items():
            if fire.id not in ids:
                names = " and ".join(self.by_id[owner].facts.name for owner in ids)
                raise NotFound(f"{fire.facts.name} has no {kind} {parts[kind]!r}; it is of {names}")
        return Found(fire, {kind: ids_of[kind][fire.id] if kind in ids_of else None for kind in parts})

    def _find_owner(self, ids_of: Mapping[str, Mapping[str, str]]) -> Fire:
        owners = _common_owners(list(ids_of.values())) or tuple(self.by_id)
        if len(owners) == 1:
            return self.by_id[owners[0]]
        names = " or ".join(f"{self.by_id[key].facts.name} ({key})" for key in owners)
        raise Ambiguous(f"which fire is meant: {names}?", hints=owners)

    def _get(self, fire_id: str) -> Fire:
        if fire_id not in self.by_id:
            raise NotFound(f"there is no fire {fire_id!r} on file", hints=tuple(self.by_id))
        return self.by_id[fire_id]

    def _find_part(self, kind: PartKind, part: str) -> dict[str, str]:
        """The id that is meant in every fire which has such a part: two fires may both have a sector A-1."""
        if part in self._parts[kind]:
            return self._parts[kind][part].ids
        raise NotFound(f"there is no {kind} {part!r} on file", hints=tuple(self._parts[kind])[:6])


def _common_owners(found: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """The fires that have all of the named parts; where none has, all that have one of them."""
    every = tuple(dict.fromkeys(key for owners in found for key in owners))
    return tuple(key for key in every if all(key in owners for owners in found)) or every
