"""Ways around the plugin that ADK offers: found at the start, and refused unless they are allowed by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool

from interlock.adapters.adk.tools import walk
from interlock.errors import ConfigError


def bypasses(root: Any) -> tuple[tuple[str, str], ...]:
    """Every part of an agent tree whose calls would not reach the plugin: its name, and why."""
    return tuple(found for agent in walk(root) for found in _of(agent))


def refuse_bypasses(root: Any, allowed: Collection[str], governed: Collection[str] = ()) -> None:
    """Refuse to start with a way around the path, or around `finish`, unless it is allowed by name."""
    found = list(bypasses(root))
    # Only where the root is checked: an App that governs calls alone lets its agents answer as they like.
    if getattr(root, "name", "") in governed:
        strange = [agent.name for agent in everyone(root) if agent.name not in governed]
        found += [(name, "the App checks answers, and this agent's would leave unchecked") for name in strange]
    for name, why in found:
        if name not in allowed:
            raise ConfigError(f"{name}: {why}; take it out, or allow it: InterlockPlugin(..., allow={{{name!r}}})")


def everyone(root: Any) -> Iterator[BaseAgent]:
    """An agent, those below it, and those that it calls as tools."""
    for agent in walk(root):
        yield agent
        for tool in getattr(agent, "tools", ()):
            inner = getattr(tool, "agent", None)
            if isinstance(inner, BaseAgent) and inner not in getattr(agent, "sub_agents", ()):
                yield from everyone(inner)


def _of(agent: BaseAgent) -> Iterator[tuple[str, str]]:
    kind = type(agent).__name__
    if getattr(agent, "code_executor", None) is not None:
        yield f"{agent.name}.code_executor", "code that the model writes runs outside of any tool call"
    if getattr(agent, "output_schema", None) is not None:
        yield f"{agent.name}.output_schema", "its answer is made by a call of ADK's own, which is not checked"
    if getattr(agent, "mode", None) == "task":
        yield agent.name, "agents in task mode are started without a tool call"
    if kind == "RemoteA2aAgent":  # by name: its module needs an extra of ADK
        yield agent.name, "a remote agent's tools are not called here"
    if kind == "Workflow" or hasattr(agent, "edges"):
        yield agent.name, "function nodes of a workflow are run without tool calls"
    for tool in getattr(agent, "tools", ()):
        yield from _of_tool(agent, tool)


def _of_tool(agent: BaseAgent, tool: Any) -> Iterator[tuple[str, str]]:
    if isinstance(tool, AgentTool):
        if not getattr(tool, "include_plugins", True):
            yield tool.name, "include_plugins=False runs its tools without the plugin"
        yield from bypasses(tool.agent)
    elif isinstance(tool, BaseTool):
        try:
            declared = tool._get_declaration()
        except Exception:  # noqa: BLE001 - a tool that cannot declare itself is not one that the provider runs
            return
        # A built-in tool has no declaration, as the provider runs it. Nor have two that only add to the prompt.
        if declared is None and not _only_adds_context(tool):
            yield tool.name, "the provider runs it on its own side, so that no call of it is seen here"


def _only_adds_context(tool: BaseTool) -> bool:
    return type(tool).__name__ in ("PreloadMemoryTool", "ExampleTool")
