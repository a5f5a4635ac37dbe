"""Numbered facts, and answers that cite them: a model writes `{f12}`, and the value is printed from the result.

Facts are numbered in the order in which they were returned, so that a number stands for the same fact as long as the
turn lasts. A cited figure is checked like any other: `{f12}` in a sentence about something else is held.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from operator import itemgetter

from msgspec.structs import replace

from interlock.answers.grounding import Source, Support, default_vocabulary
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.kept_evidence import KeptEvidence
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.grounding.vocabulary import Vocabulary
from interlock.values import Value, shorten

_REFERENCE = re.compile(r"\{(?P<fact>f\d{1,6})(?:\s+in\s+(?P<unit>[^{}]{1,30}))?\}")
_WORD = re.compile(r"[^\W\d_]{2,30}|[%°$€£]")
_LONGEST_TEXT = 120
_LONGEST_UNIT = 40
"""A longer text is read in its result, and not cited as a value."""
_MOST_LISTED = 150
_HUNDREDTH = Decimal("0.01")
_WITH_COMMAS = 10_000


class NumberedFact(Value, frozen=True):
    """One value that a tool returned."""

    name: str
    """`f12`: how an answer cites it."""
    text: str
    """The value as it is printed, without its unit."""
    unit: str
    """As it is printed behind the value; empty where the field does not say."""
    field: str
    about: str
    """The thing that it is a value of, where its row has a name."""
    source: str
    path: str
    said_by: str
    """Whose words it is, where they are not ours to vouch for: the tool that returned them."""
    number: Decimal | None = None
    units: frozenset[str] = frozenset()


def number_facts(
    sources: Sequence[Source],
    vocabulary: Vocabulary | None,
    max_chars: int,
    meanings: Mapping[str, ToolMeaning] | None = None,
    kept: KeptEvidence | None = None,
) -> tuple[NumberedFact, ...]:
    """The values that an answer may cite, in the order in which they were returned; each keeps its number."""
    words = vocabulary or default_vocabulary()
    kept = kept or KeptEvidence()
    evidence = kept.read(sources, words, max_chars, meanings)
    return evidence.facts.once(_number_all, words, evidence.tools, kept.numbers)


def _number_all(
    facts: Sequence[Fact], words: Vocabulary, said_by: Mapping[str, str], numbers: dict[tuple[str, str], int]
) -> tuple[NumberedFact, ...]:
    by_place: dict[int, list[Fact]] = {}
    for fact in facts:
        if not (fact.label or fact.counted or fact.prose or fact.echo or fact.asked) and not fact.place.is_top:
            by_place.setdefault(id(fact.place), []).append(fact)
    chosen = [one for facts in by_place.values() if (one := _value_of(facts)) is not None]
    for fact in chosen:
        numbers.setdefault((fact.source, fact.place.path), len(numbers) + 1)
    found = [(numbers[fact.source, fact.place.path], fact) for fact in chosen if not fact.stale]
    return tuple(_number(number, fact, words, said_by) for number, fact in sorted(found, key=itemgetter(0)))


def print_citations(
    draft: str, facts: Iterable[NumberedFact], question: str, vocabulary: Vocabulary | None = None
) -> str:
    """A draft with the values in place of its references; one that there is no fact for stays, and supports nothing."""
    words, known = vocabulary or default_vocabulary(), {fact.name: fact for fact in facts}
    # "in miles" is no wish for inches.
    wanted = [words.units.of(word) for word in _WORD.findall(question) if word.lower() != "in"]

    def print_one(match: re.Match[str]) -> str:
        fact = known.get(match["fact"])
        if fact is None:
            return match[0]
        following = _WORD.match(draft[match.end() : match.end() + _LONGEST_UNIT].lstrip(" -"))
        written = frozenset() if following is None or following[0] == "in" else words.units.of(following[0])
        asked = [words.units.of(match["unit"].strip())] if match["unit"] else [written] if written else wanted
        text, unit = _in_unit(fact, asked, words)
        if written and unit:  # "{f3} km": it is written there, or something else is
            if not words.units.of(unit) & written:
                return match[0]
            unit = ""
        theirs = f" (according to {fact.said_by})" if fact.said_by else ""
        if words.units.of(unit) & words.units.currencies and len(unit) == 1:
            return unit + text + theirs
        return f"{text}{'' if unit in ('', '%') else ' '}{unit}{theirs}"

    return _REFERENCE.sub(print_one, draft)


def cite_claims(claims: Sequence[Support], facts: Iterable[NumberedFact]) -> tuple[Support, ...]:
    """The claims, each with the number of the fact that it rests on."""
    names = {(fact.source, fact.path): fact.name for fact in facts}
    return tuple(replace(claim, fact=names.get((claim.source, claim.path), "")) for claim in claims)


def list_facts(facts: Sequence[NumberedFact]) -> str:
    """What a model is told about the facts; the newest, if there are very many."""
    lines = [f"{{{fact.name}}} {_describe(fact)}" for fact in facts[-_MOST_LISTED:]]
    if not lines:
        return ""
    return (
        "Facts that the tools have returned. Where you say a figure, a date or an identifier, write its reference"
        ' in braces, and the value is printed with its unit: "The pipe is {f3} long.", or in another unit: {f3 in'
        " miles}.\n" + "\n".join(lines)
    )


def _describe(fact: NumberedFact) -> str:
    about = f"{fact.about}, " if fact.about else ""
    theirs = f" (according to {fact.said_by})" if fact.said_by else ""
    return f"{shorten(about + fact.field.replace('_', ' '))}: {fact.text} {fact.unit}".rstrip() + theirs


def _value_of(facts: Sequence[Fact]) -> Fact | None:
    """Of what was read at one place, the value: a figure before a text. The name of the place is read there as well."""
    figures = [fact for fact in facts if fact.number is not None]
    texts = [fact for fact in facts[1:] if fact.text]
    value = next(iter(figures or texts), None)
    return value if value is None or len(value.text) <= _LONGEST_TEXT else None


def _number(number: int, fact: Fact, words: Vocabulary, said_by: Mapping[str, str]) -> NumberedFact:
    units = fact.units | fact.money
    return NumberedFact(
        f"f{number}",
        fact.text if fact.number is None else _write_number(fact.number),
        words.units.label(units) if fact.number is not None else "",
        fact.place.name,
        _name_of(fact),
        fact.source,
        fact.place.path,
        "" if fact.trusted else said_by.get(fact.source, fact.source),
        fact.number,
        units,
    )


def _name_of(fact: Fact) -> str:
    """What the thing goes by that it is a value of: by its name rather than by what it belongs to."""
    for row in fact.place.row.chain():
        for _kind, same in sorted(row.names.items(), key=lambda item: not item[0].startswith("$")):
            return min(same, key=len)
    return ""


def _in_unit(fact: NumberedFact, asked: Sequence[frozenset[str]], words: Vocabulary) -> tuple[str, str]:
    """The value in a unit that is asked for, if it is one of the same kind; else as it is."""
    if fact.number is not None:
        for units in asked:
            if units & fact.units:
                break
            for unit in sorted(units):  # pounds may be money, too: of a weight they are not
                for value in words.measures.convert(fact.number, fact.units, frozenset({unit})):
                    rounded = value.quantize(_HUNDREDTH, rounding=ROUND_HALF_UP)
                    return _write_number(rounded), words.units.label(frozenset({unit}))
    return fact.text, fact.unit


def _write_number(number: Decimal) -> str:
    plain = f"{number:,f}" if abs(number) >= _WITH_COMMAS else f"{number:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
