"""PostgreSQL: errors in words, lanes side by side, a connection that breaks."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import threading
from typing import Any

import psycopg
import pytest

from interlock import ConfigError, StoreError
from interlock.errors import StoreBusy, StoreFull
from interlock.ports import Query
from interlock.stores import open_store
from interlock.stores.postgres import PostgresDialect
from interlock.transitions import Committed
from tests.test_store_contract import batch, entry, ids, reserve


def test_a_server_that_is_not_there_is_an_error_without_the_password() -> None:
    with pytest.raises(StoreError, match="cannot connect") as error:
        open_store("postgresql://ann:secret@127.0.0.1:1/none", busy_s=1)
    assert "secret" not in str(error.value)


async def test_rows_that_another_worker_holds_make_the_store_busy(postgres: str) -> None:
    store = open_store(postgres, busy_s=0.2)
    await store.commit(batch(reserve("a")))
    with psycopg.connect(postgres) as other:
        other.execute("SELECT * FROM accounts FOR UPDATE")
        with pytest.raises(StoreBusy, match="another worker held the rows"):
            await store.commit(batch(reserve("b")))
    assert isinstance(await store.commit(batch(reserve("b"))), Committed)
    await store.close()


async def test_when_every_lane_is_taken_a_writer_waits_for_one(postgres: str) -> None:
    store = open_store(postgres, busy_s=5)
    other = psycopg.connect(postgres)
    other.execute("SELECT * FROM lanes FOR UPDATE")
    waiting = asyncio.create_task(store.commit(batch(entry(1))))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    other.rollback()
    other.close()
    assert isinstance(await waiting, Committed)
    await store.close()


async def test_workers_write_into_different_lanes_and_the_ledger_verifies(postgres: str) -> None:
    from interlock.audit import verify

    stores = [open_store(postgres) for _ in range(4)]
    for _ in range(10):
        await asyncio.gather(*(store.commit(batch(entry(n))) for n, store in enumerate(stores)))
    report = await verify(stores[0])
    assert (report.intact, report.records) == (True, 40)
    assert report.lanes > 1
    for store in stores:
        await store.close()


async def test_a_connection_that_breaks_before_its_commit_is_made_anew_and_nothing_is_lost(postgres: str) -> None:
    store: Any = open_store(postgres)
    await store.commit(batch(entry(1)))
    terminate(postgres)
    assert isinstance(await store.commit(batch(entry(2))), Committed)
    assert len(await ids(store)) == 2
    terminate(postgres)
    assert len(await ids(store)) == 2
    await store.close()


async def test_the_options_of_the_user_are_kept_and_waits_are_bounded(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute("CREATE SCHEMA apart")
    named = f"{postgres}&options=-c%20search_path%3Dapart%20-c%20lock_timeout%3D0"
    for url in (named, postgres):
        connection = PostgresDialect(url, 2.0).connect()
        shown = [connection.one(f"SHOW {name}") for name in ("search_path", "lock_timeout", "statement_timeout")]
        assert shown == [("apart",), ("2s",), ("3s",)]
        assert connection.one("SHOW idle_in_transaction_session_timeout") == ("1600ms",)
        connection.close()
        monkeypatch.setenv("PGOPTIONS", "-c search_path=apart")


async def test_a_server_that_is_gone_without_a_word_is_noticed_by_the_network(postgres: str) -> None:
    connection = PostgresDialect(postgres, 2.0).connect()
    given = connection.raw.info.get_parameters()  # as the library of the connection has understood them
    connection.close()
    probes = {"keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3", "tcp_user_timeout": "2000"}
    assert probes.items() <= given.items()
    assert "keepalives" not in given, "they are on where nobody turns them off"


async def test_a_worker_that_is_stopped_in_a_transaction_does_not_hold_the_others_for_ever(postgres: str) -> None:
    going_on, stopped = threading.Event(), threading.Event()

    class Stops:
        def at(self, point: str) -> None:
            if point == "store.commit" and not stopped.is_set():
                stopped.set()
                going_on.wait(30)

    # Both wait as long as the other: whoever stands still is cut off before anybody gives up waiting for it.
    first, second = open_store(postgres, busy_s=3, faults=Stops()), open_store(postgres, busy_s=3)
    held = asyncio.create_task(first.commit(batch(reserve("a"), entry(1))))
    await asyncio.to_thread(stopped.wait, 30)
    assert isinstance(await second.commit(batch(reserve("b"), entry(2))), Committed)
    going_on.set()
    with pytest.raises(StoreError, match="it is not known whether it landed"):
        await held
    assert isinstance(await first.commit(batch(reserve("c"), entry(3))), Committed)
    assert len(await ids(second)) == 2
    await first.close()
    await second.close()


_WRITES_FOR_EVER = """
import sys
from interlock.stores import dialect_of
from interlock.stores import statements as sql
connection = dialect_of(sys.argv[1], 0.5).connect()
print("begun", flush=True)
rows = [(f"{sys.argv[2]}{n}", "done", "", 0, "{}") for n in range(7)]
while True:
    connection.run("BEGIN")
    for _ in range(20):
        connection.run_many(sql.WRITE_TICKET, rows)
        connection.run_many(sql.WRITE_ACCOUNT, [(1, 1, 1, row[0]) for row in rows])
    connection.run("COMMIT")
