"""The rule packs: every rule that a finding names, as versioned data with citation and what it was checked against."""

from __future__ import annotations

import tomllib
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from interlock.errors import ConfigError

PACKS = Path(__file__).parent / "rules"
UNVERIFIED = "unverified"


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    title: str
    citation: str
    source: str
    """Where this entry was taken from."""
    effective_from: date | None = None
    effective_to: date | None = None
    """The last day on which it applies."""
    verified_against: str = UNVERIFIED
    """A text or test in this repository, or `unverified`."""
    limits: dict[str, float] = {}
    conditions: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    status: str = "in_force"
    values: dict[str, Any] = {}

    @property
    def is_verified(self) -> bool:
        """Whether it was checked against a text or test that is here."""
        return self.verified_against != UNVERIFIED

    def applies_on(self, day: date) -> bool:
        return (self.effective_from is None or self.effective_from <= day) and (
            self.effective_to is None or day <= self.effective_to
        )


@cache
def load_rules() -> dict[str, Rule]:
    """Every rule of every pack, by its id."""
    found: dict[str, Rule] = {}
    for file in sorted(PACKS.glob("*.toml")):
        try:
            pack = tomllib.loads(file.read_text(encoding="utf-8"))
            entries = msgspec.convert(pack["rule"], list[Rule])
        except (tomllib.TOMLDecodeError, KeyError, msgspec.ValidationError) as error:
            raise ConfigError(f"rule pack {file.name} cannot be read: {error}") from None
        for rule in entries:
            # Findings name a rule by its id alone, whichever pack it is in.
            if rule.id in found:
                raise ConfigError(f"rule pack {file.name}: {rule.id} is there twice")
            found[rule.id] = rule
    return found


def get_rule(name: str) -> Rule:
    """One rule; asking for one that is in no pack is a programming error."""
    return load_rules()[name]
