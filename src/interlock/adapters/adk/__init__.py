"""Google ADK: with `InterlockPlugin` first in the plugins of an `App`, `adk run`, `web` and `eval` enforce it too."""

from interlock.adapters.adk.bypasses import bypasses, refuse_bypasses
from interlock.adapters.adk.llm import InterlockLlm, LocalLlm
from interlock.adapters.adk.plugin import InterlockPlugin
from interlock.adapters.adk.runner import InterlockRunner
from interlock.adapters.adk.tools import AdkTool, delegations, govern

__all__ = [
    "AdkTool",
    "InterlockLlm",
    "InterlockPlugin",
    "InterlockRunner",
    "LocalLlm",
    "bypasses",
    "delegations",
    "govern",
    "refuse_bypasses",
]
