"""A run in this very process, for whoever waits for it: on the same engine, so that a worker can finish it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from interlock_catalog.app import AppContext, open_app
from interlock_catalog.runner.durable import launch_engine, run_in_process
from interlock_catalog.runner.liveness import open_executor_locks, require_unique_executor
from interlock_catalog.runner.records import Run, RunRequest, open_run_store
from interlock_catalog.runner.steps import Progress, RunSteps
from interlock_catalog.settings import Loaded


class FinishedRun(msgspec.Struct, frozen=True):
    """A run that has ended, with everything that it worked with still open."""

    run: Run
    app: AppContext


@asynccontextmanager
async def run_in_foreground(
    loaded: Loaded, request: RunRequest, on_progress: Progress, *, resume: bool = False
) -> AsyncIterator[FinishedRun]:
    """Run to the end; with `resume`, go on with a run that there must be."""
    # Named after the run: a second process that would go on with it is refused, and workers see when this one is gone.
    executor, locks = f"cli-{request.run}", open_executor_locks(loaded.settings)
    require_unique_executor(locks, executor)
    try:
        async with open_run_store(loaded.settings, executor) as runs:
            # Otherwise a mistyped id would quietly begin a run.
            if resume:
                await runs.get(request.run)
            async with open_app(loaded, with_model=True, executor=executor) as app:
                steps = RunSteps(app, runs, executor, on_progress)
                async with launch_engine(steps, executor, serves=False):
                    run = await run_in_process(request)
                yield FinishedRun(run, app)
    finally:
        locks.close()
