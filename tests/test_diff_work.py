"""The work of a difference has one bound for all fields and keys of a plan, and does not hold up other calls."""

from __future__ import annotations

import asyncio
import difflib
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Context, Runtime, Status, tool
from interlock.changes import diff_of, differences
from interlock.resources import Documents
from tests.growth import LINEAR, growth

POLICY: dict[str, Any] = {"version": 1, "rule": [{"id": "a", "tools": ["*"], "decision": "allow"}]}


@tool(effect="send")
async def put() -> None: ...


def rows(letter: str, count: int, alike: int = 100) -> list[str]:
    """Lines of which every second one is the same whatever the letter, and stands there several times."""
    return [f"x{n % alike}" if n % 2 else f"{letter}{n}" for n in range(count)]


def shown(before: Any, after: Any, count: int = 1) -> list[str]:
    keys = tuple(f"shelf/{n}" for n in range(count))
    return (diff_of(put, keys, [before] * count, [after] * count) or "").split("\n")


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many places were looked at, once for each search."""
    found: list[int] = []
    whole = difflib.SequenceMatcher.find_longest_match

    def find_longest_match(
        self: Any, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Any:
        found.append(sum(1 + len(self.b2j.get(line, ())) for line in self.a[alo:ahi]))
        return whole(self, alo, ahi, blo, bhi)

    monkeypatch.setattr(difflib.SequenceMatcher, "find_longest_match", find_longest_match)
    return found


@pytest.mark.parametrize(("fields", "keys"), [(1, 1), (8, 1), (1, 8), (8, 8)])
def test_the_bound_is_one_for_all_fields_and_keys(work: list[int], fields: int, keys: int) -> None:
    before, after = ({f"f{n}": rows(letter, 1_990) for n in range(fields)} for letter in "uv")
    lines = shown(before, after, keys)
    told = [line for line in lines if "too many to compare" in line]
    assert len(told) == fields * keys
    assert all("995 lines go and 995 come" in line for line in told)
    assert 0 < sum(work) <= differences._WORK


def test_a_short_field_is_compared_beside_one_that_is_too_long() -> None:
    before, after = ({"a": rows(letter, 1_990), "b": [1, 2, letter]} for letter in "uv")
    lines = shown(before, after)
    assert "too many to compare" in lines[3]
    assert lines[4:] == ['   "b":', "@@ -3,3 +3,3 @@", "   2,", '-  "u"', '+  "v"', " ]"]


def test_a_thousand_lines_of_which_every_second_one_differs_are_compared() -> None:
    before, after = ({"a": rows(letter, 1_000, 1_000)} for letter in "uv")
    assert "more lines" in shown(before, after)[-1]


def test_fields_beyond_what_is_shown_are_counted() -> None:
    before, after = ({f"f{n:03}": [letter] for n in range(500)} for letter in "uv")
    lines = shown(before, after, 3)
    assert len(lines) == 401
    assert lines[-1].startswith("… 4 more lines, and 433 more fields, and 2 more keys")


def test_the_time_grows_with_the_size() -> None:
    before, after = ([{"a": rows(letter, count)} for count in (4_000, 16_000)] for letter in "uv")
    assert growth(lambda size: shown(before[size > 1], after[size > 1]), 1) < LINEAR


TEXT = st.lists(st.sampled_from("abcd"), max_size=30)


@given(TEXT, TEXT)
def test_what_is_compared_is_shown_as_difflib_writes_it(before: list[str], after: list[str]) -> None:
    was, becomes = (differences._lines(state) for state in (before, after))
    expected = list(difflib.unified_diff(was, becomes, lineterm="", n=1))[2:]
    if before != after:
        assert shown(before, after)[2:] == expected


async def test_other_calls_go_on_while_long_states_are_compared(tmp_path: Path) -> None:
    documents = Documents(f"sqlite:///{tmp_path}/d.db", "docs")

    @tool(effect="write", key="{k}", resource=documents, simulate=lambda s, a: {**(s or {}), **a["fields"]})
    async def fill(k: str, fields: dict[str, list[str]], context: Context) -> bool:
        """Fill a document."""
        await documents.write(k, fields, context)
        return True

    async with Runtime.open("memory://", policy=POLICY, tools=[fill]) as runtime:
        first, then = ({f"f{n}": rows(letter, 1_990) for n in range(8)} for letter in "uv")
        made = await runtime.call("fill", {"k": "a", "fields": first}, actor="x", mode="apply", call_id="1")
        assert made.status is Status.OK
        task = asyncio.ensure_future(runtime.call("fill", {"k": "a", "fields": then}, actor="x", mode="dry_run"))
        longest, last = 0.0, time.perf_counter()
        while not task.done():
            await asyncio.sleep(0.005)
            longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
        assert task.result().status is Status.PLANNED
        assert longest < 1.0
    await documents.close()
