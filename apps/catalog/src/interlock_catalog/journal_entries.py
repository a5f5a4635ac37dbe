"""Entries of the journal, each change once, and the changes that a person took back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import msgspec

from interlock import Runtime
from interlock.operations import Entry
from interlock.state import ChangeFilter, ClaimState

_UNDONE = "undone"


def latest_entries(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Each change once, as it stands: what was tried again counts as it came out in the end."""
    # The journal tells what was made before what was only proposed, so the first entry of a change is its outcome.
    first: dict[bytes, Entry] = {}
    for entry in entries:
        first.setdefault(_identify(entry), entry)
    yield from first.values()


def _identify(entry: Entry) -> bytes:
    """What is denied before it is planned has no key of its own: there, what it asked for tells it from others."""
    known_by: Any = entry.idempotency_key or [entry.op_type, entry.actor, entry.arguments]
    return msgspec.json.encode(known_by, order="deterministic")


class UndoneChange(msgspec.Struct, frozen=True):
    """A change that a person took back: by which call it was made, and the documents that it began with."""

    call: str
    before: dict[str, Any] | None
    """None where these have been deleted: then the call alone tells."""


async def find_undone(runtime: Runtime) -> AsyncIterator[UndoneChange]:
    """Every change that was taken back, of all runs."""
    undone = [claim for claim in await runtime.store.claims(ChangeFilter()) if claim.state is ClaimState.UNDONE]
    calls = {claim.record or claim.intent: claim.call for claim in undone}
    for turn in dict.fromkeys(claim.turn for claim in undone):
        if turn is None:
            continue
        async for entry in runtime.operations.journal(turn=turn):
            if entry.status == _UNDONE and entry.record in calls:
                yield UndoneChange(calls[entry.record], entry.before)
