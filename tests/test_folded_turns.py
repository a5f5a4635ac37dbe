"""What a turn has recorded is folded once and carried on, and is what the ledger says, whoever wrote it and when."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import msgspec
import psycopg
import pytest

from interlock import Runtime, Status, tool
from interlock.answers import Agent, Answers
from interlock.answers.history import Histories, read_history
from interlock.engine import FoldedTurns, turns
from interlock.models import Proposal
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.records import Content, Stored
from interlock.stores import open_store
from tests.conftest import ALLOW, expect, running
from tests.test_changes import Shelf

CALLS = 60
ENOUGH = '[[rule]]\nid = "enough"\ntools = ["echo"]\ndecision = "deny"\nwhen = "turn.calls >= 1000"\n'
MEASURED = ALLOW.replace("version = 1\n", 'version = 1\nmode = "apply"\n') + ENOUGH


def tools(ran: list[str]) -> list[Any]:
    shelf = Shelf()

    @tool(effect="read")
    async def echo(text: str) -> str:
        ran.append(text)
        return text

    @tool(effect="write", resource=shelf, key="{name}")
    async def put(name: str) -> bool:
        ran.append(name)
        shelf.items[name] = name
        return True

    return [echo, put]


@pytest.fixture
def decodes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The record of every content that is decoded."""
    found: list[int] = []
    whole = Stored.content

    def counted(record: Stored) -> Content:
        found.append(record.id)
        return whole(record)

    monkeypatch.setattr(Stored, "content", counted)
    return found


async def count_calls(runtime: Runtime, turn: str) -> int:
    return len([r async for r in runtime.store.records(Query(turn=turn)) if r.kind == "call"])


async def test_reads_of_a_turn_decode_each_record_once(store_url: str, decodes: list[int]) -> None:
    async with running(*tools([]), store=store_url, policy=MEASURED) as runtime:
        for n in range(CALLS):
            assert (await runtime.call("echo", {"text": f"{n}"}, actor="a", turn="t")).ok
        assert len(decodes) == len(set(decodes)) == CALLS - 1
        again = await runtime.call("echo", {"text": "0"}, actor="a", turn="t")
        assert (again.value, len(decodes)) == ("0", CALLS + 1)  # the last one, and the one that answers


@pytest.mark.parametrize("mode", ["dry_run", "apply"])
async def test_changes_of_a_turn_decode_each_record_once(store_url: str, decodes: list[int], mode: str) -> None:
    async with running(*tools([]), store=store_url, policy=MEASURED) as runtime:
        for n in range(CALLS):
            outcome = await runtime.call("put", {"name": f"{n}"}, actor="a", turn="t", call_id=f"{n}", mode=mode)
            assert outcome.status is (Status.OK if mode == "apply" else Status.PLANNED)
        assert len(decodes) == len(set(decodes)) < CALLS


TRACED = MEASURED + '[[use]]\npack = "provenance"\ntools = ["*"]\n'


ABOUT: dict[str, Any] = {"actor": "a", "question": "put all of the others"}


@tool(effect="read")
async def find(number: int) -> dict[str, str]:
    """Find the name of a number."""
    return {"name": f"word{number}"}


async def test_a_turn_whose_arguments_are_traced_is_decoded_once(store_url: str, decodes: list[int]) -> None:
    async with running(*tools([]), find, store=store_url, policy=TRACED) as runtime:
        for n in range(CALLS):
            for name, given in (("find", {"number": n}), ("put", {"name": f"word{n}"})):
                assert (await runtime.call(name, given, turn=f"t{n // 20}", **ABOUT)).ok
        # The rules and repeats of the path read a turn, and where its arguments come from is known by the same reading.
        again = len(decodes) - len(set(decodes))
        assert again <= 1, "the first turn is read before anybody knows that its arguments are traced"


async def test_of_a_turn_that_was_read_for_something_else_nothing_is_missed(store_url: str) -> None:
    async with running(*tools([]), find, store=store_url, policy=TRACED) as runtime:
        assert (await runtime.call("put", {"name": "word0"}, turn="t", **ABOUT)).status is Status.PARKED
        for n in range(CALLS):  # more than are kept, and none of them is traced
            assert (await runtime.call("find", {"number": n}, turn="t", **ABOUT)).ok
        for n in (0, 17, CALLS - 1):
            assert (await runtime.call("put", {"name": f"word{n}"}, turn="t", **ABOUT)).ok
        assert (await runtime.call("put", {"name": "word1234"}, turn="t", **ABOUT)).status is Status.PARKED


async def test_rounds_of_a_turn_decode_each_record_once(store_url: str, decodes: list[int]) -> None:
    agent = Agent(name="a", tools=("echo",), default="echo", semantic=False)
    async with running(*tools([]), store=store_url, policy=ALLOW) as runtime:
        async with Answers(runtime).turn("what is it?", agent=agent) as turn:
            for n in range(10):
                await turn.propose([Proposal("echo", {"text": f"{n}-{k}"}, f"{n}-{k}") for k in range(3)])
                for _ in range(3):
                    await turn.task()
            await turn.finish("It is nothing that anybody has measured: 12345 acres.")
        # Each once for the rules and repeats of the path, once for the history.
        assert len(decodes) <= 2 * len(set(decodes))
        assert len(set(decodes)) >= 30


