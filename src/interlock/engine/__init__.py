"""The one path: ADMIT, PREPARE, PERFORM, RECORD."""

from interlock.engine.gates import Gate
from interlock.engine.journal import Journal, NoJournal, ReadJournal
from interlock.engine.path import Engine
from interlock.engine.stages import Desk, Observer, World

__all__ = ["Desk", "Engine", "Gate", "Journal", "NoJournal", "Observer", "ReadJournal", "World"]
