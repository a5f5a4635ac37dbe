"""RANGER on Google ADK: each agent as an `App` whose first plugin governs every call and every answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from google.adk.agents import LlmAgent
from google.adk.apps import App as AdkApp
from google.adk.models.base_llm import BaseLlm
from google.genai import types

from interlock import Runtime
from interlock.adapters.adk import AdkTool, InterlockLlm, InterlockPlugin, LocalLlm, delegations
from interlock.answers import Agent, App
from interlock.config import load_settings
from interlock_ranger.agents import PURPOSES, SPECIALISTS

GOOGLE = "google:"
TEMPERATURE = 0.1
Mode = Literal["single_turn"]


def build_adk_app(
    name: str, *, app: App | None = None, model: str | BaseLlm | None = None, store: str | None = None
) -> AdkApp:
    """The ADK application of one agent; `coordinator` brings the four specialists with it as single-turn sub-agents.

    Model and store are those of the settings (interlock.toml, INTERLOCK_MODEL, INTERLOCK_STORE) unless they are given.
    """
    if app is None:
        # Importing it reads fires and documents, which a caller with an app of its own does not need.
        from interlock_ranger.app import APP

        app = APP
    settings = load_settings(None).settings
    llm = adk_model(settings.model if model is None else model)
    agents = {agent.name: agent for agent in app.agents}
    tools = {tool.name: tool for tool in app.tools}

    def build_agent(agent: Agent, mode: Mode | None = None, specialists: Sequence[LlmAgent] = ()) -> LlmAgent:
        return LlmAgent(
            name=agent.name,
            model=llm,
            description=PURPOSES[agent.name],
            tools=[AdkTool(tools[name]) for name in agent.tools if name not in SPECIALISTS],
            sub_agents=list(specialists),
            generate_content_config=_generation_config(),
            mode=mode,
        )

    below = SPECIALISTS if name == "coordinator" else ()
    root = build_agent(agents[name], specialists=[build_agent(agents[key], "single_turn") for key in below])
    # ADK's sub-agents take the place of our delegations, which have the same names.
    governed = {**tools, **{tool.name: tool for tool in delegations(root)}}
    runtime = Runtime.open(
        settings.store if store is None else store,
        policy=app.policy or settings.policy,
        tools=governed.values(),
        settings=settings,
    )
    return AdkApp(name=name, root_agent=root, plugins=[InterlockPlugin(runtime, agents)])


def adk_model(model: str | BaseLlm) -> str | BaseLlm:
    """A model as ADK takes it: Gemini by ADK's own client, everything else by ours."""
    if not isinstance(model, str):
        return model
    if model.startswith(GOOGLE):
        return model.removeprefix(GOOGLE)
    return LocalLlm() if model == "local" else InterlockLlm(model)


def _generation_config() -> types.GenerateContentConfig:
    """Calls are proposed freely; what an answer needs is enforced by the plugin."""
    calling = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.AUTO)
    return types.GenerateContentConfig(
        temperature=TEMPERATURE, tool_config=types.ToolConfig(function_calling_config=calling)
    )
