"""The one path: ADMIT, PREPARE, PERFORM, RECORD."""

from interlock.engine.context import EngineContext, Observer, ToolBinding
from interlock.engine.halts import HaltSwitch
from interlock.engine.heart import Heart
from interlock.engine.limits import ToolLimits
from interlock.engine.locks import hold_locks, release_dead
from interlock.engine.perform.write import probe
from interlock.engine.pipeline import Engine
from interlock.engine.turn_tail import TurnTail
from interlock.engine.turns import FoldedTurns
from interlock.engine.whole_changes import WholeChange, whole_change

__all__ = [
    "Engine",
    "EngineContext",
    "FoldedTurns",
    "HaltSwitch",
    "Heart",
    "Observer",
    "ToolBinding",
    "ToolLimits",
    "TurnTail",
    "WholeChange",
    "hold_locks",
    "probe",
    "release_dead",
    "whole_change",
]
