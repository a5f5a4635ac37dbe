"""The arguments of one call, held against what its turn has seen: where each value came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from interlock.policy.provenance.normal_forms import LEADING, LONGEST_TEXT, Found, find_values, form_of
from interlock.policy.provenance.origin import Occurrence, Origin
from interlock.policy.provenance.requests import asks_for_more, hands_over, is_asked_for, words_for
from interlock.policy.provenance.turn_history import TurnHistory
from interlock.tools import Tool
from interlock.tools.labels import Label
from interlock.tools.roles import Role, choices_of, is_number_of
from interlock.values import Effect, Json, shorten

_MOST_LINKS = 200
_LONG_NUMBER = 6
_NAMED = re.compile(r"(?:mailto:)?[^\W\d]*(?:[ .'\"<>()-]+[^\W\d]*)*")
_SHORT_TEXT = 60
_MEASURES = (Role.AMOUNT, Role.DATE)
# Looked up once: on Python 3.11 a member of an enum costs as much as a call.
_SINK, _CONTENT, _SELECTOR, _CHOICE, _READ = Role.SINK, Role.CONTENT, Role.SELECTOR, Role.CHOICE, Effect.READ
_MOST_SAID = 3
_HERE = Origin((Occurrence(0, "", "the tool itself", Label.CONSTANT, whole=True),))
TAKEN_BACK = Origin((Occurrence(0, "", "the record of what is taken back", Label.CONSTANT, whole=True),))
BY_APPLICATION = Origin((Occurrence(0, "", "the application", Label.CONSTANT, whole=True),))
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
        return f"{named} stands only in {_WHO.get(place.label, 'a result')}: {place.where}"


class GivenValues(msgspec.Struct, frozen=True):
    """What is known of the values of a call without a look at its turn, and what is to be written down of them."""

    origins: Mapping[str, Origin] = {}
    """Of arguments of which that is said: those that the application fills in itself, and of what is taken back."""
    asked: bool = False
    """An operator has asked for the call."""
    digest: Callable[[bytes], str] | None = None
    """Of a tool whose words another one recalls: how values are written down that come from nowhere good."""


_NOTHING_GIVEN = GivenValues()


class Trace:
    """What can be said about the arguments of one call of a tool."""

    def __init__(self, seen: TurnHistory, tool: Tool, given: GivenValues | None = None) -> None:
        self._index = seen.index
        self._tool = tool
        self._given = given or _NOTHING_GIVEN
        self.seen = seen
        self.question = seen.question
        self._known: dict[tuple[str, type, Any], Origin] = {}

    def is_asked(self, arguments: dict[str, Json]) -> bool:
        """Whether the user's words ask for what the tool does; of a read nothing is asked."""
        tool = self._tool
        if tool.effect is _READ or self._given.asked:
            return True
        named = any(self._is_named(field, value) for field, value in arguments.items())
        if is_asked_for(tool.name, tool.description, tool.says, self.seen.request, named=named):
            return True
        # Somebody who says in words that nobody knows what is to be done with what they name has asked for something.
        return self._is_meant(arguments) and asks_for_more(self.seen.request)

    def _is_meant(self, arguments: dict[str, Json]) -> bool:
        """Whether the user has named everything that says where it goes and which thing is meant: in their own words,
        or as a field of a row that they have named."""
        roles = (_SINK, _SELECTOR)
        found = [
            origin
            for field, value in arguments.items()
            if self._tool.roles.get(field, _SELECTOR) in roles
            for origin in self.of(field, value)
            if not origin.nothing
        ]
        return bool(found) and all(origin.user or any(map(_is_named_field, origin.places)) for origin in found)

    def explain_unasked(self) -> str:
        """A sentence for whoever decides, and for whoever has written the tool."""
        words = words_for(self._tool.name)
        more = f"none of {', '.join(words)} is asked for in their words" if words else "no word for it is known"
        return f"the user has not asked for this ({more}; a tool names others by `says`)"

    def _is_named(self, field: str, value: Json) -> bool:
        """Whether the user has named which thing, or where to: then it is clear what is done to what. A number names
        nothing."""
        if self._tool.roles.get(field) not in (_SELECTOR, _SINK):
            return False
        found = self.of(field, value) if any(map(str.isalpha, str(value))) else ()
        return bool(found) and all(any(place.label is Label.USER for place in origin.places) for origin in found)

    def of(self, field: str, value: Json) -> tuple[Origin, ...]:
        """Where each leaf of an argument's value came from."""
        return tuple(self._origin(field, leaf) for leaf in _leaves(value))

    def links(self, field: str, value: Json) -> tuple[Origin, ...]:
        """Where the addresses, links and account numbers came from that stand in the texts of an argument."""
        given = self._given.origins.get(field)
        return (given,) if given is not None else tuple(origin for _found, origin in self._links(value))

    def suspects(self, arguments: dict[str, Json]) -> list[Suspect]:
        """The values that come from nowhere good, by what their arguments are for."""
        measures = any(self._tool.roles.get(field) in _MEASURES for field in arguments)
        rows = self._chosen_rows(arguments) if measures else set()
        return [suspect for field, value in arguments.items() for suspect in self._suspects(field, value, rows)]

    def _chosen_rows(self, arguments: dict[str, Json]) -> set[int]:
        """The rows whose fields say which thing is meant, or where to."""
        return {
            place.row
            for field, value in arguments.items()
            if self._tool.roles.get(field, _SELECTOR) in (_SELECTOR, _SINK)
            for origin in self.of(field, value)
            for place in origin.places
            if place.whole and place.row and place.label in (Label.OWN, Label.PLAIN)
        }

    def carries(self, arguments: dict[str, Json]) -> list[str]:
        """The tools of whose results something stands in the arguments: a value, or some words one behind the other."""
        return sorted({tool for _what, tool in self._find_carried(arguments)})

    def explain_carried(self, arguments: dict[str, Json]) -> str:
        """A sentence for the person who decides: what would leave, from where, and where to."""
        found = list(dict.fromkeys(self._find_carried(arguments)))
        hidden = any(field in self._tool.redact for field in arguments)
        what = [f"{'a value' if hidden else repr(shorten(what, 60))} from {tool}" for what, tool in found[:_MOST_SAID]]
        sinks = [str(leaf) for field, leaf in self._sinks(arguments) if field not in self._tool.redact]
        where = f"go to {shorten(', '.join(sinks), 120)}" if sinks else "leave"
        return f"{'; '.join(what)} would {where}, which the user has not said"

    def _sinks(self, arguments: dict[str, Json]) -> list[tuple[str, Json]]:
        """Where the call goes."""
        named = [(field, value) for field, value in arguments.items() if self._tool.roles.get(field) is _SINK]
        return [(field, leaf) for field, value in named for leaf in _leaves(value) if leaf not in (None, "")]

    def _find_carried(self, arguments: dict[str, Json]) -> Iterator[tuple[str, str]]:
        """What of results stands in the arguments, and of which tool: where it goes is not what it carries, and whoever
        wrote a row is told nothing new by it."""
        goes_to = {field for field, _leaf in self._sinks(arguments)}
        places = [place for field, leaf in self._sinks(arguments) for place in self._origin(field, leaf).places]
        rows = {place.row for place in places if place.row}
        for field, value in arguments.items():
            for leaf in _leaves(value) if field not in goes_to else ():
                yield from self._index.find_carried(form_of(leaf)[:LONGEST_TEXT], rows)

    def leads_to_known(self, arguments: dict[str, Json]) -> bool:
        """Whether the call says where it goes, and everything of that is the user's, a field, or one's own."""
        sinks = [self._origin(field, leaf) for field, leaf in self._sinks(arguments)]
        found = [origin for origin in sinks if not origin.nothing]
        return bool(found) and all(origin.user or origin.trusted or origin.whole for origin in found)

    def foreign(self, arguments: dict[str, Json]) -> tuple[str, ...]:
        """What is told here, recalled by another tool later, and comes from nowhere good: as digests. Of texts the
        addresses, accounts and links in them; that it was written down here makes none of it better."""
        digest, found = self._given.digest, dict[str, None]()
        if digest is None:
            return ()
        for field, value in arguments.items():
            role = self._tool.roles.get(field, _SELECTOR)
            if field in self._given.origins:
                continue
            found |= {one.form: None for one, origin in self._links(value) if not self._is_known(origin)}
            for leaf in _leaves(value):
                form = form_of(leaf)
                numbers = [one for one in find_values(form) if one.kind == "number" and _leads_far(one)]
                found |= {one.form: None for one in numbers if not self._is_known(self._index.find(one.form))}
                is_value = role in (_SINK, _SELECTOR) or (role is _CONTENT and len(form) <= _SHORT_TEXT)
                origin = self._origin(field, leaf) if is_value and form else None
                if origin is not None and not self._is_known(origin) and (origin.places or role is not _CONTENT):
                    found[form] = None
        return tuple(digest(form.encode("utf-8", "replace")) for form in found)

    def summary(self, arguments: dict[str, Json]) -> dict[str, str]:
        """For each argument, in a few words, where its value came from."""
        said = {field: self._summary(field, value) for field, value in arguments.items() if value not in (None, "", [])}
        return {field: where for field, where in said.items() if where}

    def _summary(self, field: str, value: Json) -> str:
        # Of a text that somebody reads, where that came from in it which leads somewhere.
        is_content = self._tool.roles.get(field) is _CONTENT
        origins = self.links(field, value) if is_content else self.of(field, value)
        found = [origin.places[0] if origin.places else None for origin in origins if not origin.nothing]
        return "; ".join(dict.fromkeys("nowhere" if place is None else place.where for place in found[:_MOST_SAID]))

    def _suspects(self, field: str, value: Json, rows: set[int]) -> Iterator[Suspect]:
        declared = self._tool.roles.get(field, _SELECTOR)
        if declared is _CHOICE or (self._tool.effect is _READ and declared is not _SINK):
            return
        for leaf in _leaves(value):
            leads = declared is not _CONTENT and self._tool.effect is not _READ and _is_leading(leaf)
            role = _SINK if leads else declared
            if role is _CONTENT and field not in self._given.origins:
                for found, origin in self._links(leaf):
                    if not self._is_known(origin):
                        yield Suspect(field, role, self._shown_of(field, found.shown), origin)
                continue
            origin = self._origin(field, leaf)
            if not self._is_good(field, role, origin, leaf, rows):
                yield Suspect(field, role, self._shown_of(field, str(leaf)), origin)

    def _shown_of(self, field: str, text: str) -> str:
        return "" if field in self._tool.redact else text

    def _is_good(self, field: str, role: Role, origin: Origin, leaf: Json, rows: set[int]) -> bool:
        if role is _CONTENT:
            return self._is_known(origin)
        if role is _SINK:
            # A read fetches; only an address on the net can carry anything out.
            leads = self._tool.effect is not _READ or any(f.kind == "link" for f in find_values(form_of(leaf)))
            return not leads or self._is_known(origin)
        if (
            origin.user
            or origin.trusted
            or (origin.whole and (role is not _SELECTOR or self._fits(field, leaf, origin)))
        ):
            return True
        if role is _SELECTOR:
            if origin.echoed or origin.whole:
                return origin.echoed
            # A number in a text that was pointed at may be any; a name is one, and so is a field.
            is_one = any(map(str.isalpha, str(leaf))) or any(place.whole and place.pointed for place in origin.places)
            return origin.known or (origin.pointed and is_one)
        # An amount or a day that stands nowhere was worked out; which thing is meant cannot be.
        if not origin.places or origin.echoed:
            return True
        # Where the thing that is meant has an amount or a day of its own, a text elsewhere does not say another.
        kinds = {found.kind for found in find_values(form_of(leaf))}
        measured = any(kinds & set(self._index.measures(row)) for row in rows)
        return origin.pointed and not (measured and rows.isdisjoint(place.row for place in origin.places))

    @staticmethod
    def _fits(field: str, leaf: Json, origin: Origin) -> bool:
        """A number is that of the thing only where a field says so by its name: five pages are not unit five."""
        if any(map(str.isalpha, str(leaf))):
            return True
        paths = [place.path for place in origin.places if place.whole and place.label in (Label.OWN, Label.PLAIN)]
        return any(is_number_of(path, field) for path in paths)

    def _is_known(self, origin: Origin) -> bool:
        # Where the user leaves to a text what is to be done, that text cannot also say where to.
        return origin.user or origin.trusted or origin.whole if hands_over(self.question) else origin.known

    def _origin(self, field: str, leaf: Json) -> Origin:
        known = self._known.get((field, type(leaf), leaf))
        if known is None:
            known = self._known[field, type(leaf), leaf] = self._find(field, leaf)
        return known

    def _find(self, field: str, leaf: Json) -> Origin:
        given = self._given.origins.get(field)
        if given is not None:
            return given
        if isinstance(leaf, str) and leaf in choices_of(self._tool.input.schema, field):
            return _HERE
        schema: dict[str, Json] = self._tool.input.schema.get("properties", {}).get(field, {})
        if leaf == schema.get("default", ...) or leaf in schema.get("enum", ()):
            return _HERE
        form = form_of(leaf)[:LONGEST_TEXT]
        # "Ann <ann@x.example>" goes where the address says.
        leading = [one for one in find_values(form) if one.kind in LEADING] if self._leads(field) else []
        if len(leading) == 1 and _NAMED.fullmatch(form.replace(leading[0].shown, "", 1)):
            return self._index.find(leading[0].shown)
        return self._index.find(form)

    def _leads(self, field: str) -> bool:
        return self._tool.roles.get(field) is _SINK

    def _links(self, value: Json) -> Iterator[tuple[Found, Origin]]:
        seen: set[str] = set()
        for leaf in _leaves(value):
            for found in find_values(form_of(leaf)[:LONGEST_TEXT]) if isinstance(leaf, str) else ():
                if found.kind in LEADING and found.form not in seen:
                    seen.add(found.form)
                    # Of more than anybody reads, the rest comes from nowhere.
                    yield found, self._index.find(found.shown) if len(seen) <= _MOST_LINKS else Origin()


def _is_named_field(place: Occurrence) -> bool:
    return place.whole and place.pointed and place.label in (Label.OWN, Label.PLAIN)


def _is_leading(leaf: Json) -> bool:
    """Whether a value is nothing but an address, an account or a link: whatever its argument is called."""
    form = form_of(leaf) if isinstance(leaf, str) else ""
    found = find_values(form)
    return len(found) == 1 and found[0].kind in LEADING and found[0].shown == form


def _leads_far(found: Found) -> bool:
    return found.kind in LEADING or (found.kind == "number" and len(found.form) >= _LONG_NUMBER)


def _leaves(value: Json) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in value.items():
            if any(_leads_far(found) for found in find_values(form_of(key))):
                yield key
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
