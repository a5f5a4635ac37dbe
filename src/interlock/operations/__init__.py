"""Operations: what turns records into calls again (resume, undo, replay, recover), and what people decide."""

from interlock.operations.carry import replay_all, resume, undo_all
from interlock.operations.decisions import (
    Desk,
    beside_of,
    decide_ticket,
    halt,
    held_beside,
    lift,
    refuse_own,
    store_digest,
    sweep,
)
from interlock.operations.journal import Entry, journal
from interlock.operations.plansets import Change, Planned, apply_set, plan_set
from interlock.operations.recover import Recovered, recover
from interlock.operations.shadow import Compared, compare
from interlock.operations.undo import Step, replay_steps, undo_steps, with_undo

__all__ = [
    "Change",
    "Compared",
    "Desk",
    "Entry",
    "Planned",
    "Recovered",
    "Step",
    "apply_set",
    "beside_of",
    "compare",
    "decide_ticket",
    "halt",
    "held_beside",
    "journal",
    "lift",
    "plan_set",
    "recover",
    "refuse_own",
    "replay_all",
    "replay_steps",
    "resume",
    "store_digest",
    "sweep",
    "undo_all",
    "undo_steps",
    "with_undo",
]
