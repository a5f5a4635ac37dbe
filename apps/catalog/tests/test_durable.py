"""The durable engine: runs that go on after a crash, workers that take over, schedules, health; with real processes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catalog_parts import contents, fill, ready
from chaos import (
    Workers,
    chance,
    expected,
    free_port,
    made_once,
    pause,
    proxied,
    serving,
    token_for,
    until_ended,
)
from interlock_catalog.runner.durable import bounded, enqueue, schedule, schedules, unschedule, waiting
from interlock_catalog.runner.record import Order, Runs
from interlock_catalog.seed import clean_catalog, plant
from interlock_catalog.settings import load

TORTURE = bool(os.environ.get("TORTURE"))
KILLS = 50 if TORTURE else 3
ROUNDS = 12 if TORTURE else 1


def catalog(count: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The first families of the planted catalog, with everything that concerns them."""
    docs, _planted = plant(clean_catalog())
    slugs = sorted(key[7:] for key in docs if key.startswith("family:"))[:count]
    ids = {doc["id"] for key, doc in docs.items() if key.startswith("exercise:") and doc["family_slug"] in slugs}
    kept = {
        key: doc
        for key, doc in docs.items()
        if (key.startswith("exercise:") and doc["id"] in ids)
        or (key.startswith("family:") and doc["slug"] in slugs)
        or (key.startswith("alias:") and (doc.get("exercise_id") in ids or doc.get("family_slug") in slugs))
    }
    return kept, tuple(slugs)


async def test_a_worker_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    docs, slugs = catalog(122 if TORTURE else 30)
    calm = await expected(tmp_path / "calm", docs, slugs)
    kills = 0
    for number in range(ROUNDS):
        loaded = ready(tmp_path / f"home{number}", max_changes=10_000)
        await fill(loaded, docs)
        enqueue(loaded, Order(run="r1", mode="apply", families=slugs, max_changes=10_000, by="test"))
        (run,), workers = await disturbed(loaded, ["w1"], ["r1"], KILLS - kills, (1.2, 2.2), seed=5 + number)
        kills += workers.kills
        assert run.counts.get("unknown", 0) == 0, workers.logs()
        assert {result.family for result in run.families if result.state in ("deferred", "failed")} == set(), run
        assert await contents(loaded) == calm
        assert await made_once(loaded, [run]) == run.counts["ok"]
        if kills >= KILLS:
            break
    assert kills >= (KILLS if TORTURE else 1)


async def disturbed(
    loaded: Any, names: list[str], runs: list[str], most: int, pauses: tuple[float, float], seed: int
) -> tuple[list[Any], Workers]:
    """Runs that are carried to their end by workers that are killed meanwhile, so many times at most."""
    workers, dice = Workers(loaded.folder, names), chance(seed)

    async def disturb() -> None:
        await pause(dice.uniform(*pauses) if workers.kills < most else 0.3)
        if workers.kills < most:
            workers.kill(dice.choice(workers.names()))

    try:
        return await until_ended(loaded, runs, disturb, 1500 if TORTURE else 150), workers
    finally:
        workers.stop()


async def test_three_workers_with_faults_and_kills_on_postgresql(tmp_path: Path, new_database: Any) -> None:
    """Server faults at 20 %, three workers, kills: the same catalog in the end, every change once, fencing by the server."""
    docs, slugs = catalog(122 if TORTURE else 18)
    calm = await expected(tmp_path / "calm", docs, slugs)
    kills = 0
    for number in range(ROUNDS):
        with new_database() as url:
            store = ready(tmp_path / f"server{number}", backend=url)
            await fill(store, docs)
            token, port = token_for(store.folder), free_port()
            with serving(store.folder, port):
                proxy = await proxied(port, 0.2, seed=3 + number)
                settings = {"backend": f"http://127.0.0.1:{proxy.port}", "token": token, "engine": url, "store": url}
                quick = {
                    "timeout_s": 2.0,
                    "attempts": 10,
                    "backoff_s": 0.02,
                    "backoff_cap_s": 0.3,
                    "max_changes": 10_000,
                }
                loaded = ready(tmp_path / f"home{number}", **settings, **quick)
                for part in range(3):
                    enqueue(
                        loaded,
                        Order(run=f"r{part}", mode="apply", families=slugs[part::3], max_changes=10_000, by="test"),
                    )
                names = ["w1", "w2", "w3"]
                runs, workers = await disturbed(
                    loaded, names, ["r0", "r1", "r2"], KILLS - kills, (1.2, 2.4), seed=7 + number
                )
                kills += workers.kills
                assert sum(count for kind, count in proxy.counts.items() if kind != "fine") > 20
                late = {
                    result.family: (result.state, result.why, result.counts)
                    for run in runs
                    for result in run.families
                    if result.state in ("deferred", "failed")
                }
                assert late == {}, workers.logs()
                assert await made_once(loaded, runs) == sum(run.counts["ok"] for run in runs)
                await proxy.stop()
            assert await contents(store) == calm
            await fenced_in_order(store)
        if kills >= KILLS:
            break
    assert kills >= (KILLS if TORTURE else 1)


