"""A change lands on the version it was planned on, or not at all; and what it did otherwise is said."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from typing import Any

import httpx
import pytest

from interlock import Context, PolicyError, Runtime, Status, Tool, tool
from interlock.errors import Conflict, InDoubt
from interlock.operations import Change
from interlock.operations.execute import run_undo
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.resources import Documents, HttpDocuments
from interlock.values import Versioned
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, error, retitle, running
from tests.test_resources import Server, server  # noqa: F401 - a fixture


async def elsewhere(work: Coroutine[Any, Any, Any]) -> None:
    """What somebody else does is not the call's, although it is done in the middle of it."""
    await asyncio.create_task(work, context=contextvars.Context())


def retitling(shelf: Any, before_the_write: Any = None) -> Tool:
    """Sets a title through a resource that knows versions; somebody may come in between."""

    @tool(
        effect="write",
        key="{id}",
        resource=shelf,
        simulate=lambda state, arguments: {**(state or {}), "title": arguments["title"]},
    )
    async def title(id: str, title: str, context: Context) -> str:
        if before_the_write is not None:
            await elsewhere(before_the_write(id))
        await shelf.write(id, {"title": title}, context)
        return title

    return title


@pytest.fixture
async def documents(durable_url: str) -> Any:
    made = Documents(durable_url, "shelf")
    await made.write("a", {"title": "old"})
    yield made
    await made.close()


async def set_title(runtime: Any, title: str, **details: Any) -> Any:
    return await runtime.call("title", {"id": "a", "title": title}, actor="ann", **details)


# Undo


async def test_words_that_are_equal_again_hide_no_recorded_change(store_url: str) -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, []), url=store_url) as runtime:
        first = await set_title(runtime, "new", run="r1")
        await set_title(runtime, "other", run="r2")
        last = await set_title(runtime, "new", run="r3")
        ((step, outcome),) = await runtime.operations.undo(run="r1")
        assert (outcome, shelf.items["a"]) == (None, {"title": "new"})
        assert f"has changed since (record {last.record})" in step.obstacle
        for run in ("r3", "r2", "r1"):  # one after the other, each on what the one before it has put back
            ((_step, undone),) = await runtime.operations.undo(run=run)
            assert expect(undone).ok, run
    assert (first.ok, shelf.items["a"]) == (True, {"title": "old"})


async def test_a_version_that_moved_is_seen_where_the_words_are_the_same(documents: Documents) -> None:
    async with running(retitling(documents)) as runtime:
        await set_title(runtime, "new", run="r")
        await documents.write("a", {"title": "a person's"})
        await documents.write("a", {"title": "new"})
        ((step, outcome),) = await runtime.operations.undo(run="r")
    assert (outcome, await documents.get("a")) == (None, {"title": "new"})
    assert "has changed since" in step.obstacle


async def test_an_edit_between_undos_look_and_its_write_is_not_lost(documents: Documents) -> None:
    original, calls = documents.restore_all, list[Any]()

    async def restore_all(states: Any, context: Context | None = None) -> None:
        calls.append(states)
        await elsewhere(documents.write("a", {"title": "new", "by": "a person"}))
        await original(states, context)

    documents.restore_all = restore_all  # type: ignore[method-assign]
    async with running(retitling(documents)) as runtime:
        await set_title(runtime, "new", run="r")
        ((_step, outcome),) = await runtime.operations.undo(run="r")
    assert (len(calls), expect(outcome).status) == (1, Status.FAILED)
    assert await documents.get("a") == {"title": "new", "by": "a person"}


async def test_an_edit_between_the_look_and_the_call_is_not_lost() -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, [])) as runtime:
        await set_title(runtime, "new", run="r")
        steps = await runtime.operations.undo_plan(run="r")
        await set_title(runtime, "other", run="r2")
        await set_title(runtime, "new", run="r3")
        ((_step, outcome),) = await run_undo(runtime._engine.run, runtime.context, steps, by="user:boss", name="u")
    assert (expect(outcome).status, error(expect(outcome))) == (Status.DENIED, "plan_moved")
    assert shelf.items["a"] == {"title": "new"}


