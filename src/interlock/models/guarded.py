"""A model that is somebody else's code: its reply comes in time, or `ModelFailed` says why there is none."""

from __future__ import annotations

import asyncio

from interlock.errors import WHERE_LOGGED
from interlock.models.messages import Model, ModelFailed, Reply, Request
from interlock.tools.tracebacks import log_traceback


async def guarded_reply(model: Model, request: Request, within_s: float | None = None) -> Reply:
    """One reply. Whatever the model raises means that it gave none; its traceback is in the log alone.

    `TimeoutError` if `within_s` passed first: that is the caller's time, and no failure of the model.
    """
    limit = asyncio.timeout(within_s)
    try:
        async with limit:
            reply = await model.reply(request)
    # Ctrl-C comes from a person, whatever the model is doing.
    except (KeyboardInterrupt, ModelFailed):
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        # Somebody is ending this task, and it has to end. Without such a request, the model's own code raised it.
        if task is not None and task.cancelling():
            raise
        raise ModelFailed(f"the model {model.name} cancelled itself") from None
    except BaseException as error:  # it may raise anything, even SystemExit
        if limit.expired():
            raise
        log_traceback(f"the model {model.name}", error, None)
        # The class alone: the words of an exception may hold a key or an address.
        raise ModelFailed(
            f"the model {model.name} raised {type(error).__name__}; its traceback is in the log {WHERE_LOGGED}"
        ) from None
    if not isinstance(reply, Reply):
        raise ModelFailed(f"the model {model.name} returned {type(reply).__name__}, and not a Reply")
    return reply


async def close_model(model: Model) -> None:
    """Let a model go; what it raises then is in the log, and the answer that it gave stands."""
    try:
        await model.close()
    except Exception as error:  # noqa: BLE001 - it may raise anything
        log_traceback(f"closing the model {model.name}", error, None)
