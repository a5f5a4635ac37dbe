"""Digests of claims and tickets as they were opened: they stand in the ledger, and show whether a row was edited."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from interlock.canonical import WHATEVER, canonical, encode_canonical
from interlock.state import Claimed, Ticket, TicketState
from interlock.transitions import OpenClaim

Digest = Callable[[bytes], str]
_FRESH = {
    "state": TicketState.OPEN,
    "escalated": False,
    "decided_by": "",
    "decided_us": 0,
    "reason": "",
    "record": None,
    "approvals": (),
    "reminded_us": 0,
}


def ticket_digest(ticket: Ticket, digest: Digest) -> str:
    """The digest of a ticket as it was opened, whatever became of it: it stands in the record that opened it."""
    opened = msgspec.structs.replace(ticket, **_FRESH)
    return digest(canonical(msgspec.to_builtins(opened), WHATEVER))


def call_id_name(digest: Digest, *, tool: str, turn: str | None, actor: str, call: str) -> str:
    """The name of the row that stands for a caller's own id, so that it is used for one change.

    In a turn an id is its actor's, whatever tool it is used for; elsewhere it is the tool's, whoever calls.
    """
    used = [tool, "call", None, call] if turn is None else ["call", turn, actor, call]
    return digest(encode_canonical(used))


def undo_name(digest: Digest, undoes: str) -> str:
    """The name of the claim of what takes a change back, or of the row that says which claim that is."""
    return digest(canonical(["undo", undoes], WHATEVER))


def claim_digest(claim: OpenClaim | Claimed, digest: Digest) -> str:
    """The digest of a claim as it was opened, whatever became of it: it stands in its intent."""
    name = claim.first_name if isinstance(claim, Claimed) else claim.name
    who = [claim.request, claim.holder, claim.call, claim.tool, claim.turn, claim.run]
    return digest(encode_canonical([name, claim.generation, claim.keys, *who]))
