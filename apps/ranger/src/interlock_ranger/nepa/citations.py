"""The rule pack as a source, and rules as citations."""

from __future__ import annotations

import tomllib
from datetime import date
from enum import StrEnum
from functools import cache

from interlock.errors import InvalidInput
from interlock_ranger.evidence import DataSource
from interlock_ranger.intake.text import file_digest
from interlock_ranger.nepa.terms import RuleCitation
from interlock_ranger.rules import PACKS, get_rule

_PACK = PACKS / "nepa.toml"


@cache
def _reviewed_on() -> date:
    """When the entries of the pack were last gone through, as the pack itself says."""
    day: date = tomllib.loads(_PACK.read_text(encoding="utf-8"))["reviewed_on"]
    return day


def pack_source() -> DataSource:
    """The pack, with its own date and digest; it is no synthetic data, but unverified."""
    return DataSource(file="rules/nepa.toml", dated=_reviewed_on(), sha256=file_digest(_PACK), synthetic=False)


class Topic(StrEnum):
    """What different rules say on different days."""

    LEVEL = "level"
    CIRCUMSTANCES = "circumstances"
    DRAFT = "draft"
    EA = "EA"
    EIS = "EIS"


_RULES = {
    Topic.LEVEL: ("nepa.level", "nepa.level-220", "nepa.level-ceq"),
    Topic.CIRCUMSTANCES: ("nepa.circumstances", "nepa.circumstances-old"),
    Topic.DRAFT: ("nepa.draft", "nepa.draft-old"),
    Topic.EA: ("nepa.ea", "nepa.ea-2023"),
    Topic.EIS: ("nepa.eis", "nepa.eis-2023"),
}


def find_rule(topic: Topic, on: date) -> str | None:
    """The rule that was in force on a day; no day is decided by a rule of another."""
    return next((name for name in _RULES[topic] if get_rule(name).applies_on(on)), None)


def rule_in_force(topic: Topic, on: date) -> str:
    """The rule of a day, which there has to be."""
    found = find_rule(topic, on)
    if found is None:
        first = min(day for name in _RULES[topic] if (day := get_rule(name).effective_from) is not None)
        raise InvalidInput(
            f"there is no rule on file for {on.isoformat()}: those on file begin with {first.isoformat()};"
            " give a later date"
        )
    return found


def cite(name: str) -> RuleCitation:
    rule = get_rule(name)
    return RuleCitation(rule=name, citation=rule.citation, title=rule.title, verified_against=rule.verified_against)
