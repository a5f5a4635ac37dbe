"""SQLite under bad circumstances: full, read-only, locked, damaged, newer; and what FULL really does."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import Runtime, Status, StoreError, tool
from interlock.audit import verify
from interlock.errors import StoreBusy, StoreCorrupt, StoreFull, StoreTooNew
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.state import NOT_KEPT
from interlock.stores import Witness, open_store, statements
from interlock.transitions import Append, Committed, DropPayload
from tests.test_audit import sql
from tests.test_changes import OPEN as POLICY
from tests.test_store_contract import batch, entry, ids

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
#include <stdlib.h>
static void note(void) {
  int fd = open(getenv("FSYNC_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (fd >= 0) { if (write(fd, "x", 1)) {} close(fd); }
}
int fsync(int fd) { static int (*real)(int); if (!real) real = dlsym(RTLD_NEXT, "fsync"); note(); return real(fd); }
int fdatasync(int fd) { static int (*real)(int); if (!real) real = dlsym(RTLD_NEXT, "fdatasync"); note(); return real(fd); }
"""

COUNTED = """
import asyncio, os, sys
from interlock.stores import open_store
sys.path.insert(0, sys.argv[3])
from tests.test_store_contract import batch, entry
log = os.environ["FSYNC_LOG"]
size = lambda: os.path.getsize(log) if os.path.exists(log) else 0
async def main():
    store = open_store("sqlite:///" + sys.argv[1])
    if sys.argv[2] == "OFF":
        store._write.raw.execute("PRAGMA synchronous = OFF")
    await store.commit(batch(entry(0)))
    counts = []
    for n in range(1, 11):
        before = size()
        await store.commit(batch(entry(n)))
        counts.append(size() - before)
    print(counts)
    await store.close()
asyncio.run(main())
"""


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build the fsync counter with")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(folder / "shim.so"), str(folder / "shim.c"), "-ldl"],
        check=True,
    )
    return folder / "shim.so"


def fsyncs(shim: Path, tmp_path: Path, mode: str) -> list[int]:
    environment = {**os.environ, "LD_PRELOAD": str(shim), "FSYNC_LOG": str(tmp_path / f"{mode}.log")}
    root = str(Path(__file__).parent.parent)
    command = [sys.executable, "-c", COUNTED, str(tmp_path / f"{mode}.db"), mode, root]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)
    return [int(part) for part in done.stdout.strip("[]\n").split(", ")]


@pytest.mark.slow
def test_every_commit_reaches_the_disk_before_it_is_acknowledged(shim: Path, tmp_path: Path) -> None:
    """Killing a process cannot show this; counting fsyncs can. With synchronous=OFF the same count is zero."""
    assert fsyncs(shim, tmp_path, "FULL") == [1] * 10
    assert fsyncs(shim, tmp_path, "OFF") == [0] * 10


async def test_the_file_is_in_wal_mode_and_synchronous_full(tmp_path: Path) -> None:
    store: Any = open_store(f"sqlite:///{tmp_path / 'x.db'}")
    assert store._write.raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._write.raw.execute("PRAGMA synchronous").fetchone() == (2,)
    await store.close()


