"""What was read in the results of a turn, kept for its next draft: each result is read once.

A result that a later change has made untrue is not read again either: its facts are the same, but for the mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlock.answers.grounding.evidence import Evidence, Fact, KnownFacts, Source
from interlock.answers.grounding.meaning import NO_MEANING, ToolMeaning, meaning_of
from interlock.answers.grounding.reading import SourceReading, read_source
from interlock.answers.grounding.value_path import ValuePath
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.tools import Tool
from interlock.values import Json, Value


class _Kept(Value, frozen=True):
    """One source that was read, and how."""

    source: Source
    """As it is without the marks of what is untrue."""
    vocabulary: Vocabulary
    meaning: ToolMeaning
    limit: int
    reading: SourceReading

    def is_of(self, source: Source, vocabulary: Vocabulary, meaning: ToolMeaning, left: int) -> bool:
        """Whether reading the source now would give the same."""
        enough = self.limit == left if self.reading.cut else self.reading.taken <= left
        return enough and self.vocabulary is vocabulary and _is_same(self.source, source) and self.meaning == meaning


_Readings = dict[tuple[str, bool, bool], list[_Kept]]


class _Look(Value, frozen=True):
    """What was read at one time, and from what."""

    key: tuple[object, ...]
    readings: _Readings
    evidence: Evidence


class KeptEvidence:
    """The readings of a turn's sources.

    It holds those of the last two looks, which the limit of a look bounds: a draft is held against all that is known,
    and between two drafts a model may be told the values that tools have returned, which are part of it.
    """

    def __init__(self) -> None:
        self._looks: tuple[_Look, ...] = ()
        self._meanings: tuple[tuple[Tool, ...], Mapping[str, ToolMeaning]] = ((), {})
        self.numbers: dict[tuple[str, str], int] = {}
        """Under which numbers a model was told facts, by source and path: a reference means the same later on."""

    def meanings(self, tools: Mapping[str, Tool]) -> Mapping[str, ToolMeaning]:
        """What the authors of tools have said about their results; the same as before if they are the same tools."""
        known, found = self._meanings
        now = tuple(tools.values())
        if len(known) != len(now) or any(one is not other for one, other in zip(known, now, strict=True)):
            found = {name: meaning_of(tool) for name, tool in tools.items()}
            self._meanings = (now, found)
        return found

    def read(
        self,
        sources: Sequence[Source],
        vocabulary: Vocabulary,
        max_chars: int,
        meanings: Mapping[str, ToolMeaning] | None = None,
    ) -> Evidence:
        """Every number, date, truth and text in the sources; no more than so many characters.

        What is beyond the limit supports nothing, so an answer that rests on it is held back.
        """
        before, readings = self._looks, _Readings()
        used: list[tuple[Source, SourceReading]] = []
        left, cut = max_chars, False
        for source in sources:
            meaning = (meanings or {}).get(source.tool, NO_MEANING)
            left = -1 if cut else left  # what comes behind is known by its id alone
            kept = _find(before, source, vocabulary, meaning, left) or _read(source, vocabulary, meaning, left)
            readings.setdefault(_key(source), []).append(kept)
            used.append((source, kept.reading))
            left -= kept.reading.taken
            cut = cut or kept.reading.cut
        key = tuple((id(reading), source.stale, source.stale_names) for source, reading in used)
        look = next((one for one in before if one.key == key), None) or _Look(
            key, readings, Evidence(KnownFacts(_join(used)), cut, {one.id: one.tool for one in sources if one.tool})
        )
        self._looks = (look, *(one for one in before if one is not look))[:2]
        return look.evidence


def _key(source: Source) -> tuple[str, bool, bool]:
    return source.id, source.echo, source.asked


def _bare(source: Source) -> Source:
    if not (source.stale or source.stale_names or source.stale_paths):
        return source
    return replace(source, stale=(), stale_names=(), stale_paths=frozenset())


def _is_same(one: Source, other: Source) -> bool:
    """Whether two sources hold the same values; by what they are, as 1, 1.0 and true are equal and read otherwise."""
    if one is other:
        return True
    alike = (one.tool, one.apart, one.trusted, one.at_us) == (other.tool, other.apart, other.trusted, other.at_us)
    return alike and _holds_same(one.value, other.value) and _holds_same(one.about, other.about)


def _holds_same(one: Json, other: Json) -> bool:
    if one is other or (isinstance(one, str) and one == other):
        return True
    if not isinstance(one, dict) or not isinstance(other, dict) or list(one) != list(other):
        return False
    return all(mine is theirs for mine, theirs in zip(one.values(), other.values(), strict=True))


def _find(
    looks: Sequence[_Look],
    source: Source,
    vocabulary: Vocabulary,
    meaning: ToolMeaning,
    left: int,
) -> _Kept | None:
    bare = _bare(source)
    known = (one for look in looks for one in look.readings.get(_key(source), ()))
    return next((one for one in known if one.is_of(bare, vocabulary, meaning, left)), None)


def _read(source: Source, vocabulary: Vocabulary, meaning: ToolMeaning, left: int) -> _Kept:
    bare = _bare(source)
    return _Kept(bare, vocabulary, meaning, left, read_source(bare, vocabulary, left, meaning))


def _join(used: Sequence[tuple[Source, SourceReading]]) -> list[Fact]:
    """The facts of all of them. What a key says itself is said by the first that has it."""
    found: list[Fact] = []
    seen: set[tuple[bool, str]] = set()
    for source, reading in used:
        facts = _mark(source, reading) if source.stale or source.stale_paths else list(reading.facts)
        at = 0
        for key, first, end in reading.keys:
            if (source.echo, key) in seen:
                found += facts[at:first]
                at = end
            seen.add((source.echo, key))
        found += facts[at:]
    return found


def _mark(source: Source, reading: SourceReading) -> list[Fact]:
    """The facts, with those marked that a later change has made untrue: not the names of fields, nor of the source."""
    names = {0, *(first for _key, first, _end in reading.keys)}
    things = frozenset(source.stale_names)
    return [
        replace(fact, stale=True) if number not in names and _is_stale(source, things, fact.place) else fact
        for number, fact in enumerate(reading.facts)
    ]


def _is_stale(source: Source, things: frozenset[str], place: ValuePath) -> bool:
    if "*" in source.stale or (source.stale_paths and place.path in source.stale_paths):
        return True
    if place.field.key not in source.stale:
        return False
    return not things or any(
        name in things for row in place.row.chain() for same in row.names.values() for name in same
    )
