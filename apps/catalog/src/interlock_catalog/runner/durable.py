"""Runs on DBOS Transact: one workflow a run, one step a family. What the two guarantee is in docs/design/catalog.md.

Imported only by what needs it: it takes half a second and sixty megabytes.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy
from dbos import DBOS, DBOSClient, Serializer, SetWorkflowID

from interlock_catalog.runner.ping import pinged
from interlock_catalog.runner.record import FamilyResult, Order, Run
from interlock_catalog.runner.work import Work
from interlock_catalog.settings import Loaded

APPLICATION, VERSION, SCHEMA = "interlock-catalog", "catalog-1", "catalog_dbos"
RUNS, TICKS = "runs", "ticks"
_HOLDER: dict[str, Work] = {}


class JsonSerializer(Serializer):
    """Strict JSON; what DBOS itself passes beside it is times and exceptions."""

    def name(self) -> str:
        """Stored with every row, and so never changed."""
        return "interlock_catalog_json"

    def serialize(self, data: Any) -> str:
        """To text."""
        return json.dumps(data, default=_spelled, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

    def deserialize(self, serialized_data: str) -> Any:
        """From text."""
        return json.loads(serialized_data, object_hook=_read)


class StepFailed(Exception):
    """An error of a step, as it comes back from the database."""


def _spelled(value: object) -> object:
    if isinstance(value, datetime):
        return {"$time": value.isoformat()}
    if isinstance(value, BaseException):
        return {"$error": f"{type(value).__name__}: {value}"}
    raise TypeError(f"{type(value).__name__} is not JSON")


def _read(value: dict[str, Any]) -> Any:
    if len(value) == 1 and "$time" in value:
        return datetime.fromisoformat(value["$time"])
    return StepFailed(value["$error"]) if len(value) == 1 and "$error" in value else value


def engine_of(url: str) -> sqlalchemy.Engine:
    """A database engine of our own: DBOS does not set WAL on SQLite, nor a limit for idle transactions."""
    if not url.startswith("sqlite:///"):
        address = sqlalchemy.make_url(url).set(drivername="postgresql+psycopg")
        limits = {"options": "-c idle_in_transaction_session_timeout=10000"}
        return sqlalchemy.create_engine(address, pool_pre_ping=True, connect_args=limits)
    made = sqlalchemy.create_engine(url, pool_size=8, max_overflow=4, connect_args={"check_same_thread": False})

    @sqlalchemy.event.listens_for(made, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = "IMMEDIATE"
        for pragma in ("busy_timeout=30000", "foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}")

    return made


def migrate(url: str) -> None:
    """Bring the engine's tables forward; on SQLite one process at a time, as two at once break each other."""
    if not url.startswith("sqlite:///"):
        DBOS.migrate(url, schema=SCHEMA)
        return
    path = Path(url.removeprefix("sqlite:///"))
    with path.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        DBOS.migrate(url)


def _config(engine: sqlalchemy.Engine, executor: str) -> dict[str, Any]:
    postgres = engine.dialect.name != "sqlite"
    return {
        "name": APPLICATION,
        "system_database_engine": engine,
        "serializer": JsonSerializer(),
        "application_version": VERSION,
        "executor_id": executor,
        "run_migrations": False,
        "log_level": "CRITICAL",
        "max_executor_threads": 16,
        "scheduler_polling_interval_sec": 5.0,
        "notification_listener_polling_interval_sec": 0.2,
        **({"dbos_system_schema": SCHEMA} if postgres else {}),
    }


def _quiet() -> None:
    """The engine's log goes where the program's goes, not to a stream that it chose when it was made."""
    log = logging.getLogger("dbos")
    for handler in list(log.handlers):
        log.removeHandler(handler)
    log.addHandler(logging.NullHandler())


@asynccontextmanager
async def launched(work: Work, loaded: Loaded, executor: str, *, serves: bool) -> AsyncIterator[None]:
    """The engine in this process, on this loop. One that does not serve takes no run but its own."""
    url = loaded.url("engine")
    await asyncio.get_running_loop().run_in_executor(None, migrate, url)
    engine = engine_of(url)
    _HOLDER["work"] = work
    DBOS(config=_config(engine, executor))  # type: ignore[arg-type]
    _quiet()
    if not serves:
        DBOS.listen_queues([])
    DBOS.launch()
    try:
        if serves:
            await DBOS.register_queue_async(RUNS, worker_concurrency=2, polling_interval_sec=0.25)
            await DBOS.register_queue_async(TICKS, worker_concurrency=1, polling_interval_sec=0.5)
        yield
    finally:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as own:  # DBOS takes the loop's own executor away with it
            await loop.run_in_executor(own, lambda: DBOS.destroy(workflow_completion_timeout_sec=0))
        loop.set_default_executor(ThreadPoolExecutor(4))
        engine.dispose()
        _HOLDER.clear()


