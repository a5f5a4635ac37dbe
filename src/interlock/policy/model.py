"""A policy as it was written: rules, rates, budgets, grants, named limits and lists."""

from __future__ import annotations

from interlock.state import Delegation
from interlock.values import EVERYONE, Budget, Decision, Grant, Json, Mode, Rate, Value

RISKS = ("none", "low", "medium", "high")


class Place(Value, frozen=True):
    """Where something stands in a policy."""

    file: str
    line: int = 0
    """0 where there are no lines: in a policy that was given as a dict."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Rule(Value, frozen=True):
    """One rule. With `set` it rewrites arguments; otherwise it decides."""

    id: str
    tools: tuple[str, ...]
    place: Place
    decision: Decision | None = None
    when: str | None = None
    reason: str = ""
    set: dict[str, Json] = {}
    needs_egress: bool = False
    field: str | None = None
    """The argument that a pack looks at: where it is optional and left out, there is nothing to look at."""
    approvers: tuple[str, ...] = ()
    quorum: int = 0
    """For a rule that asks for a review: who may approve, and how many must; where they say nothing, [review] does."""
    level: str | None = None
    """For a rule of [[risk]]: how risky a plan is for which it holds."""
    instead: str = ""
    """What whoever is refused may do instead."""
    names_tools: tuple[str, ...] = ()
    names_arguments: tuple[str, ...] = ()
    """What a pack speaks of beside the tools that it is for: what there is not would switch it off without a word."""
    when_line: int = 0
    """The line of its file on which its condition begins; 0 where there are none."""


class Cooldown(Value, frozen=True):
    """How long a key rests after a recorded change, for these tools and actors; the run that changed it may go on."""

    id: str
    tools: tuple[str, ...]
    window_s: int
    actors: tuple[str, ...] = EVERYONE


class ReviewSpec(Value, frozen=True):
    """What [review] says: who decides, how many, by which keys, for how long."""

    expires_s: int = 86_400
    escalate_s: int = 14_400
    remind_s: int = 0
    self_approval: bool = False
    approvers: tuple[str, ...] = ()
    quorum: int = 1
    keys: tuple[str, ...] = ()
    """Files of public keys, relative to the policy, or `ed25519:HEX`."""
    vouched: tuple[str, ...] = ()
    delegations: tuple[Delegation, ...] = ()


class ListSpec(Value, frozen=True):
    """A named list that rules ask with `listed(name, value)`: written out, from a file, or from a query."""

    name: str
    place: Place
    values: tuple[str, ...] | None = None
    file: str | None = None
    database: str | None = None
    query: str | None = None
    ttl_s: float = 30.0


class Policy(Value, frozen=True):
    """Everything a policy file says."""

    file: str
    rules: tuple[Rule, ...] = ()
    risks: tuple[Rule, ...] = ()
    rates: tuple[Rate, ...] = ()
    budgets: tuple[Budget, ...] = ()
    cooldowns: tuple[Cooldown, ...] = ()
    grants: dict[str, Grant] = {}
    limits: dict[str, Json] = {}
    lists: dict[str, ListSpec] = {}
    places: dict[str, Place] = {}
    as_planned: tuple[str, ...] = ()
    """Tools whose changes have failed if they are not what was planned."""
    review: ReviewSpec = ReviewSpec()
    mode: Mode | None = None
    """How far writes and sends go unless a call or a setting says otherwise."""