FILL = """
import asyncio, resource, signal, sys
from interlock.errors import StoreFull
from interlock.stores import open_store
sys.path.insert(0, sys.argv[2])
from tests.test_store_contract import batch, entry
async def main():
    store = open_store("sqlite:///" + sys.argv[1])
    await store.commit(batch(entry(0)))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    acknowledged = 1
    try:
        for n in range(1, 5000):
            await store.commit(batch(entry(n, payload=b"x" * 2000)))
            acknowledged += 1
    except StoreFull as error:
        print(acknowledged, str(error).replace(sys.argv[1], "FILE"))
    await store.close()
asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_disk_that_fills_up_gives_a_clear_error_and_loses_nothing_acknowledged(
    tmp_path: Path,
) -> None:
    file = tmp_path / "x.db"
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(file), root], capture_output=True, text=True, timeout=600, check=False
    )
    count, message = done.stdout.split(" ", 1)
    assert int(count) > 10, done.stderr
    assert message.startswith("FILE: the disk is full or failing")
    store = open_store(f"sqlite:///{file}")
    assert len(await ids(store)) == int(count)
    assert isinstance(await store.commit(batch(entry(1))), Committed)
    await store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
async def test_a_small_file_system_that_fills_up_loses_nothing_acknowledged(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)], capture_output=True, check=False
    ).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        store = open_store(f"sqlite:///{mount / 'x.db'}")
        acknowledged: list[int] = []

        async def fill() -> None:
            for n in range(5000):
                await store.commit(batch(entry(n, payload=b"x" * 4000)))
                acknowledged.append(n)

        with pytest.raises(StoreFull, match="the disk is full"):
            await fill()
        assert len(acknowledged) > 10
        assert len(await ids(store)) == len(acknowledged)
        await store.close()
    finally:
        subprocess.run(["umount", str(mount)], check=True)


async def test_a_read_only_file_can_be_read_and_says_that_it_cannot_be_written(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    store = open_store(url)
    await store.commit(batch(entry(1)))
    await store.close()
    readonly = open_store(url + "?mode=ro")
    with pytest.raises(StoreFull, match="may not be written"):
        await readonly.commit(batch(entry(2)))
    assert await ids(readonly) == [1]
    await readonly.close()
    with pytest.raises(StoreError):
        open_store(f"sqlite:///{tmp_path / 'none.db'}?mode=ro")


async def test_a_file_that_another_process_holds_is_busy_and_works_again_afterwards(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}", busy_s=0.05)
    other = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match=r"another process has held the file for 0\.05 s"):
        await store.commit(batch(entry(1)))
    other.execute("ROLLBACK")
    other.close()
    assert isinstance(await store.commit(batch(entry(1))), Committed)
    await store.close()


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    file.write_bytes(b"this is not a database, but it is somebody's" * 100)
    with pytest.raises(StoreCorrupt, match="not a ledger, or damaged"):
        open_store(f"sqlite:///{file}")
    assert file.read_bytes().startswith(b"this is not")


async def test_a_damaged_file_is_reported_as_such(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    store = open_store(f"sqlite:///{file}")
    await store.commit(batch(*(entry(n) for n in range(2000))))
    await store.close()
    data = bytearray(file.read_bytes())
    for offset in range(8192, len(data), 4096):
        data[offset : offset + 64] = b"\xde\xad" * 32
    file.write_bytes(data)
    with pytest.raises(StoreCorrupt, match="damaged"):  # by the look for the record that was seen last
        open_store(f"sqlite:///{file}")
    store = open_store(f"sqlite:///{file}", witness=Witness(None))
    with pytest.raises(StoreCorrupt, match="damaged"):
        await ids(store)
    await store.close()


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE interlock_meta SET value = X'' WHERE name = 'schema'",
        "DELETE FROM interlock_meta WHERE name = 'ledger'",
        "UPDATE records SET lane = 'x'",
        "UPDATE lanes SET count = 'many'",
        "UPDATE claims SET state = X'00'",
        "UPDATE claims SET keys = '{'",
    ],
)
async def test_a_row_that_nobody_wrote_is_damage_in_a_sentence(tmp_path: Path, attack: str) -> None:
    from interlock.audit import verify
    from tests.test_audit import sql

    @tool(effect="send")
    async def pay(order: str) -> str:
        return order

    url = f"sqlite:///{tmp_path / 'x.db'}"
    async with Runtime.open(url, policy=parse_policy(POLICY), tools=[pay]) as runtime:
        await runtime.call("pay", {"order": "1"}, actor="ann", call_id="1", mode="apply")
    sql(url, attack)

    async def read() -> None:
        store = open_store(url)
        try:
            await verify(store)
        finally:
            await store.close()

    with pytest.raises(StoreCorrupt, match="the store is damaged: a row of it cannot be read"):
        await read()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does the folder exist"):
        open_store(f"sqlite:///{tmp_path / 'none' / 'x.db'}")


async def test_a_newer_schema_is_refused(durable_url: str) -> None:
    from tests.test_audit import sql

    store = open_store(durable_url)
    await store.close()
    sql(durable_url, "UPDATE interlock_meta SET value = '99' WHERE name = 'schema'")
    with pytest.raises(StoreTooNew, match="upgrade Interlock"):
        open_store(durable_url)


async def test_payloads_of_an_older_schema_are_brought_into_the_rows_of_their_records(
    durable_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(statements, "MIGRATIONS", statements.MIGRATIONS[:3])
        store = open_store(durable_url)
        await store.commit(batch(*(entry(n) for n in range(3))))
        await store.close()
    sql(durable_url, "INSERT INTO payloads (record, body) VALUES (2, 'old'), (9, 'of no record')")
    store = open_store(durable_url)
    assert [number async for number in store.payload_ids()] == [2]
    assert [await store.payload(number) for number in (1, 2, 9)] == [None, b"old", None]
    assert await store.commit(batch(Append(entry(3).record, b"new"))) == Committed((4,))
    assert await store.payload(4) == b"new"
    assert await store.commit(batch(entry(4), DropPayload(2))) == Committed((5,))
    assert [number async for number in store.payload_ids()] == [4]
    assert (await verify(store)).intact
    await store.close()


async def test_a_lease_of_an_older_schema_says_that_it_does_not_know_of_other_runs(
    durable_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(statements, "MIGRATIONS", statements.MIGRATIONS[:4])
        await open_store(durable_url).close()
    sql(durable_url, "INSERT INTO leases (key, changed_us, changed_run) VALUES ('r/a', 5, 'monday'), ('r/b', 0, '')")
    store = open_store(durable_url)
    assert [(lease.changed_run, lease.others_us) for lease in await store.leases(("r/a", "r/b"))] == [
        ("monday", NOT_KEPT),
        ("", 0),
    ]
    await store.close()


async def test_a_ledger_without_lanes_is_an_error_not_a_loss(durable_url: str) -> None:
    from tests.test_audit import sql

    store = open_store(durable_url)
    sql(durable_url, "DELETE FROM lanes")
    with pytest.raises(StoreError, match="no lanes"):
        await store.commit(batch(entry(1)))
    await store.close()


OPEN = "import sys; from interlock.stores import open_store; import asyncio; s = open_store(sys.argv[1]); print(s.identity.ledger); asyncio.run(s.close())"


@pytest.mark.slow
def test_eight_processes_that_open_a_fresh_store_at_once_agree(durable_url: str) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, durable_url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    found = [child.communicate(timeout=600) for child in children]
    assert len({out for out, _err in found}) == 1, found
    assert all(child.returncode == 0 for child in children), found


KILLED = """
import asyncio, sys
from interlock.stores import open_store
sys.path.insert(0, sys.argv[2])
from tests.test_store_contract import batch, entry
async def one(store, who):
    n = 0
    while True:
        receipt = await store.commit(batch(entry(n, actor=who)))
        print(receipt.ids[0], flush=True)
        n += 1
