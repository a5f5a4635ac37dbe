"""Which thing a place in a list names: the second one is the second row of the last list that a tool returned."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.sessions.closed_arguments import ClosedArgument, ToolArguments
from interlock.answers.sessions.context import ReturnedLists, SessionContext
from interlock.answers.sessions.utterance import Utterance
from interlock.tools import normalize
from interlock.values import Json

Thing = tuple[str, str]
"""An argument, and the value that it has for one thing."""


def things_of(arguments: ToolArguments) -> list[ClosedArgument]:
    """The arguments that name a thing, and are no choice of the contract's."""
    return [argument for argument in arguments.closed.values() if not argument.is_choice]


def named_row(
    said: Utterance, context: SessionContext, arguments: ToolArguments, before: dict[str, Json]
) -> Thing | None:
    """What "the second one" or "the other one" is for a tool; None if that cannot be told.

    `before`: the arguments of the call that the question goes on from.
    """
    rows = _last_rows(context.returned, arguments)
    if said.other:
        rows = [row for row in rows if before.get(row[0]) != row[1]]
        return rows[0] if len(rows) == 1 else None
    place = said.ordinal
    return rows[place] if place is not None and -len(rows) <= place < len(rows) else None


def _last_rows(returned: Sequence[ReturnedLists], arguments: ToolArguments) -> list[Thing]:
    """The things of the last list; none where it has none that the tool knows, or nobody knows which list is meant."""
    for result in returned:
        read = [[_row_thing(row, arguments) for row in rows] for rows in result.lists]
        known = [things for things in read if any(thing is not None for thing in things)]
        if known or result.is_list:
            # The third of five rows is another one if a row cannot be read.
            whole = [thing for thing in known[0] if thing is not None] if len(known) == 1 else []
            return whole if known and len(whole) == len(known[0]) else []
        # What a result about one thing lists besides (its visits, its tags) is not what was listed.
    return []


def _row_thing(row: Json, arguments: ToolArguments) -> Thing | None:
    """The argument and value that a row of a result stands for."""
    fields = row if isinstance(row, dict) else {"": row}
    for name in sorted(arguments.things | {argument.name for argument in things_of(arguments)}):
        value, known = fields.get(name), arguments.closed.get(name)
        # Where a function of the application's knows the names, the call itself says whether there is such a thing.
        if isinstance(value, str) and value and (known is None or value in known.values):
            return name, value
    names = arguments.names()
    texts = [fields[key] for key in ("id", "name", "") if isinstance(fields.get(key), str)]
    found = {
        item for text in texts for item in names.get(normalize(text), ()) if not arguments.closed[item[0]].is_choice
    }
    return found.pop() if len(found) == 1 else None
