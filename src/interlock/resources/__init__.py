"""Resources: keyed state that tools change, ready to use, and examples of how to write one."""

from __future__ import annotations

from typing import Any

__all__ = ["Documents", "HttpDocuments"]


def __getattr__(name: str) -> Any:
    if name == "Documents":
        from interlock.resources.documents import Documents

        return Documents
    if name == "HttpDocuments":
        from interlock.resources.http import HttpDocuments

        return HttpDocuments
    raise AttributeError(name)