async def test_a_step_that_was_refused_stops_those_that_stand_on_it(documents: Documents) -> None:
    async with running(retitling(documents)) as runtime:
        for title in ("b", "c"):
            await set_title(runtime, title, run="r", turn=title)
        steps = await runtime.operations.undo_plan(run="r")
        await documents.write("a", {"title": "b"})  # a person has taken the last one back by hand
        done = await run_undo(runtime._engine.run, runtime.context, steps, by="os:boss", name="u")
    (last, refused), (first, untried) = done
    assert (error(expect(refused)), untried) == ("plan_moved", None)
    assert first.obstacle.startswith(f"record {last.record} (title) came after it and is not taken back")
    assert await documents.get("a") == {"title": "b"}


async def test_what_is_planned_again_is_made_on_the_version_it_was_planned_on_then(documents: Documents) -> None:
    handed: list[Any] = []

    class Meanwhile:
        """Somebody writes between the plan and the lease."""

        def at(self, point: str) -> None:
            if point == "write.begin":
                moved.append(point)

    moved: list[str] = []
    original = documents.read_state

    async def read_state(key: str) -> Any:
        if len(moved) == 1:
            moved.append("written")
            await documents.write(key, {"title": "a person's"})
        return await original(key)

    documents.read_state = read_state  # type: ignore[method-assign]

    @tool(effect="write", key="{id}", resource=documents)
    async def title(id: str, title: str, context: Context) -> str:
        handed.append(dict(context.versions))
        await documents.write(id, {"title": title}, context)
        return title

    async with running(title, faults=Meanwhile()) as runtime:
        outcome = await set_title(runtime, "new", run="r")
    assert (outcome.ok, handed, await documents.get("a")) == (True, [{"a": "2"}], {"title": "new"})


async def test_changes_of_one_run_are_taken_back_on_what_each_other_leaves(documents: Documents) -> None:
    async with running(retitling(documents)) as runtime:
        for n in range(4):
            assert (await set_title(runtime, f"t{n}", run="r", turn=f"t{n}")).ok
        done = await runtime.operations.undo(run="r")
    assert [expect(outcome).status for _step, outcome in done] == [Status.OK] * 4
    assert await documents.get("a") == {"title": "old"}


# The write itself


async def test_a_write_is_held_to_the_version_it_was_planned_on(documents: Documents) -> None:
    async def somebody(key: str) -> None:
        await documents.write(key, {"title": "a person's"})

    async with running(retitling(documents, somebody)) as runtime:
        plan = await set_title(runtime, "new", mode="dry_run", turn="t")
        outcome = await set_title(runtime, "new", run="r", plan=expect(plan.plan).digest)
    assert (outcome.status, error(outcome)) == (Status.FAILED, "conflict")
    assert await documents.get("a") == {"title": "a person's"}


async def test_a_document_that_was_made_meanwhile_is_not_overwritten(documents: Documents) -> None:
    async def somebody(key: str) -> None:
        await documents.write("b", {"title": "a person's"})

    async with running(retitling(documents, somebody)) as runtime:
        outcome = await runtime.call("title", {"id": "b", "title": "new"}, actor="ann", run="r")
    assert (error(outcome), await documents.get("b")) == ("conflict", {"title": "a person's"})


async def test_a_tool_may_write_a_key_twice(documents: Documents) -> None:
    @tool(effect="write", key="{id}", resource=documents)
    async def twice(id: str, context: Context) -> str:
        await documents.write(id, {"title": "half"}, context)
        await documents.write(id, None, context)
        await documents.write(id, {"title": "whole"}, context)
        return "done"

    async with running(twice) as runtime:
        assert (await runtime.call("twice", {"id": "a"}, actor="ann", run="r")).ok
        assert (await runtime.call("twice", {"id": "new"}, actor="ann", run="r")).ok
    assert (await documents.get("a"), await documents.get("new")) == ({"title": "whole"}, {"title": "whole"})


