"""The values that arguments can have, as far as the conversation tells: what is left for a model to choose."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from interlock.grounding.claims import Claim, claims
from interlock.grounding.units import units_in_name
from interlock.intents.spelling import Spelling
from interlock.intents.wordpiece import vocabulary
from interlock.models.grammar import spans
from interlock.schema import Tool, fitting, known_values, plain
from interlock.values import Json

_MOST_WORDS = 5
_STEM = 4
_FIGURES = ("integer", "number")
_CODE = re.compile(r"(?<![\w/.-])(?:[A-Za-z]{1,5}-\d{1,4}|\d{1,4}-[A-Z]{3,})(?![\w/-])")
_DIGITS = frozenset("0123456789$€£.-")
_DATA = re.compile(r"\{[^{}]*:|\[\s*\[")
"""Structured data inside a question."""
_PART = {"half": "0.5", "quarter": "0.25", "third": "0.33"}
_PARTS = re.compile(
    r"\b(?:a\s+|one\s+)?(half|quarter|third)(?:\s+of)?\s+(?:an?\s+)?(percent|per cent|%|mile|acre)s?\b", re.I
)
_NEGATED = re.compile(r"\b(?:no|not|without|outside|neither|never|nor|instead of|rather than)\s+(?:\w+\s+){0,3}$")
_CONDITION = re.compile(
    r"(?:>=|<=|>|<|\b(?:at least|at most|over|under|above|below|more than|less than|greater than))\s*\$?\d[\d.,]*"
    r"|\d[\d.,]*\s*(?:\w+\s+)?(?:or more|or less|or over|and up|and over|or above|or taller|or larger)\b",
    re.I,
)
"""A figure that bounds another."""
_KIND = r"((?:[A-Z0-9][\w'’-]*\s+)+)"
"""A name in front of what it is the name of: "Holiday Farm fire"."""
_NAMES = re.compile(r"(?<![.?!]\s)(?<!^)\b[A-Z][\w'’-]*(?:\s+[A-Z][\w'’-]*)*")
_COMMON = frozenset(
    "about after again all also and any are been before between both but can could does each else every for from"
    " give have here how into just know like list long made make many more most much near need next only open other"
    " over please same should show since some still such tell than that the their them then there these"
    " they this those through under until very want was well were what when where which while who why"
    " will with would year your".split()
)


def slots(tool: Tool, text: str) -> dict[str, tuple[Json, ...]]:
    """For each argument the values that were mentioned; empty if it can be left out; absent if nothing is known."""
    found: dict[str, tuple[Json, ...]] = {}
    required = set(tool.input.schema.get("required", ()))
    defined = tool.input.schema.get("$defs", {})
    text = _spelled(tool, text)
    kinds = {name: _inner(kind, defined) for name, kind in tool.input.schema.get("properties", {}).items()}
    figures = Counter(
        unit for name, kind in kinds.items() if kind.get("type") in _FIGURES for unit in units_in_name(name)
    )
    whole = {name: _whole(text, known_values(known, text)) for name, known in tool.candidates.items()}
    for name, schema in kinds.items():
        alone = name in required or any(figures[unit] == 1 for unit in units_in_name(name))
        if schema.get("type") in _FIGURES:
            values = _figures(name, schema["type"], text, alone=alone, required=name in required)
        elif schema.get("type") == "array":
            several = _values(tool, name, _inner(schema.get("items"), defined), text, False)
            values = (list(several),) if several else ()
        else:
            values = _values(tool, name, schema, _without(text, name, whole), name in required)
        known = name in tool.candidates or "enum" in schema or schema.get("type") in _FIGURES
        if values or name not in required or known:
            found[name] = values  # what nobody said is not invented: the call is refused, and the user asked
    return _most_telling(found)


def _spelled(tool: Tool, text: str) -> str:
    """The question with small misspellings of known names put right."""
    known = [known_values(values, text) for values in tool.candidates.values()]
    names = [name for values in known for several in values.values() for name in several]
    return text if not names or text in names else Spelling(names, ()).corrected(text)


def _names(schema: Mapping[str, Json]) -> list[str]:
    """The names of all fields of a schema, those of what it is made of too."""
    inner = [part for part in schema.get("$defs", {}).values() if isinstance(part, dict)]
    return [name for part in (schema, *inner) for name in part.get("properties", {})]


def _in_figures(text: str) -> str:
    """Half a mile is 0.5 mile."""
    return _PARTS.sub(lambda found: f"{_PART[found[1].lower()]} {found[2]}", text)


def _whole(text: str, known: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """The names of known values that stand in a text as they are."""
    words = f" {plain(text)} "
    return frozenset(p for names in known.values() for name in names if (p := plain(name)) and f" {p} " in words)


def _without(text: str, name: str, whole: Mapping[str, frozenset[str]]) -> str:
    """A text without the names that are taken by other arguments: "Cedar Creek", the fire, is no creek of a trail's."""
    others = {said for other, names in whole.items() if other != name for said in names}
    for said in sorted(others - whole.get(name, frozenset()), key=len, reverse=True):
        inside = any(f" {said} " in f" {own} " for own in whole.get(name, ()))
        if len(said) > 3 and not inside:
            text = re.sub(r"[\W_]+".join(map(re.escape, said.split())), "…", text, flags=re.I)
    return text


