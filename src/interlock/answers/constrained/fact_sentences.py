"""Results as short statements, each true as it stands: what a model that can only be constrained may choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal

from interlock.answers.grounding import Vocabulary
from interlock.answers.grounding.claims import NO_UNIT
from interlock.values import Json

_MOST = 60  # every statement is an alternative of the grammar
_LONGEST = 120
_LONGEST_LEAD = 1000
_HUNDREDTH = Decimal("0.01")
_NAMES = ("name", "title", "label")
_ABOUT = ("evidence", "rule")
"""Keys of what is about a result, not part of an answer: how it was come to, and by which rule."""


InUnit = Callable[[str, Json], str]
"""A value of a field in the unit that is asked for, with it; empty where it is of another kind."""


def in_units(units: Sequence[str], vocabulary: Vocabulary) -> InUnit:
    """How values are said that are asked for in one of these units."""
    wanted = [(word, found) for word in units if (found := vocabulary.units.of(word))]

    def say(field: str, value: Json) -> str:
        # The unit is the last word of the name, in whose place the other one stands: weight_kg.
        last = f"in_{field.rpartition('_')[2]}" if "_" in field and type(value) in (int, float) else ""
        own = vocabulary.units.in_name(field) & vocabulary.units.in_name(last) if wanted and last else NO_UNIT
        for word, unit in wanted if own and not any(own & unit for _word, unit in wanted) else ():
            for number in vocabulary.measures.convert(Decimal(str(value)), own, unit):
                return f"{number.quantize(_HUNDREDTH, rounding=ROUND_HALF_UP):,f} {word}"
        return ""

    return say


def fact_sentences(
    results: Sequence[Mapping[str, Json]], in_unit: InUnit | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What tools said of their results in one line, and a statement for each value that successful calls returned."""
    leads = tuple(" ".join(text.split()).rstrip(".") for text in map(_lead, results) if text)
    lines: dict[str, None] = {}
    values = [found.get("value") for found in results]
    for line in (line for value in values for line in _of(value, _subject(value), in_unit or _as_it_is)):
        if len(line) <= _LONGEST:
            lines[line] = None
        if len(lines) >= _MOST:  # a result may have thousands
            break
    return leads, tuple(lines)


def _as_it_is(_field: str, _value: Json) -> str:
    return ""


def _lead(found: Mapping[str, Json]) -> str:
    """What a tool said in one line; a short text that is the whole result is that line (ADK's sub-agents answer so)."""
    value = found.get("value")
    whole = value if isinstance(value, str) and len(value) <= _LONGEST_LEAD else ""
    return str(found.get("summary") or whole)


def _of(value: Json, subject: str, in_unit: InUnit, path: str = "", field: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _NAMES or key in _ABOUT:
                continue
            yield from _of(item, subject, in_unit, f"{path} {key}".strip().replace("_", " "), key)
    elif isinstance(value, list):
        for item in value:
            inner = _subject(item)
            yield from _of(item, f"{subject}, {inner}" if subject and inner else inner or subject, in_unit, path, field)
    elif value is not None and path:
        # A truth is an int in Python; formatted as a number it would be 1.
        written = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
        other = in_unit(field, value)
        said = f"{path.rpartition(' ')[0]} {other}" if other else f"{path} {written}"
        yield _plain(f"{subject}: {said}" if subject else said)


def _subject(value: Json) -> str:
    if not isinstance(value, dict):
        return ""
    return next((str(value[key]) for key in _NAMES if isinstance(value.get(key), str)), "")


def _plain(text: str) -> str:
    """One line without the marks that separate statements."""
    return " ".join(text.replace(";", ",").split()).rstrip(".")  # _statements takes them apart at "; "
