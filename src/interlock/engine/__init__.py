"""The one path: ADMIT, PREPARE, PERFORM, RECORD."""

from interlock.engine.effect import probe
from interlock.engine.gates import Gate
from interlock.engine.halts import Halts
from interlock.engine.holds import freed, holding
from interlock.engine.path import Engine
from interlock.engine.stages import Desk, Observer, World

__all__ = ["Desk", "Engine", "Gate", "Halts", "Observer", "World", "freed", "holding", "probe"]
