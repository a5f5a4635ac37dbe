"""What happens to a turn, as a closed union: each event is one record of the turn's own, written and read as such."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.answers.ladder import TurnOutcome
from interlock.answers.requirements import NOTHING, AllOf, AnyOf, Need
from interlock.answers.result import TurnStatus
from interlock.answers.wishes import Withheld
from interlock.models.messages import Usage
from interlock.operations.ledger_writer import LedgerEntry, LedgerWriter
from interlock.records import Stored
from interlock.transitions import Transition
from interlock.values import Budget, Json, Mode, Value

TURN = "interlock.turn"
"""What stands in the tool column of a turn's own records."""
_KIND = "turn"


class Opened(Value, frozen=True, tag_field="event", tag="opened"):
    """A question was asked; what its answer needs."""

    agent: str
    intents: tuple[str, ...] = ()
    by: str = "default"
    """What recognised it: keywords, semantic, both, caller or default."""
    certainty: float = 0.0
    requires: Need | AllOf | AnyOf = NOTHING
    enforcement: str = "enforce"
    most_model_calls: int = 0
    parent: str | None = None
    root_turn: str | None = None
    on_behalf_of: str | None = None
    workflow: str | None = None
    mode: Mode | None = None
    run: str | None = None
    carried: Need | AllOf | AnyOf = NOTHING
    """What the agent that handed the question over had to call for it."""
    carried_from: str | None = None
    """That agent's turn."""
    session: str | None = None
    """The conversation that it belongs to."""
    earlier_turns: tuple[str, ...] = ()
    """Its turns before this one: what the user has said there, and what tools have returned, is known here, too."""
    units: tuple[str, ...] = ()
    """The units in which it is to be answered, as the user has called them in this turn or in one it goes on from."""
    withheld: tuple[Withheld, ...] = ()
    """The tools that may not be called in it, nor in turns that it opens, and why."""
    budgets: tuple[Budget, ...] = ()
    """What its calls spend beside the budgets of the policy: of its way of working, and of that of the turn above."""


class Joined(Value, frozen=True, tag_field="event", tag="joined"):
    """A turn was opened in a session: one of the session's own records, by which its turns are found again."""

    turn: str
    session: str


class AskedBack(Value, frozen=True):
    """What a turn has asked whoever asked: which arguments of which tool, or what is wanted at all."""

    tool: str = ""
    fields: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    """What it could be that is asked for, where that was not clear."""


class Replied(Value, frozen=True, tag_field="event", tag="replied"):
    """What a turn has asked was answered; the words and the values lie beside the record."""

    tool: str = ""
    fields: tuple[str, ...] = ()
    """The arguments that were given by it."""
    intents: tuple[str, ...] = ()
    requires: Need | AllOf | AnyOf | None = None
    """What the answer needs, where the reply says what is wanted."""


class Reopened(Value, frozen=True, tag_field="event", tag="reopened"):
    """A turn that waited is gone on with."""

    agent: str
    withheld: tuple[Withheld, ...] = ()
    """The tools that may not be called in it, with what was said since."""


class Retried(Value, frozen=True, tag_field="event", tag="retried"):
    """A draft went back to the model: a tool was missing, or it said what nothing supports."""

    called: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unsupported: int = 0
    usage: Usage = Usage()
    model_calls: int = 0

    @property
    def corrects(self) -> bool:
        """Whether every tool had succeeded, and only the words had to be put right."""
        return not self.missing


class Forced(Value, frozen=True, tag_field="event", tag="forced"):
    """The model was made to call a tool."""

    tool: str
    called: tuple[str, ...] = ()
    usage: Usage = Usage()
    model_calls: int = 0


class Judged(Value, frozen=True, tag_field="event", tag="judged"):
    """A second model was asked whether the results entail a draft that the rules would have let out."""

    by: str
    sentences: int
    disputed: int = 0
    """How many of them it did not find in the results."""
    usage: Usage = Usage()
    """What asking it has cost."""


