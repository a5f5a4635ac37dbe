"""The answer to a question that a turn has asked, read as the value that was wanted: the turn goes on with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from interlock.answers.agent import Agent
from interlock.answers.asked import Asked, UserReply
from interlock.answers.events import AskedBack
from interlock.answers.grounding import Vocabulary, default_vocabulary
from interlock.answers.history import History
from interlock.answers.intents import Classified
from interlock.answers.sessions.asked_back import find_unclear
from interlock.answers.sessions.closed_arguments import ToolArguments, arguments_of
from interlock.answers.sessions.context import SessionContext
from interlock.answers.sessions.references import last_things, settle_row
from interlock.answers.sessions.settled import Settled, bind_settled
from interlock.answers.sessions.utterance import (
    Utterance,
    is_correction,
    is_question,
    read_utterance,
    without_opening,
)
from interlock.engine import ToolBinding
from interlock.errors import NotAllowed
from interlock.models.schema_types import inner_schema, types_of
from interlock.tools import Tool
from interlock.values import Json, Value, shorten

Classify = Callable[[Agent, str], Classified]
_SHORT_NAME = 6
"""Words: an utterance that is no longer may be a name that is not on file."""


class Replying(Value, frozen=True):
    """A turn that has asked, and whoever goes on with it."""

    agent: Agent
    asked: Asked
    history: History
    asks: AskedBack
    bindings: Mapping[str, ToolBinding]
    classified: Classified
    """What the reply would be taken for by itself."""
    context: SessionContext = SessionContext()
    """What the session knows, where it is answered in one."""


def take_reply(replying: Replying, text: str) -> Asked:
    """The turn with what was said; `NotAllowed` if that cannot be what was asked for."""
    found = read_reply(replying, text, sure=True)
    if found is None:
        wanted = " and ".join(name.replace("_", " ") for name in replying.asks.fields)
        raise NotAllowed(f"{shorten(text)!r} does not say {wanted or 'what is asked for'}; say that alone")
    return go_on(replying, found)


def go_on(replying: Replying, reply: UserReply) -> Asked:
    """The turn as it goes on: what was said is settled, and the answer needs what was asked for then."""
    asked, classified = replying.asked, replying.asked.classified
    if reply.requires is not None:
        classified = replace(replying.classified, by="reply", score=1.0)
    settled = (*(s for s in asked.settled if s.tool not in {own.tool for own in reply.settled}), *reply.settled)
    classified = replace(classified, requirement=bind_settled(classified.requirement, settled))
    return replace(asked, classified=classified, settled=settled, reply=reply, said=(*asked.said, reply.text))


def read_reply(replying: Replying, text: str, *, sure: bool) -> UserReply | None:
    """What an utterance says of what was asked; None if it is a question of its own.

    `sure`: whoever says it has named the turn that it answers.
    """
    asks, own = replying.asks, replying.classified
    if asks.intents:
        # A question of its own is one, though it also says what it asks for.
        is_reply = sure or ("?" not in text and len(text.split()) <= _SHORT_NAME)
        is_clear = own.intents and own.clear and not own.chat and is_reply
        return UserReply(text, intents=own.intents, requires=own.requirement) if is_clear else None
    binding = replying.bindings.get(asks.tool)
    if not asks.fields or binding is None:
        return UserReply(text) if sure else None
    reading = _Reading(replying, binding.tool, text)
    if reading.denies:
        return None
    values = reading.values()
    recognised = own.by not in ("default", "caller") and own.clear
    # "Never mind, how is the other one?" is a question, though it names what could be an answer; and whatever says more
    # than that is none either, as "fire Ann Lee today" does.
    if not sure and ((values and reading.has_more) or ((recognised or reading.asks) and not values)):
        return None
    if not values:
        values = reading.as_said(sure=sure)
    if not values:
        return None
    known = reading.arguments.closed
    binds = tuple(name for name, value in values.items() if name in known and value in known[name].values)
    before = next((s for s in replying.asked.settled if s.tool == asks.tool), Settled(tool=asks.tool))
    settled = replace(
        before,
        arguments={**before.arguments, **values},
        binds=tuple(dict.fromkeys((*(name for name in before.binds if name not in values), *binds))),
    )
    return UserReply(text, settled=(settled,))


class _Reading:
    """One utterance, held against the arguments that were asked for."""

    def __init__(self, replying: Replying, tool: Tool, text: str) -> None:
        self._asks, self._text, self._tool = replying.asks, text, tool
        self._vocabulary: Vocabulary = replying.agent.vocabulary or default_vocabulary()
        every = arguments_of(tool, text)
        fields = replying.asks.fields
        closed = {name: argument for name, argument in every.closed.items() if name in fields}
        figures, things = tuple(name for name in every.figures if name in fields), every.things & {*fields}
        self.arguments = ToolArguments(closed, figures, things)
        self._context = replying.context
        self._choices = _choices(replying)
        self._said: Utterance = read_utterance(text, self._narrow(), self._vocabulary, dict.fromkeys(fields))
        schema = tool.manifest()["parameters"]
        self._kinds = {
            name: inner_schema(kind, schema.get("$defs", {})) for name, kind in schema.get("properties", {}).items()
        }

    def _narrow(self) -> ToolArguments:
        """Where several fitted what was said before, one of those is meant."""
        if self._choices is None:
            return self.arguments
        field, values = self._choices
        whole = self.arguments.closed.get(field)
        if whole is None:
            return self.arguments
        few = {value: names for value, names in whole.values.items() if value in values}
        return replace(self.arguments, closed={**self.arguments.closed, field: replace(whole, values=few)})

    @property
    def denies(self) -> bool:
        """Whether it says what is not meant, or that nothing is answered."""
        return self._said.denies

    @property
    def asks(self) -> bool:
        """Whether it is a question, or points at something: whatever it is, it is no name that was not known."""
        said = self._said
        is_more = said.opens and not is_correction(self._text)
        return is_question(self._text) or is_more or said.is_reference or bool(said.units)

    @property
    def has_more(self) -> bool:
        """Whether it says more than the values."""
        return bool(self._said.left) or not self._said.is_short

    def values(self) -> dict[str, Json]:
        """The arguments that are given by it."""
        found: dict[str, Json] = {}
        for name, values in self._said.values.items():
            if self.arguments.closed[name].several:
                found[name] = list(values)
            elif len(values) == 1:
                found[name] = values[0]
        if self._choices is not None and self._said.ordinal is not None and not found:
            field, choices = self._choices
            if -len(choices) <= self._said.ordinal < len(choices):
                found[field] = choices[self._said.ordinal]
        elif not found and not self.has_more:
            found.update(self._spoken_of())
        return {**found, **self._figures(), **self._dates()}

    def _spoken_of(self) -> dict[str, Json]:
        """What the session knows by the words for it: the second one of a list, her."""
        said, asks = self._said, is_question(self._text)
        if said.ordinal is not None or said.other:
            row = settle_row("", said, self._context, self.arguments)
            return {} if row is None else dict(row.arguments)
        if not said.refers or said.is_contrast or said.units or asks:
            return {}
        return dict(next(iter(last_things(self._context, self.arguments)), {}))

    def _figures(self) -> dict[str, Json]:
        said = [claim for claim in self._vocabulary.claims(self._text) if claim.number is not None]
        found: dict[str, Json] = {}
        for name in self.arguments.figures:
            unit = self._vocabulary.units.in_name(name)
            fits = [claim for claim in said if claim.units & unit] or [claim for claim in said if not claim.units]
            if len(fits) != 1 or (len(self.arguments.figures) > 1 and not fits[0].units):
                continue  # nobody knows which figure is for which argument
            number = fits[0].number
            assert number is not None
            whole = number == number.to_integral_value()
            if "number" in types_of(self._kinds[name]):
                found[name] = float(number)
            elif whole:
                found[name] = int(number)
        return found

    def _dates(self) -> dict[str, Json]:
        wanted = [name for name in self._asks.fields if self._kinds.get(name, {}).get("format") == "date"]
        days = [claim.date for claim in self._vocabulary.claims(self._text) if None not in claim.date]
        if len(wanted) != 1 or len(days) != 1 or days[0] == (None, None, None):
            return {}
        return {wanted[0]: "-".join(f"{part:02d}" for part in days[0] if part is not None)}

    def as_said(self, *, sure: bool) -> dict[str, Json]:
        """The words themselves, for a name or a text: whether there is such a thing, the tool says."""
        words = self._text.strip()
        name = self._asks.fields[0]
        kind = self._kinds.get(name, {})
        is_text = kind.get("type") == "string" and "format" not in kind
        is_name = name in self.arguments.closed or name in self._tool.known_values
        if not words or not (is_name or is_text) or (is_name and self.asks):
            return {}
        if is_name and is_correction(words):
            words = without_opening(words)
        return {name: words} if sure or len(words.split()) <= _SHORT_NAME else {}


def _choices(replying: Replying) -> tuple[str, tuple[str, ...]] | None:
    """The values between which the last call could not choose, in the order in which they were named."""
    made = [call for call in replying.history.calls if call.tool == replying.asks.tool]
    unclear = find_unclear(made[-1], replying.bindings) if made else None
    return None if unclear is None or not unclear.several else (unclear.field, unclear.fits)
