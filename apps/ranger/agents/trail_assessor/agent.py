"""What `adk run`, `adk web` and `adk eval` load."""

from interlock_ranger.adk import adk_app

app = adk_app("trail_assessor")
root_agent = app.root_agent
