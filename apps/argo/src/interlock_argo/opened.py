"""Argo for one command: its memory, and a runtime over its tools."""

from __future__ import annotations

import argparse

from interlock import Runtime
from interlock.answers import App
from interlock.cli.options import load_command_settings
from interlock.config import Settings as LibrarySettings
from interlock_argo.app import build_app
from interlock_argo.memory.home import MemoryHome
from interlock_argo.settings import load_settings


class OpenedArgo:
    """An async context manager, which closes both."""

    def __init__(self, given: argparse.Namespace) -> None:
        settings = load_settings()
        self.settings: LibrarySettings = load_command_settings(given).settings
        self.home = MemoryHome(settings)
        self.app: App = build_app(settings, self.home)
        assert self.app.policy is not None
        self.runtime = Runtime.open(
            self.settings.store, policy=self.app.policy, tools=self.app.tools, settings=self.settings
        )

    async def __aenter__(self) -> OpenedArgo:
        await self.runtime.__aenter__()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.runtime.close()
        await self.home.close()
