"""The rule pack as a source, and rules as citations."""

from __future__ import annotations

import tomllib
from datetime import date
from functools import cache

from interlock_ranger.evidence import DataSource, Today
from interlock_ranger.fires import digest
from interlock_ranger.nepa.terms import Cited
from interlock_ranger.rules import PACKS, rule

_PACK = PACKS / "nepa.toml"


@cache
def _gone_through() -> date:
    """When the entries of the pack were last gone through, as the pack itself says."""
    found: date = tomllib.loads(_PACK.read_text(encoding="utf-8"))["gone_through"]
    return found


def pack_source(today: Today) -> DataSource:
    """The pack, with its date and digest; it is no synthetic data, but unverified."""
    return DataSource(
        file="rules/nepa.toml", dated=min(_gone_through(), today()), sha256=digest(_PACK), synthetic=False
    )


def cited(name: str) -> Cited:
    """A rule as a citation."""
    found = rule(name)
    return Cited(rule=name, citation=found.citation, title=found.title, verified_against=found.verified_against)
