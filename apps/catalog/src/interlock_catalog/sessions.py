"""Sessions of PostgreSQL that carry the name of the worker they belong to.

A process that stands still inside a transaction keeps its locks, and the server does not know that it will not go on:
whoever takes over its runs ends its transactions first.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

_MAX_NAME_BYTES = 63
"""What PostgreSQL keeps of the name of a session."""


def is_postgres(url: str) -> bool:
    """Whether a URL is that of a PostgreSQL server."""
    return url.startswith(("postgresql://", "postgres://"))


def name_sessions(url: str, executor: str) -> str:
    """The same database, with sessions that carry the name of an executor."""
    if not executor or not is_postgres(url):
        return url
    return f"{url}{'&' if '?' in url else '?'}application_name={quote(_session_name(executor))}"


def end_transactions(urls: Iterable[str], executor: str) -> int:
    """End the sessions of an executor that stand still inside a transaction; how many there were."""
    import psycopg

    ended = 0
    for url in dict.fromkeys(filter(is_postgres, urls)):
        with psycopg.connect(url, autocommit=True) as connection:
            found = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = %s AND datname = current_database() AND state LIKE 'idle in transaction%%'",
                (_session_name(executor),),
            )
            ended += len(found.fetchall())
    return ended


def _session_name(executor: str) -> str:
    return f"catalog {executor}".encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
