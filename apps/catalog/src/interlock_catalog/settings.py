"""Settings of the catalog: defaults, catalog.toml, CATALOG_* variables, the command line."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from interlock.config import LoadedSettings, SettingsSource, setting
from interlock.errors import ConfigError

FILE = "catalog.toml"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set. Files are relative to the folder of catalog.toml."""

    backend: Annotated[
        str,
        setting(
            "where the catalog is: sqlite:///FILE, postgresql://…, or the http(s) address of a server",
            anchor="database",
        ),
    ] = "sqlite:///catalog.db"
    engine: Annotated[
        str,
        setting("where runs are stored: sqlite:///FILE, or postgresql://… for several workers", anchor="database"),
    ] = "sqlite:///runs.db"
    token: Annotated[str, setting("the token for an http backend; also what POST /runs of a worker asks for")] = ""
    timeout_s: Annotated[float, setting("seconds for one request to an http backend")] = 10.0
    attempts: Annotated[int, setting("attempts for one request to an http backend")] = 6
    backoff_s: Annotated[float, setting("seconds before the second attempt; doubled for each further one")] = 0.1
    backoff_cap_s: Annotated[float, setting("the longest wait between two attempts, in seconds")] = 5.0
    lanes: Annotated[int, setting("families that a run works on at a time")] = 4
    max_changes: Annotated[int, setting("changes of one run at most; the rest is left for the next run")] = 1000
    model: Annotated[str, setting("the model that judges: none, local, provider:name or python:module:NAME")] = "none"
    # A batch run can wait: on one core a small model takes a minute for a large family.
    reply_s: Annotated[float, setting("seconds after which a model's reply is given up")] = 180.0
    embeddings: Annotated[bool, setting("whether names are compared by their embeddings, too")] = False
    record: Annotated[str, setting("a file to which model replies are added", anchor="file")] = ""
    replay: Annotated[str, setting("a file from which model replies are taken, in place of a model", anchor="file")] = (
        ""
    )
    worker: Annotated[str, setting("the name of this worker (default: the machine's name)")] = ""
    webhook: Annotated[str, setting("an address that is fetched after every run but a failed or degraded one")] = ""
    # Several times the heartbeat of one second, so that a busy machine is not taken for a dead worker.
    stale_s: Annotated[float, setting("seconds without a heartbeat after which a worker is taken for dead")] = 5.0
    # A nightly run plus two hours.
    alert_age_h: Annotated[float, setting("health: hours since the last run ended")] = 26.0
    alert_queue: Annotated[int, setting("health: runs in the queue")] = 20
    alert_failures: Annotated[float, setting("health: share of the last runs that failed or were degraded")] = 0.2
    alert_lock_s: Annotated[float, setting("health: seconds for which a family has been locked")] = 600.0

    @property
    def worker_name(self) -> str:
        """The name of this worker, by default that of the machine."""
        return self.worker or socket.gethostname()

    @property
    def is_remote(self) -> bool:
        """Whether the catalog is behind HTTP."""
        return is_remote_address(self.backend)


def is_remote_address(backend: str) -> bool:
    """Whether a backend is the address of a server."""
    return backend.startswith(("http://", "https://"))


Loaded = LoadedSettings[Settings]


def _check(settings: Settings, _origins: Mapping[str, str]) -> None:
    waits = min(settings.timeout_s, settings.reply_s)
    if min(settings.lanes, settings.attempts) < 1 or settings.max_changes < 0 or waits <= 0:
        raise ConfigError("lanes and attempts are at least 1, max_changes at least 0, timeout_s and reply_s above 0")
    if settings.record and settings.replay:
        raise ConfigError("replies are recorded or replayed, not both")


SOURCE = SettingsSource(kind=Settings, file=FILE, prefix="CATALOG_", home="CATALOG_HOME", check=_check)


def load_catalog_settings(
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
    file: str = FILE,
) -> Loaded:
    """The settings of a folder, whether or not there is a catalog in it."""
    return msgspec.structs.replace(SOURCE, file=file).load(folder=folder, environment=environment, given=given)


def find_ledger_file(loaded: Loaded) -> Path | None:
    """The settings of the ledger beside those of the catalog; None: those of the folder that one is in."""
    file = loaded.folder / "interlock.toml"
    return file if file.exists() else None


def home_option(home: Path | None) -> str:
    """What a command that is suggested needs to find the same catalog: what was typed, if anything was."""
    return "" if home is None else f" --home {shlex.quote(str(home))}"


def load_existing_catalog(folder: Path | None, **given: Any) -> Loaded:
    """The settings of a folder in which `interlock catalog init` has made a catalog."""
    found = load_catalog_settings(folder, given=given)
    if not (found.folder / FILE).exists():
        way_out = f"make one with `interlock catalog init{home_option(folder)}`"
        raise ConfigError(f"{found.folder / FILE}: there is no catalog here; {way_out}")
    return found
