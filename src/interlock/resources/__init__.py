"""Resources: keyed state that tools change, ready to use, and examples of how to write one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.first_use import load_on_first_use

if TYPE_CHECKING:
    from interlock.resources.client import HttpClient
    from interlock.resources.documents import Documents
    from interlock.resources.http import HttpDocuments

__all__ = ["Documents", "HttpClient", "HttpDocuments"]

if not TYPE_CHECKING:  # `Documents` must not need httpx, nor the others a database
    __getattr__ = load_on_first_use(
        __name__,
        {
            "Documents": "interlock.resources.documents",
            "HttpClient": "interlock.resources.client",
            "HttpDocuments": "interlock.resources.http",
        },
    )
