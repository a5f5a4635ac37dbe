"""`App`: agents with their tools and policy under one name, so that `interlock ask NAME` finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import entry_points
from pathlib import Path

import msgspec

from interlock.answers.agent import Agent
from interlock.canonical import nearest
from interlock.errors import ConfigError
from interlock.tools import Tool
from interlock.values import Outcome

GROUP = "interlock.apps"
"""The entry points under which installed applications are found."""


class App(msgspec.Struct, frozen=True, kw_only=True):
    """An application."""

    name: str
    agents: tuple[Agent, ...]
    """The first one answers unless another is named."""
    tools: tuple[Tool, ...] = ()
    """Its tools; empty: those of the settings."""
    policy: Path | None = None
    """Its policy; None: that of the settings."""
    description: str = ""
    present: Callable[[Sequence[Outcome]], Iterable[object]] | None = None
    """What `interlock ask` prints after an answer, made from the successful calls behind it: tables, maps."""

    def agent(self, name: str | None) -> Agent:
        """One of its agents."""
        if name is None:
            return self.agents[0]
        found = next((agent for agent in self.agents if agent.name == name), None)
        if found is None:
            raise ConfigError(f"{self.name!r} has no agent {name!r}; it has {', '.join(a.name for a in self.agents)}")
        return found


def installed_apps() -> dict[str, App]:
    """The applications that are installed; one that cannot be loaded says why when it is used, not before."""
    found = {}
    for point in entry_points(group=GROUP):
        app = point.load()
        if isinstance(app, App):
            found[app.name] = app
    return found


def find_app(name: str, known: Sequence[App]) -> App:
    """The application of a name: one that the settings name, or one that is installed."""
    own = {app.name: app for app in known}
    if name in own:
        return own[name]
    everything = {**installed_apps(), **own}
    if name in everything:
        return everything[name]
    close = nearest(name, everything, 1)
    way_out = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(everything) or '(none)'}"
    raise ConfigError(f'there is no application {name!r}; {way_out} (set apps = ["module:APP"] in interlock.toml)')
