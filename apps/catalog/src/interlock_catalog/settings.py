"""Settings of the catalog: defaults, catalog.toml, CATALOG_* variables, command line; read here, nowhere else."""

from __future__ import annotations

import os
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.canonical import nearest
from interlock.errors import ConfigError

FILE = "catalog.toml"
PREFIX = "CATALOG_"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set. Files are relative to the folder of catalog.toml."""

    backend: str = "sqlite:///catalog.db"
    """Where the catalog is: sqlite:///FILE, postgresql://…, or the http(s) address of a server."""
    engine: str = "sqlite:///runs.db"
    """Where runs are remembered: sqlite:///FILE, or postgresql://… for several workers."""
    token: str = ""
    """For an http backend: who we are."""
    timeout_s: float = 10.0
    attempts: int = 6
    backoff_s: float = 0.1
    backoff_cap_s: float = 5.0
    """For an http backend: for each request, and how it is tried again."""
    lanes: int = 4
    """Families at a time."""
    max_changes: int = 1000
    """Changes that one run makes at most; what is left over goes to the next run."""
    model: str = "none"
    """Who judges: none, local, provider:name or python:module:NAME."""
    reply_s: float = 180.0
    """After how long a model's reply is given up: for a batch, and for a small model on one core, this is long."""
    embeddings: bool = False
    """Whether names are compared by meaning, too."""
    record: str = ""
    """A file to which model answers are added."""
    replay: str = ""
    """A file from which model answers are taken, in place of a model."""
    worker: str = ""
    """The name of this worker; the machine's, if there is none."""
    ping: str = ""
    """An address that is fetched after every run that succeeded."""
    stale_s: float = 5.0
    """After how long without a sign of life a worker is taken for dead."""
    alert_age_h: float = 26.0
    alert_queue: int = 20
    alert_failures: float = 0.2
    alert_lock_s: float = 600.0
    """When `interlock catalog health` raises an alarm."""


class Loaded(msgspec.Struct, frozen=True):
    """Settings, and the folder that they are for."""

    settings: Settings
    folder: Path

    def url(self, name: str) -> str:
        """A setting that is an address, with its file where the folder is."""
        given: str = getattr(self.settings, name)
        if not given.startswith("sqlite:///"):
            return given
        return f"sqlite:///{self.folder / given.removeprefix('sqlite:///')}"

    def file(self, name: str) -> Path | None:
        """A setting that is a file."""
        given: str = getattr(self.settings, name)
        return self.folder / given if given else None

    @property
    def worker(self) -> str:
        """The name of this worker."""
        return self.settings.worker or socket.gethostname()


def load(
    folder: Path | None = None, environment: Mapping[str, str] | None = None, given: Mapping[str, Any] | None = None
) -> Loaded:
    """Read the settings; a key that nothing reads is an error."""
    environment = os.environ if environment is None else environment
    folder = folder or Path(environment.get("CATALOG_HOME") or ".")
    values: dict[str, Any] = {}
    path = folder / FILE
    if path.exists():
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise ConfigError(f"{path}: not valid TOML: {error}") from None
    for name, text in environment.items():
        if name.startswith(PREFIX) and name != "CATALOG_HOME":
            values[name.removeprefix(PREFIX).lower()] = text
    values |= {key: value for key, value in (given or {}).items() if value is not None}
    for key in values:
        if key not in Settings.__struct_fields__:
            close = nearest(key, Settings.__struct_fields__, 1)
            way_out = (
                f"did you mean {close[0]!r}?" if close else f"settings are {', '.join(Settings.__struct_fields__)}"
            )
            raise ConfigError(f"{key!r} is no setting of the catalog; {way_out}")
    try:
        settings = msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"catalog settings: {error}") from None
    waits = min(settings.timeout_s, settings.reply_s)
    if min(settings.lanes, settings.attempts) < 1 or settings.max_changes < 0 or waits <= 0:
        raise ConfigError("lanes and attempts are at least 1, max_changes at least 0, timeout_s and reply_s above 0")
    if settings.record and settings.replay:
        raise ConfigError("answers are recorded or replayed, not both")
    return Loaded(settings, folder)