def _most_telling(found: dict[str, tuple[Json, ...]]) -> dict[str, tuple[Json, ...]]:
    """The same figure for `road_miles` and `temp_road_miles` is meant for the one that says more."""
    words = {name: set(plain(name).split()) for name in found}
    for name in found:
        if any(words[name] < words[other] and found[other] == found[name] for other in found):
            found[name] = ()
    return found


def untaken(tool: Tool, offered: Sequence[Tool], text: str, given: Mapping[str, Sequence[Json]]) -> tuple[str, ...]:
    """Figures and dates of a question that a call would leave out: then it answers something else than was asked."""
    if _DATA.search(text):
        return ("the data in brackets",)
    text = _in_figures(text)
    units: frozenset[str] = frozenset().union(
        *(units_in_name(name) for other in offered for name in _names(other.input.schema))
    )
    values = [item for several in given.values() for item in several]
    said = [item for item in values if isinstance(item, str)]
    numbers = {float(item) for item in values if isinstance(item, int | float)}
    left = [claim.text for claim in claims(text) if _tells(claim, text, units) and not _is_taken(claim, said, numbers)]
    there = plain(text).split()
    for value in _inner_values(tool.input.schema):  # "bull trout", where only a list of objects could say it
        words = plain(value).split()
        if len(words) > 1 and all(any(w.startswith(word[:_STEM]) for w in there) for word in words):
            left.append(value.replace("_", " "))
    return tuple(left)


def _tells(claim: Claim, text: str, units: frozenset[str]) -> bool:
    """Whether leaving it out would change the question: a whole date, a figure with a unit or one that bounds."""
    if claim.kind == "date":
        return None not in claim.date
    bounds = any(
        found.start() <= claim.start < found.end() or found.start() < claim.end <= found.end()
        for found in _CONDITION.finditer(text)
    )
    telling = bool(claim.units & units) or "." in claim.text or bounds
    return claim.number is not None and telling and claim.text[:1] in _DIGITS


def _is_taken(claim: Claim, said: Sequence[str], numbers: set[float]) -> bool:
    iso = "-".join(f"{part:02d}" for part in claim.date if part is not None)
    if any(claim.text in item for item in said) or (claim.kind == "date" and iso in said):
        return True
    return claim.number is not None and float(claim.number) in numbers


def _inner_values(schema: Mapping[str, Json]) -> list[str]:
    """Closed values of what arguments are made of: those that no argument takes by itself."""
    defined = {name: part for name, part in schema.get("$defs", {}).items() if isinstance(part, dict)}
    objects = [part for part in defined.values() if part.get("type") == "object"]
    named = {str(inner.get("$ref", "")).rpartition("/")[2] for part in objects for inner in part["properties"].values()}
    return [value for name in named & set(defined) for value in defined[name].get("enum", ()) if isinstance(value, str)]


def _values(tool: Tool, name: str, schema: dict[str, Json], text: str, required: bool) -> tuple[Json, ...]:
    known = tool.candidates.get(name)
    if known is not None:
        values = mentioned(text, known_values(known, text))
        if required or (values and all(value in known_values(known, text) for value in values)):
            return values
        kind = re.escape(plain(name).split()[0])
        said = re.search(rf"(?i:\b{kind})\s+([A-Z0-9][\w-]*)", text) or re.search(rf"{_KIND}(?i:{kind})\b", text)
        shapes = {_shape(value) for value in known_values(known, text)}
        like = next((word for word in _CODE.findall(text) if _shape(word) in shapes), "")
        if said is None or not said[1].strip("… "):
            return (like,) if like else ()
        return (said[1].strip(),)  # "sector NW-9": it was named, and will be found to be nothing on file
    if "enum" in schema:
        return _of_enum(schema["enum"], text)
    if schema.get("format") == "date":
        whole = [claim.date for claim in claims(text) if claim.date is not None and None not in claim.date]
        return tuple("-".join(f"{part:02d}" for part in day if part is not None) for day in whole)
    if schema.get("type") == "string" and "pattern" in schema:
        return tuple(word for word in spans(text) if re.search(schema["pattern"], word))
    return ()


