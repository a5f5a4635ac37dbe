"""SQLite: WAL, synchronous=FULL, BEGIN IMMEDIATE, one lane."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from urllib.parse import parse_qs, quote

from interlock.errors import ConfigError, StoreBusy, StoreCorrupt, StoreError, StoreFull
from interlock.stores.dialect import Connection, fill
from interlock.stores.private_files import make_private, warn_if_readable

_TOKENS = {
    "id": "INTEGER",
    "blob": "BLOB",
    "real": "REAL",
    "for_update": "",
    "for_share": "",
    "in_key_order": " WITHOUT ROWID",
    "c_order": "",
    "relations": "sqlite_master",
    "pick_lane": "LIMIT 1",
}

_WIPE_MS = 200


class SqliteDialect:
    """A file."""

    lanes = 1
    name = "sqlite"
    locks_rows = False
    reads_at_once = True
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, url: str, busy_s: float, *, own_clock: bool = True) -> None:
        self._own_clock = own_clock
        path, _, options = url.removeprefix("sqlite:///").partition("?")
        unknown = set(parse_qs(options)) - {"mode"}
        if not path or path == ":memory:" or unknown:
            raise ConfigError(f"{url!r}: write sqlite:///FILE (or memory:// for a store that is not kept)")
        self.path = Path(path)
        self._name = path
        self._options = f"?{options}" if options else ""
        self.busy_s = busy_s
        self._place: tuple[int, int] | None = None

    def connect(self) -> Connection:
        """Open the file, and refuse one that is not what we wrote."""
        self._make_private()
        uri = f"file:{quote(str(self.path))}{self._options}"
        try:
            # isolation_level=None: BEGIN IMMEDIATE is ours, so that two writers queue instead of failing at COMMIT.
            raw = sqlite3.connect(uri, uri=True, timeout=self.busy_s, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise self.explain(error) from None
        try:
            self._switch_to_wal(raw)
            # NORMAL may lose the last commits when the power goes; then an effect could be made twice.
            raw.execute("PRAGMA synchronous = FULL")
            # What is deleted is overwritten, not only unlinked: somebody may have asked for it to be forgotten.
            raw.execute("PRAGMA secure_delete = ON")
        except sqlite3.Error as error:
            raw.close()
            raise self.explain(error) from None
        except UnicodeDecodeError:  # of a message that quotes a schema which is no text any more
            raw.close()
            raise StoreCorrupt(f"{self.path}: damaged (its schema cannot be read); restore a copy") from None
        # That of the first connection: a later one to another file must not pass for it.
        self._place = self._place or self._stat()
        return Connection(raw, self)

    def _make_private(self) -> None:
        """Before SQLite makes the file by the umask; the log beside it gets the rights of the file."""
        if self._place is not None:
            return
        if parse_qs(self._options.lstrip("?")).get("mode", ["rwc"]) == ["rwc"]:
            make_private(self.path)
        else:
            warn_if_readable(self.path)

    def _switch_to_wal(self, raw: sqlite3.Connection) -> None:
        """SQLite does not wait for others while it switches, so we do."""
        patience = time.monotonic() + self.busy_s
        while True:
            try:
                raw.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > patience:
                    raise
            time.sleep(0.01)

    def spell(self, statement: str) -> str:
        """SQLite's spelling."""
        return fill(statement, _TOKENS)

    def begin(self, connection: Connection, *, migrating: bool = False) -> None:
        """Take the write lock at once: a plain BEGIN would fail later, in the middle."""
        connection.run("BEGIN IMMEDIATE")

    def next_ids(self, connection: Connection, last: int, count: int) -> list[int]:
        """The next numbers: the write lock is ours."""
        return list(range(last + 1, last + count + 1))

    def check_place(self) -> None:
        """A file that was removed or replaced is still open here, and takes every commit to nowhere."""
        if self._place is not None and self._stat() != self._place:
            raise StoreError(
                f"{self.path}: the file was removed or replaced while it was open, so that nothing can be kept in it;"
                " put it back, or open the runtime again on the one that counts"
            )

    def _stat(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._name)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def version(self, connection: Connection) -> int:
        """SQLite counts; the write lock is ours, so that nobody writes before we have."""
        return int(connection.rows("PRAGMA data_version")[0][0])

    def now_us(self, connection: Connection) -> int | None:
        """That of the machine, asked for past `time.time`: a process that has moved its own time must not take another
        one, which is alive, for dead."""
        return time.clock_gettime_ns(time.CLOCK_REALTIME) // 1000 if self._own_clock else None

    def explain(self, error: Exception) -> StoreError:
        """By SQLite's own error names."""
        name = str(getattr(error, "sqlite_errorname", ""))
        where = str(self.path)
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return StoreBusy(f"{where}: another process has held the file for {self.busy_s:g} s; try again, or end it")
        if name.startswith("SQLITE_READONLY"):
            return StoreFull(f"{where}: the file may not be written; check its permissions and the mount")
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            return StoreFull(f"{where}: the disk is full or failing ({error}); free some room, nothing written is lost")
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return StoreCorrupt(f"{where}: not a ledger, or damaged ({error}); move it aside and restore a copy")
        if name.startswith("SQLITE_CANTOPEN"):
            return StoreError(f"{where}: cannot be opened; does the folder exist, and may we write there?")
        return StoreError(f"{where}: {error}")

    def is_conflict(self, error: Exception) -> bool:
        """Never: the write lock was ours."""
        return False

    def wipe(self, connection: Connection, *, patient: bool) -> bool:
        """Empty the log, which still holds the pages as they were; False if others read there now."""
        try:
            connection.run(f"PRAGMA busy_timeout = {_WIPE_MS if patient else 0}")
            try:
                busy = connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
            finally:
                connection.run(f"PRAGMA busy_timeout = {round(self.busy_s * 1000)}")
        except sqlite3.Error:
            return False  # the deletion is committed; only the log is longer than it should be
        return not busy

    def cut(self, connection: Connection) -> None:
        """A file does not hang for longer than `busy_s`; a statement that runs is ended."""
        connection.raw.interrupt()

    def close(self) -> None:
        """Nothing is held."""
