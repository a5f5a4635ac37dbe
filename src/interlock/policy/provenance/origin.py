"""Where the value of an argument came from."""

from __future__ import annotations

from interlock.tools.labels import Label
from interlock.values import Value

# Looked up once: on Python 3.11 a member of an enum costs as much as a call.
_SAID, _FIELDS = (Label.USER, Label.PERSON, Label.CONSTANT), (Label.OWN, Label.PLAIN)
_PERSON = Label.PERSON
_OWN, _ECHO, _PROSE = Label.OWN, Label.ECHO, (Label.MODEL, Label.ECHO)


class Occurrence(Value, frozen=True):
    """Where a value stands: in a field of a record, or in the user's words (record 0)."""

    record: int
    tool: str
    path: str
    label: Label
    whole: bool
    """It is all that stands there."""
    sole: bool = False
    """It is the only one of its kind in that text."""
    pointed: bool = False
    """The user has pointed at its source."""
    asked: str = ""
    """What the tool was asked for."""
    rivalled: bool = False
    """The user has named another one of its kind, or pointed at one that is a field of its own."""
    row: int = 0
    """Which row of all that was seen."""
    page: bool = False
    """It stands on a page that was read by its link, and the user has asked for no link on it."""
    passed_over: int = 0
    """The user has named another row of its result, and not this one (1), and that has such a field itself (2)."""
    named: bool = False
    """The user has named its row."""

    @property
    def where(self) -> str:
        """For people: which field of which result."""
        if not self.tool:
            return self.path
        field = f", field {self.path}" if self.path else ""
        asked = f"({self.asked})" if self.asked else ""
        vouched = ", which a person has vouched for" if self.label is _PERSON else ""
        return f"{self.tool}{asked}{field}, record {self.record}{vouched}"


class Origin(Value, frozen=True):
    """Where a value came from: the places in which it stands, the most believed first."""

    places: tuple[Occurrence, ...] = ()
    nothing: bool = False
    """There is no value: nothing was given, or nothing that could come from somewhere."""
    diverted: bool = False
    """It is a field only of rows that the user has passed over, and a text speaks of such a row."""

    @property
    def user(self) -> bool:
        """It stands in the user's own words, a person has filled it in or vouched for it, or it is a choice or default
        of the tool."""
        return self.nothing or any(place.label in _SAID for place in self.places)

    @property
    def whole(self) -> bool:
        """It is a whole leaf of a result that outsiders do not fill in, and of no other row than the user meant."""
        passed_over = False
        for place in self.places:
            if place.whole and place.label in _FIELDS:
                if not place.passed_over:
                    return True
                passed_over = True
        return passed_over and not self.diverted

    @property
    def outdone(self) -> bool:
        """It is a field only of rows that the user has passed over, and the row that is meant has that field, too."""
        fields = [place for place in self.places if place.whole and place.label in _FIELDS]
        return bool(fields) and all(place.passed_over == 2 for place in fields)

    @property
    def sole(self) -> bool:
        """It stands in a text, and is the only one of its kind there."""
        return any(place.sole and place.label not in _PROSE for place in self.places)

    @property
    def pointed(self) -> bool:
        """It comes from a source that the user has pointed at."""
        return any(place.pointed and place.label not in _PROSE for place in self.places)

    @property
    def trusted(self) -> bool:
        """It stands in a field that is declared as one's own."""
        return any(place.label is _OWN for place in self.places)

    @property
    def known(self) -> bool:
        """It comes from somewhere good: the user, one's own books, a whole field, or the only one of its kind in what
        the user has pointed at, and nothing better is known."""
        return self.user or self.trusted or self.whole or any(_is_sole_of_pointed(place) for place in self.places)

    @property
    def readable(self) -> bool:
        """Of a link: it may be read, as it stands in what the user has pointed at, and not on a page behind a link."""
        return self.known or any(p.pointed and not p.page and p.label not in _PROSE for p in self.places)

    @property
    def echoed(self) -> bool:
        """Something was looked up by it and found, and it stands in no text: nobody has put it there."""
        return bool(self.places) and all(place.label is _ECHO and place.whole for place in self.places)

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools whose results it stands in."""
        return tuple(dict.fromkeys(place.tool for place in self.places if place.tool))


def _is_sole_of_pointed(place: Occurrence) -> bool:
    return place.pointed and place.sole and not place.rivalled and place.label not in _PROSE
