"""Where each value in the arguments of one call came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from interlock.policy.provenance.normal_forms import LEADING, LONGEST_TEXT, Found, find_values, form_of
from interlock.policy.provenance.origin import Occurrence, Origin
from interlock.policy.provenance.requests import hands_over
from interlock.policy.provenance.turn_history import TurnHistory
from interlock.tools import Tool
from interlock.tools.labels import Label
from interlock.tools.roles import Role
from interlock.values import Json

_MOST_LINKS = 200
_LONG_NUMBER = 6
_NAMED = re.compile(r"(?:mailto:)?(?:[^\W\d]|[ .'\"<>()-])*")
_SINK = Role.SINK  # looked up once: on Python 3.11 a member of an enum costs as much as a call
HERE = Origin((Occurrence(0, "", "the tool itself", Label.CONSTANT, whole=True),))
TAKEN_BACK = Origin((Occurrence(0, "", "the record of what is taken back", Label.CONSTANT, whole=True),))
BY_APPLICATION = Origin((Occurrence(0, "", "the application", Label.CONSTANT, whole=True),))


def origin_of_edit(who: str) -> Origin:
    """Where a value came from that somebody has put in place of what a ticket asks about."""
    return Origin((Occurrence(0, "", f"an edit by {who}", Label.PERSON, whole=True),))


class GivenValues(msgspec.Struct, frozen=True):
    """What is known of the values of a call without a look at its turn, and what is to be written down of them."""

    origins: Mapping[str, Origin] = {}
    """Of arguments of which that is said: those that the application fills in itself, and of what is taken back."""
    asked: bool = False
    """An operator has asked for the call."""
    digest: Callable[[bytes], str] | None = None
    """Of a tool whose words another one recalls: how values are written down that come from nowhere good."""


_NOTHING_GIVEN = GivenValues()


class ArgumentOrigins:
    """What a turn has seen of the arguments of one call of a tool."""

    def __init__(self, seen: TurnHistory, tool: Tool, given: GivenValues | None = None) -> None:
        self.index = seen.index
        self.tool = tool
        self.given = given or _NOTHING_GIVEN
        self.question, self.request = seen.question, seen.request
        self._known: dict[tuple[str, type, Any], Origin] = {}
        self._links: dict[str, list[tuple[Found, Origin]]] = {}

    def of(self, field: str, value: Json) -> tuple[Origin, ...]:
        """Where each leaf of an argument's value came from."""
        return tuple(self.of_leaf(field, leaf) for leaf in leaves_in(value))

    def links(self, field: str, value: Json) -> tuple[Origin, ...]:
        """Where the addresses, links and account numbers came from that stand in the texts of an argument."""
        given = self.given.origins.get(field)
        return (given,) if given is not None else tuple(origin for _found, origin in self.find_links(value))

    def sinks(self, arguments: dict[str, Json]) -> list[tuple[str, Json]]:
        """Where the call goes."""
        named = [(field, value) for field, value in arguments.items() if self.tool.roles.get(field) is _SINK]
        return [(field, leaf) for field, value in named for leaf in leaves_in(value) if leaf not in (None, "")]

    def is_known(self, origin: Origin) -> bool:
        """Whether it comes from somewhere good."""
        # Where the user leaves to a text what is to be done, that text cannot also say where to.
        return origin.user or origin.trusted or origin.whole if hands_over(self.question) else origin.known

    def of_leaf(self, field: str, leaf: Json) -> Origin:
        """Where one leaf of an argument's value came from."""
        known = self._known.get((field, type(leaf), leaf))
        if known is None:
            known = self._known[field, type(leaf), leaf] = self._find(field, leaf)
        return known

    def _find(self, field: str, leaf: Json) -> Origin:
        given = self.given.origins.get(field)
        if given is not None:
            return given
        if isinstance(leaf, str) and leaf in self.tool.choices.get(field, ()):
            return HERE
        schema: dict[str, Json] = self.tool.input.schema.get("properties", {}).get(field, {})
        if leaf == schema.get("default", ...) or leaf in schema.get("enum", ()):
            return HERE
        form = form_of(leaf)[:LONGEST_TEXT]
        # "Ann <ann@x.example>" goes where the address says.
        leading = [one for one in find_values(form) if one.kind in LEADING] if self._leads(field) else []
        if len(leading) == 1 and _NAMED.fullmatch(form.replace(leading[0].shown, "", 1)):
            return self.index.find(leading[0].shown)
        return self.index.find(form)

    def _leads(self, field: str) -> bool:
        return self.tool.roles.get(field) is _SINK

    def find_links(self, value: Json) -> list[tuple[Found, Origin]]:
        """The addresses, links and account numbers in the texts of a value, and where each came from."""
        if isinstance(value, str):
            found = self._links.get(value)
            if found is None:
                found = self._links[value] = list(self._find_links((value,)))
            return found
        return list(self._find_links(leaves_in(value)))

    def _find_links(self, leaves: Iterable[Json]) -> Iterator[tuple[Found, Origin]]:
        seen: set[str] = set()
        for leaf in leaves:
            for found in find_values(form_of(leaf)[:LONGEST_TEXT]) if isinstance(leaf, str) else ():
                if found.kind in LEADING and found.form not in seen:
                    seen.add(found.form)
                    # Of more than anybody reads, the rest comes from nowhere.
                    yield found, self.index.find(found.shown) if len(seen) <= _MOST_LINKS else Origin()


def is_leading(leaf: Json) -> bool:
    """Whether a value is nothing but an address, an account or a link: whatever its argument is called."""
    form = form_of(leaf) if isinstance(leaf, str) else ""
    found = find_values(form)
    return len(found) == 1 and found[0].kind in LEADING and found[0].shown == form


def leads_far(found: Found) -> bool:
    """Whether a value is one of its own: an address, an account, a link, or a long number."""
    return found.kind in LEADING or (found.kind == "number" and len(found.form) >= _LONG_NUMBER)


def leaves_in(value: Json) -> Iterator[Any]:
    """The leaves of an argument, and the keys that lead somewhere."""
    if isinstance(value, dict):
        for key, item in value.items():
            if any(leads_far(found) for found in find_values(form_of(key))):
                yield key
            yield from leaves_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves_in(item)
    else:
        yield value
