"""What a result consists of: its leaves, the rows they stand in, and what is known of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from typing import Any

import msgspec

from interlock.policy.provenance.chosen_rows import fields_of, find_chosen
from interlock.policy.provenance.normal_forms import LEADING, find_values, form_of, number_form, words_of
from interlock.policy.provenance.request_tables import read_requests
from interlock.tools.labels import FieldLabels, Label
from interlock.tools.roles import is_numbered
from interlock.values import Json

TELLING = 4
"""A shorter field points at nothing."""
_TELLING_NUMBER = 3
_OWN, _PLAIN, _FREE, _OUTSIDERS, _ECHO = Label.OWN, Label.PLAIN, Label.FREE, Label.OUTSIDERS, Label.ECHO
_NO_VALUES: frozenset[tuple[str, str]] = frozenset()
_LONG_KEY, _SHORT_KEY = 14, 200
_MOST_LEAVES = 100_000
"""Of one result; what comes after them is from nowhere."""


class LeafPlace(msgspec.Struct, frozen=True, gc=False):
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
    page: bool = False
    """It stands on a page that was read by its link, and the user has asked for no link on it."""
    passed_over: int = 0
    """The user has named another row of its result, and not this one (1), and that has such a field itself (2)."""
    named: bool = False
    """The user has named its row."""
    parts: Label | None = None
    """The label of what stands in a longer text there, where it is another."""


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
    page: bool = False
    """It was read by a link, and the user has asked for no link on it."""
    by_relation: bool = False
    """The user says which is meant by what it is to another, so that those that are named are not all."""
    is_foreign: Callable[[str], bool] | None = None
    """Of a memory: whether it was told a value that came from nowhere good."""

    def recalls(self, form: str, values: Iterable[tuple[str, str]]) -> bool:
        """Whether something that came from nowhere good stands there."""
        is_foreign = self.is_foreign
        return is_foreign is not None and (is_foreign(form) or any(is_foreign(value) for _kind, value in values))


IndexEntry = tuple[LeafPlace, str, Collection[tuple[str, str]], Mapping[str, int]]


def entries_of(source: ResultSource, value: Json) -> Iterator[IndexEntry]:
    """What an index takes in of a result."""
    is_flat = isinstance(value, dict) and not any(isinstance(item, dict | list | tuple) for item in value.values())
    is_flat = is_flat and not any(map(_is_leading_key, value))
    return _entries_of_object(source, value) if is_flat else _entries_of_rows(source, value)


def _entries_of_object(source: ResultSource, value: dict[str, Json]) -> Iterator[IndexEntry]:
    """Those of one object: most results are one, and nothing in it has another row beside it."""
    leaves = [(str(key), form) for key, item in value.items() if (form := form_of(item))][:_MOST_LEAVES]
    found = [values_in(form) for _key, form in leaves]
    rivals = _count_kinds(found)
    for (key, form), values in zip(leaves, found, strict=True):
        label = _ECHO if form in source.echo else source.labels.of((key,))
        if label is _PLAIN and source.steered:
            label = _FREE
        foreign = source.is_foreign is not None and source.recalls(form, values)
        at = LeafPlace(
            source.record, source.tool, key, _OUTSIDERS if foreign else label, source.pointed and not foreign,
            source.said, source.first_row, not foreign, source.page, 0, False,
            source.labels.of_parts((key,)) if label is _OWN else None,
        )  # fmt: skip
        yield at, form, values, {} if foreign else rivals


def _entries_of_rows(source: ResultSource, value: Json) -> Iterator[IndexEntry]:
    labels: dict[tuple[str, ...], Label] = {}
    rows = list(_rows(source, value))
    several, is_text = len(rows) > 1, _is_text(value)
    fields = Counter(path for row in rows for path in {place for place, _form in row.leaves}) if several else {}
    kinds = _count_kinds(key for row in rows for key in row.values) if several else {}
    alike = _rows_by_name(rows) if several else {}
    passed, by_title = _passed_over(rows, source) if several and not source.by_relation else ([], False)
    for number, row in enumerate(rows, source.first_row):
        # A row that the user has named has its rivals in itself, any other in all that was found.
        # What names several rows names none of them: they are each other's rivals.
        namesakes = min((alike[name] for name in row.names), key=len) if several and row.named else []
        rivals = kinds if several and not row.named else row.rivals
        rivals = _count_kinds(key for one in namesakes for key in one.values) if len(namesakes) > 1 else rivals
        is_one = not several or (row.named and len(namesakes) < 2)
        pointed, over = source.pointed or row.named, passed[number - source.first_row] if passed else None
        for (place, form), found_there in zip(row.leaves, row.values, strict=True):
            label = labels.get(place) or labels.setdefault(place, source.labels.of(place))
            if label is _PLAIN and (source.steered or (is_text and not place)):
                label = _FREE
            if form in source.echo:
                label = _ECHO
            foreign = source.is_foreign is not None and source.recalls(form, found_there)
            at = LeafPlace(
                source.record,
                source.tool,
                _path_text(place),
                _OUTSIDERS if foreign else label,
                pointed and not foreign,
                source.said,
                number,
                (is_one or fields[place] == 1) and not foreign,
                source.page,
                0 if over is None or _is_common(form, found_there, by_title) else 2 if place in over else 1,
                row.named,
                source.labels.of_parts(place) if label is _OWN else None,
            )
            yield at, form, found_there, {} if foreign else rivals
    for path, total in _sums(value):
        at = LeafPlace(
            source.record, source.tool, f"the sum of {_path_text(path)}", source.labels.of(path), source.pointed
        )
        yield at, total, values_in(total), {}


class _Row(msgspec.Struct, frozen=True, gc=False):
    """An object in a result, without those inside it: its leaves, and the values of a kind in each."""

    path: tuple[str, ...]
    leaves: list[tuple[tuple[str, ...], str]]
    values: list[frozenset[tuple[str, str]]]
    rivals: Mapping[str, int]
    names: tuple[tuple[tuple[str, ...], str], ...]
    """Its fields by which the user has named it."""
    titles: tuple[tuple[tuple[str, ...], str], ...]
    """What the user has said of it that names nothing to be believed: free text, and numbers."""

    @property
    def named(self) -> bool:
        """The user has named it."""
        return bool(self.names)


def _passed_over(rows: list[_Row], source: ResultSource) -> tuple[list[frozenset[tuple[str, ...]] | None], bool]:
    """For each row that the user has passed over by naming others, the fields that those have; whether by titles."""
    said = [{**dict(row.titles), **dict(row.names)} for row in rows]
    others = {at for fields in said for at in fields if source.labels.of(at) in (_FREE, _OUTSIDERS)}
    chosen = find_chosen(rows, [{at: form for at, form in fields.items() if at not in others} for fields in said])
    by_title = not any(chosen)
    if by_title:  # a title says which row is meant where nothing better does
        chosen = find_chosen(rows, said)
    meant: dict[tuple[str, ...], list[_Row]] = {}
    for row, is_meant in zip(rows, chosen, strict=True):
        if is_meant:
            meant.setdefault(row.path, []).append(row)
    fields = {path: fields_of(several) for path, several in meant.items()}
    passed = [None if is_meant else fields.get(row.path) for row, is_meant in zip(rows, chosen, strict=True)]
    return passed, by_title


def _rows_by_name(rows: list[_Row]) -> dict[tuple[tuple[str, ...], str], list[_Row]]:
    found: dict[tuple[tuple[str, ...], str], list[_Row]] = {}
    for row in rows:
        for name in row.names:
            found.setdefault(name, []).append(row)
    return found


def _rows(source: ResultSource, value: Json) -> Iterator[_Row]:
    left = _MOST_LEAVES
    for number, (path, row) in enumerate(_objects((), value)):
        is_all = number == 0
        leaves = [(place, form) for place, leaf in _own_leaves(path, row) if (form := form_of(leaf))][:left]
        left -= len(leaves)
        if leaves:
            said = [] if is_all else [leaf for leaf in leaves if _is_said_of(source, *leaf)]
            names = tuple(leaf for leaf in said if _is_naming(source, *leaf))
            values = [values_in(form) for _place, form in leaves]
            rivals = _count_kinds(values)
            yield _Row(path, leaves, values, rivals, names, tuple(leaf for leaf in said if leaf not in names))


def _is_said_of(source: ResultSource, place: tuple[str, ...], form: str) -> bool:
    """Whether the user has said what stands in a field: words that tell something, or the number of a row."""
    if not is_telling(form):
        return form.isdigit() and _is_own(form) and is_numbered(_path_text(place)) and is_said(form, source.user)
    return is_said(form, source.user)


def _is_naming(source: ResultSource, place: tuple[str, ...], form: str) -> bool:
    """Whether a field that was said names its row: what anybody may write freely names nothing, nor does a number."""
    return is_telling(form) and source.labels.of(place) is not _FREE


def _is_own(form: str) -> bool:
    """Whether a value is not found in texts by chance, as a small number is."""
    return len(form) >= _TELLING_NUMBER or not form.isdigit()


def _is_common(form: str, values: Collection[tuple[str, str]], by_title: bool) -> bool:
    """Whether a value may stand in several rows: a small number, and the people of mails with a title."""
    return not _is_own(form) or (by_title and any(kind in LEADING for kind, _value in values))


def _is_text(value: Json) -> bool:
    """Whether a result is a text, whole or line by line: names in a list are none."""
    if isinstance(value, list | tuple):
        texts = [item for item in value if isinstance(item, str)]
        return len(texts) == 1 or any(" " in text.strip() for text in texts)
    return isinstance(value, str)


def is_telling(form: str) -> bool:
    """Whether a value can name anything: not a number, nor words that stand in every request."""
    words = [word for word in words_of(form) if word not in _common_words()]
    return len("".join(words)) >= TELLING - 1 and any(map(str.isalpha, "".join(words)))


@cache
def _common_words() -> frozenset[str]:
    return frozenset(word for words in read_requests()["asks"].values() for word in words) | frozenset(
        read_requests()["common"]["words"]
    )


def _count_kinds(values: Iterable[frozenset[tuple[str, str]]]) -> dict[str, int]:
    """How many different values there are of each kind."""
    counts: dict[str, int] = {}
    for kind, _form in set().union(*filter(None, values)):
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def is_said(form: str, user: str) -> bool:
    """Whether a value stands in the user's words."""
    words = " ".join(words_of(form))
    return bool(words) and f" {words} " in user


