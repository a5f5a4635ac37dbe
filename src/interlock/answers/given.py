"""Evidence that was handed in with a question: chunks of text, and records of earlier calls."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from interlock.answers.events import Delegated, event_of
from interlock.answers.grounding import Source
from interlock.answers.history import source_of
from interlock.errors import ConfigError
from interlock.ports import Query, Store


async def _agents_asked_in(store: Store, turn: str | None) -> set[str]:
    """The agents that a turn has delegated to: what their calls returned there is prose of a model."""
    if turn is None:
        return set()
    events = [event_of(record) async for record in store.records(Query(turn=turn))]
    return {event.agent for event in events if isinstance(event, Delegated)}


async def given_sources(store: Store, given: Sequence[Source | int], here: str | None = None) -> tuple[Source, ...]:
    """Evidence that was handed in: chunks as they are, records by their numbers, and of when they are.

    `here`: the turn that handed the same question over. What was found there is as new as what is found now.
    """
    found = []
    for item in given:
        if isinstance(item, Source):
            found.append(item)
            continue
        records = [record async for record in store.records(Query(after=item - 1, until=item))]
        # Records of turns hold drafts and questions: what a model wrote once must not become its own evidence.
        if not records or records[0].kind != "call":
            raise ConfigError(f"there is no record {item} of a call that an answer could rest on")
        asked = await _agents_asked_in(store, records[0].turn)
        source = await source_of(store, records[0], records[0].content(), is_prose=records[0].tool in asked)
        is_here = here is not None and records[0].turn == here
        found.append(source if is_here else replace(source, at_us=records[0].at_us))
    return tuple(found)
