"""An index of everything that a turn has seen: built once, extended as records come, asked for each argument."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from interlock.policy.provenance.leaves import (
    TELLING,
    IndexEntry,
    LeafPlace,
    ResultSource,
    are_said,
    entries_of,
    flatten,
    is_said,
    is_telling,
    texts_of,
    values_in,
)
from interlock.policy.provenance.normal_forms import (
    LEADING,
    LONGEST_TEXT,
    NUMBERS,
    Found,
    find_values,
    form_of,
    plain,
    words_of,
)
from interlock.policy.provenance.origin import Occurrence, Origin
from interlock.policy.provenance.requests import names_by_relation
from interlock.policy.provenance.text_words import TextWords
from interlock.tools.labels import FieldLabels, Label
from interlock.tools.roles import is_measure
from interlock.values import Json, shorten

_WORD = re.compile(r"[^\W_]+")
_RUN_ON = re.compile(r"(?<=[a-z]{2})\.(?=[A-Z][a-z]+ )")
_ORDER = {label: number for number, label in enumerate(Label)}
_MOST_PLACES = 8
_SCHEME = len("https://www./")
_MOST_SAID = 60
_USER = "the user's words"
_MOST_PIECES = 12
_MOST_CARRIED = 2_000
_IN_A_ROW = 5
"""So many words one behind the other are taken from where they stand."""
_LONG_NUMBER, _LONG_WORD = 6, 6
_OF = ("of", "before", "since", "after", "dated", "by", "back")
_LINKS = ("link", "links", "url", "urls")
_MARKS = ".,;:!?()[]{}<>\"'`"
_FIELDS, _TEXTS = (Label.OWN, Label.PLAIN), (Label.FREE, Label.OUTSIDERS)
_LEAST_NAME = 3
_PROSE = (Label.MODEL, Label.ECHO)
_BY_PERSON = Label.PERSON
_BY_USER = Label.USER  # looked up once: on Python 3.11 a member of an enum costs as much as a call


class _Leaf(msgspec.Struct, frozen=True, gc=False):
    """One text or number that was seen."""

    at: LeafPlace
    form: str
    rivals: Mapping[str, int]
    """How many different values of each kind stand in its row."""


class OriginIndex:
    """What the user has said and what tools have returned, by value."""

    def __init__(self) -> None:
        self._leaves: list[_Leaf] = []
        self._whole: dict[str, list[int]] = {}
        self._values: dict[tuple[str, str], list[int]] = {}
        self._words = TextWords()
        self._vouched: set[int] = set()
        self._user = " "
        self._says_day = False
        self._fields: set[tuple[int, str]] = set()
        self._fields_taken = 0
        """Of how many leaves the fields are known; most turns never ask."""
        self._rows = 0
        self._anchors: dict[str, set[str]] = {}
        """By kind, what the user has named, and what is a field of its own in what the user has pointed at."""
        self._measures: dict[int, set[str]] = {}
        """The kinds of amounts and days that are fields of a row."""

    def add_words(self, text: str) -> None:
        """The user has said this."""
        # Who forgets a space behind a full stop still means two sentences.
        form = plain(_RUN_ON.sub(". ", text[:LONGEST_TEXT]))
        words = words_of(form)
        self._user += f"{' '.join(words)} "
        at = LeafPlace(0, "", _USER, _BY_USER, pointed=True)
        self._add(at, form, values_in(form), {})
        self._says_day = self._says_day or any(_is_wanted(form, one) for one in find_values(form) if one.kind == "date")
        for number in {NUMBERS[word] for word in words if word in NUMBERS}:
            self._add(at, number, [("number", number)], {})

    def vouch(self, record: int) -> None:
        """A person has looked at what this call has returned, and says that it is meant."""
        self._vouched.add(record)

    def add_result(
        self, record: int, tool: str, arguments: Json, value: Json, labels: FieldLabels, shown: Json = None
    ) -> None:
        """A call has returned this. The user has pointed at it if an argument stands in the user's words.

        `shown`: its arguments as people may read them.
        """
        self.take_in(self.take_apart(self.source(record, tool, arguments, labels, shown), value))

    def source(
        self, record: int, tool: str, arguments: Json, labels: FieldLabels, shown: Json = None, *, reads: bool = True
    ) -> ResultSource:
        """What is known of a result before it is looked at."""
        leaves = flatten((), arguments) if arguments else ()
        asked = [form for _path, leaf in leaves if (form := form_of(leaf))]
        steered, led, pointed, page, echo = False, False, False, False, set(asked)
        for form in asked:
            origin = self.find(form)
            steered, pointed = steered or _is_steering(form, origin), pointed or self._is_pointing(form, origin)
            for kind, value in values_in(form):
                if kind in LEADING:  # what stands in an argument is what was asked for, too
                    echo.add(value)
                    led = led or _is_steering(value, origin if value == form else self.find(value))
                if kind == "link" and reads:  # what was named to be read is not what something is to go to
                    page = True
                    self._anchors.get(kind, set()).discard(value)
        # What a text leads to was chosen by whoever wrote that: the user has not pointed at it.
        steered, pointed = steered or led, pointed and not led
        said = shorten(", ".join(texts_of(shown)), _MOST_SAID)
        page = page and not any(f" {word} " in self._user for word in _LINKS)
        return ResultSource(
            record, tool, labels, pointed, steered, self._rows + 1, frozenset(echo), said, self._user, page,
            names_by_relation(self._user),
        )  # fmt: skip

    def take_in(self, entries: Iterable[IndexEntry]) -> None:
        """From now on these are found."""
        for entry in entries:
            self._add(*entry)
            self._rows = max(self._rows, entry[0].row)

    @staticmethod
    def take_apart(source: ResultSource, value: Json) -> list[IndexEntry]:
        """What a result consists of; this changes nothing, and may be done on another thread."""
        return list(entries_of(source, value))

    def _is_pointing(self, form: str, origin: Origin) -> bool:
        """Whether an argument names a source as the user did. A day or a number selects, and vouches for nothing."""
        if not origin.places and form.isalnum():  # one word that stands nowhere
            return False
        if not is_telling(form):
            return False
        if is_said(form, self._user):
            return True
        # One of several addresses in what was pointed at was chosen by somebody else; a name is one.
        leads = any(kind in LEADING for kind, _value in values_in(form))
        return (origin.pointed and (origin.known or not leads)) or are_said(form, self._user)

    def _add(self, at: LeafPlace, form: str, values: Collection[tuple[str, str]], rivals: Mapping[str, int]) -> None:
        number = len(self._leaves)
        self._leaves.append(_Leaf(at, form, rivals))
        self._words.add(form)
        self._whole.setdefault(form, []).append(number)
        for key in values:
            self._values.setdefault(key, []).append(number)
        if not values:
            return
        said, is_field = at.label is _BY_USER, at.label in _FIELDS
        if said or (is_field and at.pointed):
            for kind, value in values if said or len(values) == 1 else ():
                if kind in LEADING:
                    self._anchors.setdefault(kind, set()).add(value)
        if is_field and at.row:
            # A day is one whatever its field is called; a number may be anything.
            measured = [kind for kind, _value in values if kind == "date" or is_measure(at.path)]
            if measured:
                self._measures.setdefault(at.row, set()).update(measured)

    def says_day(self) -> bool:
        """Whether the user has said a day, but for one that something is of."""
        return self._says_day

    def are_said(self, form: str) -> bool:
        """Whether all words of a value that name something stand in the user's words, and there are several."""
        return are_said(form, self._user)

    def has_field(self, row: int, path: str) -> bool:
        """Whether a row has a field."""
        for leaf in self._leaves[self._fields_taken :]:
            self._fields.add((leaf.at.row, leaf.at.path))
        self._fields_taken = len(self._leaves)
        return (row, path) in self._fields

    def measures(self, row: int) -> Collection[str]:
        """Of which kinds amounts and days are fields of a row."""
        return self._measures.get(row, ())

    def find(self, form: str) -> Origin:
        """Where a value stands that is compared in this form."""
        if not form:
            return Origin(nothing=True)
        found: dict[int, Occurrence] = {}
        for number in self._whole.get(form, ()):
            found[number] = self._place(number, whole=True, sole=self._leaves[number].at.alone)
        values = find_values(form)
        if values and _covers(form, values):
            rivalled = any(self._has_rival(value) for value in values)
            if rivalled:
                found = {number: msgspec.structs.replace(place, rivalled=True) for number, place in found.items()}
            everywhere = [set(self._with_value(value)) for value in values]
            for number in set.intersection(*everywhere) - found.keys():
                leaf = self._leaves[number]
                sole = all(_is_sole(leaf, value.kind) for value in values)
                whole = len(leaf.form) <= len(form) + _SCHEME and _covers(leaf.form, find_values(leaf.form))
                found[number] = self._place(number, whole=whole, sole=sole, rivalled=rivalled)
        elif values or self._may_stand(form):
            self._find_by_words(form, found)
        diverted = self._is_diverted(form, found) if found else False
        if len(found) < 2:
            return Origin(tuple(found.values()), diverted=diverted)
        places = sorted(found.values(), key=lambda place: (_ORDER[place.label], not place.whole, place.record))
        return Origin(tuple(_best(places)), diverted=diverted)

    def _is_diverted(self, form: str, found: Mapping[int, Occurrence]) -> bool:
        """Whether a value is a field only of rows that the user has passed over, and a text speaks of one of them: by
        this value, or by another that it alone has, however that is written."""
        fields = [place for place in found.values() if place.whole and place.label in _FIELDS]
        if not fields or not all(place.passed_over for place in fields):
            return False
        rows = {place.row for place in fields}
        names = {_squeeze(form)}
        for leaf in self._leaves:
            if leaf.at.row in rows and len(self._whole.get(leaf.form, ())) == 1 and leaf.at.label not in _TEXTS:
                names.add(_squeeze(leaf.form))
        names = {name for name in names if len(name) >= _LEAST_NAME}
        return any(
            name in _squeeze(leaf.form)
            for leaf in self._leaves
            if leaf.at.label is not _BY_USER and (leaf.at.label in _TEXTS or " " in leaf.form)
            for name in names
            if leaf.at.label in _TEXTS or _squeeze(leaf.form) != name
        )

    def rows_of(self, form: str) -> set[int]:
        """The rows that have a value as a field."""
        return {self._leaves[number].at.row for number in self._whole.get(form, ())}

    def _find_by_words(self, form: str, found: dict[int, Occurrence]) -> None:
        for number in self._words.find(words_of(form)):
            if number not in found and self._stands_in(form, number):
                found[number] = self._place(number, whole=False, sole=False)
        if not found:
            found |= self._compose(form)

    def _may_stand(self, form: str) -> bool:
        """Whether there is anything to look through."""
        return " " in form or not _WORD.fullmatch(form) or self._words.may_stand(form)

    def _stands_in(self, form: str, number: int) -> bool:
        """A name of one word is that name, and not one that differs from it by a sign."""
        if " " in form:
            return True
        return re.search(rf"(?<![\w@+.-]){re.escape(form)}(?![\w@-]|\.\w)", self._leaves[number].form) is not None

    def _compose(self, form: str) -> dict[int, Occurrence]:
        """A value that is put together from whole fields of one row, such as a first and a last name: as believed as
        the least of them. What leads somewhere is not put together."""
        pieces = list(self._pieces(form.split()))
        if len(pieces) < 2 or any(value.kind in LEADING for value in find_values(form)):
            return {}
        rows = set.intersection(*({self._leaves[number].at.row for number in piece} for piece in pieces)) - {0}
        found = [max(_in_row(piece, self._leaves, row), key=self._rank) for piece in pieces for row in sorted(rows)[:1]]
        least = max(found, key=self._rank, default=None)
        return {} if least is None else {least: self._place(least, whole=True, sole=False)}

    def _pieces(self, words: list[str]) -> Iterator[list[int]]:
        """The fields that a value consists of, each as long as it can be; none where a part of it is no field."""
        found, start = [], 0
        while start < len(words) <= _MOST_PIECES:
            ends = range(len(words) - (start == 0), start, -1)
            end = next((end for end in ends if " ".join(words[start:end]) in self._whole), 0)
            if not end:
                return
            found.append(self._whole[" ".join(words[start:end])])
            start = end
        yield from found

    def _rank(self, number: int) -> int:
        return _ORDER[self._leaves[number].at.label]

    def _has_rival(self, value: Found) -> bool:
        anchors = self._anchors.get(value.kind, ())
        return len(anchors) > (value.form in anchors)

    def find_carried(self, form: str, but: Collection[int]) -> Iterator[tuple[str, str]]:
        """What stands in a text and in results, and of which tools: values, words that look like a secret, and words in
        a row; without what stands in the rows `but`."""
        for shown, numbers in self._find_shared(form):
            for number in numbers:
                at = self._leaves[number].at
                if at.tool and at.row not in but:
                    yield shown, at.tool

    def _find_shared(self, form: str) -> Iterator[tuple[str, Iterable[int]]]:
        for value in find_values(form):
            if _tells(value):
                yield value.shown, self._with_value(value)
        for token in {token.strip(_MARKS) for token in form.split()[:_MOST_CARRIED]}:
            if _is_secret_like(token):
                yield token, self._words.find(words_of(token))
        words = words_of(form)[:_MOST_CARRIED]
        for start in range(len(words) - _IN_A_ROW + 1):
            several = words[start : start + _IN_A_ROW]
            yield " ".join(several), self._words.find(several)

    def _with_value(self, value: Found) -> Iterable[int]:
        kind, form = value.kind, value.form
        found = self._values.get((kind, form), [])
        if kind == "date" and len(form) > 5:  # one that is said without its year may be of any
            found = [*found, *self._values.get((kind, form[-5:]), [])]
        return found

    def _place(self, number: int, *, whole: bool, sole: bool, rivalled: bool = False) -> Occurrence:
        at = self._leaves[number].at
        label = at.label if whole or at.parts is None else at.parts
        if self._vouched and at.record in self._vouched and label not in _PROSE:
            label = _BY_PERSON
        return Occurrence(
            at.record, at.tool, at.path, label, whole, sole, at.pointed, at.asked, rivalled, at.row, at.page,
            at.passed_over, at.named,
        )  # fmt: skip


