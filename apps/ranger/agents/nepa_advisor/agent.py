"""What `adk run`, `adk web` and `adk eval` load."""

from interlock_ranger.adk import build_adk_app

app = build_adk_app("nepa_advisor")
root_agent = app.root_agent
