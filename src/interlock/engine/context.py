"""What each stage takes and gives, and the parts of the world that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from math import inf
from typing import Any

import msgspec

from interlock.changes import Expected, KeptStates, Planner, Snapshot, SnapshotReader
from interlock.config import TextLimits
from interlock.engine.halts import HaltSwitch
from interlock.engine.heart import Heart
from interlock.engine.limits import ToolLimits
from interlock.engine.origins import OriginIndexes
from interlock.engine.turns import FoldedTurns
from interlock.policy import Facts, Ruleset, ToolRules
from interlock.ports import Clock, Faults, Ids, Store
from interlock.reasons import Reason
from interlock.records import Charge, Record
from interlock.resilience import Deadlines
from interlock.review import Terms
from interlock.state import Ticket
from interlock.tools import Reading, Tool
from interlock.tools.inputs import Parsed
from interlock.tools.registry import Registry
from interlock.transitions import Transition
from interlock.values import (
    Attempt,
    Budget,
    Call,
    FieldProblem,
    Json,
    Mode,
    Plan,
    Problem,
    Rate,
    Status,
    Verdict,
    clean,
)

Observer = Callable[[Record, int], None]
"""Reads a record after it is durable; the number is its id."""


class ToolBinding(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is settled about one tool before any call of it comes in."""

    tool: Tool
    rules: ToolRules
    rates: tuple[Rate, ...]
    limits: ToolLimits
    mode: Mode = Mode.APPLY
    """The mode of calls that name none."""
    planner: Planner | None = None
    """Makes the plans of a tool that changes the world; a read needs none."""
    recalled: bool = False
    """Whether another tool recalls what is told to this one: then it is written down where that came from."""
    traces: bool = False
    """Whether it is looked up where arguments come from: a rule asks, or another tool recalls them."""
    looks_up: bool = False
    """Whether more has to be known of a call before any rule is asked, although it is in no turn."""
    waits: bool = True
    """Whether a call may begin later than it came in: it is planned, or waits for its place."""
    direct: bool = False
    """Whether the tool's function is a coroutine function that wants nothing but the arguments."""


class EngineContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the path needs beside the call itself."""

    registry: Registry
    ruleset: Ruleset
    store: Store
    turns: FoldedTurns
    origins: OriginIndexes
    """What they have seen, by value: where an argument comes from."""
    """What the turns of late calls have recorded."""
    bindings: Mapping[str, ToolBinding]
    budgets: tuple[Budget, ...]
    clock: Clock
    ids: Ids
    faults: Faults | None
    at: Callable[[str], object]
    """Reached a named point, where a test may stop the world."""
    deadlines: Deadlines
    threads: Executor
    observers: tuple[Observer, ...]
    repeats: str
    record_bytes: int
    redacted: frozenset[str]
    keyed: Any
    digest: Callable[[bytes], str]
    """The keyed digest of a text."""
    halts: HaltSwitch
    snapshot_reader: SnapshotReader
    kept_states: KeptStates
    """What the records of this process hold of whole resources."""
    lease_us: int
    heart: Heart
    review: Terms
    account: str
    """The account of the operating system that everything here is asked from."""
    limits: TextLimits = TextLimits()
    """How much of a text from outside is read."""


class Started(msgspec.Struct, frozen=True, gc=False):
    """When a call came in, by the wall and by the stopwatch."""

    at_us: int
    clock: float


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """The call fits its contract and its actor's grant."""

    facts: Facts
    started: Started
    binding: ToolBinding
    parsed: Parsed
    changes: bool = False
    """Whether the tool changes the world."""
    claim: Expected | None = None
    """The claim that a change will make."""


class Admitted(msgspec.Struct, frozen=True, gc=False):
    """The call fits its contract, and no rule that needs no plan denies it."""

    facts: Facts
    started: Started
    binding: ToolBinding
    parsed: Parsed
    verdict: Verdict | None
    asked: dict[str, Json] | None = None
    """The arguments before they were clamped, where they were."""
    claim: Expected | None = None


class Prepared(msgspec.Struct, frozen=True, gc=False):
    """The call is allowed, and it is known what it will do."""

    admitted: Admitted
    plan: Plan
    verdict: Verdict
    ticket: Ticket | None = None
    """The approval that the call spends."""


class Ended(msgspec.Struct, frozen=True):
    """How the call ended, before it is recorded."""

    call: Call
    started: Started
    reading: Reading
    tool: Tool | None = None
    arguments: Json = None
    verdict: Verdict | None = None
    plan: Plan | None = None
    attempts: tuple[Attempt, ...] = ()
    settle: tuple[Transition, ...] = ()
    is_plain: bool = False
    """Nothing but a value to record: most reads, which are not made to pay for the rest."""
    charged: tuple[Charge, ...] = ()
    """What `settle` adds to the accounts of budgets."""
    cost_micros: int = 0
    ticket: str | None = None
    repeats: int | None = None
    undone: bool = False
    """Whether the change that it repeats was taken back since."""
    asked: dict[str, Json] | None = None
    interrupt: BaseException | None = None
    intent: int | None = None
    tokens: tuple[int, ...] = ()
    after: tuple[Snapshot, ...] = ()
    """The snapshots of the keys after an effect."""
    asks: Ticket | None = None
    """The ticket that a parked call opens."""
    seen: tuple[Json, ...] = ()
    """What else was read on the way: it is not recorded, but what is redacted in it is known to be a secret."""
    deviates: tuple[str, ...] = ()
    """Keys that became something else than was planned."""
    beyond: bool = False
    """Nobody knows whether it landed, and it may have changed something besides its resource."""

    def undone_since(self) -> Ended:
        """The recorded answer of a change that was taken back since: it says that what it answers stands no more."""
        if self.repeats is None:
            return self
        said = f"{self.reading.said or f'made before (record {self.repeats})'}; it was undone since"
        return msgspec.structs.replace(self, undone=True, reading=msgspec.structs.replace(self.reading, said=said))


def refuse(
    status: Status,
    reason: Reason,
    message: str,
    *,
    hints: tuple[str, ...] = (),
    fields: tuple[FieldProblem, ...] = (),
    wait_s: float | None = None,
) -> Reading:
    """The reading of a call that ended without an answer from its tool."""
    message, hints = clean(message), tuple(map(clean, hints))
    wait_s = wait_s if isinstance(wait_s, int | float) and 0 <= wait_s < inf else None
    problem = Problem(reason=reason, message=message, hints=hints, fields=fields, retry_after_s=wait_s)
    return Reading(status=status, said=message, problem=problem)
