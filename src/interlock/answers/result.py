"""`TurnResult`: how a turn ended, ready to be written as JSON."""

from __future__ import annotations

from enum import StrEnum

from interlock.answers.grounding import Support
from interlock.answers.ladder import TurnOutcome
from interlock.answers.statements import TurnEffect
from interlock.models import Usage
from interlock.values import Value


class TurnStatus(StrEnum):
    """What the answer is."""

    VERIFIED = "verified"
    """Written by the model: every required tool succeeded, every claim is supported."""
    CONVERSATION = "conversation"
    """Nothing was asked for, and nothing is said: a fixed text, or small talk of the model's."""
    PARTIAL = "partial"
    """What was found until its way of working was cut short: its claims are supported, and it is not all."""
    RENDERED = "rendered"
    """The tools' results themselves, in place of a draft that could not be supported."""
    ASKED = "asked"
    WAITING = "waiting"
    TOOL_FAILED = "tool_failed"
    """A required tool failed, found nothing or was refused by a person or a rule: the limitation is stated."""
    NO_REPLY = "no_reply"
    """The model failed, and there is no result to show in place of its answer."""
    ESCALATED = "escalated"
    TIMED_OUT = "timed_out"
    BLOCKED = "blocked"
    UNVERIFIED = "unverified"
    """Enforcement was off: the draft as it came, unverified."""
    RELEASED = "released"
    """A reviewer let an escalated draft out."""
    CORRECTED = "corrected"
    """A reviewer wrote the answer."""
    REJECTED = "rejected"
    """A reviewer refused the draft."""


class Action(StrEnum):
    """What the caller should do."""

    NONE = "none"
    RETRY = "retry"
    HUMAN_REVIEW = "human_review"


class TurnResult(Value, frozen=True):
    """The end of a turn; `answer` is the only text that may be shown to whoever asked."""

    turn: str
    """The record of the turn: `interlock turns show TURN`."""
    agent: str
    status: TurnStatus
    outcome: TurnOutcome
    verified: bool
    """Whether it rests on results of tools, and every required one succeeded: so of `verified` and of `rendered`, where
    the results themselves leave. Conversation is not verified, as there is nothing to verify it by."""
    answer: str
    claims: tuple[Support, ...] = ()
    """The figures of the answer, each with the record and path that supports it."""
    effects: tuple[TurnEffect, ...] = ()
    """The calls that change the world, and how each stands; the last line of the answer says it in words."""
    attempts: int = 1
    tools: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    reason: str = ""
    action: Action = Action.NONE
    ticket: str | None = None
    confidence: float | None = None
    """Computed from the results: the lowest that a used tool gave, or that a claim has by the sources behind it."""
    partial: bool = False
    """Whether its way of working was cut short: the answer says so in a note, and what it lacks is in `gaps`."""
    gaps: tuple[str, ...] = ()
    """What was not reached: how many sources are missing, which sub-questions nothing was read about."""
    sources: tuple[str, ...] = ()
    records: tuple[int, ...] = ()
    model_calls: int = 0
    usage: Usage = Usage()
    """Tokens and cost of all replies, where the provider says."""
    overhead_us: int = 0
    """What the turn layer itself took: neither the model nor the tools."""
