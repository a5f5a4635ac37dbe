"""`InterlockRunner`: ask an ADK application from a program, and get the result of the turn."""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.apps import App
from google.adk.runners import InMemoryRunner, Runner
from google.genai import types

from interlock.adapters.adk.plugin import WAITED, InterlockPlugin, Waited
from interlock.answers import TurnResult
from interlock.errors import ConfigError

_LONGEST_S = 600.0
_LOOK_AGAIN_S = 0.05
_MARGIN_S = 0.05  # the turn's own deadline passes first, so that it ends as a timeout and is recorded so


class InterlockRunner:
    """An App whose first plugin is ours; sessions are in memory unless a runner is given."""

    def __init__(self, app: App, *, runner: Runner | None = None) -> None:
        plugin = app.plugins[0] if app.plugins else None
        if not isinstance(plugin, InterlockPlugin):
            raise ConfigError(f"App {app.name!r}: InterlockPlugin must be the first of its plugins")
        self.plugin = plugin
        self.runner = runner or InMemoryRunner(app=app)
        root = getattr(app.root_agent, "name", "")
        self._deadline_s = (plugin.deadline_s(root) or _LONGEST_S) + _MARGIN_S

    async def ask(self, question: str, *, user_id: str = "user", session_id: str | None = None) -> TurnResult:
        """One question; a model that hangs is aborted when the agent's time is up."""
        sessions, name = self.runner.session_service, self.runner.app_name
        if session_id is None:
            session_id = (await sessions.create_session(app_name=name, user_id=user_id)).id
        elif await sessions.get_session(app_name=name, user_id=user_id, session_id=session_id) is None:
            await sessions.create_session(app_name=name, user_id=user_id, session_id=session_id)
        stop = asyncio.Event()
        waited = Waited(session_id)
        marked = WAITED.set(waited)
        alarm = asyncio.create_task(self._stop_in_time(waited, stop))
        message = types.Content(role="user", parts=[types.Part(text=question)])
        details: dict[str, Any] = {"abort_signal": stop}
        try:
            async for _event in self.runner.run_async(
                user_id=user_id, session_id=session_id, new_message=message, **details
            ):
                pass
        finally:
            alarm.cancel()
            WAITED.reset(marked)
        await self.plugin.abort(waited)  # ends the turns that an aborted agent left open
        if waited.result is None:
            raise ConfigError("the root agent of the App has no Agent of ours: name it in InterlockPlugin(agents=...)")
        return waited.result

    async def _stop_in_time(self, waited: Waited, stop: asyncio.Event) -> None:
        """Abort the agent when its time is up; what passes before its turn begins is not counted, up to ten minutes."""
        waited_s = 0.0
        while not self.plugin.has_turn(waited) and waited_s < _LONGEST_S:
            await asyncio.sleep(_LOOK_AGAIN_S)
            waited_s += _LOOK_AGAIN_S
        await asyncio.sleep(self._deadline_s)
        stop.set()
