"""Settings: defaults, a TOML file, variables, the command line, in that order; read here, nowhere else.

The library and the applications load theirs in one way: a program states its settings as a struct of fields that say
what they are (`setting`), and a `SettingsSource` says where their values are written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_origin

import msgspec

from interlock.canonical import nearest
from interlock.errors import ConfigError
from interlock.toml_text import parse_toml
from interlock.values import Mode, shorten

S = TypeVar("S", bound=msgspec.Struct)
APPLICATIONS = "app"
"""The table of interlock.toml that belongs to applications: `[app.NAME]`."""
SERVERS = "mcp"
"""The table that belongs to MCP servers: `[mcp.NAME]`."""
_STRETCH = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def setting(help: str, *, anchor: Literal["file", "database"] | None = None) -> msgspec.Meta:
    """What a field of a settings struct is, for `Annotated`.

    `anchor`: a file name, or the address of a database (`sqlite:///FILE`), that is relative to the settings file.
    """
    return msgspec.Meta(description=help, extra={"anchor": anchor})


class LoadedSettings(msgspec.Struct, Generic[S], frozen=True):
    """Settings, for each where its value came from, and the folder that they are for."""

    settings: S
    origins: dict[str, str]
    file: Path
    """The settings file, whether it is there or not; paths are relative to its folder."""
    servers: dict[str, Any] = {}
    """What it says of MCP servers, which is checked where they are used."""

    @property
    def folder(self) -> Path:
        """The folder that they are for."""
        return self.file.parent


def _accept(_settings: Any, _origins: Mapping[str, str]) -> None: ...


PASSPHRASE = "INTERLOCK_KEY_PASSPHRASE"
"""The one variable with this prefix that is no setting."""


class SettingsSource(msgspec.Struct, Generic[S], frozen=True, kw_only=True):
    """Where the settings of one program are written, and what must hold between them."""

    kind: type[S]
    """The struct; every field has a default."""
    file: str
    table: str = ""
    """The table of the file that holds them, such as `app.NAME` of interlock.toml; the whole file if there is none."""
    prefix: str
    """What the names of the variables begin with."""
    home: str = ""
    """The variable that names the folder of the file, where one does."""
    check: Callable[[S, Mapping[str, str]], None] = _accept
    """Raises ConfigError for values that do not go together; it is given the origins, to name them."""

    def load(
        self,
        file: str | Path | None = None,
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> LoadedSettings[S]:
        """Read the settings; a key that nothing reads is an error.

        A file that is named must be there; otherwise it is looked for in `folder`, in the folder that the variable
        `home` names, or here. Values of `given` (the command line) count unless they are None.
        """
        environment = os.environ if environment is None else environment
        path = self._path(file, folder, environment)
        fields = {field.name: field.type for field in _fields(self.kind)}
        defaults = self.kind()
        values = {name: _anchor_path(getattr(defaults, name), kind, path.parent) for name, kind in fields.items()}
        origins = dict.fromkeys(fields, "default")

        def put(key: str, value: Any, origin: str) -> None:
            try:
                values[key] = msgspec.convert(value, fields[key])
            except msgspec.ValidationError as error:
                several = isinstance(getattr(defaults, key), tuple) and isinstance(value, str)
                way_on = f'; it is a list: write {key} = ["{value}"]' if several else ""
                raise ConfigError(f"{origin}: {key}: {error}{way_on}") from None
            origins[key] = origin

        written, servers = self._from_file(path, fields)
        for key, value in written.items():
            put(key, _anchor_path(value, fields[key], path.parent), str(path))
        for name, text in environment.items():
            if name.startswith(self.prefix) and name not in (self.home, PASSPHRASE):
                key = _find_field(
                    name.removeprefix(self.prefix).lower(), name, fields, lambda key: self.prefix + key.upper()
                )
                put(key, _parse_variable(name, text, fields[key]), f"environment {name}")
        for key, value in (given or {}).items():
            if value is not None:
                put(_find_field(key, key, fields), value, "command line")
        settings = self.kind(**values)
        self.check(settings, origins)
        return LoadedSettings(settings, origins, path, servers)

    def _path(self, file: str | Path | None, folder: Path | None, environment: Mapping[str, str]) -> Path:
        if file is None:
            return (folder or Path(environment.get(self.home) or ".")) / self.file
        if not Path(file).exists():
            raise ConfigError(f"{file}: there is no such file")
        return Path(file)

    def _from_file(self, path: Path, fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The settings in a file, and what it says of MCP servers."""
        if not path.exists():
            return {}, {}
        try:
            found = parse_toml(path.read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            raise ConfigError(f"{path}: not valid TOML: {error}") from None
        where = f"{path}: "
        for part in self.table.split(".") if self.table else ():
            found, where = found.get(part, {}), f"{where}{part}."
            if not isinstance(found, dict):
                raise ConfigError(f"{where.rstrip('.')}: must be a table")
        # Whoever a table belongs to checks its keys.
        others = {
            key: found.pop(key)
            for key in (APPLICATIONS, SERVERS)
            if not self.table and isinstance(found.get(key), dict)
        }
        for key in () if self.table else [key for key, value in found.items() if isinstance(value, dict)]:
            if meant := nearest(shorten(key), (APPLICATIONS, SERVERS), 1):
                raise ConfigError(f"{where}{key}: there is no such table; did you mean [{meant[0]}.…]?")
        own = {_find_field(key, f"{where}{key}", fields): value for key, value in found.items()}
        return own, others.get(SERVERS, {})


def help_texts(kind: type[msgspec.Struct]) -> dict[str, str]:
    """What each setting of a struct is, in the words of its fields."""
    return {field.name: _meta(field.type).description or "" for field in _fields(kind)}


def _fields(kind: type[msgspec.Struct]) -> list[msgspec.structs.FieldInfo]:
    """The settings in the order in which they are listed: a struct's own before those that it inherits."""
    return sorted(msgspec.structs.fields(kind), key=lambda field: field.name not in kind.__annotations__)


def _meta(kind: Any) -> msgspec.Meta:
    found = [item for item in get_args(kind)[1:] if isinstance(item, msgspec.Meta)]
    return found[0] if get_origin(kind) is Annotated and found else msgspec.Meta()


def _find_field(key: str, shown: str, fields: Mapping[str, Any], spell: Callable[[str], str] = str) -> str:
    if key in fields:
        return key
    close = nearest(shorten(key), fields, 1)
    way_out = f"did you mean {spell(close[0])!r}?" if close else f"settings are {', '.join(fields)}"
    raise ConfigError(f"{shorten(shown, 200)}: there is no such setting; {way_out}")


def _parse_variable(name: str, text: str, kind: Any) -> Any:
    """A variable's text as the setting's type; several values are separated by commas."""
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if get_origin(plain) is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        return _TRUTH[text.lower()] if plain is bool else plain(text)
    except (ValueError, KeyError):
        raise ConfigError(f"{name}={text!r}: must be a {plain.__name__}") from None


def _anchor_path(value: Any, kind: Any, folder: Path) -> Any:
    """A path as seen from here; the file that names it may be in another folder."""
    anchor = (_meta(kind).extra or {}).get("anchor")
    if isinstance(value, list | tuple):
        return type(value)(_anchor_path(item, kind, folder) for item in value)
    if anchor is None or not isinstance(value, str) or not value:
        return value
    if anchor == "file":
        return str(folder / Path(value).expanduser())
    database = value.removeprefix("sqlite:///")
    return value if database == value else f"sqlite:///{folder / database}"


class TextLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a text from outside is read: looked at before any work. What is over is refused in a sentence."""

    max_question_chars: Annotated[int, setting("characters of a question; a longer one opens no turn")] = 20_000
    max_draft_chars: Annotated[
        int, setting("characters of an answer that is checked; a longer one does not leave as verified")
    ] = 20_000
    max_claims: Annotated[
        int, setting("figures, names and dates of an answer that are checked; one with more does not leave as verified")
    ] = 1_000
    max_evidence_chars: Annotated[
        int, setting("characters of a turn's results that an answer may rest on; what lies beyond supports nothing")
    ] = 500_000
    max_name_chars: Annotated[
        int, setting("characters of a name that is compared with known values; a longer one can only be an exact value")
    ] = 500
    max_session_turns: Annotated[int, setting("earlier turns of a session that the next one knows of")] = 10
    max_session_minutes: Annotated[int, setting("minutes for which an answer may cite their records")] = 60


class Settings(TextLimits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set. Paths are relative to the folder of the file that names them."""

    store: Annotated[
        str,
        setting("where everything is remembered: memory://, sqlite:///FILE, postgresql://…", anchor="database"),
    ] = "sqlite:///interlock.db"
    policy: Annotated[str, setting("the policy file", anchor="file")] = "policy.toml"
    tools: Annotated[tuple[str, ...], setting("where tools are found: module:NAME of a Tool or a list of Tools")] = ()
    packs: Annotated[tuple[str, ...], setting("policy packs beside those that are installed: module:NAME")] = ()
    token: Annotated[
        str,
        setting(
            "file with the token that says which service calls (default: none, so the operating-system user calls)",
            anchor="file",
        ),
    ] = ""
    busy_s: Annotated[float, setting("seconds to wait for a store that another process holds")] = 10.0
    threads: Annotated[int, setting("threads for sync tools")] = 8
    repeats: Annotated[str, setting("identical calls in a turn: answer (from the record), stop, or allow")] = "answer"
    record_bytes: Annotated[int, setting("results larger than this are kept beside the record, not in it")] = 4096
    audit_key: Annotated[
        str,
        setting("file of the Ed25519 key that signs checkpoints (made on first use, mode 0600)", anchor="file"),
    ] = ""
    payload_key: Annotated[
        str,
        setting(
            "file of the key that payloads are encrypted with (default: with SQLite one in the user's settings folder,"
            " made on first use; with PostgreSQL none, as every machine needs the same; none: they are not encrypted)",
            anchor="file",
        ),
    ] = ""
    anchors: Annotated[
        str, setting("file that `audit anchor` adds to and `audit verify` checks against", anchor="file")
    ] = "anchors.jsonl"
    publish: Annotated[
        tuple[str, ...],
        setting(
            "where else anchors go, so that others hold them: git:FOLDER (a repository), https://… (an endpoint that"
            " takes them; one that ends in /digest is asked as an OpenTimestamps calendar)"
        ),
    ] = ()
    heads: Annotated[
        str,
        setting(
            "folder in which it is noted where each ledger ended, so that an older copy is noticed (default: in the"
            " user's state folder; none: it is not noted)",
            anchor="file",
        ),
    ] = ""
    otel: Annotated[bool, setting("emit an OpenTelemetry span for each record (needs the extra 'otel')")] = False
    mode: Annotated[
        str, setting("how far writes and sends go unless a call says: dry_run, apply, shadow (default: by the policy)")
    ] = ""
    lease_s: Annotated[
        float, setting("seconds after which the holder of a claim that gives no sign of life is taken for dead")
    ] = 30.0
    apps: Annotated[tuple[str, ...], setting("applications beside those that are installed: module:NAME")] = ()
    model: Annotated[
        str,
        setting("who answers: local, local:FILE.gguf, provider:name (google:…, openai-chat:…), python:MODULE:NAME"),
    ] = "local"
    model_fallback: Annotated[str, setting("the provider:name that is asked if the model gives no reply")] = ""
    model_timeout_s: Annotated[float, setting("seconds after which a provider's reply is given up")] = 60.0
    model_tools: Annotated[
        str, setting("how tools are shown to a provider's model: native, or as text (json, xml, batch)")
    ] = "native"


HELP = help_texts(Settings)
Loaded = LoadedSettings[Settings]


def load_settings(
    file: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Loaded:
    """The settings of the library: interlock.toml and INTERLOCK_* variables."""
    return INTERLOCK.load(file, environment=environment, given=given)


def parse_duration(text: str) -> float:
    """Seconds of a stretch of time that somebody wrote: 30s, 15m, 12h, 7d."""
    found = _STRETCH.fullmatch(text)
    if found is None:
        raise ConfigError(f"{text!r} is not a stretch of time; write 30s, 15m, 12h or 7d")
    return float(int(found[1]) * _UNITS_S[found[2]])


def parse_mode(text: str) -> Mode:
    """How far calls go, by its name."""
    try:
        return Mode(text)
    except ValueError:
        raise ConfigError(f"mode is {', '.join(Mode)}, not {text!r}") from None


def default_key_file() -> Path:
    """Where the signing key is kept unless a setting says otherwise."""
    return _config_folder() / "audit.key"


def payload_key_file(named: str, store: str) -> Path | None:
    """Where the key is kept that a store's payloads are encrypted with, by the setting; None if they are not."""
    if store.startswith("memory:") or Path(named).name == "none":
        return None
    if named:
        return Path(named).expanduser()
    return _config_folder() / "payloads.key" if store.startswith("sqlite:") else None


def read_variable(name: str) -> str | None:
    """A variable that the settings name: what it holds is a secret, and stands in no file."""
    return os.environ.get(name)


def list_variables(prefix: str) -> list[str]:
    """The names of the variables that begin so."""
    return sorted(name for name in os.environ if name.startswith(prefix))


def silence_onnxruntime() -> None:
    """Switch its telemetry off before it is loaded; who has set the variable already is not overruled."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def _config_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")) / "interlock"


def key_passphrase() -> str | None:
    """What opens an encrypted signing key: a secret stands in no settings file."""
    return os.environ.get(PASSPHRASE)


def heads_folder(settings: Settings) -> Path | None:
    """Where it is noted how far each ledger was seen to go; None if it is not."""
    if settings.heads == "none":
        return None
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(settings.heads).expanduser() if settings.heads else Path(state) / "interlock" / "heads"


def cache_folder() -> Path:
    """Where what can be made again is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")) / "interlock"


def check_values(settings: Settings, origins: Mapping[str, str]) -> None:
    """Refuse a value that is not allowed."""
    if settings.repeats not in ("answer", "stop", "allow"):
        raise ConfigError(f"{origins['repeats']}: repeats is answer, stop or allow, not {settings.repeats!r}")
    if settings.mode not in ("", *Mode):
        raise ConfigError(f"{origins['mode']}: mode is {', '.join(Mode)} or empty, not {settings.mode!r}")
    least = {"record_bytes": 0, "busy_s": 0, **dict.fromkeys(("lease_s", "threads", *TextLimits.__struct_fields__), 1)}
    for name, lowest in least.items():
        if not getattr(settings, name) >= lowest:
            raise ConfigError(f"{origins[name]}: {name} must be at least {lowest}, not {getattr(settings, name)}")
    if not settings.model_timeout_s > 0 or settings.model_tools not in ("native", "json", "xml", "batch"):
        raise ConfigError("model_timeout_s must be above 0, and model_tools is native, json, xml or batch")


def _check(settings: Settings, origins: Mapping[str, str]) -> None:
    """The same, and what has no effect beside another setting."""
    check_values(settings, origins)
    if settings.store.startswith("memory:"):
        for key in ("busy_s", "anchors", "audit_key", "payload_key"):
            if origins[key] != "default":
                raise ConfigError(f'{origins[key]}: {key} has no effect with store = "memory://"; remove it')


INTERLOCK = SettingsSource(kind=Settings, file="interlock.toml", prefix="INTERLOCK_", check=_check)
