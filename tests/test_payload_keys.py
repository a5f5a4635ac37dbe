"""Payloads on the disk: encrypted under a key of their own, bound to their records, in files that are their owner's."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock import ConfigError, Status, StoreError, tool
from interlock.audit import verify
from interlock.cli.main import main
from interlock.config import Settings, load_settings, payload_key_file
from interlock.errors import PayloadUnreadable
from interlock.resources import Documents
from interlock.stores import open_store
from interlock.stores.payload_keys import key_id
from interlock.stores.private_files import make_private
from tests.conftest import running
from tests.test_audit import sql
from tests.test_store_contract import batch, entry

SECRET = b'{"arguments":{"ssn":"078-05-1120"},"value":null}'
KEY, OTHER = "11" * 32, "22" * 32


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return write_key(tmp_path / "payloads.key", KEY)


@pytest.fixture
def loose_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def write_key(file: Path, *lines: str) -> Path:
    file.write_text("".join(f"{line}\n" for line in lines))
    file.chmod(0o600)
    return file


def bodies(url: str) -> list[bytes]:
    """What lies in the table, as somebody with the database in hand sees it."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        found = [
            bytes(row[0])
            for row in connection.execute("SELECT payload FROM records WHERE payload IS NOT NULL ORDER BY id")
        ]
        connection.close()
        return found
    import psycopg

    with psycopg.connect(url) as server:
        return [
            bytes(row[0]) for row in server.execute("SELECT payload FROM records WHERE payload IS NOT NULL ORDER BY id")
        ]


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


async def write(url: str, key: Path | None, *payloads: bytes) -> None:
    store = open_store(url, payload_key="none" if key is None else str(key))
    try:
        for payload in payloads:
            await store.commit(batch(entry(1, payload=payload)))
    finally:
        await store.close()


async def read(url: str, key: Path | None, record: int = 1) -> bytes | None:
    store = open_store(url, payload_key="none" if key is None else str(key))
    try:
        return await store.payload(record)
    finally:
        await store.close()


async def test_what_lies_in_the_table_is_encrypted_and_reads_back(durable_url: str, key: Path) -> None:
    await write(durable_url, key, SECRET, SECRET)
    first, second = bodies(durable_url)
    assert b"078-05" not in first
    assert first != second, "equal payloads do not look equal"
    assert first[5:13].hex() == key_id(bytes.fromhex(KEY))
    assert await read(durable_url, key, 2) == SECRET
    assert await read(durable_url, key, 99) is None


async def test_payloads_from_before_there_was_a_key_are_still_read(durable_url: str, key: Path) -> None:
    await write(durable_url, None, SECRET)
    await write(durable_url, key, SECRET)
    assert bodies(durable_url)[0] == SECRET
    assert [await read(durable_url, key, number) for number in (1, 2)] == [SECRET, SECRET]


async def test_a_payload_that_looks_like_an_encrypted_one_is_kept_as_it_is(durable_url: str) -> None:
    odd = b"\x00ILP\x01 not ours"
    await write(durable_url, None, odd)
    assert await read(durable_url, None) == odd


async def test_a_payload_that_was_moved_to_another_record_or_changed_is_not_what_was_recorded(
    durable_url: str, tmp_path: Path
) -> None:
    @tool(effect="read", redact={"ssn"})
    async def look_up(ssn: str) -> str:
        """Whose number it is."""
        return f"owner of {ssn}"

    settings = Settings(payload_key=str(write_key(tmp_path / "payloads.key", KEY)))
    async with running(look_up, store=durable_url, settings=settings) as runtime:
        for number in ("078-05-1120", "078-05-1121"):
            assert (await runtime.call("look_up", {"ssn": number}, actor="ann")).status is Status.OK
        assert (await verify(runtime.store)).intact
    moved = "UPDATE records SET payload = (SELECT payload FROM records WHERE id = 1) WHERE id = 2"
    sql(durable_url, moved, "UPDATE records SET payload = NULL WHERE id = 1")
    store = open_store(durable_url, payload_key=str(tmp_path / "payloads.key"))
    try:
        assert b"078-05" not in (await store.payload(2) or b"078-05")
        assert (await verify(store)).problems == ("record 2: its payload cannot be read",)
    finally:
        await store.close()


async def test_a_key_that_is_not_there_is_an_error_that_names_the_file_and_not_a_deleted_payload(
    durable_url: str, key: Path, tmp_path: Path
) -> None:
    await write(durable_url, key, SECRET)
    name = key_id(bytes.fromhex(KEY))
    with pytest.raises(
        PayloadUnreadable, match=rf"encrypted with the key {name}, and no key file is named.*payload_key"
    ):
        await read(durable_url, None)
    gone = tmp_path / "gone.key"
    with pytest.raises(PayloadUnreadable, match=rf"gone.key: there is no payload key here.*{name}: put its file back"):
        await read(durable_url, gone)
    other = write_key(tmp_path / "other.key", OTHER)
    with pytest.raises(
        PayloadUnreadable, match=rf"payload of record 1 is there.*{name}, which .*other.key does not hold"
    ):
        await read(durable_url, other)


