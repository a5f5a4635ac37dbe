"""Ways of working as data: how many calls, which tools in which phase, when to stop. The prompt is made from it too.

`quick_lookup`, `research` and `ingest` are three; your own is a `WorkMode` like them.
"""

from interlock.answers.workflows.phases import Done, Phase, Progress, Workflow, advance, ends_short, left_out
from interlock.answers.workflows.presets import ingest, quick_lookup, research
from interlock.answers.workflows.wording import is_plan, workflow_prompt

__all__ = [
    "Done",
    "Phase",
    "Progress",
    "Workflow",
    "advance",
    "ends_short",
    "ingest",
    "is_plan",
    "left_out",
    "quick_lookup",
    "research",
    "workflow_prompt",
]
