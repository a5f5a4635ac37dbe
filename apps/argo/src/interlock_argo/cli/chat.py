"""`interlock argo chat`: a conversation in the terminal; an answer is shown once it is checked."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from interlock.answers import TurnResult, TurnStatus
from interlock.answers.runner import Progress
from interlock.cli.output import colorize, console, notes, sanitize
from interlock.errors import InterlockError
from interlock_argo.opened import OpenedArgo
from interlock_argo.talk import Talk, describe, open_talk

_HELP = """:help              this
:new [NAME]        begin another session
:work [NAME]       work that way from now on (quick, research, ingest); without a name, freely
:tools             what Argo may use
:facts             what you have told it
:sources           where the last answer is from
:stats             what this session took
:quit              end (also Ctrl-D); `interlock argo chat --session NAME` goes on with it"""
_RECALLED = 3
_END = (EOFError, KeyboardInterrupt)


class Chat:
    """One conversation: what is typed is a command or a question."""

    def __init__(self, talk: Talk, session: str, runner: asyncio.Runner) -> None:
        self._talk, self._opened, self._runner = talk, talk.opened, runner
        self._session, self._work = session, ""
        self._last: TurnResult | None = None
        self._turns = self._calls = 0
        self._commands: dict[str, Callable[[str], object]] = {
            "help": lambda _rest: console().print(_HELP, markup=False),
            "new": self._new,
            "work": self._choose_work,
            "tools": self._tools,
            "facts": lambda _rest: self._run(self._facts()),
            "sources": self._sources,
            "stats": self._stats,
        }

    def talk(self) -> None:
        """Until :quit or the end of the input."""
        console().print(f"session {sanitize(self._session)}; :help says what else there is", style="dim")
        while True:
            try:
                said = input("you> ").strip()
            except _END:
                console().print()
                return
            if said in (":quit", ":q"):
                return
            if said:
                self._hear(said)

    def recall(self) -> None:
        """What was said last in a session that is gone on with."""
        for one in self._runner.run(self._talk.answers.session(self._session).exchanges(most=_RECALLED)):
            console().print(f"[dim]you> {sanitize(one.question or '(deleted)')}[/]", soft_wrap=True)
            said = "(no answer)" if one.result is None else one.result.answer
            console().print(f"[dim]{sanitize(said)}[/]", soft_wrap=True)

    def _hear(self, said: str) -> None:
        name, _, rest = said.removeprefix(":").partition(" ")
        try:
            if not said.startswith(":"):
                self._run(self._ask(said))
            elif name in self._commands:
                self._commands[name](rest.strip())
            else:
                notes().print(f"there is no :{sanitize(name)}; :help lists what there is")
        except InterlockError as error:
            notes().print(sanitize(error), soft_wrap=True)
        except KeyboardInterrupt:
            notes().print("stopped")

    def _run(self, work: Coroutine[Any, Any, object]) -> None:
        self._runner.run(work)

    async def _ask(self, question: str) -> None:
        async with await self._talk.open_turn(self._session, question, self._work) as turn:
            result = await self._talk.answer(turn, _show_progress, _show_text)
        self._last, self._turns, self._calls = result, self._turns + 1, self._calls + len(result.tools)
        where = f" · {', '.join(result.sources[:3])}" if result.sources else ""
        console().print(f"[{colorize(result.status.value)}[dim]{sanitize(where)}[/]]")
        if result.status is TurnStatus.WAITING and result.ticket is not None:
            console().print(f"[dim]somebody decides: interlock review show {sanitize(result.ticket)}[/]")

    def _new(self, name: str) -> None:
        self._session = name or self._talk.name_session()
        self._last, self._turns, self._calls = None, 0, 0
        console().print(f"[dim]session {sanitize(self._session)}[/]")

    def _choose_work(self, name: str) -> None:
        if name:
            self._opened.app.agents[0].work(name)
        self._work = name
        console().print(f"[dim]{sanitize(name or 'freely')}[/]")

    def _tools(self, _rest: str) -> None:
        for tool in self._opened.app.tools:
            said = str(tool.manifest()["description"]).partition("\n")[0]
            console().print(f"{sanitize(tool.name)} [dim]({tool.effect.value}) {sanitize(said)}[/]")

    async def _facts(self) -> None:
        found = [one for one in await self._opened.home.memory.documents(most=200) if one.sources[-1] == "you"]
        for one in found:
            console().print(f"{sanitize(one.text)} [dim]{one.id}[/]")
        if not found:
            console().print("[dim]nothing yet; say: remember that …[/]")

    def _sources(self, _rest: str) -> None:
        if self._last is None or not (self._last.claims or self._last.sources):
            console().print("[dim]the last answer rests on nothing that could be shown[/]")
            return
        for source in self._last.sources:
            console().print(sanitize(source), soft_wrap=True)
        for claim in self._last.claims:
            console().print(f"{sanitize(claim.text)} [dim]← {sanitize(claim.source)} {sanitize(claim.path)}[/]")

    def _stats(self, _rest: str) -> None:
        console().print(
            f"{self._turns} questions, {self._calls} calls of tools; model {sanitize(self._talk.model.name)}"
        )


def _show_text(sentence: str) -> None:
    console().print(sentence.rstrip("\n"), markup=False, highlight=False, soft_wrap=True)


def _show_progress(progress: Progress) -> None:
    for line in describe(progress):
        notes().print(f"[dim]{sanitize(line)}[/]")


def run_chat(given: argparse.Namespace) -> int:
    """Talk until the input ends."""
    opened = OpenedArgo(given)
    with asyncio.Runner() as runner:
        runner.run(opened.__aenter__())
        try:
            talk = open_talk(opened, given.model)
            chat = Chat(talk, given.session or talk.name_session(), runner)
            if given.session:
                chat.recall()
            chat.talk()
        finally:
            runner.run(opened.__aexit__())
    return 0
