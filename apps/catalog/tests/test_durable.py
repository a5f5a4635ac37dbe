"""The durable engine: runs that go on after a crash, workers that take over, schedules, health; with real processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from catalog_testing import PATIENCE_S, families_of, fill_catalog, prepare_home, read_catalog
from chaos import (
    MAX_CHANGES,
    Disturbance,
    Workers,
    assert_made_once,
    free_port,
    run_calmly,
    run_disturbed,
    run_proxy,
    run_server,
    wait_until,
)
from interlock_catalog.runner.durable import (
    delete_schedule,
    enqueue_run,
    list_schedules,
    put_schedule,
    read_queue,
)
from interlock_catalog.runner.lanes import run_bounded
from interlock_catalog.runner.records import Run, RunRequest, RunStore, open_run_store
from interlock_catalog.seed import build_clean_catalog
from interlock_catalog.server.tokens import create_token
from interlock_catalog.settings import Loaded, load_catalog_settings
from plant import plant_faults

TORTURE = bool(os.environ.get("TORTURE"))
KILLS = 50 if TORTURE else 3
ROUNDS = 12 if TORTURE else 1
# Above the limits of the waits inside, so that these say what did not happen.
pytestmark = pytest.mark.timeout(4 * PATIENCE_S)


def first_families(count: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The first families of the planted catalog, with everything that concerns them."""
    docs = plant_faults(build_clean_catalog()).docs
    slugs = sorted(key.partition(":")[2] for key in docs if key.startswith("family:"))[:count]
    return families_of(docs, slugs), tuple(slugs)


def request_for(run: str, families: tuple[str, ...]) -> RunRequest:
    return RunRequest(run=run, mode="apply", families=families, max_changes=MAX_CHANGES, by="test")