def are_said(form: str, user: str) -> bool:
    """Whether all words of a value that name something stand in the user's words, and there are several."""
    words = [word for word in words_of(form) if word not in _common_words()]
    return len(words) > 1 and all(f" {word} " in user for word in words)


def values_in(form: str) -> frozenset[tuple[str, str]]:
    """The values of a kind in a text."""
    values = find_values(form)
    return frozenset([(found.kind, found.form) for found in values]) if values else _NO_VALUES


def flatten(path: tuple[str, ...], value: Json, *, inner: bool = True) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The leaves of a value, with their paths; `inner=False`: without those of objects inside."""
    if isinstance(value, dict):
        for key, item in value.items():
            if inner or not isinstance(item, dict):
                yield from flatten((*path, str(key)), item, inner=inner)
    elif isinstance(value, list | tuple):
        for item in value:
            if inner or not isinstance(item, dict):
                yield from flatten(path, item, inner=inner)
    else:
        yield path, value


def _own_leaves(path: tuple[str, ...], row: Json) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The leaves of a row, without those of objects inside; most are its fields. A key that is an address, an account
    or a link is one, too: `{"shared_with": {"ann@x.example": "r"}}`."""
    if not isinstance(row, dict):
        yield from flatten(path, row, inner=False)
        return
    for key, item in row.items():
        if _is_leading_key(key):
            yield path, key
        if isinstance(item, list | tuple):
            yield from flatten((*path, str(key)), item, inner=False)
        elif not isinstance(item, dict):
            yield (*path, str(key)), item


