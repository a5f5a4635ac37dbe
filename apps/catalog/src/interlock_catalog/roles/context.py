"""What every role works with: the model, the gate, and the turn in which it works."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from interlock import Outcome, Runtime, Tool
from interlock.models import Model
from interlock_catalog.checks.twins import Embed
from interlock_catalog.contracts import Json
from interlock_catalog.trust import Trust

_MOST_KEPT = 4000
_ODD = re.compile(r"[^A-Za-z0-9._:/+-]+")
_DEEPEST = 40


class Refused(msgspec.Struct, frozen=True):
    """A payload that was refused: what, and why. It can be exported, mended and handed in again."""

    tool: str
    arguments: dict[str, Json]
    reason: str


class Asked:
    """One piece of work for roles: a family of a run, or its searches."""

    def __init__(
        self,
        runtime: Runtime,
        tools: Mapping[str, Tool],
        judges: tuple[Model | None, Embed | None],
        work: tuple[str, str],
    ) -> None:
        self.runtime = runtime
        self.model, self.embed = judges
        self.trust = Trust()
        """How far each rule is trusted."""
        self.reply_s = 180.0
        """After how long a reply of the model is given up."""
        self.turn, self.run = work
        self.calls: Counter[str] = Counter()
        """How often a model was asked, by role."""
        self.judged = False
        """Whether one who can judge has looked, and its report was accepted."""
        self._tools = tools

    @property
    def judge(self) -> str:
        """The name that a model's record is kept under."""
        return "" if self.model is None else _ODD.sub("-", self.model.name)[:100]

    def tool(self, name: str) -> Tool:
        """A tool's contract, for the model to see."""
        return self._tools[name]

    def count(self, role: str) -> None:
        """A model was asked once more."""
        self.calls[role] += 1

    async def call(self, tool: str, arguments: Json, *, actor: str, **details: Any) -> Outcome:
        """A call through the gate, in this turn."""
        return await self.runtime.call(tool, arguments, actor=actor, turn=self.turn, run=self.run, **details)


def refused(tool: str, payload: Json, reason: str) -> Refused:
    """A payload that was refused, as text that can be kept whatever it holds."""
    text = json.dumps(payload, default=str, ensure_ascii=True, skipkeys=True) if _shallow(payload) else "(too deep)"
    return Refused(tool, {"refused": text[:_MOST_KEPT]}, reason.encode("ascii", "backslashreplace").decode()[:500])


def _shallow(payload: Json) -> bool:
    level, depth = [payload], 0
    while level and depth < _DEEPEST:
        inner = [item for item in level if isinstance(item, dict | list)]
        level = [part for item in inner for part in (item.values() if isinstance(item, dict) else item)]
        depth += 1
    return not level


def split(items: Sequence[Json], size: int) -> list[Sequence[Json]]:
    """Items in batches."""
    return [items[start : start + size] for start in range(0, len(items), size)]
