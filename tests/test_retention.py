"""Deleting payloads: what is old, what somebody wants forgotten, what is kept, and a ledger that stays intact."""

from __future__ import annotations

import json
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from interlock import ConfigError, ContractError, Runtime, Status, Tool, tool
from interlock.audit import verify
from interlock.config import Settings
from interlock.errors import NotAllowed
from interlock.operations import Erasure
from interlock.ports import Query
from interlock.records import Stored
from interlock.stores import open_store
from interlock.testing import ManualClock
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, mailing, retitle, running
from tests.test_cli_changes import Run
from tests.test_cli_changes import run as run

DAY = 86_400.0
ASK = OPEN + '[[rule]]\nid = "ask"\ntools = ["title"]\ndecision = "review"\nwhen = "args.id == \'asked\'"\n'


def look_up(**options: Any) -> Tool:
    @tool(effect="read", redact={"ssn"}, name="look_up", **options)
    async def read(ssn: str, page: int = 1) -> str:
        """Whose number it is."""
        return f"owner of {ssn}"

    return read


async def there(runtime: Runtime) -> list[int]:
    return [number async for number in runtime.store.payload_ids()]


async def records(runtime: Runtime) -> list[Stored]:
    return [record async for record in runtime.store.records(Query())]


async def test_a_purge_deletes_old_payloads_leaves_their_records_and_says_so(store_url: str) -> None:
    clock = ManualClock()
    async with running(look_up(), url=store_url, clock=clock) as runtime:
        for number in ("078-05-1120", "078-05-1121"):
            await runtime.call("look_up", {"ssn": number}, actor="ann")
            clock.advance(60 * DAY)
        await runtime.call("look_up", {"ssn": "078-05-1122"}, actor="ann")
        before = await records(runtime)
        plan = await runtime.operations.purge_plan(older_than=timedelta(days=90))
        assert (plan.records, plan.tools, plan.tombstones) == ((before[0].id,), {"look_up": 1}, ())
        assert plan.oldest_us == plan.newest_us == before[0].at_us
        assert len(await there(runtime)) == 3
        done = await runtime.operations.purge(older_than=timedelta(days=90), by="user:boss")
        assert await there(runtime) == [record.id for record in before[1:]]
        after = await records(runtime)
        assert after[:3] == before
        (tombstone,) = after[3:]
        assert (tombstone.kind, tombstone.status, tombstone.id) == ("erasure", "purged", done.tombstones[0])
        said = tombstone.content()
        assert (said.principal, said.arguments) == (
            "user:boss",
            {"older_than_s": 90 * DAY, "count": 1, "records": [before[0].id]},
        )
        assert after[0].content().arguments_digest is not None
        assert (await verify(runtime.store)).problems == ()
        again = await runtime.operations.purge(older_than=timedelta(days=90))
        assert (again.records, again.tombstones) == ((), ())


async def test_each_tool_says_how_long_its_payloads_are_kept(store_url: str) -> None:
    clock = ManualClock()
    short, long = look_up(retention="30d"), retitle(Shelf(), [], retention=timedelta(days=300))
    async with running(short, long, mailing([]), url=store_url, clock=clock) as runtime:
        for name, arguments in (
            ("look_up", {"ssn": "1-2-3"}),
            ("title", {"id": "a", "title": "x"}),
            ("mail", {"to": "b"}),
        ):
            assert (await runtime.call(name, arguments, actor="ann", turn="t")).ok
        clock.advance(31 * DAY)
        assert (await runtime.operations.purge()).tools == {"look_up": 1}
        assert (await runtime.operations.purge()).records == ()
        clock.advance(300 * DAY)
        assert (await runtime.operations.purge(tool="look_up")).records == ()
        assert (await runtime.operations.purge()).tools == {"title": 2}
        with pytest.raises(ConfigError, match=r"'mail' does not say how long its payloads are kept.*--older-than 90d"):
            await runtime.operations.purge(tool="mail")
        with pytest.raises(ConfigError, match="older_than must be a stretch of time"):
            await runtime.operations.purge(older_than=timedelta(0))
        assert (await runtime.operations.purge(older_than=timedelta(days=1), tool="mail")).tools == {"mail": 2}
        assert (await verify(runtime.store)).problems == ()