async def main():
    store = open_store(sys.argv[1])
    await asyncio.gather(*(one(store, f"w{k}") for k in range(8)))
asyncio.run(main())
"""


@pytest.mark.slow
async def test_what_was_acknowledged_before_a_kill_is_there_after_it(durable_url: str) -> None:
    from interlock.audit import verify

    root = str(Path(__file__).parent.parent)
    child = subprocess.Popen([sys.executable, "-c", KILLED, durable_url, root], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    acknowledged = {int(child.stdout.readline()) for _ in range(200)}
    child.send_signal(signal.SIGKILL)
    rest = child.communicate(timeout=600)[0].splitlines()
    acknowledged |= {int(line) for line in rest[:-1] if line}
    store = open_store(durable_url)
    assert acknowledged <= set(await ids(store))
    assert (await verify(store)).intact
    await store.close()


async def test_a_loop_that_ended_does_not_stop_the_writer(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}")

    def abandon() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(store.commit(batch(entry(1))))
        loop.run_until_complete(asyncio.sleep(0))
        task.cancel()
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        loop.stop()
        loop.run_forever()
        loop.close()

    await asyncio.to_thread(abandon)
    assert isinstance(await store.commit(batch(entry(2))), Committed)
    assert [record.call async for record in store.records(Query())] == ["c1", "c2"]
    await store.close()


@pytest.mark.parametrize("by", ["removed", "replaced", "moved"])
async def test_a_file_that_is_gone_under_a_live_store_acknowledges_nothing_more(tmp_path: Path, by: str) -> None:
    file = tmp_path / "ledger.db"
    store = open_store(f"sqlite:///{file}")
    assert isinstance(await store.commit(batch(entry(1))), Committed)
    other = tmp_path / "other.db"
    if by == "removed":
        file.unlink()
    elif by == "moved":
        file.rename(other)
    else:
        backup = open_store(f"sqlite:///{other}")
        await backup.close()
        other.replace(file)
    for _ in range(2):
        with pytest.raises(StoreError, match="was removed or replaced while it was open"):
            await store.commit(batch(entry(2)))
    if by == "moved":
        other.rename(file)
        assert isinstance(await store.commit(batch(entry(2))), Committed)
    await store.close()


async def test_no_effect_is_made_under_a_file_that_is_gone(tmp_path: Path) -> None:
    made: list[str] = []

    @tool(effect="send")
    async def pay(order: str) -> str:
        made.append(order)
        return "paid"

    file = tmp_path / "ledger.db"
    async with Runtime.open(f"sqlite:///{file}", policy=parse_policy(POLICY), tools=[pay]) as runtime:
        assert (await runtime.call("pay", {"order": "1"}, actor="ann", call_id="1", mode="apply")).ok
        file.unlink()
        lost = await runtime.call("pay", {"order": "2"}, actor="ann", call_id="2", mode="apply")
    assert (lost.status, made) == (Status.FAILED, ["1"])
    assert lost.problem is not None
    assert lost.problem.reason == "store_unavailable"
