"""Plan sets as they are stored: planned once, and made by the actor who applied them first."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlock.engine import EngineContext
from interlock.errors import NotAllowed
from interlock.operations.ledger_writer import LedgerEntry, LedgerWriter, record_with_payload
from interlock.operations.undone_steps import undone_calls, undone_message
from interlock.ports import Query
from interlock.values import Json


class Change(msgspec.Struct, frozen=True):
    """One change of a set: a tool and its arguments."""

    tool: str
    arguments: dict[str, Json]
    turn: str | None = None
    """The turn in which its values were found: they keep their labels."""


class Seen(msgspec.Struct, frozen=True):
    """A key as it was seen."""

    digest: str | None
    """Of its state; None: as it was planned."""
    version: str | None = None
    """The one that its resource gives it, where that is known."""

    def is_same(self, other: Seen) -> bool:
        """Whether nothing says that it was seen otherwise."""
        return self.digest == other.digest and (None in (self.version, other.version) or self.version == other.version)


class PlannedChange(msgspec.Struct, frozen=True):
    """One change of a set as it was planned: what it was looked at with."""

    tool: str
    arguments: dict[str, Json]
    digest: str
    keys: tuple[str, ...]
    versions: tuple[str, ...]
    diff: str | None = None
    notes: tuple[str, ...] = ()
    """What else is to be known of it beforehand: that a person will be asked, what the policy makes of its arguments,
    or on what it could not be planned."""
    found: dict[str, Seen] = {}
    """What it was planned on, by key; of a whole resource, by each of its keys."""
    leaves: tuple[str, ...] = ()
    """Digests of the states that it is to leave; empty where its tool cannot say."""
    turn: str | None = None
    """The turn in which its values were found."""


def turn_of(name: str) -> str:
    """The turn in which a set is made: its changes are the same changes however often the set is run."""
    return f"set:{name}"


class _StoredSet(msgspec.Struct, frozen=True):
    """A set as it was stored."""

    changes: list[PlannedChange]
    actor: str | None
    """Who applied it first."""


async def _stored_set(ctx: EngineContext, name: str) -> _StoredSet | None:
    """The set of that name, or None; `NotAllowed` if there was one that cannot be read any more."""
    ctx.at("plan_set.read")
    for number in [r.id async for r in ctx.store.records(Query(turn=turn_of(name))) if r.kind == "plan_set"]:
        record, whole = await record_with_payload(ctx.store, number)
        what = None if record is None else record.content().arguments
        try:
            actor = what.get("actor") if isinstance(what, dict) else None
            return _StoredSet(msgspec.convert(whole.get("set"), list[PlannedChange]), actor)
        except msgspec.ValidationError:  # what lay beside the record was deleted, or is not what was recorded
            raise NotAllowed(
                f"the changes of the set {name!r} (record {number}) were deleted or cannot be read, so nobody can tell"
                f" whether these are the same; see what it made (interlock audit show --turn {turn_of(name)}), and give"
                " what is left another name"
            ) from None
    return None


async def stored_as(
    ctx: EngineContext, name: str, changes: Sequence[Change | PlannedChange], actor: str
) -> list[PlannedChange] | None:
    """The stored set of that name with these changes, or None; `NotAllowed` if it has others, or is another actor's.

    Which calls are the same is told by their actor too, so that whoever went on with another's set would make again
    what that one has made.
    """
    before = await _stored_set(ctx, name)
    if before is None:
        return None
    if [(item.tool, item.arguments) for item in before.changes] != [(item.tool, item.arguments) for item in changes]:
        raise NotAllowed(f"there is another set called {name!r}; give this one a name of its own")
    if before.actor not in (None, actor):
        raise NotAllowed(
            f"the set {name!r} was begun by {before.actor!r}, and only that actor goes on with it: another one would"
            f" make again what was made; go on as {before.actor!r} (--actor), or plan what is left as a set with"
            " another name"
        )
    return before.changes


async def note_undone(ctx: EngineContext, name: str, stored: Sequence[PlannedChange]) -> list[PlannedChange]:
    """A stored set, with a note beside each of its changes that was taken back: there it would stop."""
    turn, found = turn_of(name), list(stored)
    undone = await undone_calls(ctx, turn)
    for place, item in enumerate(stored):
        claim = undone.get(call_id_of(name, place))
        if claim is not None:
            found[place] = msgspec.structs.replace(item, notes=(*item.notes, undone_message(claim, turn, place)))
    return found


def call_id_of(name: str, place: int) -> str:
    """The id of the call of one change of a set."""
    return f"{turn_of(name)}.{place}"


async def stored_or_store(
    ctx: EngineContext, writer: LedgerWriter, name: str, planned: Sequence[PlannedChange], actor: str
) -> Sequence[PlannedChange]:
    """The set of that name as it was first stored, which is this one if there was none."""
    before = await stored_as(ctx, name, planned, actor)
    if before is None:
        what: dict[str, Json] = {"name": name, "actor": actor, "changes": len(planned), "state": "stored"}
        held = {"set": msgspec.to_builtins(list(planned))}
        await writer.commit(LedgerEntry("plan_set", "stored", what, held, turn_of(name)))
        return planned
    return before
