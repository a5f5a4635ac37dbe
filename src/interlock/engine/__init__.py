"""The one path: ADMIT, PREPARE, PERFORM, RECORD."""

from interlock.engine.context import EngineContext, Observer, ToolBinding
from interlock.engine.halts import HaltSwitch
from interlock.engine.heart import Heart
from interlock.engine.limits import ToolLimits
from interlock.engine.locks import hold_locks, release_dead
from interlock.engine.perform.write import probe
from interlock.engine.pipeline import Engine

__all__ = [
    "Engine",
    "EngineContext",
    "HaltSwitch",
    "Heart",
    "Observer",
    "ToolBinding",
    "ToolLimits",
    "hold_locks",
    "probe",
    "release_dead",
]
