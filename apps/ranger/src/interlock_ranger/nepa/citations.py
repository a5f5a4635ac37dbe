"""The rule pack as a source, and rules as citations."""

from __future__ import annotations

import tomllib
from datetime import date
from functools import cache

from interlock_ranger.evidence import DataSource, Today
from interlock_ranger.intake.text import file_digest
from interlock_ranger.nepa.terms import RuleCitation
from interlock_ranger.rules import PACKS, get_rule

_PACK = PACKS / "nepa.toml"


@cache
def _reviewed_on() -> date:
    """When the entries of the pack were last gone through, as the pack itself says."""
    day: date = tomllib.loads(_PACK.read_text(encoding="utf-8"))["reviewed_on"]
    return day


def pack_source(today: Today) -> DataSource:
    """The pack, with its date and digest; it is no synthetic data, but unverified."""
    # The clock is an argument and may stand before the day of the review; no source is dated after it.
    return DataSource(
        file="rules/nepa.toml", dated=min(_reviewed_on(), today()), sha256=file_digest(_PACK), synthetic=False
    )


def cite(name: str) -> RuleCitation:
    rule = get_rule(name)
    return RuleCitation(rule=name, citation=rule.citation, title=rule.title, verified_against=rule.verified_against)
