"""Requirements as they are written down: what a tool redacts is a mark in the record, and lies beside it alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import msgspec
from msgspec.structs import replace

from interlock.answers.requirements import AllOf, AnyOf, NamedEntity, Need, Requirement
from interlock.engine import ToolBinding
from interlock.tools import MARK
from interlock.values import Json

_BEGINS, _IS = 'args["', "] == "
"""How a condition begins that a conversation has settled. What a developer wrote so is hidden too."""


def redacted_names(bindings: Mapping[str, ToolBinding]) -> frozenset[str]:
    """The arguments that any tool redacts: a value that one hides may be named to another."""
    return frozenset(name.casefold() for binding in bindings.values() for name in binding.tool.redact)


def hide_values(requirement: Requirement, hidden: Collection[str]) -> Requirement:
    """A requirement without the values of these arguments."""
    if not hidden:
        return requirement
    if not isinstance(requirement, Need):
        return replace(requirement, parts=tuple(hide_values(part, hidden) for part in requirement.parts))
    about = tuple(_hide_entity(entity, hidden) for entity in requirement.about)
    return replace(requirement, where=_hide_conditions(requirement.where, hidden), about=about)


def whole_of(beside: Json, recorded: Requirement, hidden: Collection[str]) -> Requirement:
    """What lies beside the record, if it is what was recorded; otherwise that, which no call meets where it has marks.

    What lies beside a record can be altered without breaking the chain.
    """
    whole = None if beside is None else msgspec.convert(beside, Need | AllOf | AnyOf)
    return whole if whole is not None and hide_values(whole, hidden) == recorded else recorded


def _hide_entity(entity: NamedEntity, hidden: Collection[str]) -> NamedEntity:
    if not any(name.casefold() in hidden for name, _value in entity.values):
        return entity
    return replace(entity, name=MARK, values=tuple((name, MARK) for name, _value in entity.values))


def _hide_conditions(where: str, hidden: Collection[str]) -> str:
    decoder, kept, at = json.JSONDecoder(), "", 0
    while (start := where.find(_BEGINS, at)) >= 0:
        begins = start + len(_BEGINS)
        kept, at = kept + where[at:begins], begins
        try:
            name, end = decoder.raw_decode(where, begins - 1)
            _value, stop = decoder.raw_decode(where, end + len(_IS))
        except ValueError:  # no condition of this form
            continue
        if where.startswith(_IS, end) and name.casefold() in hidden:
            kept, at = f"{kept}{where[begins:end]}{_IS}{json.dumps(MARK)}", stop
    return kept + where[at:]
