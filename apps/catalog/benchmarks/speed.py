"""`make bench-catalog`: how fast checks, changes and the engine are, how much memory a run takes, how much the server holds."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from interlock_catalog.app import open_app
from interlock_catalog.checks import run_checks
from interlock_catalog.family_reader import read_family
from interlock_catalog.pipeline.execute import ExecutionOptions, execute_operations
from interlock_catalog.pipeline.family import plan_family
from interlock_catalog.resource import family_lock
from interlock_catalog.runner.durable import launch_engine, run_in_process
from interlock_catalog.runner.records import RunRequest, open_run_store
from interlock_catalog.runner.steps import RunSteps
from interlock_catalog.seed import build_clean_catalog
from interlock_catalog.server.tokens import create_token
from interlock_catalog.snapshot import Snapshot

sys.path.insert(0, str(Path(__file__).parent))
from homes import fill_catalog, prepare_home
from judge import format_table
from plant import plant_faults

DOCS = Path(__file__).parents[3] / "docs" / "catalog-speed.md"
SECONDS, RATE = 60, 200


def build_copies(copies: int, *, faulty: bool) -> dict[str, Any]:
    """The generated catalog so many times, each copy with names of its own."""
    clean = build_clean_catalog()
    docs = plant_faults(clean).docs if faulty else clean
    made: dict[str, Any] = {}
    for number in range(copies):
        text = json.dumps({k: v for k, v in docs.items() if not k.startswith("search:")})
        tag = "" if number == 0 else f"c{number}"
        for key, doc in json.loads(text).items():
            kind, _, name = key.partition(":")
            if tag:
                for field in ("id", "family_slug", "slug", "exercise_id", "merged_into", "alias_slug"):
                    if doc.get(field):
                        doc[field] = f"{doc[field]}-{tag}"
                if kind == "exercise":  # so that names differ, in a way that no check minds
                    base, _, rest = doc["name"].rpartition(" (")
                    doc["name"] = f"{base} {tag.upper()} ({rest}" if base else f"{doc['name']} {tag.upper()}"
                    doc["name_slug"] = f"{doc['name_slug']}-{tag}"
                if kind == "family":
                    doc["base_name"] = f"{doc['base_name']} {tag.upper()}"
                name = f"{name}-{tag}"
            made[f"{kind}:{name}"] = doc
    return made


def build_snapshots(docs: dict[str, Any]) -> list[Snapshot]:
    """Families as they would be read."""
    found = {doc["slug"]: Snapshot(doc["slug"], doc, {}, {}) for key, doc in docs.items() if key.startswith("family:")}
    family_of = {}
    for key, doc in docs.items():
        if key.startswith("exercise:"):
            found[doc["family_slug"]].exercises[doc["id"]] = doc
            family_of[doc["id"]] = doc["family_slug"]
    for key, doc in docs.items():
        if key.startswith("alias:") and doc.get("exercise_id") in family_of:
            found[family_of[doc["exercise_id"]]].aliases[key[6:]] = doc
    return list(found.values())


def measure_checks() -> dict[str, Any]:
    """Deterministic checks over at least 10,000 exercises."""
    families = build_snapshots(build_copies(12, faulty=True))
    count = sum(len(family.exercises) for family in families)
    best = 0.0
    for _ in range(3):
        began = time.perf_counter()
        for family in families:
            run_checks(family)
        best = max(best, count / (time.perf_counter() - began))
    return {"exercises": count, "per_s": best}


async def measure_changes(folder: Path) -> dict[str, Any]:
    """Changes that are planned, made under their leases, verified and recorded, by the second."""
    loaded = prepare_home(folder)
    await fill_catalog(loaded, build_copies(1, faulty=True))
    async with open_app(loaded) as app:
        slugs = [key.partition(":")[2] for key in await app.backend.families(limit=5000)]
        work = []
        for slug in slugs:
            plan = await plan_family(app.role_context(f"r/{slug}", "r"), await read_family(app.backend, slug))
            if plan.ops:
                work.append((slug, plan.ops))
        lanes, count = asyncio.Semaphore(16), sum(len(ops) for _slug, ops in work)

        async def one(slug: str, ops: Any) -> None:
            async with lanes, app.runtime.lock(family_lock(slug), wait_s=5) as locks:
                await execute_operations(
                    app.role_context(f"r/{slug}", "r"), ops, ExecutionOptions(mode="apply", max_changes=100_000), locks
                )

        began = time.perf_counter()
        await asyncio.gather(*(one(slug, ops) for slug, ops in work))
        took = time.perf_counter() - began
    return {"changes": count, "per_s": count / took}


async def measure_overhead(folder: Path) -> dict[str, Any]:
    """A run over clean families with the engine and without it: the difference, for each family."""
    loaded = prepare_home(folder)
    await fill_catalog(loaded, build_clean_catalog())
    async with open_run_store(loaded.settings) as runs, open_app(loaded) as app:
        steps = RunSteps(app, runs)
        slugs = tuple(key.partition(":")[2] for key in await app.backend.families(limit=5000))
        bare, durable = [], []
        for number in range(3):
            request = RunRequest(run=f"bare{number}", families=slugs)
            began = time.perf_counter()
            results = [await steps.work_on(request, name) for name in await steps.begin(request)]
            await steps.end(request, results)
            bare.append(time.perf_counter() - began)
        async with launch_engine(steps, "bench", serves=False):
            for number in range(3):
                began = time.perf_counter()
                await run_in_process(RunRequest(run=f"durable{number}", families=slugs))
                durable.append(time.perf_counter() - began)
    return {
        "families": len(slugs),
        "ms": (min(durable) - min(bare)) / len(slugs) * 1000,
        "bare_ms": min(bare) / len(slugs) * 1000,
    }


def measure_memory(copies: int) -> float:
    """The most memory that a dry run over so many copies takes, in megabytes; in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--memory", str(copies), "--folder", folder]
        return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


