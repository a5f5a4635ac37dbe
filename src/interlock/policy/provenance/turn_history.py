"""What there was before a call: the user's words, what they were taken to ask for, and what tools have returned."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from interlock.policy.provenance.index import OriginIndex
from interlock.values import Json

_MOST_WHOLE = 2**63


class TurnHistory:
    """It grows as a turn goes on. Of the tools that a rule looks at (`watched`), calls are kept as they were."""

    def __init__(self, watched: Collection[str] = ()) -> None:
        self.index = OriginIndex()
        self.intents: tuple[str, ...] = ()
        """What the question was taken to ask for, where somebody has said."""
        self.calls: dict[str, list[Json]] = {name: [] for name in watched}
        self._words: list[str] = []

    @property
    def question(self) -> str:
        """Everything that the user has said."""
        return "\n".join(self._words)

    def say(self, words: Json) -> None:
        """The user has said this."""
        if isinstance(words, str) and words and words not in self._words:
            self._words.append(words)
            self.index.add_words(words)

    def note_call(self, tool: str, arguments: Json, value: Json) -> None:
        """A tool was called with this, and has returned that."""
        if tool in self.calls:
            self.calls[tool].append({"arguments": _in_conditions(arguments), "value": _in_conditions(value)})

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