@pytest.mark.slow
async def test_http_documents_send_the_planned_version(server: Server) -> None:  # noqa: F811
    async with httpx.AsyncClient() as client:
        shelf = HttpDocuments(client, server.base, "shelf")
        await shelf.write("a", {"title": "old"})

        async def somebody(_key: str) -> None:
            await shelf.write("a", {"title": "a person's"})

        async with running(retitling(shelf, somebody)) as runtime:
            outcome = await set_title(runtime, "new", run="r")
        assert (error(outcome), server.items["a"]) == ("conflict", {"title": "a person's"})
        async with running(retitling(shelf)) as runtime:
            assert (await set_title(runtime, "new", run="r2")).ok
            assert server.items["a"] == {"title": "new"}
            ((_step, undone),) = await runtime.operations.undo(run="r2")
        assert (expect(undone).ok, server.items["a"]) == (True, {"title": "a person's"})
        held = Context(call_id="c", actor="ann", attempt=1, versions={"a": '"1"'})
        with pytest.raises(Conflict):
            await shelf.write("a", {"title": "late"}, held)


async def test_an_edit_that_a_weak_etag_hides_is_seen(server: Server) -> None:  # noqa: F811
    server.etag = 'W/"means the same"'
    async with httpx.AsyncClient() as client:
        shelf = HttpDocuments(client, server.base, "shelf")
        await shelf.write("a", {"title": "old"})
        async with running(retitling(shelf)) as runtime:
            plan = await set_title(runtime, "new", mode="dry_run", turn="t")
            server.items["a"] = {"title": "a person's"}
            outcome = await set_title(runtime, "new", run="r", plan=expect(plan.plan).digest)
            assert (error(outcome), server.items["a"]) == ("plan_moved", {"title": "a person's"})
            assert (await set_title(runtime, "new", run="r2")).ok
            server.items["a"] = {"title": "a person's again"}
            ((step, undone),) = await runtime.operations.undo(run="r2")
        assert (undone, server.items["a"]) == (None, {"title": "a person's again"})
        assert "has changed since" in step.obstacle


@pytest.mark.slow
async def test_a_second_write_over_http_is_held_to_what_the_first_has_left(server: Server) -> None:  # noqa: F811
    async with httpx.AsyncClient() as client:
        shelf = HttpDocuments(client, server.base, "shelf")
        await shelf.write("a", {"title": "old"})
        edits = [{"title": "a person's"}]

        @tool(effect="write", key="{id}", resource=shelf)
        async def title(id: str, title: str, context: Context) -> str:
            await shelf.write(id, {"title": "draft"}, context)
            if edits:
                await elsewhere(shelf.write(id, edits.pop()))
            await shelf.write(id, {"title": title}, context)
            return title

        async with running(title) as runtime:
            outcome = await set_title(runtime, "new", run="r")
            assert (outcome.status, server.items["a"]) == (Status.UNKNOWN, {"title": "a person's"})
        async with running(title) as runtime:
            assert (await set_title(runtime, "new", run="r")).ok
            assert server.items["a"] == {"title": "new"}
            ((_step, undone),) = await runtime.operations.undo(run="r")
        assert (expect(undone).ok, server.items["a"]) == (True, {"title": "a person's"})


@pytest.mark.parametrize("etag", ["", 'W/"{version}"'])
async def test_a_second_write_is_not_held_where_the_first_was_not_told_its_version(
    server: Server,  # noqa: F811
    etag: str,
) -> None:
    """The limit, as it is written: a server that does not say it."""
    held = Context(call_id="c", actor="ann", attempt=1, versions={"a": '"1"'})
    async with httpx.AsyncClient() as client:
        shelf = HttpDocuments(client, server.base, "shelf")
        await shelf.write("a", {"n": 1})
        server.etag = etag
        await shelf.write("a", {"n": 2}, held)
        await shelf.write("a", {"n": 0})
        await shelf.write("a", {"n": 3}, held)
    assert (server.items["a"], held.written) == ({"n": 3}, {"shelf/a": None})


