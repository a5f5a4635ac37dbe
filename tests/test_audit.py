"""Tampering: whatever is changed, removed, moved or put back is found."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import ConfigError, StoreError
from interlock.audit import anchor, export_csv, export_jsonl, load_or_make_key, load_public_key, read_anchors, verify
from interlock.audit.keys import is_signed_by
from interlock.errors import StoreCorrupt
from interlock.ports import Query, Store
from interlock.reasons import RefusalKind
from interlock.records import Checkpoint, Stored
from interlock.stores import MemoryStore, Witness, open_store
from interlock.testing import ManualClock
from interlock.testing.store_moves import T0
from interlock.transitions import Batch, Refused
from tests.test_store_contract import batch, entry

THEN = ManualClock(T0 / 1e6)
"""The time at which the records of these tests say that they were written."""
VERIFIER = Path(__file__).parent.parent / "src" / "interlock" / "audit" / "verify_ledger.py"


@pytest.fixture
def key(tmp_path: Path) -> Any:
    return load_or_make_key(tmp_path / "audit.key")


async def filled(url: str, key: Any, count: int = 12) -> list[Checkpoint]:
    """A ledger of records with a checkpoint in the middle and one at the end."""
    store = open_store(url)
    for n in range(count):
        await store.commit(batch(entry(n, turn=f"t{n % 3}")))
        if n == count // 2:
            await anchor(store, key, THEN)
    await anchor(store, key, THEN)
    anchors = list(await store.checkpoints())
    await store.close()
    return anchors


async def report(url: str, witness: Witness | None = None, **options: Any) -> Any:
    store = open_store(url, witness=witness)
    try:
        return await verify(store, **options)
    finally:
        await store.close()


def sql(url: str, *statements: str) -> None:
    """Do what somebody with the database in hand could do."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()
        return
    import psycopg

    with psycopg.connect(url, autocommit=True) as server:
        for statement in statements:
            server.execute(statement.encode())


async def test_an_untouched_ledger_is_intact_and_fully_anchored(durable_url: str, key: Any) -> None:
    anchors = await filled(durable_url, key)
    found = await report(durable_url, public_key=key.public, anchors=tuple(anchors))
    assert (found.intact, found.problems) == (True, ())
    assert (found.records, found.checkpoints, found.anchors, found.unanchored) == (12, 2, 2, 0)
    partly = await report(durable_url, public_key=key.public, anchors=(anchors[0],))
    assert (partly.intact, partly.unanchored) == (True, 5)
    assert (await report(durable_url)).unanchored == 12


COLUMN_EDITS = {
    "lane": "lane + 1",
    "hash": "replace(hash, substr(hash, 1, 1), CASE substr(hash, 1, 1) WHEN '0' THEN '1' ELSE '0' END)",
    "at_us": "at_us + 1",
    "kind": "'turn'",
    "call": "call || 'x'",
    "turn": "NULL",
    "actor": "'somebody else'",
    "tool": "'another'",
    "status": "'denied'",
    "body": "replace(body, '\"duration_us\":1', '\"duration_us\":2')",
    "id": "id + 1000",
}


@pytest.mark.parametrize("column", COLUMN_EDITS)
@pytest.mark.parametrize("row", [1, 6, 12])
async def test_editing_any_column_of_any_record_is_found(durable_url: str, key: Any, column: str, row: int) -> None:
    anchors = await filled(durable_url, key)
    sql(durable_url, f"UPDATE records SET {column} = {COLUMN_EDITS[column]} WHERE id = {row}")
    found = await report(durable_url, public_key=key.public, anchors=tuple(anchors))
    assert not found.intact


async def test_flipping_any_field_inside_a_record_is_found(tmp_path: Path, key: Any) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    await filled(url, key, 3)
    connection = sqlite3.connect(tmp_path / "x.db")
    (body,) = connection.execute("SELECT body FROM records WHERE id = 2").fetchone()
    content = json.loads(body)
    assert len(content) >= 5
    for field in content:
        changed = {**content, field: "tampered"}
        connection.execute("UPDATE records SET body = ? WHERE id = 2", (json.dumps(changed),))
        connection.commit()
        found = await report(url)
        assert any("record 2" in problem for problem in found.problems), field
    connection.execute("UPDATE records SET body = ? WHERE id = 2", (body,))
    connection.commit()
    connection.close()
    assert (await report(url)).intact


