"""The applications that the settings name."""

from __future__ import annotations

from interlock.answers.app import App
from interlock.cli.workspace import import_named
from interlock.config import Loaded
from interlock.errors import ConfigError


def load_apps(loaded: Loaded) -> tuple[App, ...]:
    """Import the applications that the settings name."""
    found = [import_named(loaded, "apps", name, "APP") for name in loaded.settings.apps]
    for name, value in zip(loaded.settings.apps, found, strict=True):
        if not isinstance(value, App):
            raise ConfigError(f"apps: {name!r} is no interlock.answers.App")
    return tuple(found)
