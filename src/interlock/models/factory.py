"""One setting chooses the model: `local`, or `provider:name` with another to fall back to."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from interlock.errors import ConfigError
from interlock.models.manifest import WAYS
from interlock.models.messages import Model

LOCAL = "local"
PYTHON = "python"


def open_model(name: str, *, fallback: str = "", timeout_s: float = 60.0, tools: str = "native") -> Model:
    """The model of a setting: `local`, `local:FILE.gguf`, `provider:name` (google:…), or `python:module:NAME`."""
    if tools not in ("native", *WAYS):
        raise ConfigError(f"model_tools is native, {', '.join(WAYS)}, not {tools!r}")
    kind, _, rest = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind == LOCAL:
        from interlock.models.local import LocalModel

        file = Path(rest).expanduser() if rest else None
        if file is not None and not file.is_file():
            raise ConfigError(f"model {name!r}: there is no file {file}")
        # A file that somebody chose is shown instructions and tools; the small one that we bring is only constrained.
        return LocalModel(file, instructable=bool(rest))
    if not rest:
        way_out = "write local, provider:name such as google:gemini-2.5-flash, or python:module:NAME"
        raise ConfigError(f"model {name!r}: {way_out}")
    if kind == PYTHON:
        return _import_model(rest)
    from interlock.models.provider import ProviderModel

    second: Any = fallback
    # It cannot be told what to do: the turn would have to be driven in another way half way through.
    if fallback.partition(":")[0] == LOCAL:
        raise ConfigError("model_fallback: the embedded model cannot stand in for a provider's; name another provider")
    return ProviderModel(name, fallback=second, timeout_s=timeout_s, tools=tools)


def require_instructable(model: Model) -> Model:
    """The model, if it can be told what to do; refused where one is needed that can."""
    if not hasattr(model, "reply") or not getattr(model, "instructable", False):
        name = getattr(model, "name", type(model).__name__)
        raise ConfigError(f"{name} cannot be told what to do, so it cannot judge; name a provider's model")
    return model


def _import_model(where: str) -> Model:
    """A model of your own: an object with `name`, `instructable`, `reply` and `close`, or something that makes one."""
    module, _, name = where.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"model python:{where} cannot be imported: {error}; write python:module:NAME") from None
    made: Model = found() if isinstance(found, type) else found
    if not hasattr(made, "reply") or not hasattr(made, "instructable"):
        raise ConfigError(f"model python:{where} is no model: it needs name, instructable, reply and close")
    return made
