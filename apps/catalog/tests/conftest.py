"""The catalog for tests: no variables of the surroundings, loopback only."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))  # faults are planted there

from catalog_testing import clean_families, fill_catalog, prepare_home


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("INTERLOCK_", "CATALOG_", "DBOS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(params=["sqlite", "postgres"])
def backend_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the catalog lives: one URL for each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.db'}"
    return str(request.getfixturevalue("postgres"))


@pytest.fixture
async def url(tmp_path: Path, backend_url: str) -> str:
    """The same, with one family in it."""
    loaded = prepare_home(tmp_path / "home", backend=backend_url)
    await fill_catalog(loaded, clean_families("bench-press"))
    return loaded.settings.backend