ATTACKS: dict[str, tuple[str, ...]] = {
    "delete the first": ("DELETE FROM records WHERE id = 1",),
    "delete one in the middle": ("DELETE FROM records WHERE id = 5",),
    "delete the last": ("DELETE FROM records WHERE id = 12",),
    "delete all": ("DELETE FROM records",),
    "swap two bodies": ("UPDATE records SET body = (SELECT body FROM records WHERE id = 4) WHERE id = 3",),
    "reorder two records": (
        "UPDATE records SET id = 1000 WHERE id = 3",
        "UPDATE records SET id = 3 WHERE id = 4",
        "UPDATE records SET id = 4 WHERE id = 1000",
    ),
    "remove a checkpoint": ("DELETE FROM checkpoints WHERE n = 1",),
    "remove the newest checkpoint": ("DELETE FROM checkpoints WHERE n = 2",),
    "swap checkpoints": (
        "UPDATE checkpoints SET n = 9 WHERE n = 1",
        "UPDATE checkpoints SET n = 1 WHERE n = 2",
        "UPDATE checkpoints SET n = 2 WHERE n = 9",
    ),
    "edit a checkpoint": ("UPDATE checkpoints SET body = replace(body, '\"n\":1', '\"n\":3') WHERE n = 1",),
    "unreadable checkpoint": ("UPDATE checkpoints SET body = 'x' WHERE n = 1",),
    "edit a signature": ("UPDATE checkpoints SET signature = '00' WHERE n = 1",),
    "edit a key": ("UPDATE checkpoints SET public_key = 'zz' WHERE n = 1",),
    "move a head": ("UPDATE lanes SET count = count + 1 WHERE count > 0",),
    "remove the heads": ("DELETE FROM lanes",),
}


@pytest.mark.parametrize("part", ["ledger", "digest_key"])
async def test_neither_the_name_of_a_ledger_nor_the_key_of_its_digests_can_be_exchanged(
    durable_url: str, key: Any, part: str
) -> None:
    """Under another digest key everything that was made once and for all could be made again."""
    await filled(durable_url, key)
    sql(durable_url, f"UPDATE interlock_meta SET value = '{'ab' * 32}' WHERE name = '{part}'")
    with pytest.raises(StoreCorrupt, match="is not the one it was begun with"):
        open_store(durable_url)


@pytest.mark.parametrize("attack", ATTACKS)
async def test_attacks_on_the_database_are_found(durable_url: str, key: Any, attack: str) -> None:
    anchors = await filled(durable_url, key)
    sql(durable_url, *ATTACKS[attack])
    assert not (await report(durable_url, public_key=key.public, anchors=tuple(anchors))).intact


async def test_a_tail_cut_with_its_head_moved_back_is_found_up_to_the_last_anchor(durable_url: str, key: Any) -> None:
    """Whoever can write the database can cut the tail and mend the head; only the anchor knows better, elsewhere."""
    anchors = await filled(durable_url, key, 6)
    store = open_store(durable_url)
    before = await store.heads()
    for n in range(3):
        await store.commit(batch(entry(50 + n)))
    later = await anchor(store, key, THEN)
    await store.close()
    restore = [
        f"UPDATE lanes SET id = {h.id}, count = {h.count}, hash = '{h.hash}' WHERE lane = {h.lane}" for h in before
    ]
    sql(
        durable_url,
        "DELETE FROM records WHERE id > 6",
        f"DELETE FROM checkpoints WHERE n = {later.n}",
        *restore,
    )
    elsewhere = Witness(None)
    blind = await report(durable_url, elsewhere, public_key=key.public, anchors=tuple(anchors))
    assert blind.intact
    here = await report(durable_url, public_key=key.public, anchors=tuple(anchors))
    assert any("was seen here" in problem for problem in here.problems), "this machine has seen more of it"
    found = await report(durable_url, elsewhere, public_key=key.public, anchors=(*anchors, later))
    assert any("is gone: the tail was cut" in problem for problem in found.problems)
    assert any("no longer holds this checkpoint" in problem for problem in found.problems)


