"""Texts that are too long for their place, cut so that it is seen."""

from __future__ import annotations


def shorten(text: str, most: int) -> str:
    """A text of at most so many characters; where something is left out, it ends with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
