"""Real parts for the tests of the library: stores of every kind, files in temporary folders."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from interlock import Runtime, Tool, tool
from interlock.policy import parse_policy
from interlock.ports import Store
from interlock.stores import open_store

ALLOW = 'version = 1\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'

POSTGRES = pytest.param("postgres", marks=pytest.mark.slow)
T = TypeVar("T")


def expect(value: T | None) -> T:
    """What must be there: `expect(outcome.problem).reason`."""
    assert value is not None
    return value


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("INTERLOCK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """One URL for each twin."""
    if request.param == "memory":
        return "memory://"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return str(request.getfixturevalue("postgres"))


@pytest.fixture(params=["sqlite", POSTGRES])
def durable_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """One URL for each durable twin."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return str(request.getfixturevalue("postgres"))


def on_stores(cases: Iterable[Any], central: Any) -> list[Any]:
    """All cases in memory, and the central one on both databases too: for `("store_url", …)`, the first one indirect."""
    return [*(("memory", case) for case in cases), ("sqlite", central), on_server(central)]


def on_server(case: Any) -> Any:
    """One more case on PostgreSQL."""
    return pytest.param("postgres", case, marks=pytest.mark.slow)


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """An open store of each kind."""
    opened = open_store(store_url)
    yield opened
    await opened.close()


@tool(effect="read")
async def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    return text * times


def install_distribution(folder: Path, name: str, module: str, group: str, entry_points: str) -> None:
    """A distribution as a package manager would leave it; it is found once `folder` is on the path."""
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[{group}]\n{entry_points}\n")
    (folder / f"{name}.py").write_text(module)


@asynccontextmanager
async def running(
    *tools: Tool, policy: str = ALLOW, store: str | Store = "memory://", **options: Any
) -> AsyncIterator[Runtime]:
    """A runtime for one test."""
    runtime = Runtime.open(store, policy=parse_policy(policy, "policy.toml"), tools=tools or (echo,), **options)
    try:
        yield runtime
    finally:
        await runtime.close()


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write files into a folder and stand in it."""

    def write(**files: str) -> Path:
        for name, text in files.items():
            (tmp_path / name.replace("__", ".")).write_text(text, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return write
