"""What a change in the turn has made untrue: values that were read before it, of the same thing and the same field.

A read whose keys a later change has written proves nothing about now. Where keys are not known, the ids in the
arguments say which thing a change was made to, and the fields of its result which of the values read before are old.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from interlock.answers.former_values import former_paths
from interlock.answers.grounding import Source
from interlock.answers.grounding.field_names import snake_name
from interlock.answers.grounding.rows import plain_name
from interlock.answers.grounding.words import WordTable
from interlock.answers.moved_values import all_fields, find_moved, paths_of, read_change
from interlock.answers.requirements import CallSeen
from interlock.reasons import Reason
from interlock.values import Json, Status

_NO_FIELD = frozenset(
    {
        "amount",
        "dat",
        "tim",
        "not",
        "messag",
        "reason",
        "typ",
        "nam",
        "description",
        "last",
        "next",
        "new",
        "old",
        "at",
    }
)
"""Names that many fields have: that a change returns one says nothing about what was read before."""
_LOOKED = (Status.OK, Status.NO_DATA, Status.PLANNED)
_WENT_WELL = frozenset({"", "ok", "success", "done", "status", "result"})
_MOST_FIELDS, _MOST_NAMED = 200, 100
_RECORD = re.compile(r"record (\d{1,18})")
_A_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DAY_OF = re.compile(r"(?:time|date|day|at|on)$", re.I)
_APART = {"figure", "day"}
"""What a value is that cannot take the place of the other."""


def mark_stale(
    sources: Sequence[Source], calls: Sequence[CallSeen], words: WordTable, undone: Collection[int] = ()
) -> tuple[Source, ...]:
    """The sources, each with the fields that a later change has made untrue, and of which things.

    `undone` are records of changes that were taken back: what they returned is of then, and what was read after them.
    """
    changes = [call for call in calls if call.changes and call.status is Status.OK]
    if not changes:
        return tuple(sources)
    by_record = {source.id: source for source in sources}
    marked = []
    for source in sources:
        own = next((call for call in calls if f"record {call.record}" == source.id), None)
        read_at = _record_of_read(source, own)
        for change in changes:
            if read_at is not None and (read_at < change.record or change.record in undone):
                source = _mark(source, change, by_record.get(f"record {change.record}"), words)
        again = own is not None and any(
            call.tool == own.tool and call.arguments == own.arguments and call.record > change.record > own.record
            for change in changes
            for call in calls
            if call.status is Status.OK
        )
        if own is not None and own in changes:
            source = replace(source, stale_paths=source.stale_paths | former_paths(source))
        # Read again after the change: the second one says how it is now.
        was_undone = own is not None and own.record in undone
        marked.append(replace(source, stale=("*",), stale_names=()) if again or was_undone else source)
    return tuple(marked)


def _record_of_read(source: Source, own: CallSeen | None) -> int | None:
    """When a source was read: in this turn, or in an earlier one whose record was handed over."""
    if own is not None:
        return None if own.changes else own.record
    earlier = _RECORD.fullmatch(source.id)
    return None if earlier is None else int(earlier[1])


def asked_for(calls: Sequence[CallSeen]) -> list[Source]:
    """What was looked for or tried, and why it was refused or not found: to be said, not rested on."""
    found = []
    for call in calls:
        where = f"record {call.record}"
        if call.arguments and (call.changes or call.status in _LOOKED):
            found.append(Source(where, {"asked": call.arguments}, tool=call.tool, about=call.arguments, asked=True))
        if call.message and (call.reason is Reason.DENIED or call.status is Status.NO_DATA):
            why = "reason" if call.reason is Reason.DENIED else "not_found"
            found.append(Source(where, {why: call.message}, tool=call.tool, about=call.arguments))
    return found


def _mark(source: Source, change: CallSeen, made: Source | None, words: WordTable) -> Source:
    ids, asked_of = frozenset(_ids(change.arguments)), _same_thing(source.about, change.arguments)
    if not ids and not asked_of:
        return source
    value = made.value if made is not None else change.arguments
    moved = find_moved(
        source.value, source.about, read_change(change.arguments, value, frozenset(all_fields(source.value)))
    )
    changed = [(_stems(name, words), kind) for name, kind in {*_fields(change.arguments), *_fields(value)}]
    result = None if made is None else made.value
    if isinstance(result, dict) and "made" in result:  # beside what was asked for, and the keys
        result = result.get("value")
    untold = _tells_nothing([change.arguments, result], ids)
    stale = tuple(
        name
        for name, kind in dict.fromkeys(_fields(source.value))
        # A sum that is due (`amount_due`) is no new day on which it is (`due`).
        if (untold or any(_stems(name, words) & other and {kind, its} != _APART for other, its in changed))
        and not snake_name(name).endswith(("_id", "name"))
    )
    if not stale:
        return replace(source, stale_paths=source.stale_paths | moved) if moved else source
    if asked_of:  # by a number, which rows are not called by
        moved |= paths_of(source.value, frozenset(stale))
    if not ids:
        return replace(source, stale_paths=source.stale_paths | moved)
    return replace(
        source,
        stale=(*source.stale, *stale),
        stale_names=(*source.stale_names, *ids),
        stale_paths=source.stale_paths | moved,
    )


def _tells_nothing(result: Json, ids: frozenset[str]) -> bool:
    """Whether a change has nothing but its ids and that it went well: then all that was read before is in doubt."""
    waiting = [("", result)]
    while waiting:
        name, one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.items()
        elif isinstance(one, list):
            waiting += [(name, item) for item in one]
        elif not (one is None or (name in _WENT_WELL and one in (True, "ok")) or plain_name(str(one)) in ids):
            return False
    return True


def _stems(name: str, words: WordTable) -> frozenset[str]:
    return frozenset(word for word in words.in_name(name) if not word.startswith("=")) - _NO_FIELD


def _ids(arguments: Json) -> Iterator[str]:
    """The texts among the arguments, and numbers that are ids: they name what is changed."""
    if not isinstance(arguments, dict):
        return
    for name, value in arguments.items():
        for one in value[:_MOST_NAMED] if isinstance(value, list) else (value,):
            is_id = isinstance(one, str) or (type(one) is int and "id" in name.lower())
            if is_id and 0 < len(str(one)) <= 80:
                yield plain_name(str(one))


def _same_thing(about: Json, arguments: Json) -> bool:
    """Whether a read was asked for by a number that a change was asked for by: the same room 17."""
    if not isinstance(about, dict) or not isinstance(arguments, dict):
        return False
    return any(type(value) is int and arguments.get(name) == value for name, value in about.items())


def _fields(value: Json) -> Iterator[tuple[str, str]]:
    """The names of the fields in a result that have a value of their own, and whether that is a figure or a day."""
    waiting, left = [value], _MOST_FIELDS
    while waiting and left:
        one = waiting.pop()
        if isinstance(one, dict):
            for name, inner in one.items():
                if isinstance(inner, dict | list):
                    waiting.append(inner)
                else:
                    left -= 1
                    yield str(name), _kind(str(name), inner)
        elif isinstance(one, list):
            waiting += one[:50]


def _kind(name: str, value: Json) -> str:
    """A figure or a day; not the day of a figure (`reading_time`), which changes with it."""
    if isinstance(value, str):
        return "day" if _A_DAY.match(value) and not _DAY_OF.search(name) else ""
    return "figure" if isinstance(value, int | float) and not isinstance(value, bool) else ""
