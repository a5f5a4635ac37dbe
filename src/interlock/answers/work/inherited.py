"""What a turn has from those above and before it: the user's words, what is withheld, the budgets that it spends."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.answers.asked import Asked
from interlock.answers.events import Opened, Reopened, Replied, event_of
from interlock.answers.sessions.follow_up import SESSION
from interlock.answers.wishes import Wish, Withheld, find_wishes
from interlock.operations.ledger_writer import payload_of
from interlock.ports import Query, Store
from interlock.values import Budget, Value


class Inherited(Value, frozen=True):
    """What one turn passes on."""

    root_turn: str | None = None
    """The turn in which a delegation began: what is done further down is paid from its budget."""
    user_words: str = ""
    """What the user has said in it; nothing, if that is not kept any more."""
    withheld: tuple[Withheld, ...] = ()
    budgets: tuple[Budget, ...] = ()


async def inherited_from(store: Store, turn: str | None) -> Inherited:
    """What a turn passes on to one that it opens."""
    if turn is None:
        return Inherited()
    said, root, withheld, budgets = list[str](), turn, list[Withheld](), tuple[Budget, ...]()
    async for record in store.records(Query(turn=turn)):
        event = event_of(record)
        if isinstance(event, Opened | Reopened):
            withheld += event.withheld
        if isinstance(event, Opened):
            root, budgets = event.root_turn or turn, event.budgets
        if isinstance(event, Opened | Replied):
            payload = await payload_of(store, record.id, record.content())
            said.append(str(payload.get("user_words") or payload.get("question") or payload.get("reply") or ""))
    return Inherited(root, "\n".join(said), tuple(dict.fromkeys(withheld)), budgets)


async def withheld_in(store: Store, asked: Asked, wishes: Iterable[Wish], above: Inherited) -> tuple[Withheld, ...]:
    """What is withheld in a turn: as its caller says, as the user wishes, as it was where the question comes from."""
    found = [*asked.withheld, *find_wishes(tuple(wishes), asked.words), *above.withheld]
    if asked.carried is not None and asked.carried.turn != asked.parent:
        found += (await inherited_from(store, asked.carried.turn)).withheld
    if asked.classified.by == SESSION and asked.earlier_turns:  # it goes on from there, and says nothing new
        found += (await inherited_from(store, asked.earlier_turns[-1])).withheld
    if asked.before is not None:
        found += (await inherited_from(store, asked.id)).withheld
    return tuple(dict.fromkeys(found))


def budgets_of(asked: Asked, above: Inherited) -> tuple[Budget, ...]:
    """What the calls of a turn spend: what is left for its way of working, and for that of the turn above."""
    if asked.workflow is None:
        return above.budgets
    # What another agent is asked twice is two turns; in the account of the outermost one they would starve each other.
    name = f"workflow {asked.workflow.name}" + ("" if above.root_turn is None else f" of {asked.id}")
    own = Budget(id=name, per="turn", calls=asked.workflow.calls)
    return (own, *(budget for budget in above.budgets if budget.id != name))