def _figures(name: str, kind: str, text: str, *, alone: bool, required: bool) -> tuple[Json, ...]:
    """The figures that an argument can mean: of its unit, if its name has one; "240 acres" are no miles.

    One that may be left out is filled only where its unit belongs to no other argument, or its own words are there.
    """
    wanted, text = units_in_name(name), _in_figures(text)
    words = [word for word in plain(name).split() if not units_in_name(word)]
    there = plain(text).split()
    named = bool(words) and all(any(w.startswith(word[:4]) for w in there) for word in words)
    if not (alone or named):
        return ()
    found: list[Json] = []
    said = claims(text)
    exact = any(claim.number is not None and claim.units & wanted for claim in said)
    for claim in said:
        fits = bool(claim.units & wanted) if exact or (claim.units and wanted) else required or named
        if claim.number is None or not fits:
            continue
        if kind == "number":
            found.append(float(claim.number))
        elif claim.number == claim.number.to_integral_value():
            found.append(int(claim.number))
    return tuple(found)


def _shape(value: str) -> str:
    """What a code looks like: B-04 and SE-4 are letters, a hyphen, digits."""
    return re.sub(r"[A-Za-z]+", "A", re.sub(r"\d+", "9", value))


def _inner(kind: Json, known: Mapping[str, Json]) -> dict[str, Json]:
    """The schema of a value that may also be null, or is defined elsewhere."""
    if not isinstance(kind, dict):
        return {}
    parts = [part for part in kind.get("anyOf", ()) if isinstance(part, dict) and part.get("type") != "null"]
    whole = {**kind, **parts[0]} if len(parts) == 1 else kind
    referred = known.get(str(whole.get("$ref", "")).rpartition("/")[2])
    return {**whole, **referred} if isinstance(referred, dict) else whole


def _of_enum(values: Sequence[Json], text: str) -> tuple[Json, ...]:
    words = f" {plain(text)} "
    said = (value for value in values if isinstance(value, str) and f" {plain(value)} " in words)
    return tuple(value for value in said if not _is_negated(words, plain(value)))


def mentioned(text: str, known: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The known values that a text speaks of; where its words fit several, those words, so that somebody is asked."""
    words = f" {plain(text)} "
    common = _COMMON | _generic(known)
    spelled = {value: [p for name in names if (p := plain(name))] for value, names in known.items()}
    named = {
        value: max((n for n in names if f" {n} " in words and not _is_negated(words, n)), key=len, default="")
        for value, names in spelled.items()
    }
    said = {value: name for value, name in named.items() if name}
    whole = tuple(
        v for v, name in said.items() if not any(name != o and f" {name} " in f" {o} " for o in said.values())
    )
    if whole:
        shared = Counter(said[value] for value in whole)
        same = next((name for name, count in shared.items() if count > 1), "")
        return (same,) if same else whole  # one name for two things: somebody has to say which
    unknown = ""
    for run in _NAMES.findall(text):
        telling = plain(run)
        if any(len(word) > 2 and word not in common for word in telling.split()):
            fits = fitting(telling, known)
            if len(fits) == 1:
                return fits
            unknown = unknown or run
    first = re.match(r"\W*([A-Z]\w{5,})", text)
    fits = fitting(first[1], known) if first and plain(first[1]) not in common else ()
    if len(fits) == 1:
        return fits
    unsure = ""
    for span in sorted(spans(text), key=lambda item: -len(item.split())):
        telling_words = [word for word in plain(span).split() if len(word) > 3 and word not in common]
        if not telling_words or len(span.split()) > _MOST_WORDS:
            continue
        known_words = {word for names in spelled.values() for name in names for word in name.split()}
        if len(telling_words) == 1 and telling_words[0] not in known_words and telling_words[0] in vocabulary():
            continue  # an ordinary word is not a misspelled name
        fits = fitting(" ".join(telling_words), known)
        headed = tuple(value for value in fits if _heads(telling_words, spelled[value]))
        if len(headed) == 1:
            return headed
        unsure = unsure or (" ".join(telling_words) if len(fits) > 1 else "")
    if unknown:
        return (unknown,)  # a name that is none of them is said as it is, and found to be nothing on file
    return (unsure,) if unsure else ()


def _is_negated(words: str, name: str) -> bool:
    """Whether every mention is after a "not": what is not meant."""
    places = [found.start() + 1 for found in re.finditer(f" {re.escape(name)} ", words)]
    return bool(places) and all(_NEGATED.search(words[:place]) for place in places)


def _generic(known: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Words that nearly all values have in common ("trail"): they name none of them."""
    counts = Counter(word for names in known.values() for word in {w for name in names for w in plain(name).split()})
    return frozenset(word for word, count in counts.items() if count > 1 and 10 * count > 9 * len(known))


def _heads(words: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the first word of a name is meant: "mountain" alone names no mountain."""
    return any(fitting(word, {"": (name.split()[0],)}) for word in words for name in names)
