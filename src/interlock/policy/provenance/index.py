"""An index of everything that a turn has seen: built once, extended as records come, asked for each argument."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from interlock.policy.provenance.normal_forms import (
    LEADING,
    LONGEST_TEXT,
    NUMBERS,
    Found,
    find_values,
    form_of,
    number_form,
    plain,
    words_of,
)
from interlock.policy.provenance.origin import Occurrence, Origin
from interlock.tools.labels import FieldLabels, Label
from interlock.tools.roles import is_measure
from interlock.values import Json, shorten

_ORDER = {label: number for number, label in enumerate(Label)}
_MOST_PLACES = 8
_MOST_LEAVES = 100_000
"""Of one result; what comes after them is from nowhere."""
_MOST_TRIED = 2_000
"""So many places of a word are tried; a value that is made of words which stand everywhere is found by then."""
_MOST_SAID = 60
_TELLING = 4
"""A shorter field points at nothing."""
_USER = "the user's words"
_MOST_CARRIED = 2_000
_IN_A_ROW = 5
"""So many words one behind the other are taken from where they stand."""
_LONG_NUMBER, _LONG_WORD = 6, 8
_FIELDS = (Label.OWN, Label.PLAIN)


class _At(msgspec.Struct, frozen=True, gc=False):
    """Where something was seen."""

    record: int
    tool: str
    path: str
    label: Label
    pointed: bool
    asked: str = ""
    row: int = 0
    alone: bool = True
    """No other row of its result has this field, or the user has named its row."""


class _Leaf(msgspec.Struct, frozen=True, gc=False):
    """One text or number that was seen."""

    at: _At
    form: str
    rivals: Mapping[str, int]
    """How many different values of each kind stand in its row."""


class ResultSource(msgspec.Struct, frozen=True, gc=False):
    """A call whose result is taken apart: what is known of it, and what the user had said by then."""

    record: int
    tool: str
    labels: FieldLabels
    pointed: bool
    steered: bool
    """It was asked for by what stands in a text alone: whoever has written that has chosen what was found."""
    first_row: int
    echo: frozenset[str]
    """The forms of its arguments: what says what it was told is no evidence for what a model has chosen."""
    said: str
    user: str


IndexEntry = tuple[_At, str, Collection[tuple[str, str]], Mapping[str, int]]


class OriginIndex:
    """What the user has said and what tools have returned, by value."""

    def __init__(self) -> None:
        self._leaves: list[_Leaf] = []
        self._whole: dict[str, list[int]] = {}
        self._values: dict[tuple[str, str], list[int]] = {}
        self._stream: list[str] = []
        self._starts: list[int] = []
        self._places: dict[str, array[int]] = {}
        self._user = " "
        self._rows = 0
        self._anchors: dict[str, set[str]] = {}
        """By kind, what the user has named, and what is a field of its own in what the user has pointed at."""
        self._measures: dict[int, set[str]] = {}
        """The kinds of amounts and days that are fields of a row."""

    def add_words(self, text: str) -> None:
        """The user has said this."""
        form = plain(text[:LONGEST_TEXT])
        words = words_of(form)
        self._user += f"{' '.join(words)} "
        at = _At(0, "", _USER, Label.USER, pointed=True)
        self._add(at, form, _values_in(form), {})
        for number in {NUMBERS[word] for word in words if word in NUMBERS}:
            self._add(at, number, [("number", number)], {})

    def add_result(
        self, record: int, tool: str, arguments: Json, value: Json, labels: FieldLabels, shown: Json = None
    ) -> None:
        """A call has returned this. The user has pointed at it if an argument stands in the user's words.

        `shown`: its arguments as people may read them.
        """
        self.take_in(self.take_apart(self.source(record, tool, arguments, labels, shown), value))

    def source(self, record: int, tool: str, arguments: Json, labels: FieldLabels, shown: Json = None) -> ResultSource:
        """What is known of a result before it is looked at."""
        asked = [form for _path, leaf in _flatten((), arguments) if (form := form_of(leaf))]
        steered, pointed = False, False
        for form in asked:
            origin = self.find(form)
            steered, pointed = steered or _is_steering(form, origin), pointed or self._is_pointing(form, origin)
            for kind, value in _values_in(form):  # what was named to be read is not what something is to go to
                self._anchors.get(kind, set()).discard(value)
        said = shorten(", ".join(_texts(shown)), _MOST_SAID)
        return ResultSource(record, tool, labels, pointed, steered, self._rows + 1, frozenset(asked), said, self._user)

    def take_in(self, entries: Iterable[IndexEntry]) -> None:
        """From now on these are found."""
        for entry in entries:
            self._add(*entry)
            self._rows = max(self._rows, entry[0].row)

    @staticmethod
    def take_apart(source: ResultSource, value: Json) -> list[IndexEntry]:
        """What a result consists of; this changes nothing, and may be done on another thread."""
        return list(_entries(source, value))

    def _is_pointing(self, form: str, origin: Origin) -> bool:
        """Whether an argument names a source as the user did. A day or a number selects, and vouches for nothing."""
        if len(form) < 2 or not any(map(str.isalpha, form)):
            return False
        if _is_said(form, self._user):
            return True
        return origin.pointed

    def _add(self, at: _At, form: str, values: Collection[tuple[str, str]], rivals: Mapping[str, int]) -> None:
        number = len(self._leaves)
        self._leaves.append(_Leaf(at, form, rivals))
        self._whole.setdefault(form, []).append(number)
        for key in values:
            self._values.setdefault(key, []).append(number)
        if at.label is Label.USER or (at.label in _FIELDS and at.pointed):
            for kind, value in values if at.label is Label.USER or len(values) == 1 else ():
                if kind in LEADING:
                    self._anchors.setdefault(kind, set()).add(value)
        if at.label in _FIELDS and at.row and is_measure(at.path):
            self._measures.setdefault(at.row, set()).update(kind for kind, _value in values)

    def measures(self, row: int) -> Collection[str]:
        """Of which kinds amounts and days are fields of a row."""
        return self._measures.get(row, ())

    def _index_words(self) -> None:
        """Take the words in of what was added since: most values are found without."""
        for leaf in self._leaves[len(self._starts) :]:
            self._starts.append(len(self._stream))
            for place, word in enumerate(words_of(leaf.form), len(self._stream)):
                self._places.setdefault(word, array("Q")).append(place)
                self._stream.append(word)

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
                sole = all(self._leaves[number].rivals.get(value.kind) == 1 for value in values)
                found[number] = self._place(number, whole=False, sole=sole, rivalled=rivalled)
        else:
            for number in self._with_words(words_of(form)):
                if number not in found:
                    found[number] = self._place(number, whole=False, sole=False)
        places = sorted(found.values(), key=lambda place: (_ORDER[place.label], not place.whole, place.record))
        return Origin(tuple(_best(places)))

    def _has_rival(self, value: Found) -> bool:
        anchors = self._anchors.get(value.kind, ())
        return len(anchors) > (value.form in anchors)

    def tools_in(self, form: str) -> set[str]:
        """The tools of whose results something stands in a text: what tells them apart, or words in a row."""
        words = words_of(form)[:_MOST_CARRIED]
        leaves = [number for value in find_values(form) if _tells(value) for number in self._with_value(value)]
        leaves += [number for word in set(words) if _is_secret_like(word) for number in self._with_words([word])]
        for start in range(max(1, len(words) - _IN_A_ROW + 1)):
            leaves += self._with_words(words[start : start + _IN_A_ROW]) if len(words) >= _IN_A_ROW else ()
        return {self._leaves[number].at.tool for number in leaves} - {""}

    def _with_value(self, value: Found) -> Iterable[int]:
        kind, form = value.kind, value.form
        found = self._values.get((kind, form), [])
        if kind == "date" and len(form) > 5:  # one that is said without its year may be of any
            found = [*found, *self._values.get((kind, form[-5:]), [])]
        return found

    def _with_words(self, words: list[str]) -> Iterator[int]:
        """The leaves in which these words stand one behind the other."""
        self._index_words()
        if not words or any(word not in self._places for word in words):
            return
        rarest = min(range(len(words)), key=lambda at: len(self._places[words[at]]))
        last = -1
        for place in self._places[words[rarest]][:_MOST_TRIED]:
            start = place - rarest
            if start < 0 or self._stream[start : start + len(words)] != words:
                continue
            number = bisect_right(self._starts, start) - 1
            end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._stream)
            if number != last and start + len(words) <= end:
                last = number
                yield number

    def _place(self, number: int, *, whole: bool, sole: bool, rivalled: bool = False) -> Occurrence:
        at = self._leaves[number].at
        return Occurrence(at.record, at.tool, at.path, at.label, whole, sole, at.pointed, at.asked, rivalled, at.row)


def _entries(source: ResultSource, value: Json) -> Iterator[IndexEntry]:
    labels: dict[tuple[str, ...], Label] = {}
    rows = list(_rows(source, value))
    fields = Counter(path for row in rows for path in {place for place, _form in row.leaves})
    kinds = Counter(kind for kind, _form in set[tuple[str, str]]().union(*(key for row in rows for key in row.values)))
    for number, row in enumerate(rows, source.first_row):
        # A row that the user has named has its rivals in itself, any other in all that was found.
        rivals = row.rivals if row.named or len(rows) == 1 else kinds
        for (place, form), found_there in zip(row.leaves, row.values, strict=True):
            if form in source.echo:
                continue
            label = labels.get(place) or labels.setdefault(place, source.labels.of(place))
            yield (
                _At(
                    source.record,
                    source.tool,
                    _path_text(place),
                    Label.FREE if source.steered and label is Label.PLAIN else label,
                    source.pointed or row.named,
                    source.said,
                    number,
                    row.named or fields[place] == 1,
                ),
                form,
                found_there,
                rivals,
            )
    for path, total in _sums(value):
        at = _At(source.record, source.tool, f"the sum of {_path_text(path)}", source.labels.of(path), source.pointed)
        yield at, total, _values_in(total), {}


class _Row(msgspec.Struct, frozen=True, gc=False):
    """An object in a result, without those inside it: its leaves, and the values of a kind in each."""

    leaves: list[tuple[tuple[str, ...], str]]
    values: list[set[tuple[str, str]]]
    rivals: Mapping[str, int]
    named: bool
    """The user has named it."""


def _rows(source: ResultSource, value: Json) -> Iterator[_Row]:
    left = _MOST_LEAVES
    for path, row in _objects((), value):
        leaves = [(place, form) for place, leaf in _flatten(path, row, inner=False) if (form := form_of(leaf))][:left]
        left -= len(leaves)
        if leaves:
            values = [_values_in(form) for _place, form in leaves]
            rivals = Counter(kind for kind, _form in set[tuple[str, str]]().union(*values))
            named = len(path) > 0 and any(
                len(form) >= _TELLING and _is_said(form, source.user) for _place, form in leaves
            )
            yield _Row(leaves, values, rivals, named)


def _is_steering(form: str, origin: Origin) -> bool:
    """Whether an argument stands only in a text, so that whoever has written that has chosen it."""
    good = origin.user or origin.trusted or origin.whole
    return len(form) >= _TELLING and bool(origin.places) and not good


def _tells(value: Found) -> bool:
    """Whether a value is one of its own: a day or a small number stands everywhere."""
    return value.kind in LEADING or (value.kind == "number" and len(value.form) >= _LONG_NUMBER)


def _is_secret_like(word: str) -> bool:
    return len(word) >= _LONG_WORD and any(map(str.isdigit, word)) and any(map(str.isalpha, word))


def _is_said(form: str, user: str) -> bool:
    words = " ".join(words_of(form))
    return bool(words) and f" {words} " in user


def _best(places: list[Occurrence]) -> list[Occurrence]:
    """The first of each label, whole and pointed at or not: what rules ask for is not lost among many of one kind."""
    kinds: dict[tuple[Any, ...], Occurrence] = {}
    for place in places:
        kinds.setdefault((place.label, place.whole, place.sole, place.pointed), place)
    chosen = list(kinds.values())
    return chosen + [place for place in places if place not in chosen][: max(0, _MOST_PLACES - len(chosen))]


def _values_in(form: str) -> set[tuple[str, str]]:
    return {(found.kind, found.form) for found in find_values(form)}


def _covers(form: str, values: Sequence[Found]) -> bool:
    """Whether a value is nothing but what was found in it: an address, or a date with a time."""
    rest = form
    for found in values:
        rest = rest.replace(found.shown, " ", 1)
    return not words_of(rest.replace("t", " ", 1) if len(values) > 1 else rest)


def _flatten(path: tuple[str, ...], value: Json, *, inner: bool = True) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The leaves of a value, with their paths; `inner=False`: without those of objects inside."""
    if isinstance(value, dict):
        for key, item in value.items():
            if inner or not isinstance(item, dict):
                yield from _flatten((*path, str(key)), item, inner=inner)
    elif isinstance(value, list | tuple):
        for item in value:
            if inner or not isinstance(item, dict):
                yield from _flatten(path, item, inner=inner)
    else:
        yield path, value