async def dry_run(folder: Path) -> None:
    """A dry run over what is in a folder."""
    loaded = prepare_home(folder)
    async with open_run_store(loaded.settings) as runs, open_app(loaded) as app:
        steps, request = RunSteps(app, runs), RunRequest(run="r", scout=False)
        results = [await steps.work_on(request, name) for name in await steps.begin(request)]
        await steps.end(request, results)


async def wait_for_server(client: httpx.AsyncClient) -> None:
    """Wait until the server answers."""
    for _ in range(100):
        try:
            await client.get("/health")
            return
        except httpx.TransportError:
            await asyncio.sleep(0.1)


async def send_request(client: httpx.AsyncClient, number: int, doc: dict[str, Any]) -> httpx.Response:
    """One request of the mix, about one exercise."""
    match number % 10:
        case 0:
            key = {"Idempotency-Key": f"k{number}"}
            return await client.post("/upsertExercise", json={"exercise": doc}, headers=key)
        case 1:
            alias = {"alias_slug": f"alias-{number % 500}", "exercise_id": doc["id"]}
            return await client.post("/upsertAlias", json=alias)
        case 2:
            return await client.get("/getExercises", params={"family": doc["family_slug"]})
        case 3:
            return await client.get("/searchAliases", params={"exercise_ids": doc["id"]})
        case 4:
            return await client.get("/resolveExercise", params={"name": doc["name"]})
        case _:
            return await client.get("/getExercise", params={"id": doc["id"]})


