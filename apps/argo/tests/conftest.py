"""Argo for tests: no variables of the surroundings, a small web on loopback, a memory of its own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from argo_testing import LocalWeb, OpenArgo, serve_web
from interlock_argo.settings import load_settings


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("INTERLOCK_", "ARGO_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("ARGO_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def web() -> Iterator[LocalWeb]:
    with serve_web() as served:
        yield served


@pytest.fixture
async def argo(tmp_path: Path, web: LocalWeb) -> AsyncIterator[OpenArgo]:
    """Argo over the small web, which it also searches, and a folder that it may read."""
    (tmp_path / "files").mkdir()
    (tmp_path / "argo.toml").write_text(
        f'[web]\nsearxng = "{web.address}"\n'
        '[security]\nweb_allowed_networks = ["127.0.0.0/8"]\nread_file_roots = ["files"]\n'
    )
    async with OpenArgo(load_settings()) as opened:
        yield opened
