"""Settings: defaults, interlock.toml, INTERLOCK_* variables, command line, in that order; read here, nowhere else."""

from __future__ import annotations

import os
import pwd
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.canonical import nearest
from interlock.errors import ConfigError
from interlock.values import Mode

FILE = "interlock.toml"
PREFIX = "INTERLOCK_"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set. Paths are relative to the folder of the file that names them."""

    store: str = "sqlite:///interlock.db"
    policy: str = "policy.toml"
    tools: tuple[str, ...] = ()
    principal: str = ""
    busy_s: float = 10.0
    threads: int = 8
    repeats: str = "answer"
    record_bytes: int = 4096
    audit_key: str = ""
    anchors: str = "anchors.jsonl"
    otel: bool = False
    mode: str = ""
    lease_s: float = 30.0
    review_expires_s: float = 86_400.0
    review_escalate_s: float = 14_400.0
    self_approval: bool = False
    review_keys: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    model: str = "local"
    model_fallback: str = ""
    model_timeout_s: float = 60.0
    model_tools: str = "native"


HELP = {
    "store": "where everything is remembered: memory://, sqlite:///FILE, postgresql://…",
    "policy": "the policy file",
    "tools": "where tools are found: module:NAME of a Tool or a list of Tools",
    "principal": "who calls, if the caller does not say (default: the operating-system user)",
    "busy_s": "seconds to wait for a store that another process holds",
    "threads": "threads for sync tools",
    "repeats": "identical calls in a turn: answer (from the record), stop, or allow",
    "record_bytes": "results larger than this are kept beside the record, not in it",
    "audit_key": "file of the Ed25519 key that signs checkpoints (made on first use, mode 0600)",
    "anchors": "file that `audit anchor` adds to and `audit verify` checks against",
    "mode": "how far writes and sends go unless a call says: dry_run, apply or shadow (default: what the policy says)",
    "lease_s": "seconds after which the holder of a claim that gives no sign of life is taken for dead",
    "review_expires_s": "seconds a ticket stays open, and an approval good",
    "review_escalate_s": "seconds after which an undecided ticket is escalated",
    "self_approval": "whether one may approve what one proposed oneself (for a machine with a single user)",
    "review_keys": "files of public keys that may sign tokens for review (default: none, so that only people decide)",
    "apps": "where applications are found, beside those that are installed: module:NAME of an interlock.answers.App",
    "model": "who answers: local (embedded), local:FILE.gguf, provider:name (google:…, openai:…) or python:module:NAME",
    "model_fallback": "the provider:name that is asked if the model gives no reply",
    "model_timeout_s": "seconds after which a provider's reply is given up",
    "model_tools": "how tools are shown to a provider's model: native, or as text (json, xml, batch)",
    "otel": "emit an OpenTelemetry span for each record (needs the extra 'otel')",
}


class Loaded(msgspec.Struct, frozen=True):
    """Settings, and for each where its value came from."""

    settings: Settings
    origins: dict[str, str]
    folder: Path


def load_settings(
    file: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Loaded:
    """Read the settings; a key that nothing reads, or that has no effect, is an error."""
    environment = os.environ if environment is None else environment
    path = Path(file) if file is not None else Path(FILE)
    if file is not None and not path.exists():
        raise ConfigError(f"{path}: there is no such file")
    values: dict[str, Any] = {}
    origins = dict.fromkeys(Settings.__struct_fields__, "default")
    folder = path.parent if path.exists() else Path()
    if path.exists():
        values = {key: _anchored(key, getattr(Settings(), key), folder) for key in ("store", "policy", "anchors")}
        for key, value in _from_file(path).items():
            values[key] = _anchored(key, value, folder)
            origins[key] = str(path)
    for name, text in environment.items():
        if name.startswith(PREFIX):
            key = _known(name.removeprefix(PREFIX).lower(), name, "INTERLOCK_", upper=True)
            values[key] = _spelled(key, text)
            origins[key] = f"environment {name}"
    for key, value in (given or {}).items():
        if value is not None:
            values[_known(key, key)] = value
            origins[key] = "command line"
    return Loaded(_checked(values, origins), origins, folder)


def default_principal() -> str:
    """The operating-system user, by the system's own account and not by a variable that anybody can set."""
    try:
        return f"os:{pwd.getpwuid(os.getuid()).pw_name}"
    except (KeyError, OSError):
        return f"os:{os.getuid()}"


def default_key_file() -> Path:
    """Where the signing key is kept unless a setting says otherwise."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "interlock" / "audit.key"


def cache_folder() -> Path:
    """Where what can be made again is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")) / "interlock"


def _from_file(path: Path) -> dict[str, Any]:
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    return {_known(key, f"{path}: {key}"): value for key, value in raw.items()}


def _known(key: str, shown: str, prefix: str = "", *, upper: bool = False) -> str:
    if key in Settings.__struct_fields__:
        return key
    close = nearest(key, Settings.__struct_fields__, 1)
    spelled = [prefix + (name.upper() if upper else name) for name in close]
    way_out = f"did you mean {spelled[0]!r}?" if spelled else f"settings are {', '.join(Settings.__struct_fields__)}"
    raise ConfigError(f"{shown}: there is no such setting; {way_out}")


def _spelled(key: str, text: str) -> Any:
    """A variable's text as the setting's type."""
    if key in ("tools", "review_keys", "apps"):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    kind = type(Settings.__struct_defaults__[Settings.__struct_fields__.index(key)])
    try:
        if kind is bool:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.lower()]
        return kind(text)
    except (ValueError, KeyError):
        raise ConfigError(f"{PREFIX}{key.upper()}={text!r}: must be a {kind.__name__}") from None


def _anchored(key: str, value: Any, folder: Path) -> Any:
    if key == "review_keys" and isinstance(value, list):
        return [str(folder / Path(item).expanduser()) if isinstance(item, str) else item for item in value]
    if not isinstance(value, str) or not value:
        return value
    if key in ("policy", "audit_key", "anchors"):
        return str(folder / Path(value).expanduser())
    if key == "store" and value.startswith("sqlite:///"):
        return f"sqlite:///{folder / value.removeprefix('sqlite:///')}"
    return value


def _checked(values: dict[str, Any], origins: dict[str, str]) -> Settings:
    try:
        settings = msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        key = str(error).rpartition("$.")[2].rstrip("`") if "$." in str(error) else ""
        raise ConfigError(f"{origins.get(key, 'settings')}: {error}") from None
    if settings.repeats not in ("answer", "stop", "allow"):
        raise ConfigError(f"{origins['repeats']}: repeats is answer, stop or allow, not {settings.repeats!r}")
    if settings.mode not in ("", *Mode):
        raise ConfigError(f"{origins['mode']}: mode is {', '.join(Mode)} or empty, not {settings.mode!r}")
    if settings.lease_s < 1 or settings.review_expires_s <= 0 or settings.review_escalate_s <= 0:
        raise ConfigError("lease_s must be at least 1; review_expires_s and review_escalate_s must be above 0")
    if settings.threads < 1 or settings.record_bytes < 0 or settings.busy_s < 0:
        raise ConfigError("threads must be at least 1; record_bytes and busy_s must not be negative")
    if settings.model_timeout_s <= 0 or settings.model_tools not in ("native", "json", "xml", "batch"):
        raise ConfigError("model_timeout_s must be above 0, and model_tools is native, json, xml or batch")
    if settings.store.startswith("memory:"):
        for key in ("busy_s", "anchors", "audit_key"):
            if origins[key] != "default":
                raise ConfigError(f'{origins[key]}: {key} has no effect with store = "memory://"; remove it')
    return settings
