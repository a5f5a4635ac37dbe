"""Undo under attack: undo of undo of undo against a model, the same run taken back by two processes, and taken back
while it is made again."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from interlock import Runtime
from interlock.policy import parse_policy
from interlock.state import ChangeFilter, Claimed, ClaimState
from tests.attacking import KEYS, Place, fill, found, undo_or_replay
from tests.forked import FORKED
from tests.test_changes import OPEN, Shelf, retitle

ROUNDS = 10 if os.environ.get("TORTURE") else 2
TIMES = 6


class Made(msgspec.Struct):
    """One change or undo that landed: what its key was and became, and whether it stands."""

    record: int
    key: str
    before: Any
    after: Any
    stands: bool = True


class UndoOfUndo(RuleBasedStateMachine):
    """Changes, and undos of changes and of undos, by their records, in any order; a list says what must be there."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.shelf = Shelf()
        self.runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[retitle(self.shelf, [])])
        self.made: list[Made] = []
        self.model: dict[str, Any] = {}

    def teardown(self) -> None:
        self.loop.run_until_complete(self.runtime.close())
        self.loop.close()

    def note(self, record: int | None, key: str, after: Any) -> None:
        assert record is not None
        self.made.append(Made(record, key, self.model.get(key), after))
        self.model = {**self.model, key: after}
        if after is None:
            del self.model[key]

    @rule(key=st.sampled_from("ab"), title=st.sampled_from("xyz"))
    def change(self, key: str, title: str) -> None:
        run = f"r{len(self.made)}-{key}"
        call = self.runtime.call("title", {"id": key, "title": title}, actor="ann", run=run, call_id=run)
        outcome = self.loop.run_until_complete(call)
        assert outcome.ok
        self.note(outcome.record, key, {**(self.model.get(key) or {}), "title": title})

    @rule(key=st.sampled_from("ab"), pages=st.integers(0, 3))
    def by_hand(self, key: str, pages: int) -> None:
        self.model = {**self.model, key: {"title": "hand", "pages": pages}}
        self.shelf.items[key] = dict(self.model[key])

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        """Any of them, also one that took something back."""
        place = data.draw(st.integers(0, len(self.made) - 1))
        item = self.made[place]
        done = self.loop.run_until_complete(self.runtime.operations.undo(record=item.record))
        landed = [outcome for _step, outcome in done if outcome is not None]
        assert all(outcome.ok for outcome in landed), done
        if not item.stands:
            assert not landed, "it was taken back twice"
            return
        if landed:  # never over what somebody else made of it
            assert self.model.get(item.key) == item.after != item.before
            item.stands = False
            self.note(landed[0].record, item.key, item.before)
        elif item.before != item.after:  # never refused where nothing came after
            later = [other for other in self.made[place + 1 :] if other.key == item.key]
            assert later or self.model.get(item.key) != item.after, done

    @precondition(lambda self: self.made)
    @rule()
    def take_the_last_back(self) -> None:
        """Again and again: a chain of undos of undos."""
        item = self.made[-1]
        if self.model.get(item.key) != item.after or item.before == item.after or not item.stands:
            return
        ((_step, outcome),) = self.loop.run_until_complete(self.runtime.operations.undo(record=item.record))
        assert outcome is not None
        assert outcome.ok
        item.stands = False
        self.note(outcome.record, item.key, item.before)

    @invariant()
    def the_state_is_the_models(self) -> None:
        assert self.shelf.items == self.model


TestUndoOfUndo = UndoOfUndo.TestCase
TestUndoOfUndo.settings = hypothesis_settings(stateful_step_count=25)


async def make_the_run(place: Place) -> None:
    shelf = place.shelf()
    async with place.opened(shelf) as runtime:
        for key in KEYS:
            arguments = {"id": key, "title": "new"}
            assert (await runtime.call("title", arguments, actor="ann", run="r", call_id=f"r-{key}")).ok
    await shelf.close()


async def claims_of(place: Place) -> list[Claimed]:
    shelf = place.shelf()
    async with place.opened(shelf) as runtime:
        claims = await runtime.store.claims(ChangeFilter(run="r"))
    await shelf.close()
    return list(claims)


def attack_with(place: Place, *work: str, times: int = 1) -> list[list[list[str]]]:
    """Each in a process of its own, all at once; how every step ended, by process and time."""
    barrier = FORKED.Barrier(len(work))
    answers = [Path(place.folder, f"answers{n}") for n in range(len(work))]
    children = [
        FORKED.Process(target=undo_or_replay, args=(place, what, times, answer, barrier))
        for what, answer in zip(work, answers, strict=True)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(240)
    assert [child.exitcode for child in children] == [0] * len(children)
    return [json.loads(answer.read_text()) for answer in answers]


@pytest.fixture
def place(durable_url: str, tmp_path: Path) -> Place:
    documents = durable_url if durable_url.startswith("postgres") else f"sqlite:///{tmp_path / 'shelf.db'}"
    made = Place(durable_url, documents, str(tmp_path))
    asyncio.run(fill(made))
    asyncio.run(make_the_run(made))
    return made


def flat(heard: Sequence[Sequence[Sequence[str]]]) -> list[str]:
    return [end for times in heard for ends in times for end in ends]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_two_processes_take_the_same_run_back_and_each_change_is_taken_back_once(place: Place, round_: int) -> None:
    heard = attack_with(place, "undo", "undo", "undo")
    assert asyncio.run(found(place)) == dict.fromkeys(KEYS, ("old", "3"))  # by hand, the run, one undo
    assert {claim.state for claim in asyncio.run(claims_of(place))} == {ClaimState.UNDONE}
    assert flat(heard).count("ok") >= len(KEYS), heard
    assert "unknown" not in flat(heard), heard


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_taken_back_while_it_is_made_again_the_claims_say_what_is_there(place: Place, round_: int) -> None:
    heard = attack_with(place, "undo", "replay", "undo", "replay", times=TIMES)
    states = asyncio.run(found(place))
    newest = {claim.keys[0]: claim for claim in asyncio.run(claims_of(place)) if not claim.is_superseded}
    for key in KEYS:
        stands = newest[f"shelf/{key}"].state is ClaimState.DONE
        assert states[key][0] == ("new" if stands else "old"), (key, states, heard)
    assert "unknown" not in flat(heard), heard
    assert attack_with(place, "undo") is not None
    assert {title for title, _version in asyncio.run(found(place)).values()} == {"old"}