async def test_putting_an_older_copy_of_the_file_back_is_found(tmp_path: Path, key: Any) -> None:
    file = tmp_path / "x.db"
    url = f"sqlite:///{file}"
    await filled(url, key, 6)
    shutil.copy(file, tmp_path / "old.db")
    store = open_store(url)
    await store.commit(batch(entry(99)))
    later = await anchor(store, key, THEN)
    await store.close()
    for leftover in (tmp_path / "x.db-wal", tmp_path / "x.db-shm"):
        leftover.unlink(missing_ok=True)
    shutil.copy(tmp_path / "old.db", file)
    assert not (await report(url, public_key=key.public, anchors=(later,))).intact


async def test_records_spliced_in_from_another_ledger_are_found(tmp_path: Path, key: Any) -> None:
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("a", "b")]
    for url in urls:
        await filled(url, key, 6)
    columns = "lane, hash, at_us, kind, call, turn, actor, tool, status, body"
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute(f"ATTACH '{tmp_path / 'b.db'}' AS b")
    connection.execute("DELETE FROM records WHERE id = 4")
    connection.execute(f"INSERT INTO records (id, {columns}) SELECT id, {columns} FROM b.records WHERE id = 4")
    connection.commit()
    connection.close()
    assert not (await report(urls[0], public_key=key.public)).intact


async def test_a_ledger_rewritten_and_signed_with_another_key_is_found(tmp_path: Path, key: Any) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    other = load_or_make_key(tmp_path / "other.key")
    await filled(url, other, 4)
    found = await report(url, public_key=key.public)
    assert any("signed by another key" in problem for problem in found.problems)


async def test_an_anchor_of_another_ledger_is_found(tmp_path: Path, key: Any) -> None:
    anchors = await filled(f"sqlite:///{tmp_path / 'a.db'}", key, 4)
    await filled(f"sqlite:///{tmp_path / 'b.db'}", key, 4)
    found = await report(f"sqlite:///{tmp_path / 'b.db'}", anchors=tuple(anchors))
    assert any("belongs to another ledger" in problem for problem in found.problems)


async def test_many_problems_are_counted_but_not_all_listed(tmp_path: Path, key: Any) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    await filled(url, key, 150)
    sql(url, "UPDATE records SET actor = 'x'")
    assert len((await report(url)).problems) == 100


async def test_an_empty_ledger_is_intact(store: Store, key: Any) -> None:
    await anchor(store, key, THEN)
    assert (await verify(store, public_key=key.public)).intact


async def test_progress_is_told(key: Any) -> None:
    store = MemoryStore()
    for _ in range(50):
        await store.commit(batch(*(entry(n) for n in range(1000))))
    told: list[int] = []
    await verify(store, progress=told.append)
    assert told == [50_000]


async def test_two_processes_that_anchor_at_once_make_two_checkpoints(durable_url: str, key: Any) -> None:
    stores = [open_store(durable_url) for _ in range(2)]
    await stores[0].commit(batch(entry(1)))
    made = await asyncio.gather(*(anchor(store, key, THEN) for store in stores for _ in range(2)))
    assert sorted(checkpoint.n for checkpoint in made) == [1, 2, 3, 4]
    assert (await verify(stores[0], public_key=key.public)).intact
    for store in stores:
        await store.close()


async def test_a_checkpoint_that_always_loses_says_so(key: Any) -> None:
    class Rival(MemoryStore):
        async def commit(self, batch: Batch) -> Any:
            return Refused(kind=RefusalKind.CONFLICT, limit="checkpoint", message="no")

    with pytest.raises(StoreError, match="keep making checkpoints"):
        await anchor(Rival(), key, THEN)


def test_the_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "audit.key"
    first, second = load_or_make_key(file), load_or_make_key(file)
    assert first.public == second.public == load_public_key(file)
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert sorted(file.parent.iterdir()) == [file, file.with_name("audit.key.pub")]
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read the signing key"):
        load_or_make_key(file)


