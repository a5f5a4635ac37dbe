"""The page on a port of this machine, until somebody ends it."""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn

from interlock.errors import ConfigError
from interlock_argo.opened import OpenedArgo
from interlock_argo.page.door import Door
from interlock_argo.page.routes import TalkPage
from interlock_argo.talk import open_talk

LOOPBACK = "127.0.0.1"
_PATIENCE_S = 3
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _PageServer(uvicorn.Server):
    """Ended by whoever serves the page: uvicorn would raise the signal again before anything is closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_page(
    opened: OpenedArgo, port: int, model: str | None, say_link: Callable[[str], None], *, by_address: bool = False
) -> None:
    """Until the process is told to end; what is being worked on then is stopped.

    A browser sends its key to every port of a host. So the page has a host of its own, which no other server goes by;
    `by_address` is for a browser that does not know names below `localhost`.
    """
    try:
        listening = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise ConfigError(f"port {port} cannot be listened on ({error}); `--port 0` takes one that is free") from None
    host = LOOPBACK if by_address else f"argo-{secrets.token_hex(4)}.localhost"
    with listening:
        async with opened:
            talk = open_talk(opened, model)
            page = TalkPage(talk)
            door = Door(page.build(), f"{host}:{listening.getsockname()[1]}", say_link)
            door.open_link()
            server = _PageServer(uvicorn.Config(door, log_level="warning", timeout_graceful_shutdown=_PATIENCE_S))
            try:
                with _listen(server, page):
                    await server.serve(sockets=[listening])
            finally:
                await page.desk.close()
                await talk.model.close()


@contextmanager
def _listen(server: uvicorn.Server, page: TalkPage) -> Iterator[None]:
    """Signals end the work, so that whoever follows it is told, then the server; the second waits for nothing."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True
        page.desk.stop()

    with suppress(NotImplementedError):  # on Windows Ctrl-C cancels, which ends it, too
        for one in _SIGNALS:
            loop.add_signal_handler(one, end)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            for one in _SIGNALS:
                loop.remove_signal_handler(one)
