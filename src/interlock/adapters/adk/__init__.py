"""Google ADK: with `InterlockPlugin` first in the plugins of an `App`, `adk run`, `web` and `eval` enforce it too."""

from interlock.errors import ConfigError, install_hint

try:
    from interlock.adapters.adk.bypasses import bypasses, refuse_bypasses
    from interlock.adapters.adk.llm import InterlockLlm, LocalLlm
    from interlock.adapters.adk.plugin import InterlockPlugin
    from interlock.adapters.adk.runner import InterlockRunner
    from interlock.adapters.adk.tools import AdkTool, delegations, govern
except ModuleNotFoundError as error:
    # `google` alone may be there: it is shared by packages that have nothing to do with each other.
    if (error.name or "").partition(".")[0] != "google":
        raise
    raise ConfigError(f"interlock.adapters.adk needs Google ADK: {install_hint('adk')}") from None

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
