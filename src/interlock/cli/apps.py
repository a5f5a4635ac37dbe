"""The applications that the settings name."""

from __future__ import annotations

from interlock.answers.app import App
from interlock.cli.workspace import import_all
from interlock.config import Loaded


def load_apps(loaded: Loaded) -> tuple[App, ...]:
    """Import the applications that the settings name."""
    return import_all(loaded, loaded.settings.apps, "apps", App)
