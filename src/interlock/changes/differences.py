"""A readable difference between states: with a bound on its lines, and one on the work that the whole of it takes."""

from __future__ import annotations

import asyncio
import difflib
import hashlib
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate

import msgspec

from interlock.canonical import encode_canonical
from interlock.changes.whole import states_by_key, touched_keys
from interlock.state import is_wildcard
from interlock.tools import Tool, redactor_of
from interlock.values import Json

_DIFF_LINES = 400
_COMPARED_LINES = 2_000
"""So many lines of one field are compared with each other,"""
_WORK = 1_000_000
"""and so often one line is held against another for all fields and keys of a difference. How often it would be grows
with the square of the lines, and faster where many of them are alike. Measured, it takes 0.1 to 0.3 s."""
_SHORT = 2_000
"""Characters of all states that are compared at once, as a rule in a hundredth of a second; more leave the loop."""
_NOTHING = object()


async def show_difference(
    tool: Tool, keys: tuple[str, ...], before: list[Json], after: list[Json] | None
) -> str | None:
    """`diff_of`, in a thread where the states are not short: other calls go on meanwhile."""
    if after is None or len(encode_canonical([before, after])) <= _SHORT:
        return diff_of(tool, keys, before, after)
    return await asyncio.to_thread(diff_of, tool, keys, before, after)


def diff_of(tool: Tool, keys: tuple[str, ...], before: list[Json], after: list[Json] | None) -> str | None:
    """A readable difference, with the tool's redacted fields taken out; None where nothing can be said."""
    if after is None:
        return None
    if keys and is_wildcard(keys[0]):
        was, becomes = states_by_key(keys, before), states_by_key(keys, after)
        keys = touched_keys(keys, before, after)
        before, after = [was.get(key) for key in keys], [becomes.get(key) for key in keys]
    if tool.redact:
        redactor = redactor_of(tool, before, after)
        before, after = redactor.value(before), redactor.value(after)
    difference = _Difference()
    difference.add_keys(zip(keys, before, after, strict=True))
    return "\n".join(difference.show())


class _TooMuch(Exception):
    """Comparing these lines would take more than is left."""


class _CountedMatcher(difflib.SequenceMatcher[str]):
    """Counts how often a line is held against another one, and gives up before that is more than it may be."""

    def __init__(self, was: list[str], becomes: list[str], most: int) -> None:
        super().__init__(None, was, becomes)
        self.left = most
        places: dict[str, list[int]] = self.b2j  # type: ignore[attr-defined] # documented, and not in the stubs
        self._work = [0, *accumulate(1 + len(places.get(line, ())) for line in was)]

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        """That of `difflib`, which looks at every place of each line whatever part of the text it is asked about."""
        self.left -= self._work[-1 if ahi is None else ahi] - self._work[alo]
        if self.left < 0:
            raise _TooMuch
        return super().find_longest_match(alo, ahi, blo, bhi)


