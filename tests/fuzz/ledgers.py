"""Ledgers that somebody had in hand: bytes of the file, values of its rows, lines of an export; and who reads them."""

from __future__ import annotations

import asyncio
import functools
import io
import json
import random
import runpy
import sqlite3
import sys
import tempfile
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from interlock import Runtime, tool
from interlock.audit import anchor, export_jsonl, load_or_make_key, verify
from interlock.cli.main import main
from interlock.errors import InterlockError
from interlock.policy import parse_policy
from interlock.ports import Query, SystemClock
from interlock.stores import Witness, open_store
from tests.fuzz.target import Target, mutated
from tests.test_changes import OPEN

_VERIFIER = Path(__file__).parent.parent.parent / "src" / "interlock" / "audit" / "verify_ledger.py"
_HOSTILE: list[Any] = [None, "", "x", "\x00", "{", "[]", "null", '{"n": 1e999}', "ok", -1, 0, 1, 2**62, 1.5, float("inf"), b"", b"\xff\x00", "9" * 5000]  # fmt: skip


class _Sample(msgspec.Struct, frozen=True):
    file: bytes
    export: str
    anchors: str


@tool(effect="send")
async def mail(to: str) -> str:
    return f"sent to {to}"


@functools.cache
def _sample() -> _Sample:
    """A small ledger with calls, payloads, a halt and checkpoints; its export and its anchors."""
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(_make(Path(name)))


async def _make(folder: Path) -> _Sample:
    url, key = f"sqlite:///{folder}/ledger.db", load_or_make_key(folder / "key")
    async with Runtime.open(url, policy=parse_policy(OPEN), tools=[mail]) as runtime:
        for n in range(4):
            await runtime.call("mail", {"to": f"x{n}"}, actor="ann", call_id=str(n), turn="t")
        await runtime.operations.halt("tool:mail")
        await anchor(runtime.store, key, SystemClock())
        await runtime.operations.unhalt("tool:mail")
        out = io.StringIO()
        await export_jsonl(runtime.store, Query(), out)
        checkpoints = await runtime.store.checkpoints()
    with closing(sqlite3.connect(folder / "ledger.db")) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.execute("PRAGMA journal_mode = DELETE")
    lines = "".join(msgspec.json.encode(item).decode() + "\n" for item in checkpoints)
    return _Sample((folder / "ledger.db").read_bytes(), out.getvalue(), lines)


def _damage_file(file: Path, chance: random.Random) -> None:
    """Bytes of the file, as a disk or an editor would leave them."""
    data = bytearray(_sample().file)
    for _ in range(chance.choice([1, 1, 3, 20, 200])):
        start = chance.randrange(len(data))
        data[start : start + chance.choice([1, 4, 64])] = chance.randbytes(chance.choice([1, 4, 64]))
    file.write_bytes(data[: chance.choice([len(data), len(data), chance.randrange(len(data))])])


def _damage_rows(file: Path, chance: random.Random) -> None:
    """Values of its rows, as somebody with SQL in hand would."""
    file.write_bytes(_sample().file)
    with closing(sqlite3.connect(file)) as raw:
        tables = [row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for _ in range(chance.choice([1, 2, 5])):
            table = chance.choice(tables)
            column = chance.choice([row[1] for row in raw.execute(f"PRAGMA table_info({table})")])
            try:
                raw.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (chance.choice(_HOSTILE),))
                if chance.random() < 0.1:
                    raw.execute(f"DELETE FROM {table}")
            except (sqlite3.Error, OverflowError):
                pass  # the table does not take that
        raw.commit()


async def _verify(url: str) -> None:
    store = open_store(url, witness=Witness(None))
    try:
        await verify(store)
    finally:
        await store.close()


def read_file(given: tuple[bool, int]) -> None:
    """A report or a sentence, as a function and as a command."""
    rows, number = given
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "ledger.db")
        (_damage_rows if rows else _damage_file)(file, random.Random(number))
        try:
            asyncio.run(_verify(f"sqlite:///{file}"))
        except InterlockError:
            pass  # a sentence
        (_damage_rows if rows else _damage_file)(file, random.Random(number))
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
            code = _exit_code(["--store", f"sqlite:///{file}", "audit", "verify"])
        assert code in (0, 1, 2, 3, 4, 5), (code, said.getvalue())
        assert "Traceback" not in said.getvalue()


def _exit_code(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as end:
        return int(end.code or 0)


def read_export(given: tuple[str, str]) -> None:
    """Never `intact` for records that are not those of the ledger, as far as it goes."""
    export, anchors = given
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name, "ledger.jsonl"), Path(name, "anchors.jsonl")]
        for file, text in zip(files, (export, anchors), strict=True):
            file.write_text(text, encoding="utf-8", newline="")
        if _verifies(files):
            found, whole = _records(export), _records(_sample().export)
            assert found == whole[: len(found)]


def _verifies(files: list[Path]) -> bool:
    before, sys.argv = sys.argv, ["verify_ledger.py", str(files[0]), "--anchors", str(files[1])]
    try:
        with redirect_stdout(io.StringIO()):
            runpy.run_path(str(_VERIFIER), run_name="__main__")
    except SystemExit as end:
        return end.code == 0
    # What is no export at all ends it with the error that json has for it, and so not with 0.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    finally:
        sys.argv = before
    return True


def _records(export: str) -> list[Any]:
    lines = [json.loads(line) for line in export.split("\n")[1:] if line.strip()]
    return [line for line in lines if "checkpoint" not in line]


def _exports() -> st.SearchStrategy[Any]:
    fragments = [
        "{}",
        "[]",
        "null",
        "1e999",
        '"hash": 1',
        '"lane": []',
        '"id": "x"',
        "\n\n",
        '{"checkpoint": 1}\n',
        '"heads": [[1]]',
        "[" * 3000,
    ]
    return st.tuples(mutated([_sample().export], fragments), mutated([_sample().anchors], fragments))


LEDGERS = Target("ledgers", st.tuples(st.booleans(), st.integers(0, 2**32)), read_file)
EXPORTS = Target("exports", st.deferred(_exports), read_export)
