"""What every role works with: the model, the gate, and the turn in which it works."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from interlock import Outcome, Runtime, Tool
from interlock.models import Model
from interlock_catalog.checks.duplicates import Embed
from interlock_catalog.confidence import Calibration
from interlock_catalog.contracts import Json

_MAX_KEPT_CHARS = 4000
_MAX_DEPTH = 40
# A model's name becomes part of an evidence tag: no spaces, and no @, which sets the judge off from the rule.
_NOT_IN_TAGS = re.compile(r"[^A-Za-z0-9._:/+-]+")


class Rejection(msgspec.Struct, frozen=True):
    """A payload that was rejected: what, and why. It can be exported, corrected and submitted again."""

    tool: str
    arguments: dict[str, Json]
    reason: str


class RoleContext(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work for roles: a family of a run, or its searches."""

    runtime: Runtime
    tools: Mapping[str, Tool]
    turn: str
    run: str
    model: Model | None = None
    embed: Embed | None = None
    calibration: Calibration = Calibration()
    reply_s: float = 180.0
    """After how long a reply of the model is given up."""
    model_calls: Counter[str] = msgspec.field(default_factory=Counter)
    """How often the model was called, by role; counted while the work goes on."""
    model_replies: Counter[str] = msgspec.field(default_factory=Counter)
    """How often it replied, whatever it said, by role."""
    model_answers: Counter[str] = msgspec.field(default_factory=Counter)
    """How often its reply could be used: a report, or a choice of what was offered; by role."""

    @property
    def judge(self) -> str:
        """The name that a model's record is kept under."""
        return "" if self.model is None else _NOT_IN_TAGS.sub("-", self.model.name)[:100]

    async def call(self, tool: str, arguments: Json, *, actor: str, **details: Any) -> Outcome:
        """A call through the gate, in this turn."""
        return await self.runtime.call(tool, arguments, actor=actor, turn=self.turn, run=self.run, **details)


def build_rejection(tool: str, payload: Json, reason: str) -> Rejection:
    """A rejected payload as text that can be stored, whatever it holds."""
    text = json.dumps(payload, default=str, ensure_ascii=True, skipkeys=True) if _is_shallow(payload) else "(too deep)"
    kept = {"rejected": text[:_MAX_KEPT_CHARS]}
    # In ASCII, like the payload: a model may write half a surrogate pair, which no database takes.
    return Rejection(tool, kept, reason.encode("ascii", "backslashreplace").decode()[:500])


def _is_shallow(payload: Json) -> bool:
    """Whether json.dumps can go through it without running out of stack."""
    level, depth = [payload], 0
    while level and depth < _MAX_DEPTH:
        inner = [item for item in level if isinstance(item, dict | list)]
        level = [part for item in inner for part in (item.values() if isinstance(item, dict) else item)]
        depth += 1
    return not level