async def test_without_any_retention_an_age_must_be_said() -> None:
    async with running(look_up()) as runtime:
        with pytest.raises(ConfigError, match="no tool says how long its payloads are kept"):
            await runtime.operations.purge_plan()


async def test_a_change_that_its_tool_promises_to_undo_is_kept_and_one_that_it_does_not_is_not(store_url: str) -> None:
    clock, shelf = ManualClock(), Shelf(a={"title": "old"})
    async with running(retitle(shelf, [], retention="100d"), url=store_url, clock=clock) as runtime:
        assert (await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", run="r")).ok
        clock.advance(50 * DAY)
        kept = await runtime.operations.purge(older_than=timedelta(days=10))
        assert (kept.records, len(kept.kept), kept.changes) == ((), 2, 0)
        assert "can be taken back for 100 days, as its tool says" in kept.kept[0].why
        clock.advance(51 * DAY)
        gone = await runtime.operations.purge(older_than=timedelta(days=10))
        assert (len(gone.records), gone.kept, gone.changes) == (2, (), 1)
        (step,) = await runtime.operations.undo_plan(run="r")
        assert "snapshots have been deleted" in step.obstacle
        assert (await verify(runtime.store)).problems == ()


async def test_what_is_in_doubt_or_waits_for_a_person_is_kept_by_purge_and_by_forget(store_url: str) -> None:
    clock, shelf = ManualClock(), Shelf()
    policy = ASK.replace("[review]\n", '[review]\nexpires = "3000d"\n')
    tools = (mailing([], RuntimeError("no answer")), retitle(shelf, []))
    async with running(*tools, policy=policy, url=store_url, clock=clock) as runtime:
        lost = await runtime.call("mail", {"to": "ann"}, actor="ann", turn="t")
        asked = await runtime.call("title", {"id": "asked", "title": "x"}, actor="ann", turn="t")
        assert (lost.status, asked.status) == (Status.UNKNOWN, Status.PARKED)
        clock.advance(400 * DAY)
        before = await there(runtime)
        for made in (
            await runtime.operations.purge(older_than=timedelta(days=1)),
            await runtime.operations.forget(actor="ann", reason="asked for it"),
        ):
            assert made.records == ()
            assert {item.record for item in made.kept} == set(before)
            assert {item.tool: item.why.partition(";")[2] for item in made.kept} == {
                "mail": " settle it first (interlock recover)",
                "title": " decide or use it first",
            }
        assert await there(runtime) == before
        await runtime.operations.decide(expect(asked.ticket), approve=True, by="user:boss")
        kept = await runtime.operations.purge_plan(older_than=timedelta(days=1))
        assert f"ticket {asked.ticket} is approved" in kept.kept[-1].why
        assert (await runtime.operations.resume(expect(asked.ticket))).ok


async def test_what_a_person_said_about_a_doubt_keeps_nothing_any_longer(store_url: str) -> None:
    clock, made = ManualClock(), list[str]()
    async with running(mailing(made, RuntimeError("no answer")), url=store_url, clock=clock) as runtime:
        await runtime.call("mail", {"to": "ann"}, actor="ann", turn="t")
        (found,) = await runtime.operations.recover()
        await runtime.operations.decide(expect(found.ticket), approve=True, by="user:boss", reason="it is there")
        clock.advance(2 * DAY)
        plan = await runtime.operations.forget_plan(actor="ann")
        done = await runtime.operations.purge(older_than=timedelta(days=1))
        assert (plan.kept, done.kept, plan.records != ()) == ((), (), True)
        assert await there(runtime) == []
        assert (await verify(runtime.store)).problems == ()


async def test_what_a_turn_has_found_is_kept_while_it_waits_for_a_person(store_url: str) -> None:
    clock = ManualClock()
    policy = ASK.replace("[review]\n", '[review]\nexpires = "30d"\n')
    async with running(look_up(), retitle(Shelf(), []), policy=policy, url=store_url, clock=clock) as runtime:
        await runtime.call("look_up", {"ssn": "078-05-1120"}, actor="ann", turn="t")
        asked = await runtime.call("title", {"id": "asked", "title": "x"}, actor="ann", turn="t")
        clock.advance(2 * DAY)
        kept = await runtime.operations.purge(older_than=timedelta(days=1))
        assert kept.records == ()
        assert kept.kept[0].why == f"its turn waits for ticket {asked.ticket}; decide or use it first"
        clock.advance(30 * DAY)
        assert len((await runtime.operations.purge(older_than=timedelta(days=1))).records) == 2, "it has expired"


async def test_forget_takes_the_payloads_of_an_actor_and_leaves_digests_and_a_tombstone(store_url: str) -> None:
    async with running(look_up(), url=store_url) as runtime:
        for actor, number in (("ann", "078-05-1120"), ("bob", "078-05-1121")):
            await runtime.call("look_up", {"ssn": number}, actor=actor)
        plan = await runtime.operations.forget_plan(actor="ann")
        assert (len(plan.records), plan.in_clear) == (1, 1), "page stands in the record, in clear"
        done = await runtime.operations.forget(actor="ann", reason="request 17", by="user:boss")
        first, second, tombstone = await records(runtime)
        assert await there(runtime) == [second.id]
        assert (tombstone.status, done.tombstones) == ("forgotten", (tombstone.id,))
        said: Any = tombstone.content().arguments
        assert (said["by"], said["reason"], said["records"]) == ("actor", "request 17", [first.id])
        assert "ann" not in json.dumps(said), "the name may be the very thing that is to be forgotten"
        assert len(said["digest"]) == 32
        assert first.content().arguments_digest is not None
        assert (await verify(runtime.store)).problems == ()
        with pytest.raises(NotAllowed, match="no record matches"):
            await runtime.operations.forget(actor="nobody", reason="r")


async def test_forget_takes_everything_about_a_key_with_its_undo_and_nothing_about_others(store_url: str) -> None:
    shelf = Shelf(a={"title": "old"}, b={"title": "old"})
    async with running(retitle(shelf, []), url=store_url) as runtime:
        for key in ("a", "b"):
            assert (await runtime.call("title", {"id": key, "title": "new"}, actor="ann", run=key)).ok
        await runtime.call("title", {"id": "a", "title": "newer"}, actor="ann", mode="dry_run")
        ((_step, undone),) = await runtime.operations.undo(run="a", by="user:boss")
        assert expect(undone).ok
        about_b = [record.id for record in await records(runtime) if '"shelf/b"' in record.body]
        assert len(about_b) == 2
        made = await runtime.operations.forget(key="shelf/a", reason="r")
        assert (made.tools, made.kept) == ({"title": 3, "undo.shelf": 2}, ())
        assert await there(runtime) == about_b
        assert (await verify(runtime.store)).problems == ()


async def test_forgetting_an_actor_takes_along_what_was_done_to_its_changes_by_others(store_url: str) -> None:
    shelf = Shelf(a={"title": "old"})
    async with running(retitle(shelf, []), url=store_url) as runtime:
        assert (await runtime.call("title", {"id": "a", "title": "new"}, actor="ann", run="r")).ok
        await runtime.operations.undo(run="r", by="user:boss")
        made = await runtime.operations.forget(actor="ann", reason="r")
        assert made.tools == {"title": 2, "undo.shelf": 2}
        assert await there(runtime) == []


async def test_forget_takes_the_whole_call_of_a_record_and_answers_that_were_given_from_it(store_url: str) -> None:
    async with running(look_up(), mailing([]), url=store_url) as runtime:
        first = await runtime.call("look_up", {"ssn": "078-05-1120"}, actor="ann", turn="t")
        again = await runtime.call("look_up", {"ssn": "078-05-1120"}, actor="ann", turn="t")
        other = await runtime.call("look_up", {"ssn": "078-05-1121"}, actor="ann", turn="t")
        sent = await runtime.call("mail", {"to": "ann"}, actor="ann", turn="t")
        made = await runtime.operations.forget(record=expect(first.record), reason="r")
        assert made.records == (first.record, again.record)
        made = await runtime.operations.forget(record=expect(sent.record), reason="r")
        assert len(made.records) == 2, "the intent and the outcome"
        assert await there(runtime) == [other.record]
        with pytest.raises(ConfigError, match="there is no record 99"):
            await runtime.operations.forget(record=99, reason="r")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "forget what\\? name one of key="),
        ({"actor": "ann", "key": "a/b"}, "name one of"),
        ({"key": "plain"}, "'plain' is not a key; write RESOURCE/KEY"),
        ({"actor": "ann", "reason": " "}, "forget why\\?"),
    ],
)
async def test_what_is_to_be_forgotten_and_why_must_be_said(given: dict[str, Any], said: str) -> None:
    async with running(look_up()) as runtime:
        with pytest.raises(ConfigError, match=said):
            await runtime.operations.forget(**{"reason": "r", **given})


