"""Ways of working as data: how many calls, which tools in which phase, when to stop. The prompt is made from it too.

`quick_lookup`, `research` and `ingest` are three; your own is a `WorkMode` like them.
"""

from interlock.modes.phases import Done, Phase, Progressed, WorkMode, advance, ends_short, left_out
from interlock.modes.ready import ingest, quick_lookup, research
from interlock.modes.wording import is_plan, mode_text

__all__ = [
    "Done",
    "Phase",
    "Progressed",
    "WorkMode",
    "advance",
    "ends_short",
    "ingest",
    "is_plan",
    "left_out",
    "mode_text",
    "quick_lookup",
    "research",
]
