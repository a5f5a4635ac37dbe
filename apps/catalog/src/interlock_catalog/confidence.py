"""Confidence: how often a rule has been right, where that was measured and where people have decided.

A rule is known by its evidence. What a model had a hand in names the model (`analyst:outlier@NAME`): a model's record
is its own, and one that nobody has measured or confirmed yet has a confidence of 0.5, so that a person
is asked.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec

from interlock import Runtime
from interlock.operations import Entry, ShadowComparison
from interlock.state import ChangeFilter, ClaimState, Ticket, TicketState
from interlock_catalog.checks.issues import ROLES
from interlock_catalog.document_keys import RESOURCE
from interlock_catalog.evidence import Evidence, find_accountable

CALIBRATION = Path(__file__).with_name("calibration.toml")
"""Written by `make bench-catalog`: what each rule did to planted faults, other ones than it is judged by."""
DECISION_WINDOW_S = 90 * 86_400
"""How long people's decisions count: the catalog, the model and the people change."""
_UNDO = f"undo.{RESOURCE}"
"""The tool by which changes are taken back."""


class Tally(msgspec.Struct, frozen=True, array_like=True):
    """How often a rule was right, and how often wrong."""

    right: int = 0
    wrong: int = 0

    @property
    def confidence(self) -> float:
        """The expected share of right ones (Jeffreys' prior: 0.5 for none seen, 0.95 for nine of nine)."""
        return round((self.right + 0.5) / (self.right + self.wrong + 1), 3)

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.right + other.right, self.wrong + other.wrong)


_RIGHT, _WRONG = Tally(1, 0), Tally(0, 1)


class Calibration(msgspec.Struct, frozen=True):
    """The tally of every rule."""

    rules: dict[str, Tally] = {}
    """By the text of their evidence."""
    unseen: Tally = Tally()
    """For a rule that has none."""

    def confidence_of(self, *rules: Evidence) -> float:
        """The confidence in a change that rests on these rules: that of the weakest."""
        tallies = [self.rules.get(rule.text, self.unseen) for rule in rules] or [self.unseen]
        return min(tally.confidence for tally in tallies)

    def add(self, more: Mapping[str, Tally]) -> Calibration:
        """The same with further tallies added to it."""
        names = sorted({*self.rules, *more})
        rules = {name: self.rules.get(name, Tally()) + more.get(name, Tally()) for name in names}
        return Calibration(rules, self.unseen)


@cache
def shipped_calibration() -> Calibration:
    """What was measured on planted faults."""
    return read_calibration(CALIBRATION)


def read_calibration(file: Path) -> Calibration:
    """A table of rules with how often each was right and wrong."""
    return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Calibration)


class _Decision(msgspec.Struct, frozen=True):
    """What people made of one proposal."""

    evidence: tuple[Evidence, ...]
    tally: Tally


# A ticket is spent when what it approved has been made: that was a yes, too.
_TALLY_OF = {TicketState.APPROVED: _RIGHT, TicketState.SPENT: _RIGHT, TicketState.DENIED: _WRONG}


async def tally_decisions(runtime: Runtime) -> dict[str, Tally]:
    """What people have made of each rule's proposals: tickets that they decided, shadow plans that they agreed with,
    changes that they took back one by one.

    What the autopilot did itself says nothing, and neither does an undo of several changes: it does not say which.
    """
    since_us = round((time.time() - DECISION_WINDOW_S) * 1e6)
    found: dict[str, Tally] = {}
    decisions = [
        *await _ticket_decisions(runtime, since_us),
        *await _shadow_decisions(runtime, since_us),
        *await _undo_decisions(runtime, since_us),
    ]
    for decision in decisions:
        for rule in find_accountable(decision.evidence):
            found[rule.text] = found.get(rule.text, Tally()) + decision.tally
    return found


async def _ticket_decisions(runtime: Runtime, since_us: int) -> list[_Decision]:
    """The last decision about each operation; a ticket that was withdrawn by whoever opened it is none."""
    last: dict[str, Ticket] = {}
    # In the order of decisions, so that the last one about an operation replaces those before it.
    for ticket in sorted(await runtime.store.tickets(), key=lambda ticket: ticket.decided_us):
        is_decided = ticket.kind == "change" and ticket.state in _TALLY_OF and ticket.decided_us >= since_us
        if is_decided and ticket.decided_by not in ("", ticket.asked_by):
            last[ticket.call] = ticket
    tickets, found = {ticket.id: ticket for ticket in last.values()}, list[_Decision]()
    for turn in dict.fromkeys(ticket.turn for ticket in last.values()):
        async for entry in runtime.operations.journal(turn=turn):
            if entry.ticket in tickets:
                tally = _TALLY_OF[tickets.pop(entry.ticket).state]
                found += [_Decision(_parse_all(entry.evidence), tally)] if entry.status != "undone" else []
    return found


async def _undo_decisions(runtime: Runtime, since_us: int) -> list[_Decision]:
    """Changes of the autopilot that an undo took back which was of nothing else, and that are still taken back."""
    claims = await runtime.store.claims(ChangeFilter())
    # A generation that another one has replaced was made again since.
    standing = [claim for claim in claims if claim.state is ClaimState.UNDONE and not claim.is_superseded]
    undone = {claim.record or claim.intent for claim in standing}
    # Each undo is a turn of its own.
    turns = dict.fromkeys(claim.turn for claim in claims if claim.tool == _UNDO and claim.at_us >= since_us)
    found = list[_Decision]()
    for turn in (turn for turn in turns if turn is not None):
        taken = [entry async for entry in runtime.operations.journal(turn=turn)]
        record = _record_of_undo(taken[0]) if len(taken) == 1 else None
        if record is None or record not in undone:
            continue
        async for entry in runtime.operations.journal(record=record):
            found += [_Decision(_parse_all(entry.evidence), _WRONG)] if entry.actor in ROLES else []
    return found


def _record_of_undo(entry: Entry) -> int | None:
    """The change that it took back; None if it did not, or if what it was asked has been deleted since."""
    arguments = entry.arguments if isinstance(entry.arguments, dict) else {}
    record = arguments.get("record")
    return record if entry.status == "done" and isinstance(record, int) else None


def _parse_all(evidence: Iterable[str]) -> tuple[Evidence, ...]:
    return tuple(Evidence.parse(text) for text in evidence)


async def _shadow_decisions(runtime: Runtime, since_us: int) -> list[_Decision]:
    """The last plan for the same documents on the same evidence, if people have done it, or something else there.

    Only the last, as the same plan is made night after night until somebody acts on it: that is one decision.
    """
    plans: dict[int, list[ShadowComparison]] = {}
    for item in await runtime.operations.shadow(since_us=since_us):
        plans.setdefault(item.record, []).append(item)
    last = {(items[0].tool, items[0].evidence, *(item.key for item in items)): items for items in plans.values()}
    found = list[_Decision]()
    for items in last.values():
        verdicts = {item.verdict for item in items}
        if any(item.by in ROLES for item in items):
            continue
        # One document done otherwise speaks against the plan; half of it done is no decision yet.
        if "differs" in verdicts or verdicts == {"agrees"}:
            found.append(_Decision(_parse_all(items[0].evidence), _WRONG if "differs" in verdicts else _RIGHT))
    return found
