"""The arguments of one call, held against what its turn has seen: where each value came from."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from interlock.policy.provenance.argument_origins import HERE, ArgumentOrigins, GivenValues, leads_far, leaves_in
from interlock.policy.provenance.link_contents import link_contents
from interlock.policy.provenance.normal_forms import LONGEST_TEXT, find_values, form_of
from interlock.policy.provenance.origin import Occurrence, Origin
from interlock.policy.provenance.requests import asks_for_more, is_asked_for, words_for
from interlock.policy.provenance.suspects import Suspect, find_suspects
from interlock.policy.provenance.turn_history import TurnHistory
from interlock.tools import Tool
from interlock.tools.labels import Label
from interlock.tools.roles import Role
from interlock.values import Effect, Json, shorten

_SHORT_TEXT = 60
_MOST_SAID = 3
# Looked up once: on Python 3.11 a member of an enum costs as much as a call.
_SINK, _CONTENT, _SELECTOR, _READ = Role.SINK, Role.CONTENT, Role.SELECTOR, Effect.READ
_FIELDS = (Label.OWN, Label.PLAIN)


class Trace:
    """What can be said about the arguments of one call of a tool."""

    def __init__(self, seen: TurnHistory, tool: Tool, given: GivenValues | None = None) -> None:
        self._origins = ArgumentOrigins(seen, tool, given)
        self._tool, self._given = tool, self._origins.given
        self.seen = seen
        self.question = seen.question

    def of(self, field: str, value: Json) -> tuple[Origin, ...]:
        """Where each leaf of an argument's value came from."""
        return self._origins.of(field, value)

    def links(self, field: str, value: Json) -> tuple[Origin, ...]:
        """Where the addresses, links and account numbers came from that stand in the texts of an argument."""
        return self._origins.links(field, value)

    def suspects(self, arguments: dict[str, Json]) -> list[Suspect]:
        """The values that come from nowhere good, by what their arguments are for."""
        return find_suspects(self._origins, arguments)

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
            if not origin.nothing and origin is not HERE  # what the tool fills in itself was named by nobody
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

    def carries(self, arguments: dict[str, Json]) -> list[str]:
        """The tools of whose results something stands in the arguments: a value, or some words one behind the other."""
        return sorted({tool for _what, tool in self._find_carried(arguments)})

    def explain_carried(self, arguments: dict[str, Json]) -> str:
        """A sentence for the person who decides: what would leave, from where, and where to."""
        found = list(dict.fromkeys(self._find_carried(arguments)))
        hidden = any(field in self._tool.redact for field in arguments)
        what = [f"{'a value' if hidden else repr(shorten(what, 60))} from {tool}" for what, tool in found[:_MOST_SAID]]
        sinks = [str(leaf) for field, leaf in self._origins.sinks(arguments) if field not in self._tool.redact]
        where = f"go to {shorten(', '.join(sinks), 120)}" if sinks else "leave"
        return f"{'; '.join(what)} would {where}, which the user has not said"

    def _find_carried(self, arguments: dict[str, Json]) -> Iterator[tuple[str, str]]:
        """What of results stands in the arguments, and of which tool: where it goes is not what it carries, but for
        what an address says beside that; and whoever wrote a row is told nothing new by it."""
        sinks = self._origins.sinks(arguments)
        goes_to = {field for field, _leaf in sinks}
        places = [place for field, leaf in sinks for place in self._origins.of_leaf(field, leaf).places]
        rows = {place.row for place in places if place.row}
        for text in (text for _field, leaf in sinks if isinstance(leaf, str) for text in link_contents(leaf)):
            yield from self._origins.index.find_carried(form_of(text)[:LONGEST_TEXT], rows)
        for field, value in arguments.items():
            for leaf in leaves_in(value) if field not in goes_to else ():
                yield from self._origins.index.find_carried(form_of(leaf)[:LONGEST_TEXT], rows)

    def leads_to_known(self, arguments: dict[str, Json]) -> bool:
        """Whether the call says where it goes, and everything of that is the user's, a field, or one's own."""
        sinks = [self._origins.of_leaf(field, leaf) for field, leaf in self._origins.sinks(arguments)]
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
            found |= {
                one.form: None for one, origin in self._origins.find_links(value) if not self._stays_known(origin)
            }
            for leaf in leaves_in(value):
                form = form_of(leaf)
                numbers = [one for one in find_values(form) if one.kind == "number" and leads_far(one)]
                found |= {
                    one.form: None for one in numbers if not self._stays_known(self._origins.index.find(one.form))
                }
                is_value = role in (_SINK, _SELECTOR) or (role is _CONTENT and len(form) <= _SHORT_TEXT)
                origin = self._origins.of_leaf(field, leaf) if is_value and form else None
                if origin is not None and not self._stays_known(origin) and (origin.places or role is not _CONTENT):
                    found[form] = None
        return tuple(digest(form.encode("utf-8", "replace")) for form in found)

    def _stays_known(self, origin: Origin) -> bool:
        """Whether it comes from somewhere good that is so after this turn, too: not what a person has vouched for."""
        places = tuple(place for place in origin.places if place.label is not Label.PERSON)
        kept = origin if len(places) == len(origin.places) else msgspec.structs.replace(origin, places=places)
        return self._origins.is_known(kept)

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


def _is_named_field(place: Occurrence) -> bool:
    return place.whole and place.pointed and place.label in _FIELDS
