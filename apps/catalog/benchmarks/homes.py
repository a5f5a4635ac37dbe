"""Folders with a catalog, for benchmarks."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from interlock_catalog.app import POLICY
from interlock_catalog.backends.embedded import DatabaseBackend
from interlock_catalog.contracts import Doc
from interlock_catalog.settings import Loaded, load_catalog_settings


def prepare_home(folder: Path) -> Loaded:
    """A folder that is ready for runs, in which every family may be changed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "interlock.toml").write_text('store = "sqlite:///interlock.db"\nrepeats = "allow"\nlease_s = 5\n')
    (folder / "catalog.toml").write_text("")
    shutil.copyfile(POLICY, folder / "policy.toml")
    (folder / "enabled.txt").write_text("*\n")
    return load_catalog_settings(folder, environment={})


async def fill_catalog(loaded: Loaded, docs: Mapping[str, Doc | None]) -> None:
    """Put documents there, past the gate."""
    backend = DatabaseBackend(loaded.settings.backend)
    try:
        await backend.fill(docs)
    finally:
        await backend.close()


async def read_catalog(loaded: Loaded) -> dict[str, Doc]:
    """Every document."""
    backend = DatabaseBackend(loaded.settings.backend)
    try:
        return await backend.read_all()
    finally:
        await backend.close()
