"""PostgreSQL: eight lanes, so that several workers commit side by side."""

from __future__ import annotations

import os
import re
import socket

from interlock.errors import ConfigError, StoreBusy, StoreError, StoreFull, install_hint
from interlock.stores.dialect import Connection, fill

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.pq import Conninfo
except ImportError:
    raise ConfigError(f"a PostgreSQL store needs its driver: {install_hint('postgres')}") from None

_TOKENS = {
    "id": "BIGINT",
    "blob": "BYTEA",
    "real": "DOUBLE PRECISION",
    "for_update": "FOR UPDATE",
    "for_share": "FOR SHARE",
    "in_key_order": "",
    "c_order": 'COLLATE "C"',
    "relations": "(SELECT relname::text AS name FROM pg_class WHERE pg_table_is_visible(oid)) AS relations",
    "pick_lane": "ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED",
}
_MIGRATION_LOCK = 0x494E544C
_BUSY = {
    "55P03": "another worker held the rows for {:g} s",
    "57014": "the server took longer than {:g} s",
    "40P01": "another worker held rows, and waited for ours",
    "40001": "another worker changed the rows meanwhile",
}
_PASSWORD = re.compile(r"(?<=://)([^:@/]+):[^@/]*@")


def _options(url: str, wait_ms: int) -> str:
    """What the server is told for each connection: what the user says in the URL (or in PGOPTIONS, as for every client
    of libpq), and after that, so that it counts, how long anything may wait."""
    given = conninfo_to_dict(url).get("options")
    if given is None:
        given = next((item.val or b"" for item in Conninfo.get_defaults() if item.keyword == b"options"), b"").decode()
    bounds = {
        "lock_timeout": wait_ms,
        "statement_timeout": wait_ms + 1000,
        # A worker that is stopped in the middle of its transaction holds rows that all others wait for: its session
        # ends before those who wait give up.
        "idle_in_transaction_session_timeout": max(1, wait_ms * 4 // 5),
        "client_min_messages": "warning",
    }
    return " ".join((str(given), *(f"-c {name}={value}" for name, value in bounds.items()))).strip()


class PostgresDialect:
    """A server."""

    lanes = 8
    name = "postgresql"
    locks_rows = True
    reads_at_once = False
    errors: tuple[type[Exception], ...] = (psycopg.Error,)

    def __init__(self, url: str, busy_s: float, *, own_clock: bool = True) -> None:
        self._own_clock = own_clock
        self._url = url
        self._where = _PASSWORD.sub(r"\1@", url).partition("?")[0]
        self.busy_s = busy_s

    def connect(self) -> Connection:
        """Open a connection whose waits are bounded."""
        wait_ms = max(1, int(self.busy_s * 1000))
        try:
            raw = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=max(2, int(self.busy_s)),
                # Of a server that is gone the network says nothing: it is asked whether it is there.
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=3,
                tcp_user_timeout=wait_ms,
                options=_options(self._url, wait_ms),
            )
        except psycopg.Error as error:
            raise StoreError(f"{self._where}: cannot connect: {str(error).splitlines()[0]}") from None
        return Connection(raw, self)

    def spell(self, statement: str) -> str:
        """PostgreSQL's spelling."""
        return fill(statement, _TOKENS).replace("?", "%s")

    def begin(self, connection: Connection, *, migrating: bool = False) -> None:
        """Start a transaction; migrations wait for each other."""
        connection.run("BEGIN")
        if migrating:
            connection.run("SET LOCAL statement_timeout = 0")  # an index over millions of rows takes its time
            connection.run("SELECT pg_advisory_xact_lock(?)", (_MIGRATION_LOCK,))
            connection.run("CREATE SEQUENCE IF NOT EXISTS record_ids AS BIGINT")

    def next_ids(self, connection: Connection, last: int, count: int) -> list[int]:
        """From a sequence, taken while the lane is locked: so they grow within the lane."""
        rows = connection.rows("SELECT nextval('record_ids') FROM generate_series(1, ?)", (count,))
        return [int(row[0]) for row in rows]

    def check_place(self) -> None:
        """A server knows its files."""

    def version(self, connection: Connection) -> None:
        """A server has many writers, and does not count for one what the others do."""

    def now_us(self, connection: Connection) -> int | None:
        """The server's: workers on several machines have as many clocks. Not `now()`, which stands still in a
        transaction that had to wait for a lock."""
        if not self._own_clock:
            return None
        row = connection.one("SELECT (extract(epoch from clock_timestamp()) * 1000000)::bigint")
        return None if row is None else int(row[0])

    def explain(self, error: Exception) -> StoreError:
        """By SQLSTATE."""
        state = str(getattr(error, "sqlstate", None) or "")
        first = (str(error).splitlines() or [""])[0]
        if state in _BUSY:
            return StoreBusy(f"{self._where}: {_BUSY[state].format(self.busy_s)}; try again")
        if state.startswith(("53", "58")) or state == "25006":
            return StoreFull(f"{self._where}: the server cannot write ({first}); nothing acknowledged is lost")
        return StoreError(f"{self._where}: {first}")

    def is_conflict(self, error: Exception) -> bool:
        """Deadlock, serialization failure, or somebody else's row came first."""
        return getattr(error, "sqlstate", None) in ("40P01", "40001", "23505")

    def wipe(self, connection: Connection, *, patient: bool) -> bool:
        """Nothing: the server vacuums when it thinks fit, and its own log is the operator's."""
        return True

    def cut(self, connection: Connection) -> None:
        """Close its socket under the thread that waits on it: the driver then sees a broken connection."""
        try:
            with socket.socket(fileno=os.dup(connection.raw.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error):
            pass  # it is gone already

    def close(self) -> None:
        """Nothing is held."""
