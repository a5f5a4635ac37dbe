"""The words by which people ask for things: one table, read once."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from interlock.toml_text import parse_toml


@cache
def read_requests() -> dict[str, dict[str, list[str]]]:
    """The table, section by section."""
    text = (files("interlock.policy.provenance") / "tables" / "requests.toml").read_text(encoding="utf-8")
    return parse_toml(text)
