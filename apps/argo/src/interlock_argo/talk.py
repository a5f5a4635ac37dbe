"""A question of somebody who talks to Argo, in the terminal or on the page, and what happens until it is answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from interlock.answers import Answers, Turn, TurnResult, run_turn
from interlock.answers.constrained import constrain
from interlock.answers.runner import Called, PhaseEntered, PlanMade, Progress, Returned, SourceFound
from interlock.config import Settings
from interlock.models import Model, open_model
from interlock_argo.opened import OpenedArgo

_LONGEST = 120


def open_talk(opened: OpenedArgo, model: str | None = None) -> Talk:
    """With the model of the settings, or another one."""
    settings: Settings = opened.settings
    inner = open_model(
        model or settings.model,
        fallback=settings.model_fallback,
        timeout_s=settings.model_timeout_s,
        tools=settings.model_tools,
    )
    return Talk(opened, (opened.app.constrain or constrain)(inner))


class Talk:
    """Sessions with Argo's agent, over one model."""

    def __init__(self, opened: OpenedArgo, model: Model) -> None:
        self.opened, self.model = opened, model
        self.answers = Answers(opened.runtime)
        self.agent = opened.app.agents[0]

    async def open_turn(self, session: str, question: str, work: str = "") -> Turn:
        """The next turn of a session, to be entered."""
        details: dict[str, Any] = {"work": work} if work else {}
        return await self.answers.session(session).turn(question, agent=self.agent, **details)

    async def answer(self, turn: Turn, watch: Callable[[Progress], None], on_text: Callable[[str], None]) -> TurnResult:
        """What comes of a turn that was entered."""
        return await run_turn(turn, self.model, watch=watch, on_text=on_text)

    def name_session(self) -> str:
        """A name for a session that has none."""
        return f"chat-{self.opened.runtime.context.ids.new()}"

    @property
    def ways_of_working(self) -> tuple[str, ...]:
        """The names of the agent's ways of working."""
        return tuple(work.name for work in self.agent.works)


def describe(progress: Progress) -> Iterator[str]:
    """What happens, in lines for whoever waits; nothing for what says nothing to them."""
    match progress:
        case Called(tool=tool):
            yield f"→ {tool}"
        case Returned(outcome=outcome) if not outcome.ok:
            yield f"← {outcome.status.value} {outcome.summary[:_LONGEST]}"
        case PhaseEntered(name=name):
            yield f"{name} …"
        case PlanMade(questions=questions):
            yield from (f"{number}. {question}" for number, question in enumerate(questions, 1))
        case SourceFound(source=source):
            yield f"read {source.name}"
        case _:
            pass
