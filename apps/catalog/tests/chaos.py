"""Workers that are killed, servers that go wrong: and in the end the catalog is what a run without faults would make it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from catalog_parts import contents, fill, ready, run_all, working
from interlock_catalog.app import opened
from interlock_catalog.runner.record import Order, Run, Runs, turn_of
from interlock_catalog.server.tokens import new_token
from interlock_catalog.settings import Loaded
from proxy import Faulty

INTERLOCK = (sys.executable, "-m", "interlock")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Workers:
    """Worker processes by name, that can be killed and started again."""

    def __init__(self, home: Path, names: list[str]) -> None:
        self._home = home
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.kills = 0
        for name in names:
            self.start(name)

    def start(self, name: str) -> None:
        log = (self._home / f"{name}.log").open("ab")
        self._processes[name] = subprocess.Popen(
            [*INTERLOCK, "catalog", "worker", "--home", str(self._home), "--name", name],
            stdout=log,
            stderr=log,
            env=_environment(),
        )
        log.close()

    def kill(self, name: str) -> None:
        process = self._processes[name]
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.kills += 1
        self.start(name)

    def names(self) -> list[str]:
        return list(self._processes)

    def stop(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def logs(self) -> str:
        return "".join(file.read_text() for file in sorted(self._home.glob("*.log")))


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("CATALOG_", "INTERLOCK_", "DBOS_"))}


@contextmanager
def serving(home: Path, port: int) -> Iterator[None]:
    """The server as a process of its own."""
    log = (home / "serve.log").open("ab")
    process = subprocess.Popen(
        [*INTERLOCK, "catalog", "serve", "--home", str(home), "--port", str(port)],
        stdout=log,
        stderr=log,
        env=_environment(),
    )
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(15)
        log.close()


async def expected(folder: Path, docs: dict[str, Any], families: tuple[str, ...]) -> dict[str, Any]:
    """What a run without faults makes of the catalog."""
    loaded = ready(folder)
    await fill(loaded, docs)
    async with working(loaded) as work:
        run, _results = await run_all(work, Order(run="calm", mode="apply", families=families, max_changes=10_000))
        assert run.status in ("succeeded", "partial")
    return await contents(loaded)


async def until_ended(loaded: Loaded, runs: list[str], disturb: Any, limit_s: float) -> list[Run]:
    """Wait for runs to end, and disturb them meanwhile."""
    records, end = Runs(loaded.url("engine")), time.monotonic() + limit_s
    try:
        while time.monotonic() < end:
            await disturb()
            found = {run.id: run for run in await records.all()}
            if all(name in found and found[name].ended for name in runs):
                return [found[name] for name in runs]
        raise AssertionError(
            f"not ended in {limit_s:.0f} s: {[(n, found[n].status if n in found else None) for n in runs]}"
        )
    finally:
        await records.close()


async def made_once(loaded: Loaded, runs: list[Run]) -> int:
    """Every change is in the journal once, as done; how many there are."""
    keys: Counter[tuple[str, str]] = Counter()
    count = 0
    async with opened(loaded) as shop:
        for run in runs:
            for family in run.families:
                async for entry in shop.runtime.operations.journal(turn=turn_of(run.id, family.family)):
                    if entry.status == "done":
                        count += 1
                        keys[
                            run.id,
                            msgspec.json.encode([entry.op_type, entry.arguments], order="deterministic").decode(),
                        ] += 1
                    else:
                        assert entry.status in ("failed", "parked", "denied", "planned"), entry
    assert [key for key, times in keys.items() if times > 1] == []
    return count


def chance(seed: int) -> random.Random:
    return random.Random(seed)


async def proxied(port: int, share: float, seed: int) -> Faulty:
    made = Faulty(port, share, seed)
    await made.start()
    return made


def token_for(home: Path) -> str:
    return new_token(home / "tokens.toml", "autopilot", "editor")


async def pause(seconds: float) -> None:
    await asyncio.sleep(seconds)
