"""Plan sets under attack: killed at every point and run again, moved by hand in between, applied by two at once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from interlock.operations import Change
from tests.attacking import SET, Place, apply, apply_in_process, fill, found, plan
from tests.forked import FORKED
from tests.killing import Later, Points

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

EVERY = 1 if os.environ.get("TORTURE") else 9
ON_SERVER = EVERY if os.environ.get("TORTURE") else 60
"""The same on PostgreSQL, where every place is a database that has to be made."""
ROUNDS = 20 if os.environ.get("TORTURE") else 3
DONE = {"a": ("3", "3"), "b": ("2", "2"), "c": ("4", "2")}
"""What the set leaves: each title, and a version that has grown by one for each change."""
OTHER = tuple(Change("title", {"id": change.arguments["id"], "title": "other"}) for change in SET)


class Places:
    """Makes places for attacks: files in a folder of their own, or a database of their own."""

    def __init__(self, folder: Path, new_url: Callable[[], str] | None) -> None:
        self._folder, self._new_url, self._made = folder, new_url, 0
        self.every = EVERY if new_url is None else ON_SERVER

    def __call__(self, point: str = "", nth: int = 0) -> Place:
        self._made += 1
        folder = self._folder / str(self._made)
        folder.mkdir()
        ledger, shelf = f"sqlite:///{folder}/ledger.db", f"sqlite:///{folder}/shelf.db"
        if self._new_url is not None:
            ledger = shelf = self._new_url()
        place = Place(ledger, shelf, str(folder), point, nth)
        asyncio.run(fill(place))
        return place

    def some_of(self, points: list[tuple[str, int]], fewer: int = 1) -> list[tuple[str, int]]:
        """Every so many of them, from the middle of the first stretch on."""
        every = fewer * self.every
        return points[every // 2 :: every]


@pytest.fixture(params=["sqlite", "postgres"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    if request.param == "sqlite":
        yield Places(tmp_path, None)
        return
    new_database: Callable[[], AbstractContextManager[str]] = request.getfixturevalue("new_database")
    with ExitStack() as stack:
        yield Places(tmp_path, lambda: stack.enter_context(new_database()))


def points_of_a_set(place: Place) -> list[tuple[str, int]]:
    points = Points()
    assert asyncio.run(apply(place, asyncio.run(plan(place)), points)) == ["ok"] * 4
    assert asyncio.run(found(place)) == DONE
    return points.passed


def kill_in_the_middle(place: Place) -> bool:
    """Apply the set in a child that kills itself at the place's point; whether it did."""
    planned = asyncio.run(plan(place))
    child = FORKED.Process(target=apply_in_process, args=(place, planned, Path(place.folder, "answers"), None))
    child.start()
    child.join(240)
    assert child.exitcode in (0, -signal.SIGKILL), (place, child.exitcode)
    return child.exitcode != 0


def test_killed_at_every_point_and_run_again_each_change_is_made_once(new_place: Places) -> None:
    points = points_of_a_set(new_place())
    killed = 0
    for point, nth in new_place.some_of(points):
        place = new_place(point, nth)
        planned = asyncio.run(plan(place))
        killed += kill_in_the_middle(place)
        assert asyncio.run(apply(place, planned, clock=Later())) == ["ok"] * 4, place
        assert asyncio.run(found(place)) == DONE, place
    assert killed >= len(new_place.some_of(points)) - 2


def test_what_a_person_moved_while_it_was_down_is_not_written_over(new_place: Places) -> None:
    points = points_of_a_set(new_place())
    for point, nth in new_place.some_of(points, 3):
        place = new_place(point, nth)
        planned = asyncio.run(plan(place))
        kill_in_the_middle(place)
        before = asyncio.run(found(place))
        asyncio.run(write_by_hand(place, "c"))
        ends = asyncio.run(apply(place, planned, clock=Later()))
        after = asyncio.run(found(place))
        assert after["c"] == ("by hand", str(int(before["c"][1]) + 1)), (place, ends)
        assert (after["a"], after["b"]) == (DONE["a"], DONE["b"]), (place, ends)
        if (
            before["c"][0] == "4"
        ):  # it had landed before the person came, after whom nobody can tell if it was not recorded
            assert (ends[:3], ends[3] in ("ok", "unknown")) == (["ok"] * 3, True), (place, ends)
        else:
            assert (ends[:3], ends[3] in ("denied", "failed", "unknown")) == (["ok"] * 3, True), (place, ends)


async def write_by_hand(place: Place, key: str) -> None:
    shelf = place.shelf()
    await shelf.write(key, {"title": "by hand"})
    await shelf.close()


@pytest.mark.parametrize("same", [True, False], ids=["the same set", "another set of that name"])
@pytest.mark.parametrize(
    ("new_place", "round_"),
    [("sqlite", n) for n in range(ROUNDS)] + [("postgres", n) for n in range(0, ROUNDS, 3)],
    indirect=["new_place"],
)
def test_two_appliers_at_once(new_place: Places, round_: int, same: bool) -> None:
    place, barrier = new_place(), FORKED.Barrier(2)
    sets = [asyncio.run(plan(place)), asyncio.run(plan(place, SET if same else OTHER))]
    answers = [Path(place.folder, f"answers{n}") for n in range(2)]
    children = [
        FORKED.Process(target=apply_in_process, args=(place, planned, answer, barrier))
        for planned, answer in zip(sets, answers, strict=True)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
    assert [child.exitcode for child in children] == [0, 0]
    heard = [json.loads(answer.read_text()) for answer in answers]
    if same:
        # Who planned a change in the instant in which the other one made it is told that it moved, and stops there.
        assert all(set(ends[:-1]) <= {"ok"} and ends[-1] in ("ok", "denied") for ends in heard), heard
        assert ["ok"] * 4 in heard
        assert asyncio.run(found(place)) == DONE
        assert asyncio.run(apply(place, sets[0], clock=Later())) == ["ok"] * 4
        assert asyncio.run(found(place)) == DONE
        return
    assert sorted(heard) == [["another set"], ["ok"] * 4], heard
    won = DONE if heard[0] == ["ok"] * 4 else {"a": ("other", "2"), "b": ("other", "2"), "c": ("other", "2")}
    assert asyncio.run(found(place)) == won
