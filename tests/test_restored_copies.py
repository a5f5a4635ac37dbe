"""An older copy of a ledger that was put back has forgotten what it did: nothing is changed on it unseen."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from interlock import Context, Runtime, Status, tool
from interlock.audit import anchor, load_or_make_key
from interlock.cli.main import main
from interlock.config import Settings
from interlock.errors import Conflict, NotAllowed
from interlock.operations.histories import accept_history
from interlock.policy import parse_policy
from interlock.ports import SystemClock
from interlock.resources import Documents
from interlock.stores import Witness, open_store
from tests.test_changes import OPEN, error

MADE: list[str] = []


@tool(effect="send", once_per="ever")
async def pay(order: str) -> str:
    """Pay an order, once and for all."""
    MADE.append(order)
    return "paid"


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    MADE.clear()


def opened(url: str, **settings: Any) -> Runtime:
    return Runtime.open(url, policy=parse_policy(OPEN), tools=[pay, look], settings=Settings(**settings))


async def pays(url: str, order: str, **settings: Any) -> Any:
    async with opened(url, **settings) as runtime:
        return await runtime.call("pay", {"order": order}, actor="ann", mode="apply")


async def test_a_payment_that_a_restored_file_has_forgotten_is_not_made_again(tmp_path: Path) -> None:
    file, url = tmp_path / "ledger.db", f"sqlite:///{tmp_path / 'ledger.db'}"
    assert (await pays(url, "1")).ok
    shutil.copy(file, tmp_path / "backup.db")
    assert (await pays(url, "2")).ok
    shutil.copy(tmp_path / "backup.db", file)
    for again in range(3):  # what only looks is served, and does not make the gap be forgotten
        async with opened(url) as runtime:
            for _ in range(5):
                assert (await runtime.call("look", {}, actor="ann")).value == "seen"
            outcome = await runtime.call("pay", {"order": "2"}, actor="ann", mode="apply")
        assert (outcome.status, error(outcome), MADE) == (Status.DENIED, "rolled_back", ["1", "2"]), again
        assert "interlock audit accept" in outcome.summary
    known = await pays(url, "1")
    assert (known.status, MADE) == (Status.OK, ["1", "2"]), "what it remembers is answered from the record"


async def test_somebody_says_which_history_stands(tmp_path: Path) -> None:
    file, url = tmp_path / "ledger.db", f"sqlite:///{tmp_path / 'ledger.db'}"
    await pays(url, "1")
    shutil.copy(file, tmp_path / "backup.db")
    await pays(url, "2")
    shutil.copy(tmp_path / "backup.db", file)
    async with opened(url) as runtime:
        gone = runtime.store.missing
        assert [head.id for head in gone] == [4]
        await accept_history(runtime.operations.writer("user:boss"), "the newer disk is lost")
        refused = await runtime.call("pay", {"order": "3"}, actor="ann", mode="apply")
        assert error(refused) == "rolled_back", "an open runtime is opened again on purpose"
    async with opened(url) as runtime:
        assert runtime.store.missing == ()
        assert (await runtime.call("pay", {"order": "3"}, actor="ann", mode="apply")).ok
        with pytest.raises(NotAllowed, match="nothing to accept"):
            await accept_history(runtime.operations.writer("user:boss"), "once more")
    shutil.copy(tmp_path / "backup.db", file)  # another copy, after that: it is noticed again
    assert error(await pays(url, "3")) == "rolled_back"


async def test_a_copy_that_was_accepted_writes_to_resources_that_remember_its_fences(tmp_path: Path) -> None:
    file, url = tmp_path / "ledger.db", f"sqlite:///{tmp_path / 'ledger.db'}"
    shelf = Documents(f"sqlite:///{tmp_path / 'shelf.db'}", "shelf")

    @tool(effect="write", key="{id}", resource=shelf)
    async def put(id: str, text: str, context: Context) -> str:
        await shelf.write(id, {"text": text}, context)
        return text

    def running() -> Runtime:
        return Runtime.open(url, policy=parse_policy(OPEN), tools=[put], settings=Settings(mode="apply"))

    async def puts(runtime: Runtime, id: str, text: str) -> Any:
        return await runtime.call("put", {"id": id, "text": text}, actor="ann", call_id=f"{id}{text}")

    async with running() as runtime:
        await puts(runtime, "known", "0")
    shutil.copy(file, tmp_path / "backup.db")
    async with running() as runtime:
        for n in range(5):
            for id in ("known", "made since"):
                assert (await puts(runtime, id, f"forgotten {n}")).ok
    shutil.copy(tmp_path / "backup.db", file)
    async with running() as runtime:
        await accept_history(runtime.operations.writer("user:boss"), "the newer disk is lost")
    async with running() as runtime:
        for id in ("known", "made since"):
            outcome = await puts(runtime, id, "new")
            assert (outcome.ok, outcome.summary, await shelf.get(id)) == (True, "new", {"text": "new"})
    stale = Context(call_id="late", actor="ann", attempt=1, tokens={"known": 3}, ledger=runtime.store.identity.ledger)
    with pytest.raises(Conflict, match=r"3 is too old: .* call again\. .* set it right"):
        await shelf.write("known", {"text": "late"}, stale)
    await shelf.close()


async def test_a_store_that_a_program_opened_by_itself_is_compared_too(tmp_path: Path) -> None:
    file, url = tmp_path / "ledger.db", f"sqlite:///{tmp_path / 'ledger.db'}"

    async def pays_here(order: str, **more: Any) -> Any:
        store = open_store(url, **more)
        async with Runtime.open(store, policy=parse_policy(OPEN), tools=[pay]) as runtime:
            return await runtime.call("pay", {"order": order}, actor="ann", mode="apply")

    assert (await pays_here("1")).ok
    shutil.copy(file, tmp_path / "backup.db")
    assert (await pays_here("2")).ok
    shutil.copy(tmp_path / "backup.db", file)
    assert (error(await pays_here("2")), MADE) == ("rolled_back", ["1", "2"])
    assert (await pays_here("2", witness=Witness(None))).ok, "nothing is compared by whoever says so"


async def test_an_anchor_is_compared_where_this_machine_has_seen_nothing(tmp_path: Path) -> None:
    file, url, anchors = tmp_path / "ledger.db", f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "anchors.jsonl"
    here: dict[str, Any] = {"heads": "none", "anchors": str(anchors)}
    await pays(url, "1", **here)
    shutil.copy(file, tmp_path / "backup.db")
    async with opened(url, **here) as runtime:
        await runtime.call("pay", {"order": "2"}, actor="ann", mode="apply")
        signed = await anchor(runtime.store, load_or_make_key(tmp_path / "audit.key"), SystemClock())
    anchors.write_bytes(b'{"of": "another file"}\n' + msgspec.json.encode(signed) + b"\n")
    assert (await pays(url, "2", **here)).ok
    shutil.copy(tmp_path / "backup.db", file)
    assert (error(await pays(url, "2", **here)), MADE) == ("rolled_back", ["1", "2"])


@pytest.mark.slow
async def test_a_restored_database_is_noticed_by_a_worker_that_saw_more(postgres: str) -> None:
    assert (await pays(postgres, "1")).ok
    with psycopg.connect(postgres, autocommit=True) as database:
        for table in ("records", "lanes", "claims"):
            database.execute(f"CREATE TABLE kept_{table} AS TABLE {table}".encode())
    assert (await pays(postgres, "2")).ok
    with psycopg.connect(postgres, autocommit=True) as database:
        for table in ("records", "lanes", "claims"):
            database.execute(f"TRUNCATE {table}".encode())
            database.execute(f"INSERT INTO {table} TABLE kept_{table}".encode())
    assert (error(await pays(postgres, "2")), MADE) == ("rolled_back", ["1", "2"])


async def test_a_copy_that_is_put_back_under_an_open_runtime_is_noticed(tmp_path: Path) -> None:
    file, url = tmp_path / "ledger.db", f"sqlite:///{tmp_path / 'ledger.db'}"
    async with opened(url) as runtime:
        await runtime.call("pay", {"order": "1"}, actor="ann", mode="apply")
        with sqlite3.connect(file) as source, sqlite3.connect(tmp_path / "backup.db") as backup:
            source.backup(backup)
        await runtime.call("pay", {"order": "2"}, actor="ann", mode="apply")
        with sqlite3.connect(tmp_path / "backup.db") as backup, sqlite3.connect(file) as source:
            backup.backup(source)
        for _ in range(2):
            outcome = await runtime.call("pay", {"order": "2"}, actor="ann", mode="apply")
            assert (outcome.ok, MADE) == (False, ["1", "2"])
        assert [head.id for head in runtime.store.missing] == [4]


async def test_a_damaged_mark_is_no_reason_to_stop(tmp_path: Path) -> None:
    url, heads = f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "heads"
    await pays(url, "1", heads=str(heads))
    (mark,) = heads.iterdir()
    mark.write_bytes(b"\xff\x00 what is this\n")
    assert (await pays(url, "2", heads=str(heads))).ok
    heads.joinpath("x").touch()
    assert (mark.stat().st_mode & 0o777, heads.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_where_nothing_can_be_noted_calls_are_made_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    assert (await pays(f"sqlite:///{tmp_path / 'ledger.db'}", "1", heads=str(tmp_path / "file" / "below"))).ok
    assert "will not be noticed" in caplog.text


def test_the_command_line_accepts_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, url = tmp_path / "ledger.db", f"sqlite:///{tmp_path / 'ledger.db'}"
    asyncio.run(pays(url, "1"))
    shutil.copy(file, tmp_path / "backup.db")
    asyncio.run(pays(url, "2"))
    assert main(["audit", "accept", "--reason", "x", "--store", url]) == 1
    assert "there is nothing to accept" in capsys.readouterr().err
    shutil.copy(tmp_path / "backup.db", file)
    assert main(["audit", "accept", "--reason", "the disk is lost", "--store", url]) == 0
    assert "record 4 of lane 0" in capsys.readouterr().out
    assert asyncio.run(pays(url, "2")).ok


def test_verifying_says_what_calls_are_refused_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, url = tmp_path / "ledger.db", f"sqlite:///{tmp_path / 'ledger.db'}"
    verify = ["audit", "verify", "--store", url]
    asyncio.run(pays(url, "1"))
    shutil.copy(file, tmp_path / "backup.db")
    asyncio.run(pays(url, "2"))
    intact = main(verify)
    assert "✓ intact" in capsys.readouterr().out
    shutil.copy(tmp_path / "backup.db", file)
    assert error(asyncio.run(pays(url, "2"))) == "rolled_back"
    assert main(verify) == 1
    said = capsys.readouterr().out
    assert "record 4 was seen here" in said
    assert "✗ not intact: 1 problem" in said
    assert main(["audit", "accept", "--reason", "the disk is lost", "--store", url]) == 0
    assert main(verify) == intact
    assert "✓ intact" in capsys.readouterr().out, "somebody has said that it stands"
