"""Which rows of a result the user means: those that are named by the field which tells the fewest of them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

Place = tuple[str, ...]


class RowOfResult(Protocol):
    """A row: where it stands, and its leaves."""

    @property
    def path(self) -> Place: ...
    @property
    def leaves(self) -> list[tuple[Place, str]]: ...


def find_chosen(rows: Sequence[RowOfResult], said: Sequence[dict[Place, str]]) -> list[bool]:
    """Whether the user means each row, by those of its fields that the user has `said`, or what it is a part of.

    What every row of its kind has chooses none.
    """
    kinds: dict[Place, list[int]] = {}
    for number, row in enumerate(rows):
        kinds.setdefault(row.path, []).append(number)
    chosen = [False] * len(rows)
    for numbers in kinds.values():
        for number in _chosen_of_kind(numbers, said):
            chosen[number] = True
    for number, parent in _parents(rows):
        chosen[number] = chosen[number] or chosen[parent]
    return chosen


def _chosen_of_kind(numbers: list[int], said: Sequence[dict[Place, str]]) -> set[int]:
    counts = Counter((place, form) for number in numbers for place, form in said[number].items())
    telling = {key: count for key, count in counts.items() if count < len(numbers)}
    if not telling:
        return set()
    fewest = min(telling.values())
    places = {place for (place, _form), count in telling.items() if count == fewest}
    return {
        number
        for number in numbers
        if any(place in places and (place, form) in telling for place, form in said[number].items())
    }


def _parents(rows: Sequence[RowOfResult]) -> Iterator[tuple[int, int]]:
    """Each row that is a part of another, and that: a row stands before its parts."""
    above: list[int] = []
    for number, row in enumerate(rows):
        while above and len(rows[above[-1]].path) >= len(row.path):
            above.pop()
        if above:
            yield number, above[-1]
        above.append(number)


def fields_of(rows: Iterable[RowOfResult]) -> frozenset[Place]:
    """The fields that rows have."""
    return frozenset(place for row in rows for place, _form in row.leaves)