def _objects(path: tuple[str, ...], value: Json) -> Iterator[tuple[tuple[str, ...], Json]]:
    """The value itself, and every object in it."""
    yield path, value
    items: Iterable[tuple[tuple[str, ...], Json]] = ()
    if isinstance(value, dict):
        items = [((*path, str(key)), item) for key, item in value.items()]
    elif isinstance(value, list | tuple):
        items = [(path, item) for item in value]
    for place, item in items:
        if isinstance(item, dict):
            yield from _objects(place, item)
        elif isinstance(item, list | tuple):
            for found, inner in _objects(place, item):
                if isinstance(inner, dict):
                    yield found, inner


def _sums(value: Json) -> Iterator[tuple[tuple[str, ...], str]]:
    """The sum of each column of numbers in a result."""
    columns: dict[tuple[str, ...], list[Decimal]] = {}
    for path, leaf in _flatten((), value):
        if isinstance(leaf, int | float | Decimal) and not isinstance(leaf, bool):
            try:
                columns.setdefault(path, []).append(Decimal(str(leaf)))
            except InvalidOperation:
                continue
    for path, numbers in columns.items():
        if len(numbers) > 1 and all(number.is_finite() for number in numbers):
            yield path, number_form(sum(numbers))


def _texts(arguments: Json) -> list[str]:
    return [str(leaf) for _path, leaf in _flatten((), arguments) if isinstance(leaf, str) and leaf]


def _path_text(path: tuple[str, ...]) -> str:
    return ".".join(path)
