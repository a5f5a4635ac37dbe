"""How sure a rule makes one: by how often it was right, where that was measured and where people have decided.

A rule is known by its evidence tag. What a model had a hand in has the model's name behind it (`analyst:outlier@NAME`):
its record is its own, and one that nobody has measured or confirmed yet is worth a coin's toss, so a person is asked.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec

from interlock import Runtime
from interlock.operations import ShadowComparison
from interlock.state import Ticket, TicketState
from interlock_catalog.checks.issues import ROLES

CALIBRATION = Path(__file__).with_name("calibration.toml")
"""Written by `make bench-catalog`: what each rule did to planted faults, other ones than it is judged by."""


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """How often a rule was right, and how often not."""

    right: int = 0
    wrong: int = 0

    @property
    def sure(self) -> float:
        """The expected share of right ones (Jeffreys' prior: 0.5 for none seen, 0.95 for nine of nine)."""
        return round((self.right + 0.5) / (self.right + self.wrong + 1), 3)

    def __add__(self, other: Seen) -> Seen:
        return Seen(self.right + other.right, self.wrong + other.wrong)


class Trust(msgspec.Struct, frozen=True):
    """The record of every rule."""

    rules: dict[str, Seen] = {}
    unseen: Seen = Seen()
    """The record of a rule that has none."""

    def of(self, *rules: str) -> float:
        """How sure these rules together make one: as sure as the weakest."""
        return min((self.rules.get(rule, self.unseen).sure for rule in rules), default=self.unseen.sure)

    def adding(self, more: Mapping[str, Seen]) -> Trust:
        """With what was seen besides."""
        names = sorted({*self.rules, *more})
        rules = {name: self.rules.get(name, Seen()) + more.get(name, Seen()) for name in names}
        return Trust(rules, self.unseen)


def rules_of(evidence: Iterable[str]) -> list[str]:
    """The tags that answer for a change: those of the model, if it had a hand in it, for then it was its choice."""
    tags = [tag for tag in evidence if not tag.startswith("left:")]  # why a draft is not released is no rule
    return [tag for tag in tags if "@" in tag] or tags


@cache
def measured() -> Trust:
    """What was measured on planted faults."""
    return read(CALIBRATION)


def read(file: Path) -> Trust:
    """A table of rules with how often each was right and wrong."""
    return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Trust)


REMEMBERED_S = 90 * 86_400
"""For how long people's decisions count."""
_DECIDED = {TicketState.APPROVED: Seen(1, 0), TicketState.SPENT: Seen(1, 0), TicketState.DENIED: Seen(0, 1)}
Told = tuple[tuple[str, ...], Seen]
"""Evidence tags, and what a decision says of them."""


async def decided(runtime: Runtime) -> dict[str, Seen]:
    """What people have made of each rule's proposals: tickets they decided, and shadow plans they went along with.

    What the autopilot later did itself says nothing, and neither does what was taken back.
    """
    since_us = round((time.time() - REMEMBERED_S) * 1e6)
    found: dict[str, Seen] = {}
    for evidence, seen in [*await _tickets(runtime, since_us), *await _shadows(runtime, since_us)]:
        for rule in rules_of(evidence):
            found[rule] = found.get(rule, Seen()) + seen
    return found


async def _tickets(runtime: Runtime, since_us: int) -> list[Told]:
    """The last decision about each operation; a question that was withdrawn by whoever asked it is none."""
    last: dict[str, Ticket] = {}
    for ticket in sorted(await runtime.store.tickets(), key=lambda ticket: ticket.decided_us):
        decided = ticket.kind == "change" and ticket.state in _DECIDED and ticket.decided_us >= since_us
        if decided and ticket.decided_by not in ("", ticket.asked_by):
            last[ticket.call] = ticket
    asked, found = {ticket.id: ticket for ticket in last.values()}, list[Told]()
    for turn in dict.fromkeys(ticket.turn for ticket in last.values()):
        async for entry in runtime.operations.journal(turn=turn):
            if entry.ticket in asked:
                state = asked.pop(entry.ticket).state
                found += [(entry.evidence, _DECIDED[state])] if entry.status != "undone" else []
    return found


async def _shadows(runtime: Runtime, since_us: int) -> list[Told]:
    """The last plan for the same documents on the same evidence, if people have done it, or something else there."""
    plans: dict[int, list[ShadowComparison]] = {}
    for item in await runtime.operations.shadow(since_us=since_us):
        plans.setdefault(item.record, []).append(item)
    last = {(items[0].tool, items[0].evidence, *(item.key for item in items)): items for items in plans.values()}
    found = list[Told]()
    for items in last.values():
        verdicts = {item.verdict for item in items}
        if any(by_itself(item.with_whom) for item in items):
            continue
        if "differs" in verdicts or verdicts == {"agrees"}:
            found.append((items[0].evidence, Seen(0, 1) if "differs" in verdicts else Seen(1, 0)))
    return found


def by_itself(whom: str) -> bool:
    """Whether a shadow plan was held against a change of the autopilot's own."""
    return whom.partition(" (")[0] in ROLES