async def measure_load(folder: Path) -> dict[str, Any]:
    """A mix of requests at a steady rate on loopback."""
    loaded = prepare_home(folder)
    await fill_catalog(loaded, build_clean_catalog())
    token = create_token(loaded.folder / "tokens.toml", "bench", "editor")
    port = 8_190
    server = subprocess.Popen(
        [sys.executable, "-m", "interlock", "catalog", "serve", "--home", str(folder), "--port", str(port)]
    )
    chance, statuses, waits = random.Random(1), Counter[int](), list[float]()
    try:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"}, timeout=30
        ) as client:
            await wait_for_server(client)
            page = (await client.get("/getExercises", params={"limit": 500})).json()["documents"]
            ids = [key.partition(":")[2] for key in page]

            async def one(number: int) -> None:
                identity = chance.choice(ids)
                began = time.perf_counter()
                answer = await send_request(client, number, page[f"exercise:{identity}"]["state"])
                statuses[answer.status_code] += 1
                waits.append(time.perf_counter() - began)

            tasks, began = [], time.perf_counter()
            for number in range(SECONDS * RATE):
                await asyncio.sleep(max(0.0, began + number / RATE - time.perf_counter()))
                tasks.append(asyncio.ensure_future(one(number)))
            await asyncio.gather(*tasks)
            took = time.perf_counter() - began
    finally:
        server.terminate()
        server.wait(15)
    waits.sort()
    return {"requests": len(waits), "per_s": len(waits) / took, "failed": sum(n for code, n in statuses.items() if code >= 500),
            "other": sum(n for code, n in statuses.items() if 400 <= code < 500), "p50": waits[len(waits) // 2] * 1000, "p99": waits[len(waits) * 99 // 100] * 1000}  # fmt: skip


def print_memory(copies: int, folder: Path) -> None:
    """In a process of its own: fill a folder, and print what a dry run over it takes at most."""
    loaded = prepare_home(folder)
    for number in range(copies):
        every = build_copies(number + 1, faulty=True)
        tag = f"-c{number}"
        asyncio.run(fill_catalog(loaded, every if number == 0 else {k: v for k, v in every.items() if k.endswith(tag)}))
    code = f"""import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from speed import dry_run
asyncio.run(dry_run(Path({str(folder)!r})))
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024)"""  # of this process alone; ru_maxrss also counts what started it
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()[-1])


def in_folder(measure: Any) -> dict[str, Any]:
    """One measurement in a folder that goes away."""
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Any] = asyncio.run(measure(Path(folder) / "home"))
        return found


def build_row(what: str, asked: str, measured: str) -> dict[str, str]:
    """A line of the table, printed as soon as it is known."""
    made = {"what": what, "asked": asked, "measured": measured}
    print(made, flush=True)
    return made


def measure_rows() -> list[dict[str, str]]:
    """Everything but the load."""
    found = measure_checks()
    rows = [
        build_row(f"deterministic checks, {found['exercises']:,} exercises", "≥ 2,000/s", f"{found['per_s']:,.0f}/s")
    ]
    found = sorted((in_folder(measure_changes) for _ in range(5)), key=lambda item: float(item["per_s"]))[2]
    what = f"changes applied on SQLite, {found['changes']:,} of them (median of five)"
    rows.append(build_row(what, "≥ 150/s", f"{found['per_s']:,.0f}/s"))
    found = in_folder(measure_overhead)
    share = f"{found['ms']:.1f} ms a family (a family without it: {found['bare_ms']:.1f} ms)"
    rows.append(
        build_row(f"the engine's share of a run, {found['families']} clean families", "≤ 15 ms a family", share)
    )
    small, large = measure_memory(3), measure_memory(12)
    text = f"{small:.0f} MB and {large:.0f} MB ({large / small:.2f} times)"
    rows.append(build_row("most memory of a dry run, 2,679 and 10,716 exercises", "flat", text))
    return rows


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory", type=int)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="no load test, and no page")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if given.memory is not None:
        print_memory(given.memory, given.folder)
        return
    rows = measure_rows()
    if given.quick:
        return
    found = in_folder(measure_load)
    what = f"the server, {RATE} mixed requests a second for {SECONDS} s, a fifth of them writes"
    counts = (
        f"{found['requests']:,} requests at {found['per_s']:.0f}/s, {found['failed']} × 5xx, {found['other']} × 4xx"
    )
    rows.append(build_row(what, "no 5xx", f"{counts}; median {found['p50']:.1f} ms, p99 {found['p99']:.0f} ms"))
    head = "# Catalog: speed\n\nWritten by `make bench-catalog` (`apps/catalog/benchmarks/speed.py`); do not edit. One run on two cores; rates move with the machine.\n\n"
    DOCS.write_text(head + format_table(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
