"""Operations: what turns records into calls again (resume, undo, replay, recover), and what people decide."""

from interlock.operations.journal import Entry
from interlock.operations.operations import Changes, Operations
from interlock.operations.recover import Recovered
from interlock.operations.retention import Erasure
from interlock.operations.shadow import ShadowComparison
from interlock.operations.stored_sets import Change, PlannedChange
from interlock.operations.undo import UndoStep

__all__ = [
    "Change",
    "Changes",
    "Entry",
    "Erasure",
    "Operations",
    "PlannedChange",
    "Recovered",
    "ShadowComparison",
    "UndoStep",
]
