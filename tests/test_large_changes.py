"""Changes of many keys and of large states: the work grows with their size, not with its square, and has an end."""

from __future__ import annotations

import difflib
from typing import Any

import pytest

from interlock import tool
from interlock.changes import SnapshotReader, diff_of, read_snapshots
from interlock.resilience import Deadlines
from interlock.state import Claimed, ClaimState, Lease
from interlock.stores.claims import ClaimTable, changed_since
from interlock.transitions import CloseClaim, OpenClaim
from tests.growth import LINEAR, growth
from tests.test_changes import Shelf, retitle


class CountedLease:
    """A lease that counts how often its key is asked for."""

    asked = 0

    def __init__(self, key: str, changed: int) -> None:
        self._key, self.changed = key, changed

    @property
    def key(self) -> str:
        CountedLease.asked += 1
        return self._key


class Leases:
    """The part of a store that says when keys were changed last."""

    def __init__(self, *leases: Any) -> None:
        self._leases = leases

    async def leases(self, _keys: tuple[str, ...]) -> tuple[Any, ...]:
        return self._leases


def reader(*leases: Any) -> SnapshotReader:
    return SnapshotReader(lambda text: str(len(text)), None, Deadlines(), Leases(*leases))  # type: ignore[arg-type]


async def test_the_leases_of_many_keys_are_gone_through_once_not_once_for_each_key() -> None:
    count = 500
    keys = tuple(f"shelf/{n}" for n in range(count))
    CountedLease.asked = 0
    snapshots = await read_snapshots(
        retitle(Shelf(), []), keys, reader(*(CountedLease(key, place) for place, key in enumerate(keys)))
    )
    assert [snapshot.version for snapshot in snapshots] == [f"absent@{place}" for place in range(count)]
    assert CountedLease.asked <= 2 * count


async def test_a_key_is_as_new_as_its_whole_resource_and_that_as_the_newest_of_its_keys() -> None:
    change = retitle(Shelf(), [])
    one, other, whole, strange = (
        Lease("shelf/a", changed=3),
        Lease("shelf/b", changed=7),
        Lease("shelf/*"),
        Lease("x/a"),
    )
    assert await versions(change, ("shelf/a", "shelf/b"), one, other, whole) == ["absent@3", "absent@7"]
    whole = Lease("shelf/*", changed=5)
    assert await versions(change, ("shelf/a", "shelf/b"), one, other, whole, strange) == ["absent@5", "absent@7"]


async def versions(change: Any, keys: tuple[str, ...], *leases: Lease) -> list[str]:
    return [snapshot.version for snapshot in await read_snapshots(change, keys, reader(*leases))]


def claimed(*keys: str, tokens: tuple[int, ...]) -> Claimed:
    return Claimed("c", "r", ClaimState.DONE, 1, "h", "call", "title", keys, tokens, 0)


@pytest.mark.parametrize(
    ("keys", "tokens", "lease", "since"),
    [
        (("s/a",), (3,), Lease("s/a", changed=4), True),
        (("s/a",), (3,), Lease("s/a", changed=3), False),
        (("s/a",), (3,), Lease("s/b", changed=4), False),
        (("s/a",), (3,), Lease("s/*", changed=4), True),
        (("s/a", "s/b"), (3, 9), Lease("s/*", changed=4), True),  # one key of a chain is older than that
        (("s/*",), (3,), Lease("s/b", changed=4), True),
        (("t/a",), (3,), Lease("s/*", changed=4), False),
    ],
)
def test_what_was_changed_since_alone_or_with_its_whole_resource(
    keys: tuple[str, ...], tokens: tuple[int, ...], lease: Lease, since: bool
) -> None:
    assert changed_since(claimed(*keys, tokens=tokens), [lease]) is since


def test_whether_many_keys_were_changed_since_grows_with_their_number() -> None:
    def look(count: int) -> None:
        keys = tuple(f"s/{n}" for n in range(count))
        assert not changed_since(claimed(*keys, tokens=(1,) * count), [Lease(key, changed=1) for key in keys])

    assert growth(look, 400) < LINEAR


def test_giving_many_untouched_keys_back_grows_with_their_number() -> None:
    def hold(count: int) -> None:
        keys, table = tuple(f"s/{n}" for n in range(count)), ClaimTable()
        table.apply(OpenClaim("c", "r", 1, "h", "call", "title", keys, lease_us=1), 0)
        table.apply(CloseClaim("c", "h", ClaimState.DONE, tuple("".join(key) for key in keys)), 0)

    assert growth(hold, 1_000) < LINEAR


# What is shown of a difference


@tool(effect="send")
async def put() -> None: ...


def shown(before: Any, after: Any) -> list[str]:
    return (diff_of(put, ("shelf/a",), [before], [after]) or "").split("\n")


def test_a_nested_list_of_many_lines_is_not_compared_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    whole = difflib.SequenceMatcher.find_longest_match

    def find_longest_match(self: Any, *places: Any) -> Any:
        compared.append(len(self.a) + len(self.b))
        return whole(self, *places)

    monkeypatch.setattr(difflib.SequenceMatcher, "find_longest_match", find_longest_match)
    before, after = {"rows": [n % 150 for n in range(16_000)]}, {"rows": [n * 7 % 151 for n in range(16_000)]}
    *head, line = shown(before, after)
    assert (head[-1], compared) == ('   "rows":', [])
    assert "too many to compare" in line
    gone, come = int(line.split()[0]), int(line.split()[4])
    assert (gone > 0, come > 0, gone - come) == (True, True, 0)
    assert shown(before, after) == [*head, line], "the same difference is shown in the same words"
    assert shown({"rows": [*after["rows"], 1]}, before)[-1] != line


def test_a_small_difference_in_a_long_list_is_shown_where_it_is() -> None:
    before = {"rows": list(range(50_000))}
    after = {"rows": [*range(30_000), -1, *range(30_001, 50_000)]}
    assert shown(before, after)[3:] == [
        "@@ -30001,3 +30001,3 @@",
        "   29999,",
        "-  30000,",
        "+  -1,",
        "   30001,",
    ]
    grown = {"rows": [*range(50_000), 50_000]}
    assert shown(before, grown)[3:] == [
        "@@ -50000,3 +50000,4 @@",
        "   49998,",
        "-  49999",
        "+  49999,",
        "+  50000",
        " ]",
    ]
    same = {"rows": [0] * 3_000}
    assert shown(same, {"rows": [0] * 3_001})[3:] == ["@@ -3000 +3000,2 @@", "   0,", "+  0,"]


def test_of_many_keys_no_more_are_compared_than_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    from interlock.changes import differences

    each = differences._Difference._add_key

    def add_key(self: Any, key: str, old: Any, new: Any) -> None:
        compared.append(key)
        each(self, key, old, new)

    monkeypatch.setattr(differences._Difference, "_add_key", add_key)
    keys = tuple(f"shelf/{n}" for n in range(10_000))
    lines = (diff_of(put, keys, [{"n": 0}] * 10_000, [{"n": 1}] * 10_000) or "").split("\n")
    assert (len(lines), lines[-1]) == (401, "… 4 more lines, and 9899 more keys")
    assert len(compared) == 101
