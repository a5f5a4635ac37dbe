"""What a record, or what lies beside it, holds of a call: its value and its arguments, where they are as they were."""

from __future__ import annotations

import msgspec

from interlock.canonical import WHATEVER, Refusal, canonical
from interlock.engine.context import EngineContext
from interlock.errors import StoreError
from interlock.records import Content, Stored
from interlock.values import Json


class NoValue(msgspec.Struct, frozen=True):
    """There is a record, and what lay beside it is gone, cannot be read, or is not what was recorded."""

    why: str
    is_deleted: bool = False


class Held(msgspec.Struct, frozen=True):
    """What a record, or what lies beside it, holds as its value."""

    value: Json


async def recorded_value(ctx: EngineContext, record: Stored, content: Content) -> Held | NoValue:
    """What a call was answered, or why that cannot be given."""
    if not content.payload:
        return Held(content.value)
    try:
        ctx.at("answer.payload")
        payload = await ctx.store.payload(record.id)
    except StoreError as error:
        return NoValue(f"the recorded answer cannot be read: {error}")
    if payload is None:
        return NoValue("its answer has been deleted", is_deleted=True)
    try:
        value = msgspec.json.decode(payload)["value"]
        if ctx.digest(canonical(value, WHATEVER)) == content.value_digest:
            return Held(value)
    except (msgspec.DecodeError, KeyError, TypeError, Refusal, RecursionError):
        pass
    return NoValue(f"the payload of record {record.id} is not what was recorded; run audit verify")


async def recorded_arguments(ctx: EngineContext, record: Stored, content: Content) -> Json:
    """The arguments of a call; None if they were deleted, cannot be read, or are not what was recorded."""
    if content.arguments_digest is None:
        return content.arguments
    ctx.at("answer.arguments")
    payload = await ctx.store.payload(record.id)
    if payload is None:
        return None
    try:
        arguments: Json = msgspec.json.decode(payload)["arguments"]
        genuine = ctx.digest(canonical(arguments, WHATEVER)) == content.arguments_digest
    except (msgspec.DecodeError, KeyError, TypeError, Refusal, RecursionError):
        return None
    return arguments if genuine else None
