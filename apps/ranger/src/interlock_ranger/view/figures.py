"""Numbers as people read them, in tables, pages and pictures."""

from __future__ import annotations


def format_figure(value: float) -> str:
    """A number with thousands parted, and no more places than it has."""
    return f"{value:,.10g}"