# Somebody else, after the write and before the call ends


def overtaken_tool(shelf: Any, edit: Any, *, simulates: bool = False) -> Tool:
    """Writes a title, and then takes a moment in which somebody else comes."""

    @tool(
        effect="write",
        key="{id}",
        resource=shelf,
        simulate=(lambda _state, arguments: {"title": arguments["title"]}) if simulates else None,
    )
    async def title(id: str, title: str, context: Context) -> str:
        await shelf.write(id, {"title": title}, context)
        await elsewhere(edit(id))
        return title

    return title


@pytest.mark.parametrize("simulates", [False, True])
async def test_an_edit_after_the_write_is_not_taken_for_the_calls_own(documents: Documents, simulates: bool) -> None:
    edited = {"title": "new", "by": "a person"}

    async def edit(key: str) -> None:
        await documents.write(key, edited)

    async with running(overtaken_tool(documents, edit, simulates=simulates)) as runtime:
        outcome = await set_title(runtime, "new", run="r")
        assert (outcome.status, outcome.deviates) == (Status.OK, ())
        assert outcome.summary == "new (changed by somebody else while it ran: shelf/a)"
        number = expect(outcome.record)
        (record,) = [item async for item in runtime.context.store.records(Query(after=number - 1, until=number))]
        assert expect(record.content().change).versions == ("2",), "the version that this call has left"
        (entry,) = [entry async for entry in runtime.operations.journal(run="r")]
        assert entry.after == {"a": {"title": "new"}}
        ((step, undone),) = await runtime.operations.undo(run="r")
        assert (undone, await documents.get("a")) == (None, edited)
        assert "shelf/a has changed since" in step.obstacle


async def test_an_edit_after_the_write_with_the_same_words_is_seen_by_its_version(documents: Documents) -> None:
    async def edit(key: str) -> None:
        await documents.write(key, {"title": "new"})

    async with running(overtaken_tool(documents, edit)) as runtime:
        await set_title(runtime, "new", run="r")
        ((step, undone),) = await runtime.operations.undo(run="r")
    assert (undone, await documents.get("a")) == (None, {"title": "new"})
    assert "shelf/a has changed since" in step.obstacle


async def test_what_somebody_removed_or_made_again_meanwhile_stays_so(documents: Documents) -> None:
    async def remove(key: str) -> None:
        await documents.write(key, None)

    async with running(overtaken_tool(documents, remove)) as runtime:
        await set_title(runtime, "new", run="r")
        ((_step, undone),) = await runtime.operations.undo(run="r")
    assert (undone, await documents.read_state("a")) == (None, None)

    @tool(effect="write", key="{id}", resource=documents)
    async def drop(id: str) -> bool:
        await documents.write(id, None)  # without its context: it is noted all the same
        await elsewhere(documents.write(id, {"title": "a person's"}))
        return True

    await documents.write("a", {"title": "old"})
    async with running(drop) as runtime:
        assert (await runtime.call("drop", {"id": "a"}, actor="ann", run="r")).ok
        ((_step, undone),) = await runtime.operations.undo(run="r")
    assert (undone, await documents.get("a")) == (None, {"title": "a person's"})


async def test_a_key_that_the_call_did_not_write_is_not_put_back(documents: Documents) -> None:
    await documents.write("b", {"title": "old"})

    @tool(effect="write", key=lambda arguments: tuple(arguments["ids"]), resource=documents)
    async def first(ids: list[str], context: Context) -> bool:
        for id in ids[:-1]:
            await documents.write(id, {"title": "new"}, context)
        await elsewhere(documents.write(ids[-1], {"title": "a person's"}))
        return True

    async with running(first) as runtime:
        both = await runtime.call("first", {"ids": ["a", "b"]}, actor="ann", run="both")
        none = await runtime.call("first", {"ids": ["a"]}, actor="ann", run="none")
        assert [outcome.summary for outcome in (both, none)] == [
            "true (changed by somebody else while it ran: shelf/b)",
            "true (changed by somebody else while it ran: shelf/a)",
        ]
        ((step, undone),) = await runtime.operations.undo(run="none")
        assert (step.obstacle[:50], undone) == ("no write of it was noted, but shelf/a is not at th", None)
        await documents.write("a", {"title": "new"})
        ((step, undone),) = await runtime.operations.undo(run="both", force=True)
        assert step.keys == ("shelf/a",)
    assert await documents.get("b") == {"title": "a person's"}


