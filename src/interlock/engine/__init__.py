"""The one path: ADMIT, PREPARE, PERFORM, RECORD."""

from interlock.engine.compensations import made_already
from interlock.engine.context import EngineContext, Observer, ToolBinding
from interlock.engine.halts import HaltSwitch
from interlock.engine.heart import Heart
from interlock.engine.limits import ToolLimits
from interlock.engine.locks import hold_locks, release_dead
from interlock.engine.origins import OriginIndexes
from interlock.engine.perform.write import probe
from interlock.engine.pipeline import Engine
from interlock.engine.turn_tail import TurnTail
from interlock.engine.turns import FoldedTurns
from interlock.engine.undo_chain import (
    chain_fault,
    claim_by_key,
    links_of,
    made_by,
    taking_back,
    undoes_of,
    was_undone_before,
)
from interlock.engine.whole_changes import WholeChange, whole_change

__all__ = [
    "Engine",
    "EngineContext",
    "FoldedTurns",
    "HaltSwitch",
    "Heart",
    "Observer",
    "OriginIndexes",
    "ToolBinding",
    "ToolLimits",
    "TurnTail",
    "WholeChange",
    "chain_fault",
    "claim_by_key",
    "hold_locks",
    "links_of",
    "made_already",
    "made_by",
    "probe",
    "release_dead",
    "taking_back",
    "undoes_of",
    "was_undone_before",
    "whole_change",
]
