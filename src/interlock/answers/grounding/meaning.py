"""What a tool's author says about its results: which unit a field has, what it is, and what its values are called."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.answers.grounding.words import Meanings, WordTable
from interlock.tools import ResultField, Tool, names_of_values
from interlock.values import Value

_MOST_NAMES = 5_000
"""So many known values of an argument are names that an answer may speak of; of more none is, but those in results."""


class ToolMeaning(Value, frozen=True):
    """What is known about the results of one tool, beside the results themselves."""

    description: str = ""
    fields: Mapping[str, ResultField] = {}
    names: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    """By argument: its known values, and what each is called."""

    def unit_of(self, field: str) -> str:
        """The unit that a field is said to have."""
        found = self.fields.get(field)
        return "" if found is None else found.unit

    def words_of(self, field: str, table: WordTable) -> Meanings:
        """What the words that describe a field stand for."""
        found = self.fields.get(field)
        return frozenset() if found is None else table.in_name(" ".join((found.description, *found.also)))

    def words(self, table: WordTable) -> Meanings:
        """What the words that describe the tool stand for."""
        return table.in_name(self.description)


NO_MEANING = ToolMeaning()


def meaning_of(tool: Tool) -> ToolMeaning:
    """What the author of a tool has said about its results."""
    names: dict[str, dict[str, tuple[str, ...]]] = {}
    for argument, known in tool.known_values.items():
        if callable(known) and not isinstance(known, type):
            continue  # it finds values for a text; there is no list of them
        called = names_of_values(known, "")
        if len(called) <= _MOST_NAMES:
            names[argument] = called
    return ToolMeaning(f"{tool.name.replace('_', ' ')} {tool.description[:400]}", tool.fields, names)