async def fenced_in_order(store: Any) -> None:
    """The server has seen the tokens of each family's lease only grow: it keeps the highest, and nothing was refused late."""
    import psycopg

    url = store.url("backend")
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT key, token, ledger FROM documents_catalog_fences WHERE key LIKE 'lease:%'"
        ).fetchall()
    assert rows
    assert all(token > 0 and ledger for _key, token, ledger in rows)


async def test_a_dead_workers_runs_are_taken_over_within_seconds(tmp_path: Path, postgres: str) -> None:
    docs, slugs = catalog(40)
    loaded = ready(tmp_path / "home", engine=postgres, store=postgres, lanes=1, max_changes=10_000)
    await fill(loaded, docs)
    enqueue(loaded, Order(run="r1", mode="apply", families=slugs, max_changes=10_000))
    workers = Workers(loaded.folder, ["w1"])
    records = Runs(loaded.url("engine"))
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end and not await records.all():
            await pause(0.1)
        process = workers._processes.pop("w1")
        process.kill()
        process.wait()
        assert not (await records.all())[0].ended
        workers.start("w2")
        (run,) = await until_ended(loaded, ["r1"], lambda: pause(0.2), 60)
    finally:
        workers.stop()
        await records.close()
    assert run.worker == "w2"
    assert run.counts["ok"] > 5
    assert "took over" in workers.logs() or run.worker == "w2"


async def test_two_workers_of_one_name_are_refused(tmp_path: Path) -> None:
    loaded = ready(tmp_path / "home")
    await fill(loaded, {})
    workers = Workers(loaded.folder, ["w1"])
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end and "is ready" not in workers.logs():
            await pause(0.1)
        first = workers._processes["w1"]
        workers.start("w1")
        assert workers._processes["w1"].wait(30) == 2
        assert "is running already" in workers.logs()
        workers._processes["w1"] = first
    finally:
        workers.stop()


async def test_a_schedule_starts_runs(tmp_path: Path) -> None:
    docs, slugs = catalog(3)
    loaded = ready(tmp_path / "home")
    await fill(loaded, docs)
    order = Order(run="", mode="dry_run", families=slugs, by="schedule:often")
    schedule(loaded, "often", "* * * * * *", order, None)  # six fields: every second
    (found,) = schedules(loaded)
    assert (found["name"], found["cron"], found["zone"], found["order"]["mode"]) == (
        "often",
        "* * * * * *",
        "UTC",
        "dry_run",
    )
    workers = Workers(loaded.folder, ["w1"])
    records = Runs(loaded.url("engine"))
    try:
        end = time.monotonic() + 40
        while time.monotonic() < end and not [run for run in await records.all() if run.ended]:
            await pause(0.2)
        ended = [run for run in await records.all() if run.ended]
        assert ended
        assert ended[0].by == "schedule:often"
    finally:
        unschedule(loaded, "often")
        workers.stop()
        await records.close()
    assert schedules(loaded) == []


async def test_what_waits_is_seen_from_outside(tmp_path: Path) -> None:
    loaded = ready(tmp_path / "home")
    await fill(loaded, {})
    enqueue(loaded, Order(run="r1"))
    with pytest.raises(Exception, match="r1"):
        enqueue(loaded, Order(run="r1"))
    assert waiting(loaded) == (1, [])


async def test_no_further_step_is_started_once_a_run_is_lost() -> None:
    class Lost(BaseException): ...

    started: list[str] = []

    async def start(item: str) -> str:
        started.append(item)
        await pause(0.01)
        if item == "b":
            raise Lost
        return item

    with pytest.raises(Lost):
        await bounded(2, list("abcdefghij"), start)
    assert len(started) <= 4

    async def fine(item: str) -> str:
        return item.upper()

    assert await bounded(3, list("abc"), fine) == ["A", "B", "C"]


def test_settings_come_from_file_and_environment(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text('lanes = 2\nbackend = "sqlite:///c.db"\n')
    found = load(
        tmp_path, environment={"CATALOG_LANES": "7", "CATALOG_TIMEOUT_S": "1.5", "PATH": "/x"}, given={"model": "local"}
    )
    assert (found.settings.lanes, found.settings.timeout_s, found.settings.model) == (7, 1.5, "local")
    assert found.url("backend") == f"sqlite:///{tmp_path / 'c.db'}"
    assert msgspec.to_builtins(found.settings)["attempts"] == 6