def _is_sole(leaf: _Leaf, kind: str) -> bool:
    """A page that was read by its link is one itself: another on it is not the only one."""
    return leaf.rivals.get(kind) == 1 and not (kind == "link" and leaf.at.page)


def _squeeze(form: str) -> str:
    """A value without what may be written otherwise: for what speaks against it, the least likeness is enough."""
    return "".join(words_of(form))


def _in_row(numbers: Iterable[int], leaves: Sequence[_Leaf], row: int) -> list[int]:
    return [number for number in numbers if leaves[number].at.row == row]


def _is_wanted(form: str, day: Found) -> bool:
    """Whether a day is when something is to be, and not what it is known by: "the mail of 1 March"."""
    before = words_of(form[: form.find(day.shown)])[-1:]
    return not before or before[0] not in _OF


def _is_steering(form: str, origin: Origin) -> bool:
    """Whether an argument stands only in a text, so that whoever has written that has chosen it."""
    if not origin.places:
        return False
    good = origin.user or origin.trusted or origin.whole
    is_some = is_telling(form) or len(form) >= TELLING or (len(form) > 1 and any(map(str.isdigit, form)))
    return is_some and not good


def _tells(value: Found) -> bool:
    """Whether a value is one of its own: a day or a small number stands everywhere."""
    return value.kind in LEADING or (value.kind == "number" and len(value.form) >= _LONG_NUMBER)


def _is_secret_like(token: str) -> bool:
    word = "".join(words_of(token))
    return len(word) >= _LONG_WORD and any(map(str.isdigit, word)) and any(map(str.isalpha, word))


def _best(places: list[Occurrence]) -> list[Occurrence]:
    """The first of each label, whole and pointed at or not: what rules ask for is not lost among many of one kind."""
    kinds: dict[tuple[Any, ...], Occurrence] = {}
    for place in places:
        kinds.setdefault((place.label, place.whole, place.sole, place.pointed, place.passed_over), place)
    chosen = list(kinds.values())
    return chosen + [place for place in places if place not in chosen][: max(0, _MOST_PLACES - len(chosen))]


def _covers(form: str, values: Sequence[Found]) -> bool:
    """Whether a value is nothing but what was found in it: an address, or a date with a time."""
    if len(values) == 1 and values[0].shown == form:
        return True
    rest = form
    for found in values:
        rest = rest.replace(found.shown, " ", 1)
    return not words_of(rest.replace("t", " ", 1) if len(values) > 1 else rest)