async def test_a_change_that_its_resource_has_noted_is_there_although_it_was_written_over(documents: Documents) -> None:
    async def edit(key: str) -> None:
        await documents.write(key, {"title": "a person's"})

    made = overtaken_tool(documents, edit, simulates=True)

    @tool(effect="write", key="{id}", resource=documents, simulate=lambda _s, a: {"title": a["title"]})
    async def title(id: str, title: str, context: Context) -> str:
        await made.body(made.input.parse({"id": id, "title": title}), context)
        raise InDoubt("the answer is lost")

    async with running(title) as runtime:
        outcome = await set_title(runtime, "new", run="r")
        assert (outcome.status, error(outcome)) == (Status.OK, "answer_lost")
        ((step, undone),) = await runtime.operations.undo(run="r")
    assert (undone, await documents.get("a")) == (None, {"title": "a person's"})
    assert "shelf/a has changed since" in step.obstacle


async def test_a_set_is_not_made_on_what_somebody_wrote_while_its_first_change_ran(documents: Documents) -> None:
    edited = {"title": "a person's"}

    async def edit(key: str) -> None:
        if await documents.get(key) == {"title": "one"}:
            await documents.write(key, edited)

    async with running(overtaken_tool(documents, edit)) as runtime:
        changes = [Change("title", {"id": "a", "title": title}) for title in ("one", "two")]
        planned, _wrong = await runtime.operations.plan_set(changes, actor="ann", name="set")
        made = await runtime.operations.apply_set("set", planned, actor="ann")
    assert [outcome.status for outcome in made] == [Status.OK, Status.DENIED]
    assert await documents.get("a") == edited


async def test_an_edit_after_a_write_over_http_is_not_taken_for_the_calls_own(server: Server) -> None:  # noqa: F811
    async with httpx.AsyncClient() as client:
        shelf = HttpDocuments(client, server.base, "shelf")
        await shelf.write("a", {"title": "old"})

        async def edit(key: str) -> None:
            await shelf.write(key, {"title": "a person's"})

        async with running(overtaken_tool(shelf, edit)) as runtime:
            outcome = await set_title(runtime, "new", run="r")
            assert outcome.summary == "new (changed by somebody else while it ran: shelf/a)"
            ((step, undone),) = await runtime.operations.undo(run="r")
    assert (undone, server.items["a"]) == (None, {"title": "a person's"})
    assert "shelf/a has changed since" in step.obstacle


@pytest.mark.slow
async def test_a_write_that_lost_its_answer_and_one_by_other_means_are_still_the_calls_own(
    server: Server,  # noqa: F811
) -> None:
    async with httpx.AsyncClient() as client:
        shelf = HttpDocuments(client, server.base, "shelf")
        await shelf.write("a", {"title": "old"})

        @tool(effect="write", key="{id}", resource=shelf)
        async def title(id: str, title: str, context: Context) -> str:
            await shelf.write(id, {"title": "draft"}, context)
            if title == "lost":
                server.answers = ["drop"]
                with pytest.raises(InDoubt):
                    await shelf.write(id, {"title": title}, context)
            else:
                await shelf.send("PUT", f"{server.base}/{id}", {"title": title}, {}, context)
            return title

        for n, way in enumerate(("lost", "sent")):
            async with running(title) as runtime:
                outcome = await set_title(runtime, way, run="r")
                assert (outcome.summary, server.items["a"]) == (way, {"title": way}), n
                ((_step, undone),) = await runtime.operations.undo(run="r")
            assert (expect(undone).ok, server.items["a"]) == (True, {"title": "old"})