async def test_a_key_that_is_missing_or_lost_is_no_sign_of_tampering(
    durable_url: str, key: Path, tmp_path: Path
) -> None:
    @tool(effect="read", redact={"ssn"})
    async def look_up(ssn: str) -> str:
        """Whose number it is."""
        return ssn

    async with running(look_up, store=durable_url, settings=Settings(payload_key=str(key))) as runtime:
        for ssn in ("078-05-1120", "078-05-1121"):
            await runtime.call("look_up", {"ssn": ssn}, actor="ann")
    name = key_id(bytes.fromhex(KEY))
    for file, lost in (
        (tmp_path / "gone.key", False),
        (write_key(tmp_path / "other.key", OTHER), False),
        (write_key(tmp_path / "lost.key", f"lost {name}", OTHER), True),
        (write_key(tmp_path / "only-lost.key", f"lost {name}"), True),
    ):
        store = open_store(durable_url, payload_key=str(file))
        try:
            report = await verify(store)
        finally:
            await store.close()
        (found,) = report.unreadable
        assert (report.problems, found.key, found.lost, len(found.records)) == ((), name, lost, 2)
        assert ("if it is lost for good" in found.why) is (file.name == "other.key")


async def test_nothing_is_written_under_another_key_or_a_new_one_while_the_ledger_has_one(
    durable_url: str, key: Path, tmp_path: Path
) -> None:
    await write(durable_url, key, SECRET)
    with pytest.raises(PayloadUnreadable, match=r"other\.key does not hold"):
        await write(durable_url, write_key(tmp_path / "other.key", OTHER), SECRET)
    with pytest.raises(PayloadUnreadable, match="put its file back"):
        await write(durable_url, tmp_path / "new.key", SECRET)
    assert not (tmp_path / "new.key").exists()
    assert len(bodies(durable_url)) == 1
    lost = write_key(tmp_path / "lost.key", f"lost {key_id(bytes.fromhex(KEY))}", OTHER)
    await write(durable_url, lost, SECRET)
    assert await read(durable_url, lost, 2 if durable_url.startswith("sqlite") else 4) == SECRET


async def test_the_last_key_of_the_file_encrypts_and_all_of_them_open(durable_url: str, key: Path) -> None:
    await write(durable_url, key, SECRET)
    write_key(key, KEY, OTHER)
    await write(durable_url, key, SECRET)
    assert bodies(durable_url)[1][5:13].hex() == key_id(bytes.fromhex(OTHER))
    assert [await read(durable_url, key, number) for number in (1, 2)] == [SECRET, SECRET]


