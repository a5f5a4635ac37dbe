"""What a turn writes down while it is worked on: its beginning, and the attempts that did not pass."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from interlock.answers.agent import Agent
from interlock.answers.asked import Asked, UserReply
from interlock.answers.events import Delegated, Forced, Joined, Judged, Opened, Reopened, Replied, Retried, TurnLog
from interlock.answers.hidden_values import hide_values
from interlock.answers.history import History
from interlock.answers.judge import Judgement
from interlock.answers.ladder import Force, Retry
from interlock.answers.requirements import NOTHING, tool_names
from interlock.answers.wishes import Withheld
from interlock.models.messages import Usage
from interlock.operations.ledger_writer import LedgerWriter
from interlock.values import Budget, Json, Value


class Opening(Value, frozen=True):
    """What is known of a turn when it is entered, beside what was asked."""

    most_replies: int
    root_turn: str | None = None
    withheld: tuple[Withheld, ...] = ()
    budgets: tuple[Budget, ...] = ()


async def log_beginning(
    writer: LedgerWriter, log: TurnLog, agent: Agent, asked: Asked, opens: Opening, hidden: Collection[str]
) -> None:
    """Write that a turn was opened, or is gone on with."""
    if asked.before is None:
        await log_opening(writer, log, agent, asked, opening_event(agent, asked, opens, hidden))
    else:
        await log_reopening(log, Reopened(agent.name, opens.withheld), asked.reply, hidden)


def opening_event(agent: Agent, asked: Asked, opens: Opening, hidden: Collection[str]) -> Opened:
    """The beginning of a turn: what was asked for, and what the answer needs."""
    classified, carried = asked.classified, asked.carried
    return Opened(
        agent=agent.name,
        intents=classified.intents,
        by=classified.by,
        certainty=classified.score,
        requires=hide_values(classified.requirement, hidden),
        enforcement=agent.enforcement,
        most_model_calls=opens.most_replies,
        parent=asked.parent,
        root_turn=opens.root_turn,
        on_behalf_of=asked.on_behalf_of,
        workflow=None if asked.workflow is None else asked.workflow.name,
        mode=asked.mode,
        run=asked.run,
        carried=NOTHING if carried is None else hide_values(carried.requirement, hidden),
        carried_from=None if carried is None else carried.turn,
        session=None if asked.session is None else asked.session.name,
        earlier_turns=asked.earlier_turns,
        units=asked.units,
        withheld=opens.withheld,
        budgets=opens.budgets,
    )


def opening_payload(asked: Asked) -> Json:
    """What lies beside the record of the beginning: the question itself, and what the answer may rest on."""
    return {
        "question": asked.question,
        "user_words": asked.user_words,
        "given": [item if isinstance(item, int) else msgspec.to_builtins(item) for item in asked.given],
        "workflow": msgspec.to_builtins(asked.workflow),
        "settled": msgspec.to_builtins(asked.settled),
        # As they are: in the record, what a tool redacts is a mark.
        "requires": msgspec.to_builtins(asked.classified.requirement),
        "carried": None if asked.carried is None else msgspec.to_builtins(asked.carried.requirement),
    }


async def log_opening(writer: LedgerWriter, log: TurnLog, agent: Agent, asked: Asked, opened: Opened) -> None:
    """Write the beginning of a turn; before it, in the records of those that have to know of it."""
    if asked.parent is not None:
        parent = TurnLog(writer, asked.parent)  # first: a parent must not pass without knowing of it
        await parent.append(Delegated(child=asked.id, agent=agent.name))
    if asked.session is not None:
        session = TurnLog(writer, asked.session.key(writer.store))
        await session.append(Joined(turn=asked.id, session=asked.session.name))
    await log.append(opened, opening_payload(asked))


async def log_reopening(log: TurnLog, event: Reopened, reply: UserReply | None, hidden: Collection[str]) -> None:
    """Write that a turn is gone on with, and by which words, where it had asked something."""
    await log.append(event)
    if reply is None:
        return
    fields = tuple(name for settled in reply.settled for name in settled.arguments)
    replied = Replied(
        tool=reply.settled[0].tool if reply.settled else "",
        fields=fields,
        intents=reply.intents,
        requires=None if reply.requires is None else hide_values(reply.requires, hidden),
    )
    # The values lie beside the record, as the question does: a tool may redact them.
    settled, requires = msgspec.to_builtins(reply.settled), msgspec.to_builtins(reply.requires)
    await log.append(replied, {"reply": reply.text, "settled": settled, "requires": requires})


def attempt_event(step: Retry | Force, history: History, usage: Usage, replies: int) -> Retried | Forced:
    """An attempt that did not pass: what had been called, what is missing or is forced now."""
    called = tuple(call.tool for call in history.calls)
    if isinstance(step, Force):
        return Forced(tool=step.need.tool, called=called, usage=usage, model_calls=replies)
    return Retried(
        called=called,
        missing=tool_names(step.missing),
        unsupported=len(step.unsupported) + bool(step.unchecked) + len(step.disagreements) + len(step.disputed),
        usage=usage,
        model_calls=replies,
    )


def judged_event(found: Judgement) -> Judged:
    """What a judge has found; the sentences themselves lie beside the record."""
    return Judged(by=found.by, sentences=found.sentences, disputed=len(found.disputed), usage=found.usage)
