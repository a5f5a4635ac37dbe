"""What the turn of a call has recorded so far, and the answer to a call that was made before."""

from __future__ import annotations

import msgspec

from interlock.engine.stages import Ended, Repeated, Started, World, refused
from interlock.errors import StoreError
from interlock.ports import Query
from interlock.schema import WHATEVER, Reading, Refusal, canonical
from interlock.values import Call, Status, Stored


async def recall(world: World, call: Call, started: Started) -> list[Stored] | Ended | None:
    """The turn's records where anything depends on them, None where nothing does."""
    desk = world.desks.get(call.tool)
    if desk is None or (world.repeats == "allow" and not desk.rules.needs_turn):
        return None
    try:
        return [record async for record in world.store.records(Query(turn=call.turn))]
    except StoreError as error:
        reading = refused(Status.FAILED, "store_unavailable", str(error))
        return Ended(call=call, started=started, tool=desk.tool, reading=reading)


async def answer(world: World, repeated: Repeated) -> Ended | None:
    """The recorded answer; None if its payload was deleted, so that a read is simply made again."""
    record, content = repeated.record, repeated.record.content()
    value = content.value
    if content.payload:
        try:
            payload = await world.store.payload(record.id)
        except StoreError as error:
            return _failed(repeated, f"the recorded answer cannot be read: {error}")
        if payload is None:
            return None
        try:
            value = msgspec.json.decode(payload)["value"]
            genuine = world.digest(canonical(value, WHATEVER)) == content.value_digest
        except (msgspec.DecodeError, KeyError, TypeError, Refusal):
            genuine = False
        if not genuine:
            return _failed(repeated, f"the payload of record {record.id} is not what was recorded; run audit verify")
    reading = Reading(
        status=Status(record.status),
        value=value,
        text=canonical(value, WHATEVER),
        said=content.said,
        snippets=content.snippets,
        metadata=content.metadata,
        confidence=content.result_confidence,
        sources=content.sources,
    )
    return Ended(
        call=repeated.call,
        started=repeated.started,
        tool=repeated.tool,
        arguments=repeated.arguments,
        verdict=content.verdict,
        reading=reading,
        repeats=record.id,
    )


def _failed(repeated: Repeated, message: str) -> Ended:
    return Ended(
        repeated.call,
        repeated.started,
        refused(Status.FAILED, "store_unavailable", message),
        repeated.tool,
        repeated.arguments,
    )
