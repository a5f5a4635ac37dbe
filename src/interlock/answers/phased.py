"""A turn in a way of working: phases with their tools, a budget that is reserved, an honest end when it falls short."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlock.answers.result import TurnResult
from interlock.answers.runner import Progress, Runner, Watch
from interlock.answers.turn import Again, Turn
from interlock.answers.workflows import Progress as WorkProgress
from interlock.answers.workflows import Workflow, advance, ends_short, is_plan, left_out, workflow_prompt
from interlock.models import Message, Model, Reply
from interlock.values import Outcome, Status

_TRIED = (Status.OK, Status.NO_DATA, Status.FAILED, Status.UNKNOWN)


class WorkflowRunner(Runner):
    """The same rounds, each in the phase that the turn is in."""

    def __init__(self, turn: Turn, model: Model, watch: Watch, history: Sequence[Message], mode: Workflow) -> None:
        super().__init__(turn, model, watch, history)
        self._mode = mode
        self._place = 0
        self._seen = WorkProgress()
        self._sources: set[str] = set()
        self._move()

    def instructions(self) -> str:
        """The agent's, and where the work stands."""
        return f"{super().instructions()}\n\n{workflow_prompt(self._mode, self._place, self._seen)}"

    async def answered(self, reply: Reply) -> TurnResult | Again | None:
        """A text: the plan, an answer where one may be given, or talk where a call was due."""
        phase = self._mode.phases[self._place]
        if phase.done.plan and not self._seen.plan and is_plan(reply.text):
            self._seen = msgspec.structs.replace(self._seen, plan=True, idle=0)
            self._messages.append(Message("assistant", reply.text))
            await self._turn.note({"state": "planned", "steps": reply.text.count("\n") + 1}, {"plan": reply.text})
        elif phase.answers:
            return await self._turn.finish(reply.text, final=reply.final)
        else:
            self._seen = msgspec.structs.replace(self._seen, idle=self._seen.idle + 1)
            self._messages.append(Message("assistant", reply.text))
            self._messages.append(Message("user", workflow_prompt(self._mode, self._place, self._seen)))
        self._turn.replies += 1
        self._moved()
        spent = self._turn.replies >= self._turn.most_replies or self._turn.left_s <= 0
        return await self._turn.finish(None) if spent else None

    def called(self, outcomes: Sequence[Outcome]) -> None:
        """Count what the calls brought, and go on to the phase that is due."""
        for outcome in outcomes:
            good = outcome.status is Status.OK
            self._sources.update(outcome.sources if good else ())
            self._seen = msgspec.structs.replace(
                self._seen,
                made=self._seen.made + (outcome.status in _TRIED),
                succeeded=self._seen.succeeded + good,
                failures=0 if good else self._seen.failures + 1,
                sources=len(self._sources),
                idle=0,
            )
        self._moved()

    def _moved(self) -> None:
        why = ends_short(self._mode, self._seen, self._turn.agent.max_retries)
        last = len(self._mode.phases) - 1
        if why and self._place < last:
            lacks = left_out(self._mode, self._place, self._seen)
            if lacks:
                self._turn.add_note(f"this is a partial answer: {why}, and {lacks}")
            self._place = last
        self._move()

    def _move(self) -> None:
        before, self._place = self._place, advance(self._mode, self._place, self._seen)
        phase = self._mode.phases[self._place]
        self._turn.offer(phase.tools)
        if before != self._place:
            self._watch(Progress("phase", phase.name))