def _is_leading_key(key: object) -> bool:
    text = key if isinstance(key, str) else str(key)
    return _leads(text) if len(text) <= _SHORT_KEY else _find_leading(text)


@lru_cache(maxsize=4_096)
def _leads(text: str) -> bool:
    """Most keys are names of fields, the same in every result."""
    return _find_leading(text)


def _find_leading(text: str) -> bool:
    may_lead = "@" in text or "." in text or len(text) >= _LONG_KEY
    return may_lead and any(found.kind in LEADING for found in find_values(form_of(text)))


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
    """The sum of each column of numbers in a result; where there is no list, there is no column."""
    if not _holds_list(value):
        return
    columns: dict[tuple[str, ...], list[Decimal]] = {}
    for path, leaf in flatten((), value):
        if isinstance(leaf, int | float | Decimal) and not isinstance(leaf, bool):
            try:
                columns.setdefault(path, []).append(Decimal(str(leaf)))
            except InvalidOperation:
                continue
    for path, numbers in columns.items():
        if len(numbers) > 1 and all(number.is_finite() for number in numbers):
            yield path, number_form(sum(numbers))


def _holds_list(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_list, value.values()))
    return isinstance(value, list | tuple)


def texts_of(arguments: Json) -> list[str]:
    """The texts among arguments."""
    return [str(leaf) for _path, leaf in flatten((), arguments) if isinstance(leaf, str) and leaf]


def _path_text(path: tuple[str, ...]) -> str:
    return ".".join(path)
