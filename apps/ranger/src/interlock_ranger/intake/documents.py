"""JSON of a fire: one reader for all of its documents, which refuses a field that stands twice in one object."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.errors import InvalidInput
from interlock_ranger.intake.problems import show_value
from interlock_ranger.intake.text import decode_json

_NAMED = 10
"""So many fields that stand twice are named."""


def parse_document(raw: bytes, name: str) -> Any:
    """What a document holds; of a field that stands twice nobody knows which value is meant."""
    text = decode_json(raw, name)
    twice: list[str] = []

    def collect(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        twice.extend(_find_twice(pairs))
        return dict(pairs)

    try:
        # First, as it refuses NaN and halves of characters, which Python's own reader takes.
        document = msgspec.json.decode(text)
        json.loads(text, object_pairs_hook=collect)
    except RecursionError:
        raise InvalidInput("it is nested too deep") from None
    if twice:
        more = f" and {len(twice) - _NAMED} more" if len(twice) > _NAMED else ""
        raise InvalidInput(
            f"fields stand twice in one object: {'; '.join(twice[:_NAMED])}{more}; keep the one that is right"
        )
    return document


def _find_twice(pairs: Sequence[tuple[str, Any]]) -> list[str]:
    repeated = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if not repeated:
        return []
    own_id = next((f" of {key} {show_value(value)!r}" for key, value in pairs if key.endswith("_id")), "")
    values = {key: " and ".join(show_value(value) for name, value in pairs if name == key) for key in repeated}
    return [f"{show_value(key)}{own_id} ({said})" for key, said in values.items()]