class Delegated(Value, frozen=True, tag_field="event", tag="delegated"):
    """Another agent was asked, in a turn of its own."""

    child: str
    agent: str


class Planned(Value, frozen=True, tag_field="event", tag="planned"):
    """The model wrote the plan that its way of working wants."""

    steps: int = 0
    questions: tuple[str, ...] = ()
    """Its sub-questions, each as it was written."""
    usage: Usage = Usage()
    model_calls: int = 0


class Talked(Value, frozen=True, tag_field="event", tag="talked"):
    """The model spoke where a plan or a call was due; the words lie beside the record."""

    usage: Usage = Usage()
    model_calls: int = 0


class Sourced(Value, frozen=True, tag_field="event", tag="sourced"):
    """A result counts as a source."""

    record: int
    """Of the call that returned it."""
    tool: str
    name: str
    """What the tool calls it: its address."""
    site: str
    """Whose it is: the domain that somebody registered."""
    digest: str
    """Of the words that it says."""
    questions: tuple[int, ...] = ()
    """The sub-questions of the plan that it speaks to, by their numbers from 1."""


class PhaseBegun(Value, frozen=True, tag_field="event", tag="phase"):
    """The work has come to its next phase."""

    name: str
    why: str = ""
    """Why the one before was left early."""


class Noted(Value, frozen=True, tag_field="event", tag="noted"):
    """Something that the answer has to say, whatever the model writes."""

    text: str


class Offered(Value, frozen=True, tag_field="event", tag="offered"):
    """From here on only these of the agent's tools may be called."""

    tools: tuple[str, ...]


class Finished(Value, frozen=True, tag_field="event", tag="finished"):
    """The turn has a result; one that waits for a person may be reopened."""

    agent: str
    outcome: TurnOutcome
    status: TurnStatus
    verified: bool
    attempts: int = 1
    model_calls: int = 0
    overhead_us: int = 0
    usage: Usage = Usage()
    tools: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    reason: str = ""
    ticket: str | None = None
    ticket_digest: str = ""
    """Of the ticket that it opened."""
    enforced: bool = True
    required: bool = True
    intents: tuple[str, ...] = ()
    asks: AskedBack | None = None
    """What was asked back, where the turn ended so."""


class Abandoned(Value, frozen=True, tag_field="event", tag="abandoned"):
    """Nobody got an answer."""

    reason: str
    usage: Usage = Usage()
    model_calls: int = 0


class Reviewed(Value, frozen=True, tag_field="event", tag="reviewed"):
    """A reviewer released, corrected or rejected the answer."""

    status: TurnStatus
    outcome: TurnOutcome
    agent: str
    ticket: str
    reason: str = ""


TurnEvent = (
    Opened
    | Joined
    | Reopened
    | Replied
    | Retried
    | Forced
    | Judged
    | Delegated
    | Planned
    | Talked
    | Sourced
    | PhaseBegun
    | Noted
    | Offered
    | Finished
    | Abandoned
    | Reviewed
)
ENDS = ("finished", "reviewed")
"""The statuses of records that say what the answer is."""


def event_of(record: Stored) -> TurnEvent | None:
    """The event that a record holds; None for a record that is not of a turn's own."""
    if record.kind != _KIND:
        return None
    found: TurnEvent = msgspec.convert(record.content().arguments, TurnEvent)
    return found


def status_of(event: type[Any]) -> str:
    """What stands in the status column of an event's records."""
    return str(event.__struct_config__.tag)


class TurnLog:
    """Writes the events of one turn."""

    def __init__(self, writer: LedgerWriter, turn: str) -> None:
        self._writer = writer
        self._turn = turn
        writer.about = TURN

    async def append(self, event: TurnEvent, payload: Json = None, *transitions: Transition) -> int:
        """One event as a record, with what lies beside it and what else lands with it."""
        what: dict[str, Json] = msgspec.to_builtins(event)
        return await self._writer.commit(
            LedgerEntry(_KIND, status_of(type(event)), what, payload, self._turn), *transitions
        )