def test_of_several_processes_that_make_a_key_at_once_one_wins(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from interlock.audit import load_or_make_key; print(load_or_make_key(Path(sys.argv[1])).public)"
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "k")], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({child.communicate(timeout=600)[0] for child in children}) == 1


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as codec
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    file = tmp_path / "k"
    file.write_text("not a key")
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="not a PEM key"):
        load_or_make_key(file)
    with pytest.raises(ConfigError, match="not a PEM key"):
        load_public_key(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_public_key(tmp_path / "none")
    other = generate_private_key(SECP256R1())
    file.write_bytes(other.private_bytes(codec.Encoding.PEM, codec.PrivateFormat.PKCS8, codec.NoEncryption()))
    with pytest.raises(ConfigError, match="must be an Ed25519 key"):
        load_or_make_key(file)
    file.write_bytes(other.public_key().public_bytes(codec.Encoding.PEM, codec.PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(ConfigError, match="must be an Ed25519 key"):
        load_public_key(file)


@given(st.binary(max_size=64), st.text(max_size=8))
def test_only_the_key_itself_makes_a_signature_that_holds(text: bytes, other: str) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from interlock.audit import SigningKey

    key = SigningKey(Ed25519PrivateKey.generate())
    assert is_signed_by(key.public, key.sign(text), text)
    assert not is_signed_by(key.public, key.sign(text), text + b"x")
    assert not is_signed_by(other, key.sign(text), text)


def test_anchors_that_are_none_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    with pytest.raises(ConfigError, match="cannot be read"):
        read_anchors(file)
    file.write_text("{}\n")
    with pytest.raises(ConfigError, match="not a file of anchors"):
        read_anchors(file)


async def exported(url: str, tmp_path: Path, query: Query | None = None) -> Path:
    store = open_store(url)
    file = tmp_path / "ledger.jsonl"
    with file.open("w", encoding="utf-8") as out:
        await export_jsonl(store, query or Query(), out)
    await store.close()
    return file


def stand_alone(*arguments: Any) -> tuple[int, str]:
    """Run the verifier where our package cannot be imported."""
    command = [sys.executable, "-I", str(VERIFIER), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_stand_alone_verifier_is_short_and_imports_nothing_of_ours() -> None:
    text = VERIFIER.read_text()
    assert len(text.splitlines()) < 140
    assert "import interlock" not in text
    assert "from interlock" not in text


async def test_the_stand_alone_verifier_agrees(durable_url: str, key: Any, tmp_path: Path) -> None:
    anchors = await filled(durable_url, key)
    file = await exported(durable_url, tmp_path)
    kept = tmp_path / "anchors.jsonl"
    kept.write_bytes(b"".join(msgspec.json.encode(item) + b"\n" for item in anchors))
    assert stand_alone(file, "--anchors", kept, "--public-key", key.public) == (
        0,
        "intact: 12 records, 0 not anchored\n",
    )
    assert stand_alone(file)[1] == "intact: 12 records, 12 not anchored\n"
    code, text = stand_alone(file, "--public-key", "00" * 32)
    assert (code, "signed by another key" in text) == (1, True)


Edit = Callable[[list[dict[str, Any]]], None]


def _edit_actor(lines: list[dict[str, Any]]) -> None:
    lines[3]["actor"] = "eve"


def _edit_body(lines: list[dict[str, Any]]) -> None:
    lines[3]["body"] = lines[3]["body"].replace("1", "2")


def _drop(lines: list[dict[str, Any]]) -> None:
    del lines[5]


def _cut(lines: list[dict[str, Any]]) -> None:
    lines[:] = [line for line in lines if line.get("id", 0) <= 6 or "checkpoint" in line]


def _swap(lines: list[dict[str, Any]]) -> None:
    lines[2], lines[3] = lines[3], lines[2]


def _forge(lines: list[dict[str, Any]]) -> None:
    lines[-1]["checkpoint"]["body"] = lines[-1]["checkpoint"]["body"].replace('"n":2', '"n":3')


def _drop_checkpoint(lines: list[dict[str, Any]]) -> None:
    del lines[-2]


def _rename(lines: list[dict[str, Any]]) -> None:
    lines[0]["ledger"] = "abc"


@pytest.mark.parametrize("edit", [_edit_actor, _edit_body, _drop, _cut, _swap, _forge, _drop_checkpoint, _rename])
async def test_the_stand_alone_verifier_finds_tampering(tmp_path: Path, key: Any, edit: Edit) -> None:
    await filled(f"sqlite:///{tmp_path / 'x.db'}", key)
    file = await exported(f"sqlite:///{tmp_path / 'x.db'}", tmp_path)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    edit(lines)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    code, text = stand_alone(file)
    assert (code, "not intact" in text) == (1, True)


async def test_a_filtered_export_says_that_it_cannot_be_verified(tmp_path: Path, key: Any) -> None:
    await filled(f"sqlite:///{tmp_path / 'x.db'}", key)
    file = await exported(f"sqlite:///{tmp_path / 'x.db'}", tmp_path, Query(turn="t1"))
    assert "not a complete export" in stand_alone(file)[1]


async def test_a_spreadsheet_does_not_run_what_a_model_wrote(tmp_path: Path) -> None:
    store = MemoryStore()
    await store.commit(batch(entry(1, actor="=HYPERLINK(1)"), entry(2)))
    with (tmp_path / "x.csv").open("w+", encoding="utf-8") as out:
        assert await export_csv(store, Query(), out) == 2
        out.seek(0)
        text = out.read()
    assert "'=HYPERLINK(1)" in text
    assert text.splitlines()[0].startswith("id,time,actor,tool,outcome")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=3, max_size=3))
def test_any_text_hashes_the_same_with_the_standard_library(texts: list[str]) -> None:
    """The columns are spelled by one encoder here and by json.dumps in the stand-alone verifier."""
    spelled = json.dumps(texts, ensure_ascii=False, separators=(",", ":")).encode()
    assert msgspec.json.encode(texts) == spelled


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=8), st.data())
def test_any_change_to_any_field_of_any_record_is_found(actors: list[str], data: st.DataObject) -> None:
    """A ledger of arbitrary texts is intact; with one field of one record changed it is not."""
    store = MemoryStore()
    asyncio.run(_fill(store, actors))
    assert asyncio.run(verify(store)).intact
    place = data.draw(st.integers(0, len(actors) - 1))
    column = data.draw(st.integers(0, len(Stored.__struct_fields__) - 1))
    edited = _Edited.copy_of(store)
    row = msgspec.structs.astuple(edited.rows[place])
    before = row[column]
    after = data.draw(
        (st.integers(1, 99) if isinstance(before, int) else st.text(st.characters(exclude_categories=["Cs"]))).filter(
            lambda value: value != before
        )
    )
    changed: tuple[Any, ...] = (*row[:column], after, *row[column + 1 :])
    edited.rows[place] = Stored(*changed)
    assert not asyncio.run(verify(edited)).intact


