"""Names that a question says and a call would leave out: nothing on file is called so, and the call is about another.

An argument may be left to its default only where the question names nothing of that kind. What is named and not found
has to be said, also where only one thing is on file: then a call without the name would be about that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from interlock.answers.constrained.argument_extraction import correct_names
from interlock.answers.constrained.recognisers.proper_names import is_telling, proper_names
from interlock.answers.constrained.tables import capitalised_words, common_words, openings
from interlock.answers.grounding import Vocabulary
from interlock.models.messages import ToolCard
from interlock.models.schema_types import inner_schema
from interlock.tools import names_of_values, nearest_values, normalize
from interlock.tools.name_index import NameIndex, kind_words
from interlock.values import Json, Value, name_some, shorten

Known = Mapping[str, tuple[str, ...]]


class OpenQuestion(Value, frozen=True):
    """What has to be asked first, and which arguments it is about."""

    text: str = ""
    fields: tuple[str, ...] = ()


def unknown_name_question(
    card: ToolCard,
    offered: Sequence[ToolCard],
    text: str,
    given: Mapping[str, Sequence[Json]],
    vocabulary: Vocabulary,
) -> OpenQuestion:
    """What to ask about names that are not on file, where a call would name nothing; empty if there are none."""
    names = _Names(card, text)
    left = names.find_unused(offered, given, vocabulary)
    if not left:
        return OpenQuestion()
    return OpenQuestion(
        f"which one is meant by {name_some([repr(shorten(name)) for name in left])}? Nothing that {card.name} can be"
        f" asked about is called so; the nearest are {'; '.join(names.describe_nearest(left[0]))}. Please name one of"
        " those, or ask without the name",
        names.open_fields,
    )


class _Names:
    """The names of a question, and those that a tool's arguments can have."""

    def __init__(self, card: ToolCard, text: str) -> None:
        schema = card.parameters
        defined = schema.get("$defs", {})
        kinds = {name: inner_schema(kind, defined) for name, kind in schema.get("properties", {}).items()}
        self._every = {name: names_of_values(known, text) for name, known in card.known_values.items()}
        closed = {name for name, kind in kinds.items() if _is_closed(kind, defined)}
        self._open = {name: known for name, known in self._every.items() if name not in closed}
        # Words that no known value has may be meant for a free text, which takes them as they are.
        self._takes_any = any(_is_free(kind) for name, kind in kinds.items() if name not in self._every)
        self._text = correct_names(text, self._every)

    @property
    def open_fields(self) -> tuple[str, ...]:
        """The arguments that a name could be meant for."""
        return tuple(self._open)

    def find_unused(
        self, offered: Sequence[ToolCard], given: Mapping[str, Sequence[Json]], vocabulary: Vocabulary
    ) -> tuple[str, ...]:
        """The names of the question, if the call would be made with none and nothing on file has one of them."""
        # Beside a name that the call takes up, others tell about it: who asks, or the town that it lies near.
        if not self._open or self._takes_any or any(given.get(name) for name in self._open):
            return ()
        text = self._text
        for claim in vocabulary.claims(text):
            # Dates and citations are held against the call by themselves; "Two Four Two" may be the name of a product.
            if claim.kind == "date" or any(c.isdigit() for c in claim.text):
                text = text.replace(claim.text, "…")
        plain = _plain_words(offered, given)
        indexes = [NameIndex(known, plain) for known in self._every.values()]

        def is_unknown(name: str) -> bool:
            telling = " ".join(word for word in name.split() if is_telling(word, plain))
            is_unit = all(vocabulary.units.of(word) for word in telling.split())
            return not is_unit and not any(index.match(said) for index in indexes for said in (name, telling))

        return tuple(name for name in proper_names(text, plain) if is_unknown(name))

    def describe_nearest(self, name: str) -> Iterator[str]:
        """For each argument that could take a name, what is on file for it."""
        for field, known in self._open.items():
            nearest = [_show(value, known[value]) for value in nearest_values(name, known)]
            if nearest:
                yield f"{field} {name_some(nearest)}"


def _plain_words(offered: Sequence[ToolCard], given: Mapping[str, Sequence[Json]]) -> frozenset[str]:
    """Words that name nothing here: of the language, of the tools and their fields, and what the call takes up."""
    words = set(common_words() | openings() | capitalised_words())
    for card in offered:
        words.update(normalize(f"{card.name} {card.description}").split())
        for part in (card.parameters, *card.parameters.get("$defs", {}).values()):
            for name in part.get("properties", {}):
                words |= kind_words(name)
            words.update(word for value in part.get("enum", ()) for word in normalize(str(value)).split())
    taken = [item for several in given.values() for item in _texts(several)]
    return frozenset(words).union(word for value in taken for word in normalize(value).split())


def _texts(values: Sequence[Json]) -> list[str]:
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [item for item in flat if isinstance(item, str)]


def _is_closed(kind: Mapping[str, Json], defined: Mapping[str, Json]) -> bool:
    return "enum" in kind or "enum" in inner_schema(kind.get("items"), defined)


def _is_free(kind: Mapping[str, Json]) -> bool:
    return kind.get("type") == "string" and not kind.keys() & {"enum", "format", "pattern"}


def _show(value: str, names: Sequence[str]) -> str:
    name = next((name for name in names if name != value), "")
    return f"{shorten(name)} ({shorten(value)})" if name else shorten(value)
