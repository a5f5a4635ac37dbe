"""Tools between ADK and Interlock: ours as ADK shows them to a model, and ADK's own under a contract of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from msgspec.structs import replace
from pydantic import BaseModel

from interlock.answers.entities import pass_on
from interlock.errors import ContractError, Permanent
from interlock.tools import Tool
from interlock.tools.labels import SAID_BY_A_MODEL
from interlock.values import Effect, Json

TRANSFER = "transfer_to_agent"
_WAITS = "NodeInterruptedError"
"""What ADK raises through a sub-agent that waits for a person, and catches again further up; it is no public name."""


class AdkTool(BaseTool):
    """A tool of ours in an ADK agent: its declaration is its contract, and only the plugin can run it."""

    def __init__(self, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self.tool = tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.tool.name, description=self.tool.description, parameters_json_schema=self.tool.input.schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Reached only without the plugin: then nothing is done."""
        return {
            "status": "denied",
            "reason": f"{self.name} runs only under InterlockPlugin; put it first in the plugins of the App",
        }


class Running:
    """The ADK tool behind the call that is on the path in this task, and what interrupted it."""

    def __init__(self, tool: BaseTool, tool_context: ToolContext) -> None:
        self.tool = tool
        self.tool_context = tool_context
        self.interrupt: BaseException | None = None


RUNNING: ContextVar[Running | None] = ContextVar("interlock_adk_running", default=None)


async def _run(name: str, made_for: Any, arguments: dict[str, Json]) -> Any:
    """Run the ADK tool of this call, if it is the one that the contract was made for."""
    running = RUNNING.get()
    # Outside of the plugin's call there is no ADK context to run it in, and nobody has asked for it.
    if running is None or running.tool.name != name:
        raise ContractError(f"{name} runs only inside an ADK invocation under InterlockPlugin")
    tool = running.tool
    # A name is not enough: another agent may have another function of the same name under this contract.
    if made_for is not None and made_for not in (tool, getattr(tool, "func", None)):
        raise ContractError(f"the agent has another tool called {name} than the one that the contract was made for")
    try:
        return await tool.run_async(args=arguments, tool_context=running.tool_context)
    # ADK's pause is a BaseException; our path would take it for a cancellation. It is kept, and raised again behind it.
    except BaseException as error:
        if type(error).__name__ != _WAITS:
            raise
        running.interrupt = error
        raise Permanent("the sub-agent waits for a person") from None


def govern(given: BaseTool | Callable[..., Any], *, effect: str | Effect, **options: Any) -> Tool:
    """A contract for a tool of ADK: register it with the runtime, and its calls take the one path."""
    tool = given if isinstance(given, BaseTool) else FunctionTool(given)
    asks = getattr(tool, "_require_confirmation", False)
    # A condition in Python is seen by no reviewer and no `policy check`; as a rule it is.
    if callable(asks):
        raise ContractError(f"{tool.name}: write the condition of require_confirmation as review_when or as a rule")
    if asks:
        options.setdefault("review_when", "true")
    made = _contract(tool.name, tool.description, _schema(tool), effect, {**options, "made_for": given})
    return replace(made, labels=SAID_BY_A_MODEL) if isinstance(tool, AgentTool) else made


def delegations(root: BaseAgent) -> tuple[Tool, ...]:
    """Contracts for what ADK adds by itself: transfers, and sub-agents that are called like tools."""
    request = {"type": "object", "properties": {"request": {"type": "string"}}, "required": ["request"]}
    names = {"type": "object", "properties": {"agent_name": {"type": "string"}}, "required": ["agent_name"]}
    found = []
    for agent in (agent for agent in walk(root) if agent is not root):
        takes = _asks(agent)
        options: dict[str, Any] = {"timeout_s": 600.0}  # the child's own deadline is the one that counts
        if takes is None:  # a request is passed on as it was said, also by a model that can only choose
            takes, options["known_values"] = request, {"request": pass_on}
        made = _contract(agent.name, agent.description or f"Ask {agent.name}.", takes, "read", options)
        found.append(replace(made, labels=SAID_BY_A_MODEL))
    if found:
        found.append(_contract(TRANSFER, "Hand the conversation over to another agent.", names, "read", {}))
    return tuple(found)


def _asks(agent: BaseAgent) -> dict[str, Json] | None:
    """What a sub-agent takes, where it says so itself."""
    takes = getattr(agent, "input_schema", None)
    return (
        _close_schema(takes.model_json_schema()) if isinstance(takes, type) and issubclass(takes, BaseModel) else None
    )


def walk(root: BaseAgent) -> Iterator[BaseAgent]:
    """An agent and everything below it."""
    yield root
    for agent in getattr(root, "sub_agents", ()):
        yield from walk(agent)


def _contract(name: str, text: str, schema: dict[str, Json], effect: str | Effect, options: dict[str, Any]) -> Tool:
    made_for = options.pop("made_for", None)

    async def body(arguments: dict[str, Json]) -> Any:
        """The ADK tool of the call that is on the path."""
        return await _run(name, made_for, arguments)

    return Tool.from_schema(name, body, schema=schema, effect=effect, description=text or name, **options)


def _schema(tool: BaseTool) -> dict[str, Json]:
    declared = tool._get_declaration()
    if declared is None:
        raise ContractError(f"{tool.name}: it is run by the provider, not here, so it cannot be governed")
    return _close_schema(declared_schema(declared))


def declared_schema(declared: types.FunctionDeclaration) -> dict[str, Json]:
    """The parameters of a declaration as JSON Schema, in whichever of two ways it gives them."""
    if declared.parameters_json_schema is not None:
        found: dict[str, Json] = dict(declared.parameters_json_schema)
    elif declared.parameters is not None:
        found = declared.parameters.json_schema.model_dump(exclude_none=True, by_alias=True, mode="json")
    else:
        found = {"type": "object", "properties": {}}
    return found


def _close_schema(schema: dict[str, Json]) -> dict[str, Json]:
    """JSON Schema as our contracts take it: types in lower case, nothing beside the properties."""
    made = {key: value for key, value in schema.items() if key not in ("title", "$schema")}
    kind = made.get("type")
    if isinstance(kind, str):
        made["type"] = kind.lower()
    if isinstance(made.get("properties"), dict):
        made["properties"] = {name: _close_schema(part) for name, part in made["properties"].items()}
    if isinstance(made.get("items"), dict):
        made["items"] = _close_schema(made["items"])
    return made
