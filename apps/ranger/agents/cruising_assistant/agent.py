"""What `adk run`, `adk web` and `adk eval` load."""

from interlock_ranger.adk import adk_app

app = adk_app("cruising_assistant")
root_agent = app.root_agent
