"""What may touch anything in a resource is held against every key in it: rests, versions, order, plans, what is
forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Context, Status, Tool, tool
from interlock.errors import Forbidden, InDoubt, Unavailable
from interlock.operations import Change
from interlock.resources import Documents
from interlock.state import overlap, overlapping
from interlock.testing import ManualClock
from interlock.values import Versioned
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, WholeShelf, error, retitle, running
from tests.test_planned_versions import elsewhere

REST = '\n[[cooldown]]\nid = "rest"\ntools = ["title", "all"]\nwindow = "7d"\n'
DRY = OPEN.replace('mode = "apply"\n', "")
Between = Callable[[str], Coroutine[Any, Any, None]]
"""What somebody else does between the look of a tool and its write of a key."""


class Notes:
    """Documents, a tool that adds to one of them and one that adds to all, and who comes in between."""

    def __init__(self, folder: Path, name: str = "notes") -> None:
        self.documents = Documents(f"sqlite:///{folder}/documents.db", name)
        self.between: Between | None = None

    async def _write(self, key: str, n: int, context: Context) -> None:
        if self.between is not None:
            await elsewhere(self.between(key))
        await self.documents.write(key, {"n": n}, context)

    def add(self) -> Tool:
        @tool(effect="write", key="{id}", resource=self.documents, simulate=lambda s, a: {"n": s["n"] + a["by"]})
        async def add(id: str, by: int, context: Context) -> bool:
            found = await self.documents.get(id)
            await self._write(id, found["n"] + by, context)
            return True

        return add

    def add_all(self, **options: Any) -> Tool:
        @tool(
            effect="write",
            resource=self.documents,
            simulate=lambda s, a: {key: {"n": item["n"] + a["by"]} for key, item in s.items()},
            **options,
        )
        async def add_all(by: int, context: Context) -> bool:
            for key, found in (await self.documents.snapshot()).items():
                await self._write(key, found["n"] + by, context)
            return True

        return add_all

    async def figures(self) -> dict[str, int]:
        return {key: found["n"] for key, found in (await self.documents.snapshot()).items()}


@asynccontextmanager
async def notes_of(folder: Path, **figures: int) -> AsyncIterator[Notes]:
    notes = Notes(folder)
    for key, figure in figures.items():
        await notes.documents.write(key, {"n": figure})
    yield notes
    await notes.documents.close()


def everything(shelf: WholeShelf, *, simulates: bool) -> Tool:
    """A write that may touch anything, and gives one book a title."""

    @tool(
        effect="write",
        name="all",
        resource=shelf,
        simulate=(lambda s, a: {**s, a["id"]: {"title": a["title"]}}) if simulates else None,
    )
    async def change(id: str, title: str) -> str:
        shelf.items[id] = {"title": title}
        return title

    return change


@pytest.mark.parametrize(
    ("key", "other", "does"),
    [
        ("s/a", "s/a", True),
        ("s/a", "s/b", False),
        ("s/*", "s/b", True),
        ("s/b", "s/*", True),
        ("s/*", "s/*", True),
        ("s/*", "t/b", False),
        ("s/*", "t/*", False),
        ("s/a/*", "s/a/b", False),
    ],
)
def test_keys_overlap_if_they_are_the_same_or_one_stands_for_everything_there(key: str, other: str, does: bool) -> None:
    assert overlap(key, other) is overlap(other, key) is does
    assert overlapping(key, {other: 1}) == ([other] if does else [])


# What rests


@pytest.mark.parametrize("simulates", [False, True])
async def test_a_key_that_rests_is_not_changed_with_its_whole_resource(simulates: bool) -> None:
    shelf = WholeShelf(a={"title": "0"}, b={"title": "0"})
    async with running(retitle(shelf, []), everything(shelf, simulates=simulates), policy=OPEN + REST) as runtime:
        assert (await runtime.call("title", {"id": "a", "title": "1"}, actor="ann", run="r1")).ok
        refused = await runtime.call("all", {"id": "a", "title": "2"}, actor="ann", run="r2")
        assert error(refused) == "cooldown"
        assert "'shelf/a' was changed at" in refused.summary
        assert (await runtime.call("all", {"id": "a", "title": "2"}, actor="ann", run="r1")).ok


@pytest.mark.parametrize("simulates", [False, True])
async def test_what_a_change_of_a_whole_resource_left_alone_does_not_rest(store_url: str, simulates: bool) -> None:
    shelf, clock = WholeShelf(a={"title": "0"}, b={"title": "0"}), ManualClock()
    tools = (retitle(shelf, []), everything(shelf, simulates=simulates))
    async with running(*tools, policy=OPEN + REST, url=store_url, clock=clock) as runtime:
        assert (await runtime.call("all", {"id": "a", "title": "1"}, actor="ann", run="r1")).ok
        assert (await runtime.call("title", {"id": "b", "title": "2"}, actor="ann", run="r2")).ok
        refused = await runtime.call("title", {"id": "a", "title": "2"}, actor="ann", run="r2")
        assert error(refused) == "cooldown"
        assert "'shelf/a' was changed at" in refused.summary
        clock.advance(8 * 86_400.0)
        assert (await runtime.call("title", {"id": "a", "title": "2"}, actor="ann", run="r3")).ok


async def test_a_later_change_of_the_whole_does_not_hide_what_an_earlier_one_touched() -> None:
    shelf = WholeShelf(a={"title": "0"}, b={"title": "0"})
    policy = OPEN + REST.replace('["title", "all"]', '["title"]')
    async with running(retitle(shelf, []), everything(shelf, simulates=True), policy=policy) as runtime:
        assert (await runtime.call("all", {"id": "a", "title": "1"}, actor="ann", run="r1")).ok
        assert (await runtime.call("all", {"id": "b", "title": "1"}, actor="ann", run="r2")).ok
        for key in ("a", "b"):
            assert error(await runtime.call("title", {"id": key, "title": "2"}, actor="ann", run="r3")) == "cooldown"


async def test_where_nothing_says_what_it_touched_everything_rests() -> None:
    shelf = WholeShelf(a={"title": "0"}, b={"title": "0"})
    async with running(retitle(shelf, []), everything(shelf, simulates=True), policy=OPEN + REST) as runtime:
        made = await runtime.call("all", {"id": "a", "title": "1"}, actor="ann", run="r1")
        await runtime.operations.forget(record=made.record, reason="request 17")
        refused = await runtime.call("title", {"id": "b", "title": "2"}, actor="ann", run="r2")
        assert error(refused) == "cooldown"
        assert "'shelf/*' was changed at" in refused.summary


async def test_a_change_of_the_whole_that_changed_nothing_lets_nothing_rest() -> None:
    shelf = WholeShelf(a={"title": "0"})
    policy = OPEN + REST.replace('"title", ', "")
    async with running(everything(shelf, simulates=False), policy=policy) as runtime:
        assert (await runtime.call("all", {"id": "a", "title": "0"}, actor="ann", run="r1")).ok
        assert (await runtime.call("all", {"id": "a", "title": "1"}, actor="ann", run="r2")).ok


# Versions


async def test_what_somebody_edits_between_the_look_and_the_write_is_not_written_over(tmp_path: Path) -> None:
    async with notes_of(tmp_path, a=1) as notes, running(notes.add_all()) as runtime:

        async def edit(key: str) -> None:
            await notes.documents.write(key, {"n": 777})

        notes.between = edit
        outcome = await runtime.call("add_all", {"by": 1}, actor="ann", call_id="c1")
        assert (outcome.status, error(outcome)) == (Status.FAILED, "conflict")
        assert await notes.figures() == {"a": 777}


async def test_a_document_that_was_not_there_is_made_only_if_it_still_is_not(tmp_path: Path) -> None:
    async with notes_of(tmp_path, a=1) as notes:

        @tool(effect="write", resource=notes.documents)
        async def copy_all(context: Context) -> bool:
            for key, found in (await notes.documents.snapshot()).items():
                if notes.between is not None:
                    await elsewhere(notes.between(key))
                await notes.documents.write(f"{key}-copy", found, context)
                await notes.documents.write(f"{key}-copy", {**found, "is": "copy"}, context)  # its own version
            return True

        async with running(copy_all) as runtime:

            async def somebody_else(key: str) -> None:
                await notes.documents.write(f"{key}-copy", {"n": 777})

            notes.between = somebody_else
            outcome = await runtime.call("copy_all", {}, actor="ann", call_id="c1")
            assert (outcome.status, error(outcome)) == (Status.FAILED, "conflict")
            assert (await notes.figures())["a-copy"] == 777
            await notes.documents.write("a-copy", None)
            notes.between = None
            assert (await runtime.call("copy_all", {}, actor="ann", call_id="c2")).ok
            assert await notes.documents.get("a-copy") == {"n": 1, "is": "copy"}


async def test_a_plan_of_the_whole_is_not_made_on_a_document_that_was_left_and_come_back_to(tmp_path: Path) -> None:
    async with notes_of(tmp_path, a=1) as notes, running(notes.add_all()) as runtime:
        planned = await runtime.call("add_all", {"by": 1}, actor="ann", mode="dry_run")
        assert planned.plan is not None
        assert planned.plan.key_versions == {"a": "1"}
        for figure in (2, 1):
            await notes.documents.write("a", {"n": figure})
        outcome = await runtime.call("add_all", {"by": 1}, actor="ann", call_id="c1", plan=planned.plan.digest)
        assert error(outcome) == "plan_moved"


async def test_undo_does_not_go_over_a_version_that_moved_without_a_record(tmp_path: Path, store_url: str) -> None:
    async with notes_of(tmp_path, a=1, b=1) as notes, running(notes.add_all(), url=store_url) as runtime:
        made = await runtime.call("add_all", {"by": 1}, actor="ann", call_id="c1")
        for figure in (0, 2):
            await notes.documents.write("a", {"n": figure})
        ((step, outcome),) = await runtime.operations.undo(record=made.record)
        assert outcome is None
        assert "notes/a has changed since" in step.obstacle
        assert "notes/b" not in step.obstacle
        assert await notes.figures() == {"a": 2, "b": 2}


async def test_what_somebody_else_did_while_a_change_of_the_whole_ran_is_not_its_own(
    tmp_path: Path, store_url: str
) -> None:
    async with notes_of(tmp_path, a=1, b=2, gone=3, z=4) as notes:
        documents = notes.documents

        async def somebody() -> None:
            await documents.write("z", {"n": 40})
            await documents.write("more", {"n": 50})
            await documents.write("gone", None)

        @tool(effect="write", resource=documents)
        async def tidy(context: Context) -> bool:
            await documents.write("a", {"n": 10}, context)
            await documents.write("made", {"n": 60}, context)
            await documents.write("b", None, context)
            await elsewhere(somebody())
            return True

        async with running(tidy, url=store_url) as runtime:
            outcome = await runtime.call("tidy", {}, actor="ann", run="r")
            said = "changed by somebody else while it ran: notes/gone, notes/more, notes/z"
            assert outcome.summary == f"true ({said})"
            ((step, undone),) = await runtime.operations.undo(run="r")
            assert (expect(undone).ok, step.keys) == (True, ("notes/a", "notes/b", "notes/made"))
        assert await notes.figures() == {"a": 1, "b": 2, "more": 50, "z": 40}


async def test_a_key_of_the_whole_that_was_written_over_meanwhile_is_an_obstacle(tmp_path: Path) -> None:
    async with notes_of(tmp_path, a=1, b=2) as notes:
        documents = notes.documents

        @tool(effect="write", resource=documents, simulate=lambda s, a: {**s, "a": {"n": 10}})
        async def tidy(context: Context) -> bool:
            await documents.write("a", {"n": 10}, context)
            await elsewhere(documents.write("a", {"n": 99}))
            return True

        hiding = msgspec.structs.replace(tidy, name="hiding", redact=frozenset({"n"}))
        async with running(hiding) as runtime:
            outcome = await runtime.call("hiding", {}, actor="ann", run="hides")
            assert outcome.summary == "made (changed by somebody else while it ran: notes/*)"
        await documents.write("a", {"n": 1})
        async with running(tidy) as runtime:
            outcome = await runtime.call("tidy", {}, actor="ann", run="r")
            assert (outcome.deviates, outcome.summary) == (
                (),
                "true (changed by somebody else while it ran: notes/a)",
            )
            ((step, undone),) = await runtime.operations.undo(run="r")
        assert (undone, await notes.figures()) == (None, {"a": 99, "b": 2})
        assert "notes/a has changed since" in step.obstacle


async def test_undo_puts_back_what_was_removed_and_not_made_again(tmp_path: Path) -> None:
    async with notes_of(tmp_path, a=1, b=1) as notes:

        @tool(effect="write", resource=notes.documents)
        async def clear(context: Context) -> bool:
            for key in await notes.documents.snapshot():
                await notes.documents.write(key, None, context)
            return True

        async with running(clear) as runtime:
            made = await runtime.call("clear", {}, actor="ann", call_id="c1")
            assert await notes.figures() == {}
            ((_step, outcome),) = await runtime.operations.undo(record=made.record)
            assert outcome is not None
            assert outcome.ok
            assert await notes.figures() == {"a": 1, "b": 1}


async def test_a_change_of_the_whole_that_left_a_key_alone_does_not_stand_in_the_way_of_its_undo() -> None:
    shelf = WholeShelf(a={"title": "0"}, b={"title": "0"})
    async with running(retitle(shelf, []), everything(shelf, simulates=True)) as runtime:
        made = await runtime.call("title", {"id": "a", "title": "1"}, actor="ann", run="r1")
        assert (await runtime.call("all", {"id": "b", "title": "1"}, actor="ann", run="r2")).ok
        ((_step, outcome),) = await runtime.operations.undo(record=made.record)
        assert outcome is not None
        assert outcome.ok
        assert shelf.items == {"a": {"title": "0"}, "b": {"title": "1"}}
        made = await runtime.call("title", {"id": "a", "title": "2"}, actor="ann", run="r3")
        later = await runtime.call("all", {"id": "a", "title": "3"}, actor="ann", run="r4")
        ((step, outcome),) = await runtime.operations.undo(record=made.record)
        assert outcome is None
        assert f"(record {later.record})" in step.obstacle


async def test_an_undo_of_a_key_takes_back_a_change_of_the_whole_only_where_that_touched_it(store_url: str) -> None:
    shelf = WholeShelf(a={"title": "0"}, b={"title": "0"})
    async with running(retitle(shelf, []), everything(shelf, simulates=False), url=store_url) as runtime:
        await runtime.call("title", {"id": "a", "title": "1"}, actor="ann", call_id="1")
        other = await runtime.call("all", {"id": "b", "title": "1"}, actor="ann", call_id="2")
        entries = [entry.op_type async for entry in runtime.operations.journal(key="shelf/a")]
        (step,) = await runtime.operations.undo_plan(key="shelf/a")
        assert (step.keys, entries) == (("shelf/a",), ["title"])
        await runtime.operations.undo(key="shelf/a")
        assert shelf.items == {"a": {"title": "0"}, "b": {"title": "1"}}
        ((step, outcome),) = await runtime.operations.undo(key="shelf/b")
        assert (step.record, expect(outcome).ok, shelf.items["b"]) == (other.record, True, {"title": "0"})
        await runtime.call("all", {"id": "b", "title": "2"}, actor="ann", call_id="3")
        ((step, _outcome),) = await runtime.operations.undo(key="shelf/*")
        assert (step.keys, shelf.items["b"]) == (("shelf/b",), {"title": "0"})


class Blind(Documents):
    """Documents that cannot be seen as a whole for a while."""

    is_blind = False

    async def versioned_snapshot(self) -> dict[str, Versioned]:
        if self.is_blind:
            raise Unavailable("nobody answers")
        return await super().versioned_snapshot()


@pytest.mark.parametrize("moved", [False, True])
async def test_what_was_settled_later_is_taken_back_only_if_nothing_there_has_moved(
    tmp_path: Path, moved: bool
) -> None:
    """Whoever settles it has seen the resource as a whole, and not each version in it."""
    documents = Blind(f"sqlite:///{tmp_path}/documents.db", "notes")
    for key in ("a", "b"):
        await documents.write(key, {"n": 1})

    @tool(
        effect="write",
        resource=documents,
        simulate=lambda s, _a: {key: {"n": item["n"] + 1} for key, item in s.items()},
    )
    async def raise_all(context: Context) -> bool:
        for key, found in (await documents.snapshot()).items():
            await documents.write(key, {"n": found["n"] + 1}, context)
        documents.is_blind = True
        raise InDoubt("the line went dead")

    async with running(raise_all) as runtime:
        assert (await runtime.call("raise_all", {}, actor="ann", call_id="c1", run="r")).status is Status.UNKNOWN
        documents.is_blind = False
        (settled,) = await runtime.operations.recover()
        assert settled.state == "done"
        for figure in (0, 2) if moved else ():
            await documents.write("a", {"n": figure})
        ((step, outcome),) = await runtime.operations.undo(run="r")
        if moved:
            assert outcome is None
            assert "does not say at which version it left notes/a" in step.obstacle
            assert await documents.snapshot() == {"a": {"n": 2}, "b": {"n": 2}}
        else:
            assert outcome is not None
            assert outcome.ok
            assert await documents.snapshot() == {"a": {"n": 1}, "b": {"n": 1}}
    await documents.close()


# Plans


async def test_a_plan_rests_on_a_plan_of_the_whole_and_the_other_way_round(tmp_path: Path) -> None:
    async with notes_of(tmp_path, a=1, b=1) as notes, running(notes.add(), notes.add_all(), policy=DRY) as runtime:
        calls = (("add_all", {"by": 1}), ("add", {"id": "a", "by": 2}), ("add", {"id": "b", "by": 2}))
        one, two, three, four = [
            await runtime.call(name, arguments, actor="ann", turn="t")
            for name, arguments in (*calls, ("add_all", {"by": 3}))
        ]
        rests_on = [outcome.plan.rests_on for outcome in (one, two, three, four) if outcome.plan is not None]
        assert rests_on == [(), (one.record,), (one.record,), (one.record, two.record, three.record)]
        assert two.plan is not None
        alone = await runtime.call(
            "add", {"id": "a", "by": 2}, actor="ann", turn="t", mode="apply", plan=two.plan.digest
        )
        assert error(alone) == "plan_moved"
        assert "rests on" in alone.summary
        assert await notes.figures() == {"a": 1, "b": 1}


async def test_a_shadow_of_the_whole_is_held_against_changes_of_its_keys_and_the_other_way_round(
    tmp_path: Path,
) -> None:
    async with notes_of(tmp_path, a=1, b=1) as notes, running(notes.add(), notes.add_all()) as runtime:
        await runtime.call("add_all", {"by": 1}, actor="model", mode="shadow", run="s1")
        a = await runtime.call("add", {"id": "a", "by": 1}, actor="ann", call_id="c1")
        await runtime.call("add", {"id": "a", "by": 7}, actor="ann", call_id="c2")
        found = await runtime.operations.shadow(run="s1")
        assert [(item.key, item.verdict, item.compared_with) for item in found] == [
            ("notes/a", "agrees", f"ann (record {a.record})"),
            ("notes/b", "pending", "the resource now"),
        ]
        await runtime.call("add", {"id": "b", "by": 5}, actor="model", mode="shadow", run="s2")
        whole = await runtime.call("add_all", {"by": 5}, actor="ann", call_id="c3")
        await notes.documents.write("b", {"n": 0})
        (one,) = await runtime.operations.shadow(run="s2")
        assert (one.key, one.verdict, one.compared_with) == ("notes/b", "agrees", f"ann (record {whole.record})")
        await runtime.call("add_all", {"by": 0}, actor="model", mode="shadow", run="s3")
        (nothing,) = await runtime.operations.shadow(run="s3")
        assert (nothing.key, nothing.verdict) == ("notes/*", "agrees")


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("last", ["add", "add_all"])
async def test_a_set_of_a_whole_and_one_of_its_keys_goes_on_unless_somebody_came_in_between(
    tmp_path: Path, last: str, moved: bool
) -> None:
    async with notes_of(tmp_path, a=1, b=1) as notes, running(notes.add(), notes.add_all()) as runtime:
        changes = {"add": Change("add", {"id": "a", "by": 2}), "add_all": Change("add_all", {"by": 1})}
        planned, refused = await runtime.operations.plan_set(
            [*(c for n, c in changes.items() if n != last), changes[last]], actor="ann"
        )
        assert refused is None
        written: list[str] = []

        async def fails_once(key: str) -> None:
            written.append(key)
            if len(written) == (3 if last == "add" else 2):
                raise Forbidden("not yet")

        notes.between = fails_once
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
        assert [outcome.status for outcome in outcomes] == [Status.OK, Status.FAILED]
        now = await notes.figures()
        for figure in (99, now["a"]) if moved else ():
            await notes.documents.write("a", {"n": figure})
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
        if moved:
            assert error(outcomes[1]) == "plan_moved"
            assert await notes.figures() == now
        else:
            assert [outcome.status for outcome in outcomes] == [Status.OK, Status.OK]
            assert await notes.figures() == {"a": 4, "b": 2}


@pytest.mark.parametrize("first", ["title", "all"])
async def test_a_set_is_made_on_what_a_tool_left_that_could_not_say_it_beforehand(first: str) -> None:
    shelf = WholeShelf(a={"title": "0"}, b={"title": "0"})

    @tool(effect="write", name="title", key="{id}", resource=shelf)
    async def title(id: str, title: str) -> str:
        shelf.items[id] = {"title": title}
        return title

    async with running(title, everything(shelf, simulates=False)) as runtime:
        second = "all" if first == "title" else "title"
        changes = [Change(first, {"id": "a", "title": "1"}), Change(second, {"id": "a", "title": "2"})]
        planned, _refused = await runtime.operations.plan_set(changes, actor="ann")
        outcomes = await runtime.operations.apply_set("s", planned, actor="ann")
        assert [outcome.status for outcome in outcomes] == [Status.OK, Status.OK]
        assert shelf.items == {"a": {"title": "2"}, "b": {"title": "0"}}


async def test_a_replay_makes_a_change_of_the_whole_and_of_its_keys_in_their_order() -> None:
    """Reading everything takes longer than reading one book: nothing but the order of the steps says which is first."""

    class Slow(WholeShelf):
        async def snapshot(self) -> dict[str, Any]:
            for _ in range(500):  # a step that does not wait for this one would be over
                await asyncio.sleep(0)
            return await super().snapshot()

    shelf = Slow(a={"title": "0"}, b={"title": "0"})
    async with running(retitle(shelf, []), everything(shelf, simulates=False)) as runtime:
        assert (await runtime.call("all", {"id": "a", "title": "1"}, actor="ann", call_id="c1", run="r")).ok
        assert (await runtime.call("title", {"id": "a", "title": "2"}, actor="ann", call_id="c2", run="r")).ok
        await runtime.operations.undo(run="r")
        assert shelf.items["a"] == {"title": "0"}
        done = await runtime.operations.replay("r")
        assert [(step.tool, outcome is not None and outcome.ok) for step, outcome in done] == [
            ("all", True),
            ("title", True),
        ]
        assert shelf.items["a"] == {"title": "2"}


async def test_a_simulation_or_snapshot_that_does_not_name_keys_is_a_sentence() -> None:
    shelf = WholeShelf(a={"title": "0"})

    @tool(effect="write", resource=shelf, simulate=lambda _state, _arguments: 5)
    async def odd() -> bool:
        return True

    async with running(odd) as runtime:
        outcome = await runtime.call("odd", {}, actor="ann", mode="dry_run")
        assert error(outcome) == "unreadable"
        assert "simulate returns states by key, not a value of type int" in outcome.summary

    class Listing(Shelf):
        async def snapshot(self) -> list[str]:
            return list(self.items)

    @tool(effect="write", resource=Listing(a={"title": "0"}))
    async def whole() -> bool:
        return True

    async with running(whole) as runtime:
        outcome = await runtime.call("whole", {}, actor="ann", mode="dry_run")
        assert error(outcome) == "unreadable"
        assert "of type list" in outcome.summary


# What is forgotten


@pytest.mark.parametrize("key", ["notes/a", "notes/*"])
async def test_forgetting_a_key_forgets_plans_and_changes_of_the_whole_resource(tmp_path: Path, key: str) -> None:
    async with notes_of(tmp_path, a=1, b=1) as notes, running(notes.add(), notes.add_all()) as runtime:
        other = await runtime.call("add", {"id": "b", "by": 1}, actor="ann", mode="dry_run")
        own = await runtime.call("add", {"id": "a", "by": 1}, actor="ann", mode="dry_run")
        planned = await runtime.call("add_all", {"by": 1}, actor="ann", mode="dry_run")
        made = await runtime.call("add_all", {"by": 1}, actor="ann", call_id="c1")
        forgotten = await runtime.operations.forget(key=key, reason="request 17")
        expected = {own.record, planned.record, made.record} | ({other.record} if key == "notes/*" else set())
        assert expected <= set(forgotten.records)
        left = {number async for number in runtime.store.payload_ids()}
        assert left == ({other.record} if key == "notes/a" else set())


async def test_forgetting_a_key_forgets_plan_sets_and_plans_whose_keys_are_redacted() -> None:
    shelf = Shelf(ann={"title": "0"}, bob={"title": "0"})

    @tool(effect="write", key="{who}", resource=shelf, redact={"who"}, simulate=lambda _s, _a: {"title": "1"})
    async def greet(who: str) -> bool:
        shelf.items[who] = {"title": "1"}
        return True

    async with running(retitle(shelf, []), greet) as runtime:
        there = []
        for who in ("ann", "bob"):
            changes = [Change("title", {"id": who, "title": "2"})]
            planned, _refused = await runtime.operations.plan_set(changes, actor="x")
            await runtime.operations.apply_set(f"set {who[0]}", planned, actor="x")
            assert (await runtime.call("greet", {"who": who}, actor="x", mode="dry_run")).status is Status.PLANNED
            there.append({number async for number in runtime.store.payload_ids()})
        forgotten = await runtime.operations.forget(key="shelf/ann", reason="request 17")
        assert set(forgotten.records) == there[0]
        assert {number async for number in runtime.store.payload_ids()} == there[1] - there[0]


async def test_a_plan_rests_on_one_whose_key_is_redacted() -> None:
    shelf = Shelf(ann={"title": "0"})

    @tool(effect="write", key="{who}", resource=shelf, redact={"who"}, simulate=lambda _s, a: {"title": a["title"]})
    async def greet(who: str, title: str) -> bool:
        return True

    async with running(greet, policy=DRY) as runtime:
        one, two = [await runtime.call("greet", {"who": "ann", "title": t}, actor="x", turn="t") for t in ("1", "2")]
        assert two.plan is not None
        assert two.plan.rests_on == (one.record,)


# Resources of one's own


class VersionedShelf(Shelf):
    """One that gives versions in its snapshot itself, of all books or of some."""

    def __init__(self, *, unversioned: str = "", **items: Any) -> None:
        super().__init__(**items)
        self.unversioned = unversioned

    async def snapshot(self) -> dict[str, Any]:
        return {
            key: item if key == self.unversioned else Versioned(item, f"v{item['n']}")
            for key, item in self.items.items()
        }


@pytest.mark.parametrize(("unversioned", "handed"), [("", {"a": "v1", "b": "v2", "*": "absent"}), ("b", {"a": "v1"})])
async def test_a_tool_is_handed_the_versions_that_the_snapshot_gives(unversioned: str, handed: dict[str, str]) -> None:
    shelf, seen = VersionedShelf(unversioned=unversioned, a={"n": 1}, b={"n": 2}), list[dict[str, str]]()

    @tool(effect="write", resource=shelf)
    async def bump(context: Context) -> bool:
        seen.append(dict(context.versions))
        shelf.items["a"] = {"n": 3}
        return True

    async with running(bump) as runtime:
        outcome = await runtime.call("bump", {}, actor="ann", call_id="c1")
        assert outcome.ok
        assert outcome.plan is not None
        assert outcome.plan.before == [{"a": {"n": 1}, "b": {"n": 2}}]
    assert seen == [handed]
