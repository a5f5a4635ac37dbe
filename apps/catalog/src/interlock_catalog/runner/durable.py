"""Runs on DBOS Transact: one workflow a run, one step a family. What the two guarantee is in docs/design/catalog.md.

Imported only by what needs it: it takes half a second and sixty megabytes.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy
from dbos import DBOS, DBOSClient, Serializer, SetWorkflowID

from interlock_catalog.runner.lanes import carry_out
from interlock_catalog.runner.records import FamilyResult, Run, RunRequest
from interlock_catalog.runner.steps import RunSteps
from interlock_catalog.runner.webhook import notify_webhook
from interlock_catalog.runner.work_items import WorkItem
from interlock_catalog.settings import Settings

APPLICATION, VERSION, SCHEMA = "interlock-catalog", "catalog-1", "catalog_dbos"
"""The version is pinned: by default DBOS takes a hash of the code, and a new release would leave the old one's runs."""
RUN_QUEUE, TICK_QUEUE = "runs", "ticks"
_STEPS: dict[str, RunSteps] = {}
"""What the workflows of this process work with: DBOS calls them with their stored arguments and nothing else."""


class JsonSerializer(Serializer):
    """Strict JSON; what DBOS itself passes beside it is times and exceptions."""

    def name(self) -> str:
        """Stored with every row, and so never changed."""
        return "interlock_catalog_json"

    def serialize(self, data: Any) -> str:
        return json.dumps(data, default=_encode, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

    def deserialize(self, serialized_data: str) -> Any:
        return json.loads(serialized_data, object_hook=_decode)


class StepFailed(Exception):
    """An error of a step, as it comes back from the database."""


def _encode(value: object) -> object:
    if isinstance(value, datetime):
        return {"$time": value.isoformat()}
    if isinstance(value, BaseException):
        return {"$error": f"{type(value).__name__}: {value}"}
    raise TypeError(f"{type(value).__name__} is not JSON")


def _decode(value: dict[str, Any]) -> Any:
    # Only where it stands alone: a document may have a field of that name among others.
    if len(value) == 1 and "$time" in value:
        return datetime.fromisoformat(value["$time"])
    return StepFailed(value["$error"]) if len(value) == 1 and "$error" in value else value


def create_engine(url: str) -> sqlalchemy.Engine:
    """A database engine of our own: DBOS does not set WAL on SQLite, nor a limit for idle transactions."""
    if not url.startswith("sqlite:///"):
        address = sqlalchemy.make_url(url).set(drivername="postgresql+psycopg")
        # A worker that hangs inside a transaction must not keep its locks for ever.
        limits = {"options": "-c idle_in_transaction_session_timeout=10000"}
        return sqlalchemy.create_engine(address, pool_pre_ping=True, connect_args=limits)
    made = sqlalchemy.create_engine(url, pool_size=8, max_overflow=4, connect_args={"check_same_thread": False})

    @sqlalchemy.event.listens_for(made, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        # IMMEDIATE: a transaction that reads first and writes later would fail as soon as somebody else has written.
        connection.isolation_level = "IMMEDIATE"
        # FULL, as DBOS does not repeat a step that it has written down: that must still be there after a power cut.
        for pragma in ("busy_timeout=30000", "foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}")

    return made


def migrate(url: str) -> None:
    """Bring the engine's tables forward; on SQLite one process at a time, as two at once break each other."""
    if not url.startswith("sqlite:///"):
        DBOS.migrate(url, schema=SCHEMA)
        return
    path = Path(url.removeprefix("sqlite:///"))
    with open(path.with_suffix(".lock"), "a", opener=_open_private) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released with the file
        # Made before DBOS does, which would leave its mode to the umask; its log gets the mode of the file.
        with open(path, "a", opener=_open_private):
            pass
        DBOS.migrate(url)


def _open_private(file: str, flags: int) -> int:
    return os.open(file, flags, 0o600)


def _config(engine: sqlalchemy.Engine, executor: str) -> dict[str, Any]:
    postgres = engine.dialect.name != "sqlite"
    return {
        "name": APPLICATION,
        "system_database_engine": engine,
        "serializer": JsonSerializer(),
        "application_version": VERSION,
        "executor_id": executor,
        # `migrate` has done that, under a lock.
        "run_migrations": False,
        "log_level": "CRITICAL",
        "max_executor_threads": 16,
        "scheduler_polling_interval_sec": 5.0,
        "notification_listener_polling_interval_sec": 0.2,
        **({"dbos_system_schema": SCHEMA} if postgres else {}),
    }


def _silence_log() -> None:
    """The engine's log goes where the program's goes, not to a stream that it chose when it was made."""
    log = logging.getLogger("dbos")
    for handler in list(log.handlers):
        log.removeHandler(handler)
    log.addHandler(logging.NullHandler())


@asynccontextmanager
async def launch_engine(steps: RunSteps, executor: str, *, serves: bool) -> AsyncIterator[None]:
    """The engine in this process, on this loop. One that does not serve takes no run but its own."""
    url = steps.app.settings.engine
    await asyncio.get_running_loop().run_in_executor(None, migrate, url)
    engine = create_engine(url)
    # Before the launch, which at once goes on with what this executor had begun.
    _STEPS["steps"] = steps
    DBOS(config=_config(engine, executor))  # type: ignore[arg-type]
    _silence_log()
    if not serves:
        DBOS.listen_queues([])
    DBOS.launch()
    try:
        if serves:
            await DBOS.register_queue_async(RUN_QUEUE, worker_concurrency=2, polling_interval_sec=0.25)
            await DBOS.register_queue_async(TICK_QUEUE, worker_concurrency=1, polling_interval_sec=0.5)
        yield
    finally:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as own:  # DBOS takes the loop's own executor away with it
            # Nothing is waited for: what is under way goes on where it was, here or on another worker.
            await loop.run_in_executor(own, lambda: DBOS.destroy(workflow_completion_timeout_sec=0))
        # DBOS had made its executor that of the loop, and has shut it down: `to_thread` would fail from here on.
        loop.set_default_executor(ThreadPoolExecutor(4))
        engine.dispose()
        _STEPS.clear()


# By default DBOS gives a workflow up after a hundred recoveries, and every worker that dies is one.
@DBOS.workflow(name="catalog_run", max_recovery_attempts=1000)
async def catalog_run(request: dict[str, Any]) -> dict[str, Any]:
    """One run: which families, then each of them, then the end. Every step may be repeated, and does no harm then."""
    steps = _STEPS["steps"]
    work = [WorkItem.parse(text) for text in await DBOS.run_step_async({"name": "begin"}, _begin, request)]

    async def start(item: WorkItem) -> FamilyResult:
        done = await DBOS.run_step_async({"name": f"work:{item.text}"}, _work_on, request, item.text)
        return msgspec.convert(done, FamilyResult)

    results = msgspec.to_builtins(await carry_out(steps.app.settings.lanes, work, start))
    run: dict[str, Any] = await DBOS.run_step_async({"name": "end"}, _end, request, results)
    return {"run": request["run"], "status": run["status"], "counts": run["counts"]}


async def _begin(request: dict[str, Any]) -> list[str]:
    return [item.text for item in await _STEPS["steps"].begin(msgspec.convert(request, RunRequest))]


async def _work_on(request: dict[str, Any], work: str) -> Any:
    done = await _STEPS["steps"].work_on(msgspec.convert(request, RunRequest), WorkItem.parse(work))
    return msgspec.to_builtins(done)


async def _end(request: dict[str, Any], results: list[Any]) -> Any:
    found = [msgspec.convert(result, FamilyResult) for result in results]
    steps = _STEPS["steps"]
    run = await steps.end(msgspec.convert(request, RunRequest), found)
    # Cut right after this, the step is repeated, and the monitor hears of the run twice, which does no harm.
    await notify_webhook(steps.app.settings, run)
    return msgspec.to_builtins(run)


@DBOS.workflow(name="catalog_tick")
async def catalog_tick(at: datetime, request: dict[str, Any]) -> str:
    """A schedule is due: enqueue the run that it stands for."""
    run = f"{at:%Y%m%d-%H%M%S}-000-tick"  # the same for every worker that sees the tick
    with SetWorkflowID(run):
        await DBOS.enqueue_workflow_async(RUN_QUEUE, catalog_run, {**request, "run": run})
    return run


async def run_in_process(request: RunRequest) -> Run:
    """Run in this process, to the end; a run of that id that was begun goes on where it was."""
    with SetWorkflowID(request.run):
        await catalog_run(msgspec.to_builtins(request))
    return await _STEPS["steps"].runs.get(request.run)


@contextmanager
def open_client(settings: Settings) -> Iterator[DBOSClient]:
    """A way to the engine from a process that carries no runs."""
    migrate(settings.engine)
    engine = create_engine(settings.engine)
    schema: dict[str, Any] = {} if settings.engine.startswith("sqlite:///") else {"dbos_system_schema": SCHEMA}
    made = DBOSClient(
        system_database_engine=engine, serializer=JsonSerializer(), application_name=APPLICATION, **schema
    )
    _silence_log()
    try:
        yield made
    finally:
        made.destroy()
        engine.dispose()


def enqueue_run(settings: Settings, request: RunRequest) -> None:
    """Leave a run to whichever worker is free; an id that was used is refused."""
    how = {
        "workflow_name": "catalog_run",
        "queue_name": RUN_QUEUE,
        "workflow_id": request.run,
        "app_version": VERSION,
        "workflow_id_reuse_policy": "reject",
    }
    with open_client(settings) as client:
        client.register_queue(RUN_QUEUE, worker_concurrency=2, polling_interval_sec=0.25)
        client.enqueue(how, msgspec.to_builtins(request))  # type: ignore[arg-type]


class QueueState(msgspec.Struct, frozen=True):
    """How many runs wait, and the workers on which runs are under way."""

    depth: int
    busy_workers: tuple[str, ...]


def read_queue(settings: Settings) -> QueueState:
    """The queue of runs, as seen from outside."""
    with open_client(settings) as client:
        queued = client.list_workflows(name="catalog_run", status=["ENQUEUED", "DELAYED"], load_input=False)
        busy = client.list_workflows(name="catalog_run", status=["PENDING"], load_input=False)
    return QueueState(len(queued), tuple(sorted({str(item.executor_id) for item in busy})))


def put_schedule(settings: Settings, name: str, cron: str, request: RunRequest, zone: str | None) -> None:
    """Have a run started by the clock."""
    with open_client(settings) as client:
        client.register_queue(TICK_QUEUE, worker_concurrency=1, polling_interval_sec=0.5)
        client.apply_schedules(
            [
                {
                    "schedule_name": name,
                    "workflow_name": "catalog_tick",
                    "schedule": cron,
                    "context": msgspec.to_builtins(request),
                    "queue_name": TICK_QUEUE,
                    # Nights without a worker are not made up for: the next run sees all that they would have seen.
                    "automatic_backfill": False,
                    **({"cron_timezone": zone} if zone else {}),
                }
            ]
        )


def list_schedules(settings: Settings) -> list[dict[str, Any]]:
    """What the clock will start."""
    with open_client(settings) as client:
        found = client.list_schedules()
    return [
        {
            "name": item["schedule_name"],
            "cron": item["schedule"],
            "zone": item.get("cron_timezone") or "UTC",
            "request": item.get("context"),
            "status": str(item.get("status", "")),
        }
        for item in found
    ]


def delete_schedule(settings: Settings, name: str) -> None:
    with open_client(settings) as client:
        client.delete_schedule(name)