async def test_a_history_that_is_carried_on_is_the_one_that_is_read_anew(store_url: str) -> None:
    agent = Agent(name="a", tools=("echo", "put"), default="echo", semantic=False)
    async with running(*tools([]), store=store_url, policy=MEASURED) as runtime:
        histories = Histories(runtime.store)
        async with Answers(runtime).turn("what is it?", agent=agent) as turn:
            for n in range(6):
                await turn.propose(
                    [Proposal("echo" if n % 3 else "put", {"text" if n % 3 else "name": f"{n}"}, f"{n}")]
                )
                if n == 2:
                    await turn.note("said by the way")
                    async with turn.child(agent, "and that?") as child:
                        await child.call("echo", {"text": "inner"})
                for evidence in (False, n > 3):
                    carried = await histories.read(turn.id, evidence=evidence)
                    anew = await read_history(runtime.store, turn.id, evidence=evidence)
                    assert carried == msgspec.structs.replace(anew, kept=carried.kept)
            assert len(carried.sources) == 7


async def test_calls_side_by_side_are_each_counted_once(store_url: str) -> None:
    async with running(*tools([]), store=store_url, policy=MEASURED) as runtime:
        for _ in range(3):
            done = [runtime.call("echo", {"text": f"{n % 20}"}, actor="a", turn="t") for n in range(40)]
            assert all(outcome.ok for outcome in await asyncio.gather(*done))
        assert (await runtime.context.turns.read("t")).view.calls == await count_calls(runtime, "t") == 120


async def test_a_turn_that_fell_out_is_read_again(monkeypatch: pytest.MonkeyPatch, store_url: str) -> None:
    monkeypatch.setattr(turns, "MOST_TURNS", 2)
    ran: list[str] = []
    async with running(*tools(ran), store=store_url, policy=MEASURED) as runtime:
        for _ in range(3):
            for turn in "tuvw":
                assert (await runtime.call("echo", {"text": turn}, actor="a", turn=turn)).ok
        assert ran == list("tuvw")
        assert [(await runtime.context.turns.read(turn)).view.calls for turn in "tuvw"] == [3, 3, 3, 3]
        assert list(runtime.context.turns._kept) == ["v", "w"]


async def test_long_turns_fall_out_by_their_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST_CALLS", 5)
    async with running(*tools([]), policy=MEASURED) as runtime:
        folded = runtime.context.turns
        for turn, count in (("t", 3), ("u", 2), ("v", 3), ("w", 9)):
            for n in range(count):
                await runtime.call("echo", {"text": f"{n}"}, actor="a", turn=turn)
            await folded.read(turn)
            assert list(folded._kept) == {"t": ["t"], "u": ["t", "u"], "v": ["u", "v"], "w": ["w"]}[turn]
            assert folded._calls == sum(kept.view.calls for kept in folded._kept.values())


