"""`App`: agents with their tools and policy under one name, so that `interlock ask NAME` finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import msgspec

from interlock.answers.agent import Agent
from interlock.canonical import nearest
from interlock.errors import ConfigError
from interlock.models.messages import Model
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
    policy: Path | Mapping[str, Any] | None = None
    """Its policy, as a file or a dict; None: that of the settings."""
    description: str = ""
    present: Callable[[Sequence[Outcome]], Iterable[object]] | None = None
    """What `interlock ask` prints after an answer, made from the successful calls behind it: tables, maps."""

    constrain: Callable[[Model], Model] | None = None
    """What makes a model fit for its turns; None: `interlock.answers.constrained.constrain`."""

    def agent(self, name: str | None) -> Agent:
        """One of its agents."""
        if name is None:
            return self.agents[0]
        found = next((agent for agent in self.agents if agent.name == name), None)
        if found is None:
            raise ConfigError(f"{self.name!r} has no agent {name!r}; it has {', '.join(a.name for a in self.agents)}")
        return found


def find_app(name: str, known: Sequence[App]) -> App:
    """The application of a name: one that the settings name, or one that is installed."""
    own = {app.name: app for app in known}
    if name in own:
        return own[name]
    # Only the one that is asked for is loaded: another that is broken says so when it is used, not before.
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if name in installed:
        return _load_app(installed[name])
    names = [*own, *installed]
    close = nearest(name, names, 1)
    way_out = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(names) or '(none)'}"
    raise ConfigError(f'there is no application {name!r}; {way_out} (set apps = ["module:APP"] in interlock.toml)')


def _load_app(point: EntryPoint) -> App:
    try:
        app = point.load()
    except Exception as error:  # noqa: BLE001 - a module of somebody else may fail in any way
        raise ConfigError(f"the application {point.name!r} ({point.value}) cannot be loaded: {error}") from None
    if not isinstance(app, App):
        raise ConfigError(f"the application {point.name!r} ({point.value}) is no interlock.answers.App")
    return app
