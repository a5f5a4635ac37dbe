"""What there was before a call: the user's words, what they were taken to ask for, and what tools have returned."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from interlock.policy.provenance.index import OriginIndex
from interlock.values import Json

_MOST_WHOLE = 2**63
_AGREES = re.compile(r"\s*(?:yes|yep|yeah|ok|okay|sure|please do|go ahead|do it|confirmed?|correct|right|fine)\b", re.I)


class TurnHistory:
    """It grows as a turn goes on. Of the tools that a rule looks at (`watched`), calls are kept as they were."""

    def __init__(self, watched: Collection[str] = ()) -> None:
        self.index = OriginIndex()
        self.intents: tuple[str, ...] = ()
        """What the question was taken to ask for, where somebody has said."""
        self.calls: dict[str, list[Json]] = {name: [] for name in watched}
        self._words: list[str] = []
        self._earlier: set[str] = set()

    @property
    def question(self) -> str:
        """Everything that the user has said."""
        return "\n".join(self._words)

    @property
    def request(self) -> str:
        """What the user asks for now: what was said in this turn, and before it where this turn only agrees to it."""
        now = [words for words in self._words if words not in self._earlier]
        return self.question if not now or all(map(_AGREES.match, now)) else "\n".join(now)

    def say(self, words: Json, *, earlier: bool = False) -> None:
        """The user has said this, in this turn or in one before it."""
        if isinstance(words, str) and words and words not in self._words:
            self._words.append(words)
            self.index.add_words(words)
            if earlier:
                self._earlier.add(words)

    def note_call(self, tool: str, arguments: Json, value: Json, status: str = "ok") -> None:
        """A tool was called with this, and has returned that."""
        if tool in self.calls:
            made = {"arguments": _in_conditions(arguments), "value": _in_conditions(value), "status": status}
            self.calls[tool].append(made)

    def calls_of(self, tool: str) -> Sequence[Json]:
        """The calls of a tool so far."""
        return self.calls.get(tool, ())


def _in_conditions(value: Json) -> Json:
    """A value as conditions can look at it: CEL has no longer whole numbers, and ends a text at NUL."""
    if isinstance(value, dict):
        return {str(_in_conditions(key)): _in_conditions(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_in_conditions(item) for item in value]
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    return float(value) if isinstance(value, int) and not -_MOST_WHOLE <= value < _MOST_WHOLE else value