"""


async def test_wherever_a_worker_is_stopped_in_a_transaction_its_rows_are_let_go(postgres: str) -> None:
    """Also in the middle of what it sends: a pipeline of many statements would be held by no limit."""
    await open_store(postgres).close()
    async with asyncio.TaskGroup() as group:
        for name in "abcdef":
            group.create_task(_stop_somewhere(f"{postgres}&application_name=stopped_{name}", name))
    with psycopg.connect(postgres, autocommit=True) as other:
        others = other.execute("SELECT application_name FROM pg_stat_activity WHERE xact_start IS NOT NULL").fetchall()
    assert not [name for (name,) in others if name.startswith("stopped_")]


async def _stop_somewhere(url: str, name: str) -> None:
    """A process that writes for ever stands still, at a moment that nobody chose: its transaction must end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WRITES_FOR_EVER, url, name, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"begun\n"
        await asyncio.sleep(random.random() / 4)
        process.send_signal(signal.SIGSTOP)
        with psycopg.connect(url, autocommit=True, application_name="") as other:
            async with asyncio.timeout(60):
                while other.execute(  # noqa: ASYNC110 - the server says when
                    _IN_TRANSACTION, (f"stopped_{name}",)
                ).fetchall():
                    await asyncio.sleep(0.05)
    finally:
        process.kill()
        await process.wait()


_IN_TRANSACTION = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND xact_start IS NOT NULL"


def terminate(postgres: str) -> None:
    """End every connection but our own."""
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid()"
            " AND datname = current_database()"
        )


async def test_an_answer_lost_during_the_commit_is_not_known_and_never_landed_twice(postgres: str) -> None:
    class LostAnswer:
        broken = False

        def at(self, point: str) -> None:
            if point == "store.committed" and not self.broken:
                self.broken = True
                terminate(postgres)
                raise psycopg.OperationalError("the answer to COMMIT was lost")

    store: Any = open_store(postgres, faults=LostAnswer())
    work = [asyncio.create_task(store.commit(batch(entry(n)))) for n in range(6)]
    receipts = await asyncio.gather(*work, return_exceptions=True)
    assert any("not known whether it landed" in str(receipt) for receipt in receipts)
    calls = [record.call async for record in store.records(Query())]
    assert len(calls) == len(set(calls)) == 6
    await store.close()


async def test_a_server_that_went_away_for_good_keeps_saying_so(postgres: str) -> None:
    store: Any = open_store(postgres)

    def away() -> Any:
        raise StoreError("cannot connect")

    store._dialect.connect = away
    store._write.raw.close()
    for _ in range(2):
        with pytest.raises(StoreError):
            await store.commit(batch(entry(2)))
    await store.close()


async def test_deadlocks_are_tried_again(postgres: str) -> None:
    class Deadlock(psycopg.errors.DeadlockDetected):
        pass

    store: Any = open_store(postgres)
    real, failures = store._transact, [1, 1]

    def flaky(batches: Any) -> Any:
        if failures:
            failures.pop()
            store._dialect.begin(store._write)
            raise Deadlock("deadlock")
        return real(batches)

    store._transact = flaky
    assert isinstance(await store.commit(batch(entry(1))), Committed)
    failures.extend([1] * 9)
    with pytest.raises(StoreError):
        await store.commit(batch(entry(2)))
    await store.close()


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("53100", StoreFull),
        ("25006", StoreFull),
        ("55P03", StoreBusy),
        ("40001", StoreBusy),
        ("42P01", StoreError),
    ],
)
def test_sqlstates_become_errors_that_say_what_to_do(state: str, kind: type[StoreError]) -> None:
    class Failure(psycopg.Error):
        sqlstate = state

    found = PostgresDialect("postgresql://a:b@h/n?x=1", 1.0).explain(Failure("first line\nsecond"))
    assert type(found) is kind
    assert "a:b" not in str(found)


def test_without_the_driver_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "interlock.stores.postgres")
    with pytest.raises(ConfigError, match=r"pip install 'interlock\[postgres\]'"):
        open_store("postgresql://x/y")


def test_without_httpx_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.delitem(sys.modules, "interlock.tools.egress", raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'interlock\[http\]'"):
        import interlock.tools.egress  # noqa: F401
