"""The rule pack as a source, and rules as citations."""

from __future__ import annotations

from datetime import date

from interlock_ranger.evidence import DataSource, Today
from interlock_ranger.fires import digest
from interlock_ranger.nepa.terms import Cited
from interlock_ranger.rules import PACKS, rule

PACK_DATED = date(2026, 11, 15)
"""When the entries of the pack were last gone through."""


def pack_source(today: Today) -> DataSource:
    """The pack, with its date and digest; it is no synthetic data, but unverified."""
    file = PACKS / "nepa.toml"
    return DataSource(file="rules/nepa.toml", dated=min(PACK_DATED, today()), sha256=digest(file), synthetic=False)


def cited(name: str) -> Cited:
    """A rule as a citation."""
    found = rule(name)
    return Cited(rule=name, citation=found.citation, title=found.title, verified_against=found.verified_against)
