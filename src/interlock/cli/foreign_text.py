"""What a person sees of where the arguments of a call came from: the places, and the text that a value stands in."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from interlock.cli.output import console, sanitize
from interlock.operations.ledger_writer import record_with_payload
from interlock.policy.provenance.leaves import texts_of
from interlock.ports import Query, Store
from interlock.records import Stored
from interlock.tools import MARK
from interlock.values import Json, Value, shorten

_AROUND = 160
_MOST = 400


class ForeignText(Value, frozen=True):
    """A result that a value of a call stands in, as its record shows it: what is redacted there is redacted here."""

    record: int
    tool: str
    arguments: Json
    text: str


async def read_foreign_texts(store: Store, record: Stored | None) -> tuple[ForeignText, ...]:
    """The results by which values of a call are explained that come from nowhere good."""
    verdict = None if record is None else record.content().verdict
    if record is None or verdict is None:
        return ()
    values = texts_of(record.content().arguments)
    found = []
    for number in verdict.sources:
        source, _whole = await record_with_payload(store, number)
        if source is not None:
            content = source.content()
            text = content.value if isinstance(content.value, str) else msgspec.json.encode(content.value).decode()
            found.append(ForeignText(number, source.tool, content.arguments, _excerpt(text, values)))
    return tuple(found)


async def read_question(store: Store, turn: str | None, record: Stored | None, whole: Mapping[str, Json]) -> str:
    """What the user has said, as far as that is written down; nothing where the call holds what is redacted."""
    if record is None or MARK in str(record.body):
        return ""
    question = whole.get("question")
    if question is None and turn is not None:
        async for event in store.records(Query(turn=turn)):
            if event.kind == "turn" and event.status == "opened":
                _event, opened = await record_with_payload(store, event.id)
                return shorten(str(opened.get("question") or ""), _MOST)
    return shorten(str(question or ""), _MOST)


def print_origins(record: Stored | None, texts: tuple[ForeignText, ...]) -> None:
    """Where each argument came from, and the text beside it."""
    verdict = None if record is None else record.content().verdict
    out = console()
    for field, where in ({} if verdict is None else verdict.origins).items():
        out.print(f"[bold]{'origin':<12}[/] {sanitize(field)}: {sanitize(where)}")
    for text in texts:
        asked = sanitize(msgspec.json.encode(text.arguments).decode())
        out.print(f"[bold]{'foreign text':<12}[/] [dim]record {text.record}, {sanitize(text.tool)} {asked}[/]")
        out.print(f"  [yellow]{sanitize(text.text, lines=True)}[/]")


def _excerpt(text: str, values: list[str]) -> str:
    """A text around the first of these values that stands in it."""
    lowered = text.casefold()
    places = [lowered.find(value.casefold()) for value in values]
    first = min((place for place in places if place >= 0), default=-1)
    if first < 0 or len(text) <= _MOST:
        return shorten(text, _MOST)
    start, end = max(0, first - _AROUND), min(len(text), first + _AROUND)
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