def differing(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """What differs between two catalogs: the documents, and of each the fields, with what was found and what was wanted."""
    differences = {}
    for key in sorted({*found, *wanted}):
        one, other = found.get(key), wanted.get(key)
        if one != other:
            fields = sorted({*(one or {}), *(other or {})})
            differences[key] = {
                field: ((one or {}).get(field), (other or {}).get(field))
                for field in fields
                if (one or {}).get(field) != (other or {}).get(field)
            } or (one, other)
    return differences


def failed_families(runs: list[Run]) -> dict[str, Any]:
    return {
        result.family: (result.state, result.reason, result.counts)
        for run in runs
        for result in run.families
        if result.state == "failed"
    }


async def test_a_worker_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    docs, slugs = first_families(122 if TORTURE else 30)
    calm = await run_calmly(tmp_path / "calm", docs, slugs)
    kills = 0
    for number in range(ROUNDS):
        loaded = prepare_home(tmp_path / f"home{number}", lease_s=5, max_changes=MAX_CHANGES)
        await fill_catalog(loaded, docs)
        disturbance = Disturbance(kills=KILLS - kills, pause_s=(0.1, 0.8), seed=5 + number)
        runs, workers = await run_disturbed(loaded, [request_for("r1", slugs)], ("w1",), disturbance)
        kills += workers.kills
        assert sum(run.counts.get("unknown", 0) for run in runs) == 0, workers.logs()
        assert failed_families(runs) == {}, workers.logs()
        assert differing(await read_catalog(loaded), calm) == {}
        await assert_made_once(loaded, runs)
        if kills >= KILLS:
            break
    assert kills >= (KILLS if TORTURE else 1)


async def test_three_workers_with_faults_and_kills_on_postgresql(
    tmp_path: Path, new_database: Callable[[], AbstractContextManager[str]]
) -> None:
    """Server faults at 20 %, three workers, kills: the same catalog in the end, every change once, fenced by the server."""
    docs, slugs = first_families(122 if TORTURE else 18)
    calm = await run_calmly(tmp_path / "calm", docs, slugs)
    kills = 0
    for number in range(ROUNDS):
        with new_database() as url:
            store = prepare_home(tmp_path / f"server{number}", backend=url)
            await fill_catalog(store, docs)
            token, port = create_token(store.folder / "tokens.toml", "autopilot", "editor"), free_port()
            async with run_server(store.folder, port), run_proxy(port, 0.2, seed=3 + number) as proxy:
                loaded = prepare_home(
                    tmp_path / f"home{number}",
                    lease_s=5,
                    backend=f"http://127.0.0.1:{proxy.port}",
                    token=token,
                    engine=url,
                    store=url,
                    timeout_s=60.0,
                    attempts=10,
                    backoff_s=0.02,
                    backoff_cap_s=0.3,
                    max_changes=MAX_CHANGES,
                )
                requests = [request_for(f"r{part}", slugs[part::3]) for part in range(3)]
                disturbance = Disturbance(kills=KILLS - kills, pause_s=(0.1, 1.0), seed=7 + number)
                runs, workers = await run_disturbed(loaded, requests, ("w1", "w2", "w3"), disturbance)
                kills += workers.kills
                assert sum(count for kind, count in proxy.counts.items() if kind != "fine") > 20
                assert failed_families(runs) == {}, workers.logs()
                await assert_made_once(loaded, runs)
            assert differing(await read_catalog(store), calm) == {}
            assert_fenced(store)
        if kills >= KILLS:
            break
    assert kills >= (KILLS if TORTURE else 1)


def assert_fenced(store: Loaded) -> None:
    """The server has kept the highest token of each family's lease that it has seen."""
    with psycopg.connect(store.settings.backend) as connection:
        rows = connection.execute(
            "SELECT key, token, ledger FROM documents_catalog_fences WHERE key LIKE 'lease:%'"
        ).fetchall()
    assert rows
    assert all(token > 0 and ledger for _key, token, ledger in rows)


async def test_a_dead_workers_runs_are_taken_over_by_another(tmp_path: Path, postgres: str) -> None:
    docs, slugs = first_families(40)
    loaded = prepare_home(
        tmp_path / "home", lease_s=5, engine=postgres, store=postgres, lanes=1, max_changes=MAX_CHANGES
    )
    await fill_catalog(loaded, docs)
    enqueue_run(loaded.settings, request_for("r1", slugs))
    workers = Workers(loaded.folder, "w1")
    async with open_run_store(loaded.settings) as runs:
        try:
            await wait_until(runs.newest, "the run on w1")
            workers.kill("w1")
            assert not (await runs.get("r1")).ended
            workers.start("w2")
            run = await wait_until(lambda: _ended(runs, "r1"), "the run on w2")
        finally:
            workers.stop()
    assert run.worker == "w2"
    assert run.counts["ok"] > 5


async def test_a_frozen_worker_does_not_make_the_others_fail(tmp_path: Path, postgres: str) -> None:
    """One worker stands still in the middle of its run: the other one ends it, and what wakes up late changes nothing."""
    docs, slugs = first_families(40)
    calm = await run_calmly(tmp_path / "calm", docs, slugs)
    where = dict.fromkeys(("engine", "store", "backend"), postgres)
    loaded = prepare_home(tmp_path / "home", lease_s=5, max_changes=MAX_CHANGES, **where)
    await fill_catalog(loaded, docs)
    enqueue_run(loaded.settings, request_for("r1", slugs[:25]))
    workers = Workers(loaded.folder, "w1")
    async with open_run_store(loaded.settings) as runs:
        try:
            await wait_until(runs.newest, "the run on w1")
            await freeze_inside_a_transaction(workers, "w1", postgres)
            enqueue_run(loaded.settings, request_for("r2", slugs[25:]))
            workers.start("w2")
            await workers.wait_ready("w2")
            ended = [await wait_until(partial(_ended, runs, name), name) for name in ("r2", "r1")]
            assert {run.worker for run in ended} == {"w2"}
            workers.thaw("w1")
            await workers.wait_ready("w1")
        finally:
            workers.stop()
    assert failed_families(ended) == {}, workers.logs()
    assert {run.status for run in ended} <= {"succeeded", "waiting"}
    assert differing(await read_catalog(loaded), calm) == {}
    await assert_made_once(loaded, ended)


async def freeze_inside_a_transaction(workers: Workers, name: str, url: str) -> None:
    """Have a worker stand still while it holds locks, as nothing else would keep the others waiting."""
    with psycopg.connect(url, autocommit=True) as connection:

        async def holds_locks() -> bool:
            workers.freeze(name)
            found = connection.execute(
                "SELECT count(*) FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE application_name = %s"
                " AND state = 'idle in transaction' AND locktype = 'transactionid'",
                (f"catalog {name}",),
            ).fetchone()
            if found is not None and found[0]:
                return True
            workers.thaw(name)
            return False

        await wait_until(holds_locks, f"{name} inside a transaction")


async def _ended(runs: RunStore, name: str) -> Run | None:
    return next((run for run in await runs.all() if run.id == name and run.ended), None)


async def test_two_workers_of_one_name_are_refused(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, {})
    first, second = Workers(loaded.folder, "w1"), Workers(loaded.folder)
    try:
        await first.wait_ready("w1")
        process = second.start("w1")
        assert await asyncio.to_thread(process.wait, PATIENCE_S) == 2
        assert "is running already" in second.logs()
    finally:
        first.stop()
        second.stop()


async def test_a_schedule_starts_runs(tmp_path: Path) -> None:
    docs, slugs = first_families(3)
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    request = RunRequest(run="", mode="dry_run", families=slugs, by="schedule:often")
    put_schedule(loaded.settings, "often", "* * * * * *", request, None)  # six fields: every second
    (found,) = list_schedules(loaded.settings)
    assert (found["name"], found["cron"], found["zone"], found["request"]["mode"]) == (
        "often",
        "* * * * * *",
        "UTC",
        "dry_run",
    )
    workers = Workers(loaded.folder, "w1")
    async with open_run_store(loaded.settings) as runs:

        async def ended_runs() -> list[Run]:
            return [run for run in await runs.all() if run.ended]

        try:
            ended = await wait_until(ended_runs, "a run by the clock")
            assert ended[0].by == "schedule:often"
        finally:
            delete_schedule(loaded.settings, "often")
            workers.stop()
    assert list_schedules(loaded.settings) == []


async def test_what_waits_is_seen_from_outside(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, {})
    enqueue_run(loaded.settings, RunRequest(run="r1"))
    with pytest.raises(Exception, match="r1"):
        enqueue_run(loaded.settings, RunRequest(run="r1"))
    queue = read_queue(loaded.settings)
    assert (queue.depth, queue.busy_workers) == (1, ())


async def test_no_further_step_is_started_once_a_run_is_lost() -> None:
    class Lost(BaseException): ...

    started: list[str] = []

    async def start(item: str) -> str:
        started.append(item)
        await asyncio.sleep(0)
        if item == "b":
            raise Lost
        return item

    with pytest.raises(Lost):
        await run_bounded(2, list("abcdefghij"), start)
    assert len(started) <= 4

    async def fine(item: str) -> str:
        return item.upper()

    assert await run_bounded(3, list("abc"), fine) == ["A", "B", "C"]


def test_settings_come_from_file_and_environment(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text('lanes = 2\nbackend = "sqlite:///c.db"\n')
    environment = {"CATALOG_LANES": "7", "CATALOG_TIMEOUT_S": "1.5", "CATALOG_HOME": str(tmp_path), "PATH": "/x"}
    found = load_catalog_settings(environment=environment, given={"model": "local"})
    assert (found.settings.lanes, found.settings.timeout_s, found.settings.model) == (7, 1.5, "local")
    assert found.settings.backend == f"sqlite:///{tmp_path / 'c.db'}"
    assert found.settings.engine == f"sqlite:///{tmp_path / 'runs.db'}"
    assert found.settings.attempts == 6
    assert (found.origins["lanes"], found.origins["backend"]) == (
        "environment CATALOG_LANES",
        str(tmp_path / "catalog.toml"),
    )
