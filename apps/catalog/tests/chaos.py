"""Workers that are killed, servers that go wrong: in the end the catalog is what a run without faults would make it."""

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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from catalog_testing import PATIENCE_S, fill_catalog, open_steps, prepare_home, read_catalog, run_all
from interlock_catalog.app import open_app
from interlock_catalog.contracts import Doc
from interlock_catalog.runner.durable import enqueue_run
from interlock_catalog.runner.records import Run, RunRequest, RunStore, open_run_store
from interlock_catalog.runner.work_items import RunTurn
from interlock_catalog.settings import Loaded
from proxy import FaultyProxy

_POLL_S = 0.1
_STOP_S = 120.0
MAX_CHANGES = 10_000


async def wait_until(condition: Callable[[], Awaitable[Any]], what: str, limit_s: float = PATIENCE_S) -> Any:
    """Wait for something to become true, and give it; the limit is only there to end a hang."""
    end = time.monotonic() + limit_s
    while not (found := await condition()):
        assert time.monotonic() < end, f"{what}: not within {limit_s:.0f} s"
        await asyncio.sleep(_POLL_S)
    return found


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _start(log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """`interlock catalog …` as a process of its own, without variables of the surroundings."""
    ours = ("CATALOG_", "INTERLOCK_", "DBOS_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "interlock", "catalog", *arguments], stdout=out, stderr=out, env=environment
        )


class Workers:
    """Worker processes by name, that can be killed and started again."""

    def __init__(self, home: Path, *names: str) -> None:
        self._home = home
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._starts: Counter[str] = Counter()
        self.kills = 0
        for name in names:
            self.start(name)

    def start(self, name: str) -> subprocess.Popen[bytes]:
        self._starts[name] += 1
        log = self._home / f"{name}.{self._starts[name]}.log"
        self._processes[name] = _start(log, "worker", "--home", str(self._home), "--name", name)
        return self._processes[name]

    async def wait_ready(self, name: str) -> None:
        """Wait until the last process of that name carries runs."""
        log = self._home / f"{name}.{self._starts[name]}.log"

        async def is_ready() -> bool:
            assert self._processes[name].poll() is None, self.logs()
            return "is ready" in log.read_text()

        await wait_until(is_ready, f"worker {name}")

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.kills += 1

    def freeze(self, name: str) -> None:
        """Have a process stand still, with everything that it holds."""
        self._processes[name].send_signal(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """Have it go on as if nothing had been."""
        self._processes[name].send_signal(signal.SIGCONT)

    def names(self) -> list[str]:
        return list(self._processes)

    def stop(self) -> None:
        for process in self._processes.values():
            process.terminate()
            process.send_signal(signal.SIGCONT)  # one that stands still would not even hear that it should end
        for process in self._processes.values():
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def logs(self) -> str:
        return "".join(file.read_text() for file in sorted(self._home.glob("*.log")))


@asynccontextmanager
async def run_server(home: Path, port: int) -> AsyncIterator[None]:
    """The server as a process of its own."""
    process = _start(home / "serve.log", "serve", "--home", str(home), "--port", str(port))

    async def is_listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        await wait_until(is_listening, "the server")
        yield
    finally:
        process.terminate()
        process.wait(_STOP_S)


@asynccontextmanager
async def run_proxy(port: int, share: float, seed: int) -> AsyncIterator[FaultyProxy]:
    """A proxy in front of a server that goes wrong with so many requests."""
    proxy = FaultyProxy(port, share, seed)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()


async def run_calmly(folder: Path, docs: Mapping[str, Doc], families: tuple[str, ...]) -> dict[str, Any]:
    """What a run without faults makes of the catalog."""
    loaded = prepare_home(folder)
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        request = RunRequest(run="calm", mode="apply", families=families, max_changes=MAX_CHANGES)
        run, _results = await run_all(steps, request)
        assert run.status in ("succeeded", "waiting", "partial")
    return await read_catalog(loaded)


class Disturbance(msgspec.Struct, frozen=True, kw_only=True):
    """How workers are killed while they work: so many times at most, each a while after it was ready."""

    kills: int
    pause_s: tuple[float, float]
    seed: int


async def run_disturbed(
    loaded: Loaded, requests: list[RunRequest], names: tuple[str, ...], disturbance: Disturbance
) -> tuple[list[Run], Workers]:
    """Runs that workers carry to their end although they are killed; all of them, with those that were needed besides.

    On a machine so busy that a worker loses its lease while it is alive, a family is deferred to the next run, as it
    should be, and behind a server that fails often enough a change fails, and is found again: then there is a next run.
    """
    workers, chance = Workers(loaded.folder, *names), random.Random(disturbance.seed)
    done = list[Run]()
    async with open_run_store(loaded.settings) as runs:
        try:
            for request in requests:
                enqueue_run(loaded.settings, request)
            while workers.kills < disturbance.kills and not await _have_ended(runs, requests):
                name = chance.choice(workers.names())
                await workers.wait_ready(name)
                await asyncio.sleep(chance.uniform(*disturbance.pause_s))
                workers.kill(name)
                workers.start(name)
            while requests:
                await _wait_for_end(runs, requests)
                ended = [await runs.get(request.run) for request in requests]
                done += ended
                requests = [_next_run(run, left) for run in ended if (left := _left_over(run))]
                for request in requests:
                    enqueue_run(loaded.settings, request)
        finally:
            workers.stop()
    return done, workers


async def _wait_for_end(runs: RunStore, requests: list[RunRequest]) -> None:
    await wait_until(lambda: _have_ended(runs, requests), "the runs")


async def _have_ended(runs: RunStore, requests: list[RunRequest]) -> bool:
    found = {run.id: run for run in await runs.all()}
    return all(request.run in found and found[request.run].ended for request in requests)


def _left_over(run: Run) -> tuple[str, ...]:
    """The families that were deferred, and those of which a change failed, or is not known to have been made."""
    failed = [r.family for r in run.families if r.work.is_family and r.counts.keys() & {"failed", "unknown"}]
    return tuple(dict.fromkeys((*run.left_over, *failed)))


def _next_run(run: Run, families: tuple[str, ...]) -> RunRequest:
    assert len(run.id) < 40, f"families are left over again and again: {families}"
    return RunRequest(run=f"{run.id}+", mode="apply", families=families, max_changes=MAX_CHANGES, by="test")


async def assert_made_once(loaded: Loaded, runs: list[Run]) -> None:
    """Every change is in the journal once, as done, and the records of the runs say so."""
    keys: Counter[tuple[str, bytes]] = Counter()
    async with open_app(loaded) as app:
        for run in runs:
            for family in run.families:
                async for entry in app.runtime.operations.journal(turn=RunTurn(run.id, family.work).text):
                    if entry.status == "done":
                        text = msgspec.json.encode([entry.op_type, entry.arguments], order="deterministic")
                        keys[run.id, text] += 1
                    else:
                        assert entry.status in ("failed", "parked", "denied", "planned"), entry
    assert [key for key, times in keys.items() if times > 1] == []
    assert keys
    if not any(run.left_over for run in runs):
        assert len(keys) == sum(run.counts["ok"] for run in runs)
