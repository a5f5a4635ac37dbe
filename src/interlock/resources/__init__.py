"""Resources: keyed state that tools change, ready to use, and examples of how to write one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.resources.client import HttpClient
    from interlock.resources.documents import Documents
    from interlock.resources.http import HttpDocuments

_WHERE = {"Documents": "documents", "HttpClient": "client", "HttpDocuments": "http"}
__all__ = ["Documents", "HttpClient", "HttpDocuments"]


# Loaded when asked for: `Documents` must not need httpx, nor the others a database.
def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(name)
    return getattr(import_module(f"interlock.resources.{_WHERE[name]}"), name)
