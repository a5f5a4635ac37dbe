"""The values that arguments can have, as far as the question tells: what is left for a model to choose."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from interlock.answers.constrained.grammar import spans
from interlock.answers.constrained.recognisers.choices import find_choices
from interlock.answers.constrained.recognisers.figures import figures_for
from interlock.answers.constrained.recognisers.names import find_names, named_as, names_in
from interlock.answers.grounding import Vocabulary
from interlock.answers.grounding.patterns import repeats_within_repeat
from interlock.answers.intents.spelling import Spelling
from interlock.models.messages import ToolCard
from interlock.models.schema_types import inner_schema
from interlock.tools import names_of_values, normalize
from interlock.tools.name_index import kind_words
from interlock.values import Json

_MOST_TAKEN = 100
"""So many names that other arguments take are taken out of a text, the longest first."""
_FIGURES = ("integer", "number")
_SHORT_NAME = 3
"""A name no longer than this is not taken out of a text: it may be part of another word."""


def extract_arguments(card: ToolCard, text: str, vocabulary: Vocabulary) -> dict[str, tuple[Json, ...]]:
    """For each argument the values that were mentioned; empty if it can be left out; absent if nothing is known."""
    return _Extraction(card, text, vocabulary).list_mentioned()


class _Extraction:
    """One question held against one tool's parameters."""

    def __init__(self, card: ToolCard, text: str, vocabulary: Vocabulary) -> None:
        schema = card.parameters
        self._vocabulary = vocabulary
        self._known = {name: names_of_values(known, text) for name, known in card.known_values.items()}
        self._kind_words = frozenset[str]().union(*map(kind_words, self._known))
        # Corrected before anything is looked for: names have to stand in the text as they are to be found.
        self._text = correct_names(text, self._known)
        self._required = frozenset(schema.get("required", ()))
        self._defined: Mapping[str, Json] = schema.get("$defs", {})
        self._kinds = {name: inner_schema(kind, self._defined) for name, kind in schema.get("properties", {}).items()}
        self._whole = {name: names_in(self._text, known) for name, known in self._known.items()}
        numeric = [name for name, kind in self._kinds.items() if kind.get("type") in _FIGURES]
        self._unit_counts = Counter(unit for name in numeric for unit in vocabulary.units.in_name(name))

    def list_mentioned(self) -> dict[str, tuple[Json, ...]]:
        """What was mentioned for each argument."""
        found: dict[str, tuple[Json, ...]] = {}
        for name, schema in self._kinds.items():
            values = self._of(name, schema)
            closed = name in self._known or "enum" in schema or schema.get("type") in _FIGURES
            if values or name not in self._required or closed:
                found[name] = values  # what nobody said is not invented: the call is refused, and the user asked
        return _most_telling(found)

    def _of(self, name: str, schema: dict[str, Json]) -> tuple[Json, ...]:
        kind, required = schema.get("type"), name in self._required
        if kind in _FIGURES:
            # A unit that only one argument has tells which one a figure is for.
            alone = required or any(self._unit_counts[unit] == 1 for unit in self._vocabulary.units.in_name(name))
            return figures_for(name, str(kind), self._text, self._vocabulary, alone=alone, required=required)
        if kind == "array":
            several = self._values(name, inner_schema(schema.get("items"), self._defined), self._text, required=False)
            return (list(several),) if several else ()
        return self._values(name, schema, _without(self._text, name, self._whole), required=required)

    def _values(self, name: str, schema: dict[str, Json], text: str, *, required: bool) -> tuple[Json, ...]:
        known = self._known.get(name)
        if known is not None:
            values = find_names(text, known, self._kind_words)
            # Where it may be left out, words that fit nothing on file count only if they are said by its own name.
            sure = required or (values and all(value in known for value in values))
            return values if sure else named_as(name, text, known)
        if "enum" in schema:
            return find_choices(schema["enum"], text)
        if schema.get("format") == "date":
            # A date without its year is not completed: that would be an invention.
            whole = [claim.date for claim in self._vocabulary.claims(text) if None not in claim.date]
            return tuple("-".join(f"{part:02d}" for part in day if part is not None) for day in whole)
        if schema.get("type") == "string" and "pattern" in schema:
            return _fitting(schema["pattern"], text)
        return ()


def _fitting(pattern: str, text: str) -> tuple[str, ...]:
    """The spans of a text that a contract's pattern fits; none if Python could take for ever to say."""
    try:
        # The contract's own engine never goes back, so what is harmless there may not be here.
        if repeats_within_repeat(pattern):
            return ()
        return tuple(word for word in spans(text) if re.search(pattern, word))
    except re.error:
        return ()


def correct_names(text: str, known: Mapping[str, Mapping[str, tuple[str, ...]]]) -> str:
    """The question with small misspellings of known names put right."""
    names = [name for values in known.values() for several in values.values() for name in several]
    # A request that is passed on as it was said (`delegation`) is its own known value, and is not corrected.
    return text if not names or text in names else Spelling(names, ()).correct(text)


def _without(text: str, name: str, whole: Mapping[str, frozenset[str]]) -> str:
    """A text without the names that are taken by other arguments: "Old Mill", the shop, is no mill of a client's."""
    others = {said for other, names in whole.items() if other != name for said in names}
    # Longest first, so that a name inside a longer one does not leave half of that behind.
    for said in sorted(others - whole.get(name, frozenset()), key=len, reverse=True)[:_MOST_TAKEN]:
        inside = any(f" {said} " in f" {own} " for own in whole.get(name, ()))
        if len(said) > _SHORT_NAME and not inside:
            # A mark is left in its place: without it the words on both sides would become a name of their own.
            text = re.sub(r"[\W_]+".join(map(re.escape, said.split())), "…", text, flags=re.I)
    return text


def _most_telling(found: dict[str, tuple[Json, ...]]) -> dict[str, tuple[Json, ...]]:
    """The same figure for `road_miles` and `temp_road_miles` is meant for the one that says more."""
    words = {name: set(normalize(name).split()) for name in found}
    for name in found:
        if any(words[name] < words[other] and found[other] == found[name] for other in found):
            found[name] = ()
    return found