class Numbered(Shelf):
    """Somebody else's resource, with versions; `says` is whether it notes what it writes."""

    def __init__(self, *, says: bool, **items: Any) -> None:
        super().__init__(**items)
        self.version, self.says = 1, says

    async def read_state(self, key: str) -> Any:
        return Versioned(self.items[key], str(self.version)) if key in self.items else None

    async def write(self, key: str, state: Any, context: Context | None = None) -> None:
        self.items[key] = state
        self.version += 1
        if context is not None and self.says:
            context.wrote(self.name, key, Versioned(state, str(self.version)))


@pytest.mark.parametrize(("says", "left"), [(True, {"title": "a person's"}), (False, {"title": "old"})])
async def test_a_resource_of_ones_own_can_say_what_it_wrote(says: bool, left: Any, store_url: str) -> None:
    """The second is the limit, as it is written: one that does not say so."""
    shelf = Numbered(says=says, a={"title": "old"})

    async def edit(key: str) -> None:
        await shelf.write(key, {"title": "a person's"})

    async with running(overtaken_tool(shelf, edit), url=store_url) as runtime:
        await set_title(runtime, "new", run="r")
        await runtime.operations.undo(run="r")
    assert shelf.items["a"] == left


def test_what_is_noted_is_as_it_was_written_and_moves_what_the_call_is_held_to() -> None:
    context = Context(call_id="c", actor="ann", attempt=1, versions={"a": "1", "b": "4"})
    state = {"title": "new"}
    context.wrote("shelf", "a", Versioned(state, "2"))
    state["title"] = "changed since"
    context.wrote("shelf", "b", None)
    context.wrote("shelf", "c", Versioned(None, "9"))
    noted = {"shelf/a": Versioned({"title": "new"}, "2"), "shelf/b": None, "shelf/c": Versioned(None, "absent")}
    assert (context.versions, context.written) == ({"a": "2"}, noted)


# Not as planned


def doing_something_else(shelf: Shelf) -> Tool:
    @tool(
        effect="write",
        key="{id}",
        resource=shelf,
        simulate=lambda state, arguments: {**(state or {}), "title": arguments["title"]},
    )
    async def title(id: str, title: str) -> str:
        shelf.items[id] = {"title": title.upper()}
        return title

    return title


async def test_what_was_done_otherwise_than_planned_is_said(store_url: str) -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(doing_something_else(shelf), url=store_url) as runtime:
        outcome = await set_title(runtime, "new", run="r")
        assert (outcome.status, outcome.deviates) == (Status.OK, ("shelf/a",))
        assert outcome.summary == "new (not as planned: shelf/a)"
        (entry,) = [entry async for entry in runtime.operations.journal(run="r")]
        assert entry.deviates == ("a",)
        repeat = await set_title(runtime, "new", run="r")
        assert (repeat.repeats, repeat.deviates, repeat.summary) == (outcome.record, ("shelf/a",), outcome.summary)
        as_planned = await runtime.call("title", {"id": "b", "title": "X"}, actor="ann", run="r")
        assert (as_planned.deviates, as_planned.summary) == ((), "X")
        ((_step, undone),) = await runtime.operations.undo(record=outcome.record)
    assert (expect(undone).ok, shelf.items["a"]) == (True, {"title": "old"})


async def test_a_policy_can_make_that_a_failure_and_it_can_be_undone() -> None:
    shelf = Shelf(a={"title": "old"})
    strict = OPEN.replace("version = 1\n", 'version = 1\nas_planned = ["tit*"]\n')
    async with running(doing_something_else(shelf), policy=strict) as runtime:
        outcome = await set_title(runtime, "new", run="r")
        assert (outcome.status, error(outcome)) == (Status.FAILED, "not_as_planned")
        again = await set_title(runtime, "new", run="r")
        assert (again.status, shelf.items["a"]) == (Status.FAILED, {"title": "NEW"}), "it is not made once more"
        ((_step, undone),) = await runtime.operations.undo(run="r")
    assert (expect(undone).ok, shelf.items["a"]) == (True, {"title": "old"})


