"""Undo under attack: undo of undo of undo against models, the same run taken back by two processes, and taken back
while it is made again."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from interlock import Outcome, Runtime, Status
from interlock.audit import verify
from interlock.policy import parse_policy
from interlock.state import ChangeFilter, Claimed, ClaimState
from interlock.tools import Tool
from tests.attacking import KEYS, Place, fill, found, undo_or_replay
from tests.forked import FORKED
from tests.test_changes import OPEN, Shelf, retitle
from tests.test_undo_chain import Bank

ROUNDS = 10 if os.environ.get("TORTURE") else 2
TIMES = 6
T = TypeVar("T")


class Made(msgspec.Struct, eq=False):
    """One change or undo that landed: what its key was and became, and what took it back, if anything did."""

    record: int
    key: str
    before: Any
    after: Any
    undoes: Made | None = None
    taken_back_by: Made | None = None

    @property
    def stands(self) -> bool:
        return self.taken_back_by is None or not self.taken_back_by.stands

    @property
    def makes(self) -> bool:
        """Whether something is there by it: it takes nothing back, or what took something back."""
        return self.undoes is None or not self.undoes.makes

    @property
    def last(self) -> Made:
        """Of a change that stands: that by which it does, which is what there is to take back."""
        if self.taken_back_by is None:
            return self
        assert self.taken_back_by.taken_back_by is not None
        return self.taken_back_by.taken_back_by.last

    @property
    def first(self) -> Made:
        return self if self.undoes is None else self.undoes.first


class Questions(RuleBasedStateMachine):
    """What is asked of changes and undos, whatever they are: a list says what must be answered."""

    def __init__(self, *tools: Tool) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=tools)
        self.made: list[Made] = []

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        try:
            assert self.wait(verify(self.runtime.store)).problems == ()
            assert self.wait(self.journal()) == {
                item.record: "done" if item.stands else "undone" for item in self.made
            }, "the journal says what stands"
        finally:
            self.wait(self.runtime.close())
            self.loop.close()

    async def journal(self) -> dict[int, str]:
        return {entry.record: entry.status async for entry in self.runtime.operations.journal(since_us=0)}

    def note_undo(self, undone: Made, record: int | None) -> None:
        assert record is not None
        undone.taken_back_by = Made(record, undone.key, undone.after, undone.before, undoes=undone)
        self.made.append(undone.taken_back_by)

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def is_asked_for_again(self, data: st.DataObject) -> None:
        """A redelivery tells whether it stands, and what would be taken back is what does."""
        item = data.draw(st.sampled_from(self.made))
        planned = self.wait(self.runtime.operations.undo_plan(record=item.record))
        assert [step.record for step in planned] == ([item.last.record] if item.stands else [])
        if item.undoes is None and item is self.newest(item):
            again = self.wait(self.deliver(item))
            assert (again.ok, again.undone, again.repeats) == (True, not item.stands, item.record)

    def newest(self, item: Made) -> Made:
        return item

    async def deliver(self, item: Made) -> Outcome:
        raise NotImplementedError


class UndoOfUndo(Questions):
    """Changes, and undos of changes and of undos, by their records, in any order."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        super().__init__(retitle(self.shelf, []))
        self.asked: dict[int, tuple[dict[str, str], str]] = {}
        self.model: dict[str, Any] = {}

    def put(self, key: str, state: Any) -> None:
        self.model = {**self.model, key: state}
        if state is None:
            del self.model[key]

    async def deliver(self, item: Made) -> Outcome:
        arguments, run = self.asked[item.record]
        return await self.runtime.call("title", arguments, actor="ann", run=run, call_id=run)

    @rule(key=st.sampled_from("ab"), title=st.sampled_from("xyz"))
    def change(self, key: str, title: str) -> None:
        arguments, run = {"id": key, "title": title}, f"r{len(self.made)}-{key}"
        outcome = self.wait(self.runtime.call("title", arguments, actor="ann", run=run, call_id=run))
        assert outcome.ok
        assert outcome.record is not None
        self.asked[outcome.record] = arguments, run
        after = {**(self.model.get(key) or {}), "title": title}
        self.made.append(Made(outcome.record, key, self.model.get(key), after))
        self.put(key, after)

    @rule(key=st.sampled_from("ab"), pages=st.integers(0, 3))
    def by_hand(self, key: str, pages: int) -> None:
        self.model = {**self.model, key: {"title": "hand", "pages": pages}}
        self.shelf.items[key] = dict(self.model[key])

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        """Any of them, also one that took something back."""
        item = data.draw(st.sampled_from(self.made))
        done = self.wait(self.runtime.operations.undo(record=item.record))
        landed = [outcome for _step, outcome in done if outcome is not None]
        assert all(outcome.ok for outcome in landed), done
        if not item.stands:
            assert not landed, "it was taken back twice"
            return
        last = item.last
        later = [other for other in self.made[self.made.index(last) + 1 :] if other.key == item.key]
        if landed:  # never over what somebody else made of it
            assert self.model.get(item.key) == last.after != last.before
            assert not any(other.stands and other.makes for other in later), "over what stands"
            self.put(item.key, last.before)
            self.note_undo(last, landed[0].record)
        elif last.before != last.after:  # never refused where nothing came after
            assert later or self.model.get(item.key) != last.after, done

    @precondition(lambda self: self.made)
    @rule()
    def take_the_last_back(self) -> None:
        """Again and again: a chain of undos of undos."""
        item = self.made[-1]
        if self.model.get(item.key) != item.after or item.before == item.after or not item.stands:
            return
        ((_step, outcome),) = self.wait(self.runtime.operations.undo(record=item.record))
        assert outcome is not None
        assert outcome.ok
        self.put(item.key, item.before)
        self.note_undo(item, outcome.record)

    @invariant()
    def the_state_is_the_models(self) -> None:
        assert self.shelf.items == self.model


