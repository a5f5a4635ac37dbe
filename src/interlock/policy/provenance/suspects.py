"""The values of a call that come from nowhere good, by what their arguments are for."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property

import msgspec

from interlock.policy.provenance.argument_origins import ArgumentOrigins, is_leading, leaves_in
from interlock.policy.provenance.normal_forms import find_values, form_of, number_form
from interlock.policy.provenance.origin import Origin
from interlock.policy.provenance.requests import is_left_to, is_worked_out, is_written_down
from interlock.tools.effect_words import name_parts
from interlock.tools.labels import Label
from interlock.tools.roles import Role, is_number_of
from interlock.values import Effect, Json, shorten

# Looked up once: on Python 3.11 a member of an enum costs as much as a call.
_SINK, _CONTENT, _SELECTOR, _CHOICE, _READ = Role.SINK, Role.CONTENT, Role.SELECTOR, Role.CHOICE, Effect.READ
_AMOUNT = Role.AMOUNT
_SMALL_UNITS = frozenset(("cents", "cent", "pence", "minor"))
_FIELDS = (Label.OWN, Label.PLAIN)
_WHO = {
    Label.OUTSIDERS: "a field that others fill in",
    Label.FREE: "a text that others may have written",
    Label.PLAIN: "a text",
    Label.ECHO: "what something was looked up by",
    Label.MODEL: "the words of a model",
}


class Suspect(msgspec.Struct, frozen=True):
    """A value that comes from nowhere good: of which argument, and where it stands, if anywhere."""

    field: str
    role: Role
    shown: str
    origin: Origin

    @property
    def why(self) -> str:
        """A sentence for the person who decides."""
        named = f"{self.field} {shorten(self.shown, 60)!r}" if self.shown else self.field
        if not self.origin.places:
            return f"{named} was named by nobody: not by the user, and in no result of this turn"
        place = self.origin.places[0]
        if self.origin.diverted:
            return f"{named} is not of what the user has named, and a text asks for it: {place.where}"
        if self.origin.whole and self.role is _SINK:
            return f"{named} is of another row than what is meant: {place.where}"
        return f"{named} stands only in {_WHO.get(place.label, 'a result')}: {place.where}"


def find_suspects(origins: ArgumentOrigins, arguments: dict[str, Json]) -> list[Suspect]:
    """The values that come from nowhere good."""
    judged = _JudgedCall(origins, arguments)
    return [suspect for field, value in arguments.items() for suspect in judged.find(field, value)]


class _JudgedCall:
    """A call, and what its arguments say of each other."""

    def __init__(self, origins: ArgumentOrigins, arguments: dict[str, Json]) -> None:
        self._origins, self._tool, self._arguments = origins, origins.tool, arguments

    def find(self, field: str, value: Json) -> Iterator[Suspect]:
        """Those of one argument."""
        declared = self._tool.roles.get(field, _SELECTOR)
        if declared is _CHOICE or (self._tool.effect is _READ and declared is not _SINK):
            return
        for leaf in leaves_in(value):
            may_lead = declared is not _CONTENT and declared is not _SINK and self._tool.effect is not _READ
            role = _SINK if may_lead and is_leading(leaf) else declared
            if role is _CONTENT and field not in self._origins.given.origins:
                for found, origin in self._origins.find_links(leaf):
                    if not self._origins.is_known(origin):
                        yield Suspect(field, role, self._shown_of(field, found.shown), origin)
                continue
            origin = self._origins.of_leaf(field, leaf)
            if not self._is_good(field, role, origin, leaf):
                yield Suspect(field, role, self._shown_of(field, str(leaf)), origin)

    def _shown_of(self, field: str, text: str) -> str:
        return "" if field in self._tool.redact else text

    def _is_good(self, field: str, role: Role, origin: Origin, leaf: Json) -> bool:
        if role is _CONTENT:
            return self._origins.is_known(origin)
        if role is _SINK:
            if self._tool.effect is not _READ:
                return self._origins.is_known(origin) and not self._is_of_another_row(origin, leaf)
            # A read fetches; only an address on the net can carry anything out.
            return origin.readable or not any(found.kind == "link" for found in find_values(form_of(leaf)))
        if origin.user or origin.trusted:
            return True
        if role is _SELECTOR:
            return self._selects(field, origin, leaf)
        # Of a row that the user has passed over it may be the amount or the day, and by chance the same.
        is_field = any(place.whole and place.label in _FIELDS for place in origin.places)
        return is_field or self._measures(field, role, origin, leaf)

    def _is_of_another_row(self, origin: Origin, leaf: Json) -> bool:
        """Whether something is to go where one row says, and is chosen by another, which says itself where to."""
        if origin.user or origin.trusted or not origin.whole:
            return False
        if origin.outdone:
            return True
        if all(self._tool.roles.get(field, _SELECTOR) is not _SELECTOR for field in self._arguments):
            return False
        index, places = (
            self._origins.index,
            [place for place in origin.places if place.whole and place.label in _FIELDS],
        )
        rows: dict[int, set[int]] = {}
        for record, row in self._things:
            rows.setdefault(record, set()).add(row)
        if not rows or not index.rows_of(form_of(leaf)).isdisjoint(row for several in rows.values() for row in several):
            return False
        # Another result that has it, or a row that the user has named, vouches for it.
        return all(
            not place.named and any(index.has_field(row, place.path) for row in rows.get(place.record, ()))
            for place in places
        )

    def _selects(self, field: str, origin: Origin, leaf: Json) -> bool:
        """Whether it may say which thing is meant."""
        if origin.whole and self._fits(field, leaf, origin):
            return True
        # Whatever a text says of it: the user has named another thing.
        if origin.echoed or origin.whole or origin.diverted:
            return origin.echoed
        is_field = any(place.whole and place.pointed for place in origin.places)
        if origin.known or is_field or (not origin.places and self._origins.index.are_said(form_of(leaf))):
            return True
        # A name in a text that was pointed at may be any, but for what is written down as it stands there, for what the
        # same text says of where it goes, and where the wish itself names that text.
        pointed = [place for place in origin.places if place.pointed and place.label is not Label.ECHO]
        if not any(map(str.isalpha, str(leaf))) or not pointed:
            return False
        return (
            is_written_down(self._tool.name, field)
            or any(place.row in self._texts for place in pointed)
            or any(self._is_left_to(place.asked) for place in pointed)
        )

    def _is_left_to(self, asked: str) -> bool:
        tool = self._tool
        return bool(asked) and is_left_to(tool.name, tool.description, self._origins.request, asked)

    def _measures(self, field: str, role: Role, origin: Origin, leaf: Json) -> bool:
        """Whether it may be the amount or the day."""
        # What stands nowhere was worked out, but not where a text alone says where it goes: then that says how much.
        if not origin.places or origin.echoed:
            return role is not _AMOUNT or not self._texts or self._is_reckoned(field, leaf)
        kinds = {found.kind for found in find_values(form_of(leaf))}
        # A user who has said a day, and another one in a text: nobody has asked for that.
        if "date" in kinds and self._origins.index.says_day():
            return False
        # Where the thing that is meant has an amount or a day of its own, a text elsewhere does not say another.
        measured = any(kinds & set(self._origins.index.measures(row)) for row in self._rows)
        return origin.pointed and not (measured and self._rows.isdisjoint(place.row for place in origin.places))

    def _is_reckoned(self, field: str, leaf: Json) -> bool:
        """Whether the user has had it worked out, or it stands there in larger units."""
        if is_worked_out(self._origins.question):
            return True
        is_small = isinstance(leaf, int) and not _SMALL_UNITS.isdisjoint(name_parts(field))
        return is_small and bool(self._origins.index.find(number_form(Decimal(leaf) / 100)).places)

    @staticmethod
    def _fits(field: str, leaf: Json, origin: Origin) -> bool:
        """A number is that of the thing only where a field says so by its name: five pages are not unit five."""
        if any(map(str.isalpha, str(leaf))):
            return True
        paths = [place.path for place in origin.places if place.whole and place.label in _FIELDS]
        return any(is_number_of(path, field) for path in paths)

    @cached_property
    def _rows(self) -> frozenset[int]:
        """The rows whose fields say which thing is meant, or where to."""
        return frozenset(
            place.row
            for field, value in self._arguments.items()
            if self._tool.roles.get(field, _SELECTOR) in (_SELECTOR, _SINK)
            for origin in self._origins.of(field, value)
            for place in origin.places
            if place.whole and place.row and (place.label in _FIELDS or (place.label is Label.ECHO and origin.user))
        )

    @cached_property
    def _things(self) -> frozenset[tuple[int, int]]:
        """The records and rows whose fields say which thing is meant."""
        return frozenset(
            (place.record, place.row)
            for field, value in self._arguments.items()
            if self._tool.roles.get(field, _SELECTOR) is _SELECTOR
            for origin in self._origins.of(field, value)
            for place in origin.places
            if place.whole and place.row and place.label in _FIELDS
        )

    @cached_property
    def _texts(self) -> frozenset[int]:
        """The texts that the user has pointed at, and which alone say where it goes."""
        found = [self._origins.of_leaf(field, leaf) for field, leaf in self._origins.sinks(self._arguments)]
        texts = [origin for origin in found if not (origin.user or origin.trusted or origin.whole) and origin.known]
        return frozenset(place.row for origin in texts for place in origin.places if place.pointed)
