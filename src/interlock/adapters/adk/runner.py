"""`InterlockRunner`: ask an ADK application from a program, and get the result of the turn."""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.apps import App
from google.adk.runners import InMemoryRunner, Runner
from google.genai import types

from interlock.adapters.adk.plugin import InterlockPlugin
from interlock.errors import ConfigError
from interlock.turn import TurnResult


class InterlockRunner:
    """An App whose first plugin is ours; sessions are in memory unless a runner is given."""

    def __init__(self, app: App, *, runner: Runner | None = None, deadline_s: float = 120.0) -> None:
        plugin = app.plugins[0] if app.plugins else None
        if not isinstance(plugin, InterlockPlugin):
            raise ConfigError(f"App {app.name!r}: InterlockPlugin must be the first of its plugins")
        self.plugin = plugin
        self.runner = runner or InMemoryRunner(app=app)
        self._deadline_s = deadline_s

    async def ask(self, question: str, *, user_id: str = "user", session_id: str | None = None) -> TurnResult:
        """One question; `NotAllowed` cannot be: whatever happens, there is a result, or the error of the program."""
        sessions, name = self.runner.session_service, self.runner.app_name
        if session_id is None:
            session_id = (await sessions.create_session(app_name=name, user_id=user_id)).id
        elif await sessions.get_session(app_name=name, user_id=user_id, session_id=session_id) is None:
            await sessions.create_session(app_name=name, user_id=user_id, session_id=session_id)
        stop, invocation = asyncio.Event(), ""
        alarm = asyncio.get_running_loop().call_later(self._deadline_s, stop.set)
        message = types.Content(role="user", parts=[types.Part(text=question)])
        details: dict[str, Any] = {"abort_signal": stop}
        try:
            async for event in self.runner.run_async(
                user_id=user_id, session_id=session_id, new_message=message, **details
            ):
                invocation = event.invocation_id or invocation
        finally:
            alarm.cancel()
        result = self.plugin.results.pop(invocation, None)
        if result is None:
            raise ConfigError("the root agent of the App has no Agent of ours: name it in InterlockPlugin(agents=...)")
        return result