async def test_a_file_of_keys_that_others_can_read_or_that_holds_none_is_refused(tmp_path: Path, key: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    key.chmod(0o640)
    with pytest.raises(StoreError, match=r"others can read the payload key \(mode 0640\); chmod 600"):
        await write(url, key, SECRET)
    for lines, said in (
        ((), "holds no payload key"),
        (("hunter2",), ":1: not a payload key"),
        (("ß",), "not a file of"),
    ):
        with pytest.raises(StoreError, match=said):
            await write(url, write_key(key, *lines), SECRET)
    with pytest.raises(StoreError, match=r"cannot be made there \(.*payload_key = \"none\""):
        await write(url, Path("/proc/none/payloads.key"), SECRET)


async def test_with_sqlite_a_key_is_made_on_first_use_and_with_postgresql_it_must_be_there(
    durable_url: str, tmp_path: Path
) -> None:
    made = tmp_path / "folder" / "payloads.key"
    if durable_url.startswith("sqlite"):
        await write(durable_url, made)
        assert not made.exists(), "a ledger without payloads needs none"
        await write(durable_url, made, SECRET)
        assert mode_of(made) == 0o600
        assert await read(durable_url, made) == SECRET
    else:
        with pytest.raises(StoreError, match=r"there is no payload key here; make one with \(umask 077; openssl"):
            await write(durable_url, made, SECRET)


async def test_a_runtime_on_sqlite_encrypts_by_default_and_says_so_in_its_settings(tmp_path: Path) -> None:
    @tool(effect="read", redact={"ssn"})
    async def look_up(ssn: str) -> str:
        """Whose number it is."""
        return ssn

    file = tmp_path / "x.db"
    async with running(look_up, store=f"sqlite:///{file}") as runtime:
        await runtime.call("look_up", {"ssn": "078-05-1120"}, actor="ann")
    assert (tmp_path / "config" / "interlock" / "payloads.key").exists()
    assert b"078-05-1120" not in file.read_bytes()
    plain = tmp_path / "plain.db"
    async with running(look_up, store=f"sqlite:///{plain}", settings=Settings(payload_key="none")) as runtime:
        await runtime.call("look_up", {"ssn": "078-05-1120"}, actor="ann")
    assert b"078-05-1120" in plain.read_bytes()


def test_which_file_holds_the_key(tmp_path: Path) -> None:
    default = tmp_path / "config" / "interlock" / "payloads.key"
    assert payload_key_file("", "sqlite:///x.db") == default
    assert payload_key_file("", "postgresql://x/y") is None
    assert payload_key_file("k", "postgresql://x/y") == Path("k")
    assert payload_key_file("k", "memory://") is None
    (tmp_path / "interlock.toml").write_text('payload_key = "none"\n')
    named = load_settings(tmp_path / "interlock.toml").settings
    assert payload_key_file(named.payload_key, "sqlite:///x.db") is None
    with pytest.raises(ConfigError, match="payload_key has no effect with store"):
        load_settings(given={"store": "memory://", "payload_key": "k"})


@pytest.mark.slow
async def test_processes_that_begin_at_once_agree_on_one_key(tmp_path: Path) -> None:
    code = (
        "import sys, asyncio; from interlock.stores import open_store;"
        " from tests.test_store_contract import batch, entry\n"
        "async def go():\n"
        "    store = open_store(sys.argv[1], payload_key=sys.argv[2])\n"
        "    await store.commit(batch(entry(1, payload=b'p'))); await store.close()\n"
        "asyncio.run(go())"
    )
    url, made = f"sqlite:///{tmp_path / 'x.db'}", tmp_path / "payloads.key"
    root = str(Path(__file__).parent.parent)
    several = [subprocess.Popen([sys.executable, "-c", code, url, str(made)], cwd=root) for _ in range(3)]
    assert [process.wait(60) for process in several] == [0, 0, 0]
    assert [await read(url, made, number) for number in (1, 2, 3)] == [b"p"] * 3


# Files


async def test_what_we_make_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path, loose_umask: None) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    store = open_store(url, payload_key=str(tmp_path / "payloads.key"))
    await store.commit(batch(entry(1, payload=b"p")))
    documents = Documents(f"sqlite:///{tmp_path / 'docs.db'}")
    await documents.write("a", {"x": 1})
    names = {file.name: mode_of(file) for file in tmp_path.iterdir() if file.is_file()}
    await store.close()
    await documents.close()
    assert {"x.db", "x.db-wal", "x.db-shm", "docs.db", "docs.db-wal", "payloads.key"} <= set(names)
    assert set(names.values()) == {0o600}


def test_an_export_is_for_its_owner_alone(tmp_path: Path, loose_umask: None) -> None:
    url, out = f"sqlite:///{tmp_path / 'x.db'}", tmp_path / "out.jsonl"
    asyncio.run(write(url, None, b"p"))
    assert main(["audit", "export", "--store", url, "--out", str(out)]) == 0
    assert mode_of(out) == 0o600


def test_a_umask_that_takes_everything_leaves_the_owner_his_file(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        make_private(tmp_path / "x")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "x") == 0o600


async def test_a_file_that_others_can_read_keeps_its_mode_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "x.db"
    file.touch()
    file.chmod(0o644)
    with caplog.at_level(logging.WARNING, "interlock"):
        await write(f"sqlite:///{file}", None, b"p")
    assert mode_of(file) == 0o644
    said = [line for line in caplog.messages if "others on this machine" in line]
    assert said == [f"{file}: others on this machine can open it (mode 0644); chmod 600 it if they should not"]


def test_a_store_that_may_only_be_read_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        open_store(f"sqlite:///{tmp_path / 'x.db'}?mode=ro")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_opening_a_ledger_does_not_load_the_cipher(tmp_path: Path) -> None:
    code = (
        "import sys; from interlock import Runtime, tool\n"
        "@tool(effect='read')\n"
        "def f(x: int) -> int:\n"
        "    'F.'\n"
        "    return x\n"
        "policy = {'version': 1, 'rule': [{'id': 'o', 'tools': ['*'], 'decision': 'allow'}]}\n"
        "Runtime.open(sys.argv[1], policy=policy, tools=[f])\n"
        "print('cryptography' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, f"sqlite:///{tmp_path / 'x.db'}"], capture_output=True, text=True, check=False
    )
    assert done.stdout == "False\n", done.stderr
