"""What tests of RANGER share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any, NamedTuple

from interlock import Outcome
from interlock.answers import App
from interlock.values import Problem
from interlock_ranger.briefing.compose import Briefing

TODAY = date(2026, 11, 15)
PATIENCE_S = 1800.0
"""How long a test waits for anything before it gives up: no outcome depends on it, however busy the machine is."""
Call = Callable[..., Awaitable[Outcome]]
Case = dict[str, Any]
"""A question with the calls that answer it, as plans.json has it."""


class Composed(NamedTuple):
    briefing: Briefing
    calls: set[int]
    """The records of calls in its ledger."""


def problem(outcome: Outcome) -> Problem:
    """Why a call gave nothing."""
    assert outcome.problem is not None
    return outcome.problem


def policy_text(app: App) -> str:
    assert app.policy is not None
    return app.policy.read_text(encoding="utf-8")