def test_as_planned_names_tools_that_there_are() -> None:
    policy = parse_policy('version = 1\nas_planned = ["titel"]\n')
    with pytest.raises(PolicyError, match="as_planned names an unknown tool 'titel'"):
        Runtime.open("memory://", policy=policy, tools=[retitle(Shelf(), [])])
    with pytest.raises(PolicyError, match="as_planned is a list of names"):
        parse_policy('version = 1\nas_planned = "title"\n')


# Planned again


async def test_who_waited_for_a_key_is_handed_the_versions_of_the_plan_made_anew(documents: Documents) -> None:
    inside, planned, release = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def wait_inside(_key: str) -> None:
        if not inside.is_set():
            inside.set()
            await release.wait()

    class Planned:
        """Tells that the second call was planned, on a version that is about to be gone."""

        def at(self, point: str) -> None:
            if point == "write.begin" and inside.is_set():
                planned.set()

    async with running(retitling(documents, wait_inside), faults=Planned()) as runtime:
        first = asyncio.create_task(set_title(runtime, "first", call_id="1"))
        await inside.wait()
        second = asyncio.create_task(set_title(runtime, "second", call_id="2"))
        await planned.wait()
        release.set()
        outcomes = [await first, await second]
    assert [(outcome.status, outcome.problem) for outcome in outcomes] == [(Status.OK, None)] * 2
    assert outcomes[1].plan.before == [{"title": "first"}]
    assert await documents.get("a") == {"title": "second"}


async def test_what_a_call_wrote_beside_its_keys_is_said_and_undo_does_not_deny_it(documents: Documents) -> None:
    @tool(effect="write", key="{k}", resource=documents)
    async def put(k: str, own: bool, context: Context) -> str:
        if own:
            await documents.write(k, {"v": 1}, context)
        await documents.write(f"other-{k}", {"v": 1}, context)
        return k

    other = f"{documents.name}/other-"
    async with running(put) as runtime:
        first = await runtime.call("put", {"k": "x", "own": False}, actor="ann", call_id="1")
        second = await runtime.call("put", {"k": "y", "own": True}, actor="ann", call_id="2")
        assert (first.deviates, second.deviates) == ((f"{other}x",), (f"{other}y",))
        assert f"(not as planned: {other}x)" in first.summary
        ((step, outcome),) = await runtime.operations.undo(record=expect(first.record))
        assert outcome is None
        assert step.obstacle.startswith(f"it wrote {other}x beside the keys that it names")
        ((step, outcome),) = await runtime.operations.undo(record=expect(second.record))
        assert expect(outcome).ok
        assert f"leaves {other}y, which it wrote beside its keys" in expect(step.diff)
    assert sorted(await documents.snapshot()) == ["a", "other-x", "other-y"]


@pytest.mark.parametrize("handed", [True, False])
async def test_a_write_in_a_thread_of_the_tool_s_own_is_noted_by_its_context_and_never_said_to_be_nothing(
    documents: Documents, handed: bool
) -> None:
    @tool(effect="write", key="{k}", resource=documents)
    async def put(k: str, context: Context) -> str:
        writing = documents.write(k, {"v": 1}, context if handed else None)
        await asyncio.get_running_loop().run_in_executor(None, asyncio.run, writing)
        return k

    async with running(put) as runtime:
        made = await runtime.call("put", {"k": "x"}, actor="ann", call_id="1")
        assert made.ok, made
        ((step, outcome),) = await runtime.operations.undo(record=expect(made.record))
    if handed:
        assert expect(outcome).ok
    else:
        assert step.obstacle.startswith(f"no write of it was noted, but {documents.name}/x is not at the version")
    assert await documents.read_many(["x"]) == ({} if handed else {"x": Versioned({"v": 1}, "1")})
