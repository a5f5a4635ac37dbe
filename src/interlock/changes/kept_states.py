"""What is kept of the states of a whole resource: of ten thousand rows of which one was changed, that one.

What it is to become, and what it became, are told by what is different from what it was; and what it was, by what is
different from an earlier record that holds it in full. Whoever reads puts them together again (`expand_states`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from interlock.canonical import encode_canonical
from interlock.state import is_wildcard
from interlock.values import Json, Plan

SINCE = "since"
_FEWEST = 50
"""Of fewer rows everything is kept."""
_MOST_RESOURCES = 8
_FRESH_US = 300_000_000
"""How long others are told by a record, which is not deleted as long as they are kept."""
_PARTS = ("before", "planned", "after")

_Texts = dict[str, bytes]


class _FullState:
    """A state that a record holds in full."""

    def __init__(self, state: Json, texts: _Texts, at_us: int) -> None:
        self.state, self.texts, self.at_us = state, texts, at_us
        self.record = 0
        """Its intent; zero until that is known to have landed."""


class KeptStates:
    """The last state of each whole resource that a record of this process holds in full."""

    def __init__(self) -> None:
        self._bases: dict[str, _FullState] = {}
        self._last: tuple[Json, _Texts] = (None, {})

    def forget(self) -> None:
        """Something was deleted: from now on everything is kept anew."""
        self._bases.clear()

    def before(self, plan: Plan, now_us: int) -> dict[str, Json]:
        """What the record of a plan keeps of what is there, and of what is planned."""
        whole = {"before": plan.before, "planned": plan.after}
        if not _is_large(plan.keys, plan.before):
            return whole
        texts, told = self._texts(plan.before), dict[str, Json]()
        since = self._since_base(plan, texts, now_us)
        if since is None:
            self._offer(plan, texts, now_us)
        else:
            told["before"] = since
            del whole["before"]
        if plan.after is not None:
            told["planned"] = _difference(texts, plan.after[0], _texts_of(plan.after[0]))
            del whole["planned"]
        return whole | ({SINCE: told} if told else {})

    def after(self, plan: Plan, intent: int, states: list[Json]) -> dict[str, Json]:
        """What the record of a change keeps of what it left; its intent has landed."""
        if not _is_large(plan.keys, plan.before):
            return {"after": states}
        base = self._bases.get(plan.keys[0])
        if base is not None and base.state is plan.before:
            base.record = intent
        if len(states) != 1 or not isinstance(states[0], dict):
            return {"after": states}
        told = _difference(self._texts(plan.before), states[0], _texts_of(states[0]))
        return {SINCE: {"after": {**told, "record": intent}}}

    def _since_base(self, plan: Plan, texts: _Texts, now_us: int) -> Json:
        """What is different from the last state that is kept in full; None where it is to be kept anew."""
        base = self._bases.get(plan.keys[0])
        if base is None or not base.record or base.at_us + _FRESH_US <= now_us:
            return None
        told = _difference(base.texts, plan.before[0], texts)
        return {**told, "record": base.record} if len(told["rows"]) <= len(texts) // 2 else None

    def _offer(self, plan: Plan, texts: _Texts, now_us: int) -> None:
        self._bases.pop(plan.keys[0], None)
        while len(self._bases) >= _MOST_RESOURCES:
            self._bases.pop(next(iter(self._bases)))
        self._bases[plan.keys[0]] = _FullState(plan.before, texts, now_us)

    def _texts(self, states: Json) -> _Texts:
        """The rows of a state as they are written: 1 is not True. Those of the last one are remembered."""
        last, texts = self._last
        if last is not states:
            texts = _texts_of(states[0])
            self._last = (states, texts)
        return texts


def _is_large(keys: tuple[str, ...], states: Json) -> bool:
    if len(keys) != 1 or not is_wildcard(keys[0]) or not states:
        return False
    return isinstance(states[0], dict) and len(states[0]) >= _FEWEST


def _texts_of(state: Mapping[str, Json]) -> _Texts:
    return {key: encode_canonical(row) for key, row in state.items()}


def _difference(base: _Texts, state: Mapping[str, Json], texts: _Texts) -> dict[str, Any]:
    rows = {key: state[key] for key, text in texts.items() if base.get(key) != text}
    return {"rows": rows, "gone": [key for key in base if key not in texts]}


def base_of(held: Mapping[str, Json]) -> int | None:
    """The record by which what lies beside another one tells what was there before; None where it says so itself."""
    told: Any = held.get(SINCE, {}).get("before")
    return None if told is None else int(told["record"])


async def expand_states(
    held: dict[str, Json], before_of: Callable[[int], Awaitable[Json]], at: Callable[[str], object]
) -> dict[str, Json]:
    """What lies beside a record, with its states in full; `before_of` tells what another record has of what was there.

    Where that was deleted, what was told by it is gone with it.
    """
    since: Any = held.get(SINCE)
    if not since:
        return held
    whole = {name: value for name, value in held.items() if name != SINCE}
    for part in _PARTS:
        told = since.get(part)
        if told is None:
            continue
        at("states.base")
        base = await before_of(told["record"]) if "record" in told else whole.get("before")
        if base:
            gone = frozenset(told["gone"])
            kept = {key: row for key, row in base[0].items() if key not in gone}
            whole[part] = [{**kept, **told["rows"]}]
    return whole