async def test_a_record_that_cannot_be_decoded_does_not_count_as_read(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Stored.content

    def damaged(record: Stored) -> Content:
        if record.id == 2:
            raise msgspec.DecodeError("damaged")
        return whole(record)

    async with running(*tools([]), policy=MEASURED) as runtime:
        for n in range(3):
            await runtime.call("echo", {"text": f"{n}"}, actor="a", turn="t")
        folded, histories = FoldedTurns(runtime.store, runtime.context.keyed, None), Histories(runtime.store)
        with monkeypatch.context() as patch:
            patch.setattr(Stored, "content", damaged)
            for _ in range(2):
                with pytest.raises(msgspec.DecodeError):
                    await folded.read("t")
                with pytest.raises(msgspec.DecodeError):
                    await histories.read("t")
        assert (await folded.read("t")).view.calls == len((await histories.read("t")).calls) == 3


async def test_where_an_id_and_words_were_each_used_before_the_newer_record_decides() -> None:
    ran: list[str] = []
    async with running(*tools(ran), policy=MEASURED) as runtime:
        first = await runtime.call("echo", {"text": "a"}, actor="a", turn="t", call_id="1")
        second = await runtime.call("echo", {"text": "b"}, actor="a", turn="t", call_id="2")
        reused = await runtime.call("echo", {"text": "a"}, actor="a", turn="t", call_id="2")
        repeated = await runtime.call("echo", {"text": "b"}, actor="a", turn="t", call_id="1")
        other = await runtime.call("echo", {"text": "b"}, actor="b", turn="t", call_id="1")
    assert (first.ok, second.ok, repeated.value, other.value) == (True, True, "b", "b")
    assert expect(reused.problem).reason == "call_id_reused"
    assert ran == ["a", "b", "b"]  # the last one is another actor's


async def test_a_read_is_made_again_after_a_change_in_its_turn(store_url: str) -> None:
    """Read 10, set 7, read again: 7. Only a change ends it, and one that was answered from its record is none."""
    shelf, ran = Shelf(a="10"), list[str]()

    @tool(effect="read")
    async def look(name: str) -> str:
        ran.append(name)
        return str(shelf.items[name])

    @tool(effect="write", resource=shelf, key="{name}")
    async def put(name: str, value: str) -> bool:
        shelf.items[name] = value
        return True

    policy = ALLOW.replace("version = 1\n", 'version = 1\nmode = "apply"\n')
    async with running(look, put, store=store_url, policy=policy) as runtime:

        async def read() -> object:
            return (await runtime.call("look", {"name": "a"}, actor="a", turn="t")).value

        assert [await read(), await read(), ran] == ["10", "10", ["a"]]
        assert (await runtime.call("put", {"name": "a", "value": "7"}, actor="a", turn="t")).ok
        assert [await read(), await read(), ran] == ["7", "7", ["a", "a"]]
        assert (await runtime.call("put", {"name": "a", "value": "7"}, actor="a", turn="t")).ok
        assert [await read(), ran] == ["7", ["a", "a"]]
        below: dict[str, Any] = {"actor": "b", "turn": "below", "parent": "t", "root_turn": "t"}
        assert (await runtime.call("put", {"name": "a", "value": "5"}, **below)).ok
        assert [await read(), await read(), ran] == ["5", "5", ["a", "a", "a"]], "also by a turn that it delegated to"
        elsewhere = await runtime.call("put", {"name": "a", "value": "4"}, actor="b", turn="another")
        assert [elsewhere.ok, await read()] == [True, "5"], "of another turn it is not known here"


async def test_two_runtimes_on_one_store_see_each_others_calls(durable_url: str) -> None:
    ran: list[str] = []
    policy = ALLOW + ENOUGH.replace("1000", "40")
    async with (
        running(*tools(ran), store=durable_url, policy=policy) as one,
        running(*tools(ran), store=durable_url, policy=policy) as two,
    ):
        for n in range(20):
            assert (await one.call("echo", {"text": f"{n}"}, actor="a", turn="t")).ok
            answered = await two.call("echo", {"text": f"{n}"}, actor="a", turn="t")
            assert (answered.value, answered.attempts) == (f"{n}", ())
        assert ran == [f"{n}" for n in range(20)]
        for runtime in (one, two):
            assert (await runtime.call("echo", {"text": "more"}, actor="a", turn="t")).status is Status.DENIED


async def test_two_runtimes_that_write_side_by_side_agree_with_the_ledger(durable_url: str) -> None:
    async with (
        running(*tools([]), store=durable_url, policy=MEASURED) as one,
        running(*tools([]), store=durable_url, policy=MEASURED) as two,
    ):

        async def caller(runtime: Runtime, name: str) -> None:
            for n in range(25):
                assert (await runtime.call("echo", {"text": f"{name}-{n}"}, actor="a", turn="t")).ok

        await asyncio.gather(*(caller(r, f"{k}-{id(r)}") for r in (one, two) for k in range(4)))
        for runtime in (one, two):
            assert (await runtime.context.turns.read("t")).view.calls == await count_calls(one, "t") == 200


class HeldCommit:
    """A store that stops before one commit, when the ids of its records are taken."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def at(self, point: str) -> None:
        if point == "store.commit" and not self.reached.is_set():
            self.reached.set()
            assert self.go_on.wait(30)


async def test_a_smaller_id_that_is_seen_later_is_not_missed(postgres: str) -> None:
    ran: list[str] = []
    held = HeldCommit()
    policy = parse_policy(MEASURED)
    async with (
        running(*tools(ran), store=postgres, policy=MEASURED) as one,
        Runtime.open(open_store(postgres, faults=held), policy=policy, tools=tools(ran)) as two,
    ):
        histories = Histories(one.store)
        await one.call("echo", {"text": "first"}, actor="a", turn="t")
        late = asyncio.create_task(two.call("echo", {"text": "late"}, actor="a", turn="t"))
        assert await asyncio.to_thread(held.reached.wait, 30)
        newer = [await one.call("echo", {"text": f"{n}"}, actor="a", turn="t") for n in range(12)]
        assert (await one.context.turns.read("t")).view.calls == 13
        assert len((await histories.read("t")).calls) == 13
        held.go_on.set()
        assert expect((await late).record) < min(expect(outcome.record) for outcome in newer)
        again = await one.call("echo", {"text": "late"}, actor="a", turn="t")
        assert (again.value, again.attempts, ran.count("late")) == ("late", (), 1)
        assert (await one.context.turns.read("t")).view.calls == 15
        carried = await histories.read("t")
        assert carried == msgspec.structs.replace(await read_history(one.store, "t"), kept=carried.kept)


async def test_a_ledger_that_was_put_back_is_folded_anew(postgres: str) -> None:
    async with running(*tools([]), store=postgres, policy=MEASURED) as runtime:
        histories = Histories(runtime.store)
        for n in range(5):
            await runtime.call("echo", {"text": f"{n}"}, actor="a", turn="t")
        assert (await runtime.context.turns.read("t")).view.calls == len((await histories.read("t")).calls) == 5
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute("DELETE FROM records")
            other.execute("UPDATE lanes SET id = 0, count = 0")
        assert (await runtime.context.turns.read("t")).view.calls == len((await histories.read("t")).calls) == 0
