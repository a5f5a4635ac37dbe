"""The page on a port of this machine, until somebody ends it."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from interlock.errors import ConfigError
from interlock_argo.opened import OpenedArgo
from interlock_argo.page.door import Door
from interlock_argo.page.routes import TalkPage
from interlock_argo.talk import open_talk

LOOPBACK = "127.0.0.1"
_PATIENCE_S = 3


async def serve_page(opened: OpenedArgo, port: int, model: str | None, say_link: Callable[[str], None]) -> None:
    """Until the process is told to end; what is being worked on then is stopped."""
    try:
        listening = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise ConfigError(f"port {port} cannot be listened on ({error}); `--port 0` takes one that is free") from None
    with listening:
        async with opened:
            talk = open_talk(opened, model)
            page = TalkPage(talk)
            door = Door(page.build(), f"{LOOPBACK}:{listening.getsockname()[1]}", say_link)
            door.open_link()
            config = uvicorn.Config(door, log_level="warning", timeout_graceful_shutdown=_PATIENCE_S)
            try:
                await uvicorn.Server(config).serve(sockets=[listening])
            finally:
                await page.desk.close()
                await talk.model.close()