class PaidOnceEver(Questions):
    """Payments that are made once ever, refunded, and refunds that are taken back; also where nobody hears the end of
    one, and a person says later what became of it."""

    def __init__(self) -> None:
        self.bank = Bank()
        super().__init__(*self.bank.tools())
        self.paid: dict[str, Made] = {}
        """The newest generation of each."""
        self.calls: dict[int, str] = {}

    def newest(self, item: Made) -> Made:
        return self.paid[item.key]

    async def deliver(self, item: Made) -> Outcome:
        return await self.pay(item.key, self.calls[item.record])

    async def pay(self, amount: str, name: str) -> Outcome:
        return await self.runtime.call("pay", {"n": int(amount)}, actor="ann", run="r", call_id=name)

    def stands(self, amount: str) -> bool:
        return amount in self.paid and self.paid[amount].stands

    def note_payment(self, amount: str, name: str, record: int | None) -> None:
        assert record is not None
        self.calls[record] = name
        self.paid[amount] = Made(record, amount, 0, int(amount))
        self.made.append(self.paid[amount])

    @rule(amount=st.sampled_from(["3", "5"]))
    def ask_for_it(self, amount: str) -> None:
        name = f"c{len(self.calls)}-{len(self.bank.moved)}-{amount}"
        outcome = self.wait(self.pay(amount, name))
        assert outcome.ok
        if self.stands(amount):
            assert outcome.repeats == self.paid[amount].record
        else:
            assert outcome.repeats is None
            self.note_payment(amount, name, outcome.record)

    @rule()
    def replay(self) -> None:
        undone = [amount for amount, item in self.paid.items() if not item.stands]
        done = self.wait(self.runtime.operations.replay("r"))
        assert sorted(str(step.arguments["n"]) for step, _outcome in done) == sorted(undone)
        for step, outcome in done:
            assert outcome is not None
            assert outcome.ok
            amount = str(step.arguments["n"])
            self.note_payment(amount, self.calls[self.paid[amount].record], outcome.record)

    @precondition(lambda self: self.made)
    @rule(data=st.data(), ends=st.sampled_from(["ok", "ok", "lost", "lost before"]))
    def take_back(self, data: st.DataObject, ends: str) -> None:
        item = data.draw(st.sampled_from(self.made))
        self.bank.ends = [ends]
        done = self.wait(self.runtime.operations.undo(record=item.record))
        outcomes = [outcome for _step, outcome in done if outcome is not None]
        made_again = item.stands and not item.last.makes and item.first is not self.paid[item.key]
        if not item.stands or made_again:  # then it would be paid twice
            assert not outcomes
            self.bank.ends = []
            return
        (outcome,) = outcomes
        record = outcome.record if outcome.ok else self.settle(item, landed=ends == "lost")
        assert (outcome.status is Status.UNKNOWN) == (ends != "ok")
        if ends == "lost before":  # it is tried again with the next undo
            return
        self.note_undo(item.last, record)

    def settle(self, item: Made, *, landed: bool) -> int:
        if not item.last.makes:  # what stands again, perhaps, is made by nobody beside it
            waits = self.wait(self.pay(item.key, "beside"))
            assert waits.status is Status.UNKNOWN, waits
        (found,) = self.wait(self.runtime.operations.recover())
        assert found.ticket is not None
        return self.wait(self.runtime.operations.decide(found.ticket, approve=landed, by="user:boss"))

    async def journal(self) -> dict[int, str]:
        return {number: status for number, status in (await super().journal()).items() if status != "failed"}

    @invariant()
    def each_is_paid_once_or_not_at_all(self) -> None:
        for amount in ("3", "5"):
            moved = sum(one for one in self.bank.moved if abs(one) == int(amount))
            assert moved == (int(amount) if self.stands(amount) else 0)


TestUndoOfUndo = UndoOfUndo.TestCase
TestUndoOfUndo.settings = hypothesis_settings(max_examples=60, stateful_step_count=25)
TestPaidOnceEver = PaidOnceEver.TestCase
TestPaidOnceEver.settings = hypothesis_settings(max_examples=60, stateful_step_count=25)


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