class _Difference:
    """The lines of one difference, and what may still be done for it."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._work = _WORK
        self._more_fields = self._more_keys = 0

    def show(self) -> list[str]:
        """The lines that differ, as many as anybody looks at, and how many there are beside them."""
        more = len(self._lines) - _DIFF_LINES
        if more <= 0:
            return self._lines
        counted = [f"{more} more lines"]
        counted += [f"{self._more_fields} more fields"] if self._more_fields else []
        counted += [f"{self._more_keys} more keys"] if self._more_keys else []
        return [*self._lines[:_DIFF_LINES], f"… {', and '.join(counted)}"]

    def add_keys(self, states: Iterable[tuple[str, Json, Json]]) -> None:
        """Of the keys after as many lines as are shown it is only counted how many differ."""
        for key, old, new in states:
            if old == new:
                continue
            if len(self._lines) > _DIFF_LINES:
                self._more_keys += 1
            else:
                self._add_key(key, old, new)

    def _add_key(self, key: str, old: Json, new: Json) -> None:
        """The fields that differ, each on a line of its own; what is nested is compared line by line."""
        was_there, is_there = ("absent" if old is None else "before"), ("absent" if new is None else "after")
        self._lines += [f"--- {key} {was_there}", f"+++ {key} {is_there}"]
        if not (old is None or isinstance(old, dict)) or not (new is None or isinstance(new, dict)):
            self._lines += self._compare_lines(old, new)
            return
        was, becomes = old or {}, new or {}
        names = {*was, *becomes} if was and becomes else was or becomes
        for name in sorted(names):
            one, other = was.get(name, _NOTHING), becomes.get(name, _NOTHING)
            if one is other or one == other:
                continue
            if len(self._lines) > _DIFF_LINES + 2:  # beside the two that name the key
                self._more_fields += 1
            elif _has_lines(one) and _has_lines(other):
                self._lines += [f"   {_text(name)}:", *self._compare_lines(one, other)]
            else:
                shown = _text(name)
                self._lines += [] if one is _NOTHING else [f"-  {shown}: {_text(one)}"]
                self._lines += [] if other is _NOTHING else [f"+  {shown}: {_text(other)}"]

    def _compare_lines(self, old: Json, new: Json) -> list[str]:
        """What differs line by line; of what is too long to be compared so, how many lines differ, and both digests."""
        was, becomes, first = _lines(old), _lines(new), 0
        if max(len(was), len(becomes)) > _COMPARED_LINES:
            first = max(0, _count_same(was, becomes) - 1)  # one line before it, to see where it is
            last = max(0, _count_same(was[first:][::-1], becomes[first:][::-1]) - 1)
            was, becomes = was[first : len(was) - last], becomes[first : len(becomes) - last]
        if max(len(was), len(becomes)) <= _COMPARED_LINES:
            share = self._work // 2  # half of what is left: the next field may be shorter
            matcher = _CountedMatcher(was, becomes, share)
            self._work -= share
            try:
                changed = _hunks(matcher, was, becomes, first)
            except _TooMuch:
                pass
            else:
                self._work += matcher.left
                return changed
        gone, come = (sum(count.values()) for count in _only_in(was, becomes))
        digests = [hashlib.sha256(encode_canonical(state)).hexdigest()[:16] for state in (old, new)]
        return [f"   {gone} lines go and {come} come, too many to compare (sha256 {digests[0]}… to {digests[1]}…)"]


def _hunks(matcher: _CountedMatcher, was: list[str], becomes: list[str], first: int) -> list[str]:
    """What `difflib.unified_diff` writes with one line around each change, the lines numbered from `first` on."""
    lines = []
    for group in matcher.get_grouped_opcodes(1):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        lines.append(f"@@ -{_span(first + i1, first + i2)} +{_span(first + j1, first + j2)} @@")
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                lines += [f" {line}" for line in was[i1:i2]]
                continue
            lines += [f"-{line}" for line in was[i1:i2]]
            lines += [f"+{line}" for line in becomes[j1:j2]]
    return lines


def _span(start: int, stop: int) -> str:
    """Where lines stand: the first, and how many unless it is one; of none, the line before them."""
    length = stop - start
    return f"{start + 1}" if length == 1 else f"{start + 1 if length else start},{length}"


def _count_same(some: list[str], others: list[str]) -> int:
    """How many lines two texts begin with that are the same."""
    pairs = enumerate(zip(some, others, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(some), len(others)))


def _only_in(some: list[str], others: list[str]) -> tuple[Counter[str], Counter[str]]:
    ours, theirs = Counter(some), Counter(others)
    return ours - theirs, theirs - ours


def _has_lines(value: object) -> bool:
    """Whether it is compared line by line."""
    return isinstance(value, dict | list) or (isinstance(value, str) and "\n" in value)


def _lines(state: Json) -> list[str]:
    if isinstance(state, str) and "\n" in state:
        return state.split("\n")
    return [] if state is None else msgspec.json.format(encode_canonical(state), indent=2).decode().split("\n")


def _text(value: Json) -> str:
    return encode_canonical(value).decode()