@given(st.lists(st.text(max_size=3), min_size=3, max_size=8), st.data())
def test_any_removal_or_exchange_of_records_is_found(actors: list[str], data: st.DataObject) -> None:
    store = MemoryStore()
    asyncio.run(_fill(store, [f"{n}{actor}" for n, actor in enumerate(actors)]))
    one, other = data.draw(st.lists(st.integers(0, len(actors) - 1), min_size=2, max_size=2, unique=True))
    edited = _Edited.copy_of(store)
    assert asyncio.run(verify(edited)).intact
    if data.draw(st.booleans()):
        del edited.rows[one]
    else:
        edited.rows[one], edited.rows[other] = edited.rows[other], edited.rows[one]
    assert not asyncio.run(verify(edited)).intact


class _Edited(MemoryStore):
    """A ledger whose rows somebody else can write to."""

    rows: list[Stored]

    @classmethod
    def copy_of(cls, store: MemoryStore) -> _Edited:
        async def read() -> list[Stored]:
            return [record async for record in store.records(Query())]

        made = cls()
        made.__dict__.update(store.__dict__, rows=asyncio.run(read()))
        return made

    async def records(self, query: Query) -> AsyncIterator[Stored]:
        for row in self.rows:
            if query.after < row.id and (query.until is None or row.id <= query.until):
                yield row


async def _fill(store: MemoryStore, actors: list[str]) -> None:
    for n, actor in enumerate(actors):
        await store.commit(batch(entry(n, actor=actor.encode("utf-8", "replace").decode())))
