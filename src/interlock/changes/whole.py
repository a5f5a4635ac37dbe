"""A whole resource as the keys in it: what is said of everything there is said of each of them."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.state import is_wildcard
from interlock.values import Json


def states_by_key(keys: Sequence[str], states: Sequence[Json]) -> dict[str, Json]:
    """The states of keys; in place of a whole resource those of the keys in it."""
    found: dict[str, Json] = {}
    for key, state in zip(keys, states, strict=True):
        if is_wildcard(key):
            found |= {key[:-1] + name: part for name, part in (state or {}).items()}
        else:
            found[key] = state
    return found


def touched_keys(keys: Sequence[str], before: Sequence[Json], after: Sequence[Json]) -> tuple[str, ...]:
    """The keys whose states differ, in their order; of a whole resource those in it."""
    was, becomes = states_by_key(keys, before), states_by_key(keys, after)
    return tuple(key for key in sorted({*was, *becomes}) if was.get(key) != becomes.get(key))