@DBOS.workflow(name="catalog_run", max_recovery_attempts=1000)
async def catalog_run(order: dict[str, Any]) -> dict[str, Any]:
    """One run: which families, then each of them, then the end. Every step may be repeated, and does no harm then."""
    work = _HOLDER["work"]
    given = msgspec.convert(order, Order)
    families = await DBOS.run_step_async({"name": "begin"}, _begin, order)

    def start(family: str) -> Awaitable[Any]:
        return DBOS.run_step_async({"name": f"family:{family}"}, _family, order, family)

    first = [family for family in families if not family.startswith("~")]
    last = [family for family in families if family.startswith("~")]
    results = await bounded(work.shop.loaded.settings.lanes, first, start)
    for family in last:
        results.append(await start(family))
    run: dict[str, Any] = await DBOS.run_step_async({"name": "end"}, _end, order, results)
    return {"run": given.run, "status": run["status"], "counts": run["counts"]}


async def _begin(order: dict[str, Any]) -> list[str]:
    return await _HOLDER["work"].begin(msgspec.convert(order, Order))


async def _family(order: dict[str, Any], family: str) -> Any:
    return msgspec.to_builtins(await _HOLDER["work"].family(msgspec.convert(order, Order), family))


async def _end(order: dict[str, Any], results: list[Any]) -> Any:
    found = [msgspec.convert(result, FamilyResult) for result in results]
    work = _HOLDER["work"]
    run = await work.end(msgspec.convert(order, Order), found)
    await pinged(work.shop.loaded, run)
    return msgspec.to_builtins(run)


@DBOS.workflow(name="catalog_tick")
async def catalog_tick(at: datetime, order: dict[str, Any]) -> str:
    """A schedule is due: enqueue the run that it stands for."""
    run = f"{at:%Y%m%d-%H%M%S}-000-tick"  # the same for every worker that sees the tick
    with SetWorkflowID(run):
        await DBOS.enqueue_workflow_async(RUNS, catalog_run, {**order, "run": run})
    return run


async def bounded(lanes: int, items: Sequence[str], start: Callable[[str], Awaitable[Any]]) -> list[Any]:
    """Start one step for each item, in order, so many at a time; once the run is not ours any more, no further one.

    The order in which steps start is what the engine knows them by: nothing is awaited between two of them but a lane.
    """
    lane, tasks, lost = asyncio.Semaphore(lanes), list[asyncio.Task[Any]](), list[BaseException]()

    def done(task: asyncio.Task[Any]) -> None:
        lane.release()
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Exception):
            lost.append(error)

    for item in items:
        await lane.acquire()
        if lost:
            break
        task = asyncio.ensure_future(start(item))
        task.add_done_callback(done)
        tasks.append(task)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    if lost:
        raise lost[0]
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return list(results)


async def run_here(order: Order) -> Run:
    """Run in this process, to the end; a run of that id that was begun goes on where it was."""
    with SetWorkflowID(order.run):
        await catalog_run(msgspec.to_builtins(order))
    return await _HOLDER["work"].runs.get(order.run)


@contextmanager
def engine_client(loaded: Loaded) -> Iterator[DBOSClient]:
    """A way to the engine from a process that carries no runs."""
    url = loaded.url("engine")
    migrate(url)
    engine = engine_of(url)
    schema: dict[str, Any] = {} if url.startswith("sqlite:///") else {"dbos_system_schema": SCHEMA}
    made = DBOSClient(
        system_database_engine=engine, serializer=JsonSerializer(), application_name=APPLICATION, **schema
    )
    _quiet()
    try:
        yield made
    finally:
        made.destroy()
        engine.dispose()


def enqueue(loaded: Loaded, order: Order) -> None:
    """Leave a run to whichever worker is free."""
    how = {
        "workflow_name": "catalog_run",
        "queue_name": RUNS,
        "workflow_id": order.run,
        "app_version": VERSION,
        "workflow_id_reuse_policy": "reject",
    }
    with engine_client(loaded) as client:
        client.register_queue(RUNS, worker_concurrency=2, polling_interval_sec=0.25)
        client.enqueue(how, msgspec.to_builtins(order))  # type: ignore[arg-type]


def waiting(loaded: Loaded) -> tuple[int, list[str]]:
    """How many runs wait, and on which workers runs are under way."""
    with engine_client(loaded) as client:
        queued = client.list_workflows(name="catalog_run", status=["ENQUEUED", "DELAYED"], load_input=False)
        busy = client.list_workflows(name="catalog_run", status=["PENDING"], load_input=False)
    return len(queued), sorted({str(item.executor_id) for item in busy})


def schedule(loaded: Loaded, name: str, cron: str, order: Order, zone: str | None) -> None:
    """Have a run started by the clock."""
    with engine_client(loaded) as client:
        client.register_queue(TICKS, worker_concurrency=1, polling_interval_sec=0.5)
        client.apply_schedules(
            [
                {
                    "schedule_name": name,
                    "workflow_name": "catalog_tick",
                    "schedule": cron,
                    "context": msgspec.to_builtins(order),
                    "queue_name": TICKS,
                    "automatic_backfill": False,
                    **({"cron_timezone": zone} if zone else {}),
                }
            ]
        )


def schedules(loaded: Loaded) -> list[dict[str, Any]]:
    """What the clock will start."""
    with engine_client(loaded) as client:
        found = client.list_schedules()
    return [
        {"name": item["schedule_name"], "cron": item["schedule"], "zone": item.get("cron_timezone") or "UTC",
         "order": item.get("context"), "status": str(item.get("status", ""))}
        for item in found
    ]  # fmt: skip


def unschedule(loaded: Loaded, name: str) -> None:
    """Have it started no more."""
    with engine_client(loaded) as client:
        client.delete_schedule(name)
