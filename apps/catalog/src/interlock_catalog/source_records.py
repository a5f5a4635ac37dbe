"""Records of free-exercise-db as they are read: which can be imported, which cannot, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from interlock.errors import ConfigError
from interlock_catalog.contracts import Json
from interlock_catalog.counts import format_count
from interlock_catalog.text_files import HALF_CHARACTER, find_half_character, read_utf8
from interlock_catalog.vocabulary import slug

MAX_ID_CHARS = 128
_MAX_NAME_CHARS = 120
_EXPECTED = "an import reads a list of objects in JSON, and no CSV or other format"
_Text = Annotated[str, msgspec.Meta(max_length=20_000)]


class SourceRecord(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One exercise of free-exercise-db: the fields that the catalog has a place for."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=_MAX_NAME_CHARS)]
    id: _Text | None = None
    force: _Text | None = None
    level: _Text | None = None
    mechanic: _Text | None = None
    equipment: _Text | None = None
    category: _Text | None = None
    primary_muscles: list[_Text] = []
    secondary_muscles: list[_Text] = []
    instructions: list[_Text] = []

    @property
    def exercise_id(self) -> str:
        """The id that its exercise gets; '' if nothing of it can be part of one."""
        return slug(self.id or self.name)


_FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(SourceRecord))


class RejectedRecord(msgspec.Struct, frozen=True):
    """A record that cannot be imported."""

    place: int
    """In the file, from 1."""
    name: str
    reason: str

    @property
    def sentence(self) -> str:
        return f"record {self.place}{f' ({self.name})' if self.name else ''}: {self.reason}"


class ReadRecords(msgspec.Struct, frozen=True):
    """What a file holds: records that can be imported, those that cannot, and fields that would be dropped."""

    records: tuple[SourceRecord, ...]
    rejected: tuple[RejectedRecord, ...] = ()
    dropped: dict[str, int] = {}
    """Fields that the catalog has no place for, and in how many records each is."""

    @property
    def complaints(self) -> list[str]:
        """What an import would leave behind, a sentence each."""
        fields = [
            f"field {name!r} of {format_count(count, 'record')}: the catalog has no place for it"
            for name, count in sorted(self.dropped.items())
        ]
        return [*(item.sentence for item in self.rejected), *fields]


class _Repeating(dict[str, Any]):
    """An object that has a key twice, of which JSON readers keep the last and drop the others without a word."""


def read_source_file(file: Path) -> ReadRecords:
    """The records of a file; ConfigError if it is not even a list in JSON."""
    try:
        raw = json.loads(read_utf8(file), object_pairs_hook=_build_object)
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such file") from None
    except (ValueError, OSError) as error:
        raise ConfigError(f"{file}: {_EXPECTED}, and this is not JSON: {error}") from None
    except RecursionError:
        raise ConfigError(f"{file}: {_EXPECTED}, and this is nested too deeply") from None
    if not isinstance(raw, list):
        raise ConfigError(f"{file}: {_EXPECTED}; this is no free-exercise-db: it holds no list of exercises")
    if not raw:
        raise ConfigError(f"{file}: it holds no exercise; an empty catalog is made with --empty")
    return read_records(raw)


def read_records(raw: list[Json]) -> ReadRecords:
    """Each record by itself: one that cannot be read does not hide what is wrong with the others."""
    records, rejected, dropped = dict[str, SourceRecord](), list[RejectedRecord](), Counter[str]()
    places: dict[str, int] = {}
    for place, item in enumerate(raw, 1):
        found = _read(item)
        if isinstance(found, str):
            rejected.append(RejectedRecord(place, _name_of(item), found))
            continue
        identity = found.exercise_id
        if identity in records:
            first = f"record {places[identity]} ({records[identity].name})"
            rejected.append(RejectedRecord(place, found.name, f"its id would be {identity!r}, which {first} has"))
            continue
        records[identity], places[identity] = found, place
        dropped.update(_dropped_fields(item))
    return ReadRecords(tuple(records.values()), tuple(rejected), dict(dropped))


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Repeating(made)


def _read(item: Json) -> SourceRecord | str:
    """The record, or why it cannot be imported."""
    if not isinstance(item, dict):
        return f"it is {_kind(item)}, not an object"
    if isinstance(item, _Repeating):
        return "it has a field twice, and only one of the two can be kept"
    known = {name: value for name, value in item.items() if name in _FIELDS}
    try:
        # Strict: a number in the place of a text is a mistake of the source, and not for us to convert.
        record = msgspec.convert(known, SourceRecord)
    except msgspec.ValidationError as error:
        fields = ", ".join(map(_show_text, item)) or "none"
        return f"{error}; the fields of the record are {fields[:200]}"
    for text in _texts(record):
        half = find_half_character(text)
        if half is not None:
            return f"{_show_text(text)} holds {half}, which is {HALF_CHARACTER}"
        if not text.isprintable() and not all(sign.isprintable() or sign in "\n\r\t" for sign in text):
            return f"{_show_text(text)} has signs in it that cannot be printed or stored; take them out"
    return _identity_error(record) or record


def _identity_error(record: SourceRecord) -> str | None:
    """All that is wrong with what it is known by: the next try must not be refused for what was wrong in the first."""
    identity, found = record.exercise_id, list[str]()
    if not identity:
        what = "id" if record.id else "name, of which its id would be made,"
        found.append(f"its {what} has no Latin letter or digit, of which ids are made; give it an id that has")
    if len(identity) > MAX_ID_CHARS:
        found.append(f"its id has {len(identity)} characters; {MAX_ID_CHARS} are the most")
    if not slug(record.name):
        found.append(
            "its name has no Latin letter or digit, of which the slug that it is found by is made; write the name in"
            " Latin letters"
        )
    return "; ".join(found) or None


def _dropped_fields(item: dict[str, Json]) -> Iterator[str]:
    # An empty field is dropped without loss.
    return (_show_text(name) for name, value in item.items() if name not in _FIELDS and value not in (None, "", [], {}))


def _texts(record: SourceRecord) -> Iterator[str]:
    for value in msgspec.structs.astuple(record):
        yield from (value if isinstance(value, list) else [value] if isinstance(value, str) else ())


def _name_of(item: Json) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return _show_text(name) if isinstance(name, str) else ""


def _show_text(text: str) -> str:
    """A text for a message: short, and of signs that can be printed."""
    return text[:60].encode("ascii", "backslashreplace").decode() if not text.isprintable() else text[:60]


def _kind(item: Json) -> str:
    if item is None:
        return "null"
    return {bool: "a truth value", str: "a text", list: "a list"}.get(type(item), "a number")
