"""The questions that are being worked on: each goes on whether anybody looks, and whoever looks sees all of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Literal

from interlock.answers import TurnResult
from interlock.answers.runner import Progress
from interlock.errors import InterlockError
from interlock_argo.talk import Talk, describe

_log = logging.getLogger("interlock")
_PATIENCE_S = 5
_MOST_KEPT = 20
"""So many questions that have ended can still be followed by a browser that was away."""
STOPPED = "You stopped this; what was done until then stands in the ledger."
_WENT_WRONG = "Something went wrong in Argo itself; where it was started, the log says what."

Part = tuple[Literal["progress", "text"], str]


class Work:
    """One question, what has happened since, and how it ended."""

    def __init__(self, number: str, session: str, question: str) -> None:
        self.number, self.session, self.question = number, session, question
        self.turn = ""
        """Once it is opened."""
        self.parts: list[Part] = []
        self.result: TurnResult | None = None
        self.problem = ""
        self.has_ended = False
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, talk: Talk, work: str) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._do(talk, work))
        self._task.add_done_callback(self._end)

    def stop(self) -> None:
        """No more of it."""
        if self._task is not None:
            self._task.cancel()

    async def wait(self) -> None:
        """Until it has ended; what does not let itself be stopped is not waited for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                async for _part in self.follow():
                    pass

    async def follow(self, after: int = 0) -> AsyncIterator[tuple[int, Part]]:
        """Everything that happens, from a place on, until the end."""
        while True:
            changed = self._changed
            for place, part in enumerate(self.parts[after:], after + 1):
                yield place, part
            after = max(after, len(self.parts))
            if self.has_ended and after >= len(self.parts):
                return
            await changed.wait()

    async def _do(self, talk: Talk, work: str) -> None:
        try:
            async with await talk.open_turn(self.session, self.question, work) as turn:
                self.turn = turn.id
                self.result = await talk.answer(turn, self._see, lambda text: self._add("text", text))
        except InterlockError as error:
            self.problem = str(error)
        except Exception:  # noqa: BLE001 - whoever asked is told; the page goes on for the others
            _log.exception("a question to Argo could not be worked on")
            self.problem = _WENT_WRONG

    def _end(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():  # which may have been before it began
            self.problem = STOPPED
        self.has_ended = True
        self._wake()

    def _see(self, progress: Progress) -> None:
        for line in describe(progress):
            self._add("progress", line)

    def _add(self, kind: Literal["progress", "text"], text: str) -> None:
        self.parts.append((kind, text))
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class Desk:
    """One question at a time in each session."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._works: dict[str, Work] = {}

    def begin(self, session: str, question: str, work: str) -> Work | None:
        """Work on a question; None while the session is at another one."""
        if self.at_work(session) is not None:
            return None
        for number in [one.number for one in self._works.values() if one.has_ended][:-_MOST_KEPT]:
            del self._works[number]
        found = Work(self._talk.opened.runtime.context.ids.new(), session, question)
        self._works[found.number] = found
        found.start(self._talk, work)
        return found

    def find(self, number: str) -> Work | None:
        """A question by its number."""
        return self._works.get(number)

    def at_work(self, session: str) -> Work | None:
        """What a session is at."""
        return next((one for one in self._works.values() if one.session == session and not one.has_ended), None)

    def stop(self) -> None:
        """No more of anything."""
        for one in self._works.values():
            one.stop()

    async def close(self) -> None:
        """Stop everything, and wait for it."""
        self.stop()
        for one in self._works.values():
            await one.wait()