async def test_many_payloads_go_in_several_commits_each_with_its_record(store_url: str) -> None:
    clock = ManualClock()
    async with running(look_up(), url=store_url, clock=clock) as runtime:
        for number in range(501):
            await runtime.call("look_up", {"ssn": f"078-05-{number}"}, actor="ann")
        clock.advance(2 * DAY)
        made: Erasure = await runtime.operations.purge(older_than=timedelta(days=1))
        assert (len(made.records), len(made.tombstones)) == (501, 2)
        assert await there(runtime) == []
        assert (await verify(runtime.store)).problems == ()


async def test_payloads_whose_key_is_lost_can_still_be_deleted(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    async with running(look_up(), url=url) as runtime:
        await runtime.call("look_up", {"ssn": "078-05-1120"}, actor="ann")
    (tmp_path / "config" / "interlock" / "payloads.key").unlink()
    async with running(look_up(), url=url) as runtime:
        assert len((await runtime.operations.forget(actor="ann", reason="r")).records) == 1
        assert (await verify(runtime.store)).problems == ()


async def test_what_is_deleted_is_not_left_in_the_file_or_its_log(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    async with running(look_up(), url=f"sqlite:///{file}", settings=Settings(payload_key="none")) as runtime:
        await runtime.call("look_up", {"ssn": "078-05-1120"}, actor="ann")
        assert any(b"078-05-1120" in part.read_bytes() for part in tmp_path.glob("x.db*"))
        await runtime.operations.forget(actor="ann", reason="r")
        assert [part.name for part in tmp_path.glob("x.db*") if b"078-05-1120" in part.read_bytes()] == []


async def test_what_somebody_still_reads_is_not_called_gone_and_goes_with_the_next_commit(tmp_path: Path) -> None:
    file = tmp_path / "x.db"

    def left() -> list[str]:
        return [part.name for part in tmp_path.glob("x.db*") if b"078-05-1120" in part.read_bytes()]

    async with running(look_up(), url=f"sqlite:///{file}", settings=Settings(payload_key="none")) as runtime:
        await runtime.call("look_up", {"ssn": "078-05-1120"}, actor="ann")
        reader = sqlite3.connect(file)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM records").fetchone()
        gone = await runtime.operations.forget(actor="ann", reason="r")
        assert (len(gone.records), gone.lingers, left()) == (1, True, ["x.db-wal"])
        reader.close()
        await runtime.call("look_up", {"ssn": "another"}, actor="bob")
        assert left() == []
        assert not (await runtime.operations.forget(actor="ann", reason="r")).lingers


def test_a_retention_is_a_stretch_of_time() -> None:
    assert look_up(retention="12h").retention == timedelta(hours=12)
    for wrong in ("soon", 30, "", b"1d"):
        with pytest.raises(ContractError, match="look_up: retention is a stretch of time, such as '30d'"):
            look_up(retention=wrong)
    for none in ("0d", timedelta(0)):
        with pytest.raises(ContractError, match="retention must be longer than nothing"):
            look_up(retention=none)


def test_what_puts_back_is_kept_as_long_as_what_was_done() -> None:
    shelf = Shelf()
    runtime = Runtime.open("memory://", policy={"version": 1}, tools=[retitle(shelf, [], retention="3d")])
    assert runtime.context.bindings["undo.shelf"].tool.retention == timedelta(days=3)


# The command line


def test_purge_shows_what_would_go_and_does_it_with_yes(run: Run) -> None:
    assert run("call", "set_title", '{"id": "a", "title": "x", "pin": "1234"}', "--run", "r")[0] == 0
    ninety_days_us = 90 * 86_400_000_000

    def age(by_us: int) -> None:
        connection = sqlite3.connect("interlock.db")
        connection.execute("UPDATE claims SET at_us = at_us - ?", (by_us,))
        connection.commit()
        connection.close()

    age(ninety_days_us)
    code, out, _ = run("audit", "purge", "--older-than", "90d")
    assert code == 0
    assert "2 payloads would be deleted" in out
    assert "set_title" in out
    assert "1 change could then not be taken back any more" in out
    assert "--yes deletes it" in out
    code, out, _ = run("audit", "purge", "--older-than", "90d", "--tool", "mail", "--json")
    assert (code, json.loads(out)["records"], json.loads(out)["deleted"]) == (0, [], False)
    code, out, _ = run("audit", "purge", "--older-than", "90d", "--yes")
    assert (code, "2 payloads deleted" in out, "recorded as 3" in out) == (0, True, True)
    assert run("audit", "anchor")[0] == 0
    assert run("audit", "verify")[0] == 1, "the table says that it was begun earlier than its intent does"
    age(-ninety_days_us)
    assert run("audit", "verify")[0] == 0
    code, out, _ = run("audit", "show", "--newest", "1")
    assert "purged" in out


def test_purge_says_what_is_wrong_with_an_age(run: Run) -> None:
    run("call", "mail", '{"to": "a"}', "--turn", "t")
    code, _, error = run("audit", "purge")
    assert (code, "no tool says how long its payloads are kept" in error) == (2, True)
    code, _, error = run("audit", "purge", "--older-than", "soon")
    assert (code, "'soon' is not a stretch of time" in error) == (2, True)


def test_forget_shows_what_goes_what_stays_in_clear_and_what_is_kept(run: Run) -> None:
    run("call", "set_title", '{"id": "a", "title": "x", "pin": "1234"}', "--run", "r")
    run("call", "mail", '{"to": "lost"}', "--turn", "t")
    code, out, _ = run("audit", "forget", "--key", "shelf/a", "--reason", "request 17")
    assert (code, "2 payloads would be deleted" in out) == (0, True)
    assert "2 records among those that match can still be read in the ledger itself" in out
    code, out, _ = run("audit", "forget", "--key", "shelf/a", "--reason", "request 17", "--yes", "--json")
    made = json.loads(out)
    assert (code, made["deleted"], made["records"], len(made["tombstones"])) == (0, True, [1, 2], 1)
    code, out, _ = run("audit", "forget", "--record", "3", "--reason", "r", "--yes")
    assert (code, "settle it first (interlock recover)" in out) == (1, True)
    code, _, error = run("audit", "forget", "--actor", "nobody", "--reason", "r")
    assert (code, "no record matches" in error) == (1, True)
    assert run("audit", "anchor")[0] == 0
    assert run("audit", "verify")[0] == 0
    assert "snapshots have been deleted" in run("undo", "--run", "r")[1]


async def test_the_store_needs_no_runtime_to_list_payloads(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}")
    try:
        assert [number async for number in store.payload_ids()] == []
    finally:
        await store.close()


@pytest.mark.slow
def test_a_command_says_that_what_it_deleted_is_not_gone_yet(run: Run) -> None:
    assert run("call", "set_title", '{"id": "a", "title": "x", "pin": "1234"}', "--run", "r")[0] == 0
    command = ("audit", "forget", "--key", "shelf/a", "--reason", "r", "--yes")
    reader = sqlite3.connect("interlock.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM records").fetchone()
    code, out, _ = run(*command)
    assert code == 1
    assert "not gone yet" in out
    assert json.loads(run(*command, "--json")[1])["lingers"] is True
    reader.close()
    code, out, _ = run(*command)
    assert code == 0
    assert "not gone yet" not in out
