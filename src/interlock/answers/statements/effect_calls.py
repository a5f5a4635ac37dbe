"""Calls of effect tools, the words for what they do, and whether a clause can be about this very one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import combinations
from typing import Any, NamedTuple

from interlock.answers.grounding.field_names import snake_name
from interlock.answers.statements.deeds import Deed
from interlock.answers.statements.effects import EffectState, TurnEffect
from interlock.answers.statements.lexicon import Lexicon
from interlock.tools import Tool
from interlock.tools.effect_words import name_parts
from interlock.values import Json

_WORD = re.compile(r"[^\W\d_]+")
_TOKEN = re.compile(r"[\w\-@.]+")
_AMOUNT = re.compile(
    r"[$€£¥]\s?(\d[\d,]*(?:\.\d+)?)|(\d[\d,]*(?:\.\d+)?)\s?(?:dollars|euros|pounds|usd|eur|gbp|€|£)", re.I
)
_ARTICLES = frozenset({"a", "an", "the"})
_WIDEST_GAP = 4
"""So many words may stand inside of a phrase: "paid the amount back"."""
_MOST_VALUES = 2_000
_MOST_COMPARED = 20
_LONGEST_ACTION = 24


class ToolWords(NamedTuple):
    """The words for what one tool does, as stems."""

    tool: str
    verbs: frozenset[str]
    alike: frozenset[str]
    phrases: tuple[tuple[str, ...], ...]
    nouns: frozenset[str]
    """What it is done to, by the tool's name."""
    context: frozenset[str]
    """What its description and parameters speak of."""


def words_of(tool: Tool, words: Lexicon) -> ToolWords:
    """The words of a tool: `says`, its name, what it describes."""
    stem = words.verbs.stem
    singles = frozenset(stem(said) for said in tool.says if " " not in said)
    several = tuple(
        tuple(stem(word) for word in said.split() if word not in _ARTICLES) for said in tool.says if " " in said
    )
    verbs = singles | {phrase[0] for phrase in several if len(phrase) == 1}
    nouns = frozenset(map(stem, name_parts(tool.name))) - verbs
    described = (word.lower() for word in _WORD.findall(tool.description) if len(word) > 3)
    parameters = (part for name in tool.input.schema.get("properties", {}) for part in name_parts(str(name)))
    context = nouns | frozenset(map(stem, (*described, *parameters)))
    spoken = verbs | {noun for noun in nouns if noun in words.media}  # whoever sends e-mails informs and tells
    alike = frozenset[str]().union(*(words.verbs.alike(verb) for verb in spoken))
    return ToolWords(tool.name, verbs, alike, tuple(p for p in several if len(p) > 1), nouns, context)


class EffectCall(NamedTuple):
    """One effect with what it was made with, and what came of it."""

    effect: TurnEffect
    arguments: Mapping[str, Json]
    words: frozenset[str]
    """The stems of everything in its arguments and result."""
    numbers: frozenset[Decimal]
    actions: frozenset[str] = frozenset()
    """What the arguments of a tool that can do several things say was done: `status="cancelled"`, `frozen=true`."""

    @property
    def is_done(self) -> bool:
        """Whether it stands."""
        return self.effect.state is EffectState.DONE


def call_of(effect: TurnEffect, arguments: Json, result: Json, words: Lexicon) -> EffectCall:
    """An effect with its words and figures."""
    given = arguments if isinstance(arguments, dict) else {}
    texts, numbers = list[str](), list[Decimal]()
    for value in (given, result):
        _collect(value, texts, numbers)
    found = frozenset(words.verbs.stem(word.lower()) for text in texts for word in _WORD.findall(text))
    return EffectCall(effect, given, found, frozenset(numbers), _actions(effect.tool, given, words))


def _actions(tool: str, arguments: Mapping[str, Json], words: Lexicon) -> frozenset[str]:
    """Only of tools that change or manage something: the subject of a mail is no deed."""
    if not {*name_parts(tool)} & words.changing:
        return frozenset()
    said = [value for value in arguments.values() if isinstance(value, str) and len(value) <= _LONGEST_ACTION]
    said += [name for name, value in arguments.items() if value is True]
    parts = (part for text in said for part in name_parts(text))
    return frozenset(map(words.verbs.stem, parts)) & words.verbs.deed_stems


def _collect(value: Json, texts: list[str], numbers: list[Decimal]) -> None:
    waiting = [value]
    while waiting and len(texts) + len(numbers) < _MOST_VALUES:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item
        elif isinstance(item, str):
            texts.append(item[:500])
            numbers += [Decimal(n.replace(",", "")) for n in re.findall(r"\d[\d,]{0,15}(?:\.\d{1,6})?", item[:500])]
        elif isinstance(item, int | float) and not isinstance(item, bool) and item == item:
            numbers.append(Decimal(repr(item)) if abs(item) != float("inf") else Decimal(0))


class Things:
    """What calls are about, by the names they go by: a deed that names another thing than its call is another deed."""

    def __init__(self, tools: Iterable[Tool], calls: Sequence[EffectCall], results: Iterable[Json]) -> None:
        self._names: dict[str, set[tuple[str, str]]] = {}
        self._starts: set[str] = set()
        wanted = {name for call in calls for name, value in call.arguments.items() if isinstance(value, str)}
        for tool in tools:
            for argument, known in tool.known_values.items():
                name = snake_name(argument)
                if name in wanted and isinstance(known, Mapping):
                    self._add_known(name, known)
        for call in calls:
            self._add_row(call.arguments, wanted)
        for result in results:
            self._walk(result, wanted)

    def _add_known(self, argument: str, known: Mapping[Any, Any]) -> None:
        for value, names in list(known.items())[:_MOST_VALUES]:
            for name in (value, *((names,) if isinstance(names, str) else names)):
                self._add(str(name), argument, str(value))

    def _walk(self, value: Json, wanted: set[str]) -> None:
        waiting, left = [value], _MOST_VALUES
        while waiting and left:
            item, left = waiting.pop(), left - 1
            if isinstance(item, dict):
                self._add_row(item, wanted)
                waiting += item.values()
            elif isinstance(item, list | tuple):
                waiting += item

    def _add_row(self, row: Mapping[str, Json], wanted: set[str]) -> None:
        for name, value in row.items():
            # Only what looks like a name of its own: that "yes" is a value of some row says nothing.
            if name in wanted and isinstance(value, str) and any(letter.isdigit() for letter in value):
                self._add(value, name, value)

    def _add(self, name: str, argument: str, value: str) -> None:
        key = " ".join(name.lower().split())
        if len(key) > 1:
            self._names.setdefault(key, set()).add((argument, value.lower()))
            self._starts.add(key.partition(" ")[0])

    def named_in(self, clause: Sequence[str]) -> dict[str, set[str]]:
        """The values of arguments that a clause names, by argument."""
        tokens = [token.strip(".-") for token in _TOKEN.findall(" ".join(clause))]
        found: dict[str, set[str]] = {}
        for at, token in enumerate(tokens):
            for width in range(1, 6) if token in self._starts else ():
                for argument, value in self._names.get(" ".join(tokens[at : at + width]), ()):
                    found.setdefault(argument, set()).add(value)
        return found


def fits(call: EffectCall, deed: Deed, named: Mapping[str, set[str]], others: Sequence[EffectCall]) -> bool:
    """Whether a clause can be about this very call: it names no other thing, amount or call."""
    said = {Decimal(word) for word in deed.clause if word.isdecimal() and word.isascii()}
    for other in others:
        theirs = {Decimal(str(v)) for v in other.arguments.values() if isinstance(v, int) and not isinstance(v, bool)}
        if other.effect.state is not call.effect.state and said & theirs - call.numbers:
            return False
    for argument, value in call.arguments.items():
        mentioned = named.get(argument)
        if mentioned and isinstance(value, str) and value.lower() not in mentioned:
            return False
    everywhere = _amounts(deed.sentence.text)
    amounts = {Decimal(text) for text in everywhere & {word.replace(",", "") for word in deed.clause}}
    if any(Decimal(text) in call.numbers for text in everywhere):
        return True  # "by $700, from $800 to $1,500"
    if "by" in deed.clause and amounts & _differences(call.numbers):
        return True  # "raised by $45": from what it was to what it is
    has_amount = any(isinstance(v, int | float) and not isinstance(v, bool) for v in call.arguments.values())
    return not (amounts and has_amount) or bool(amounts & call.numbers)


def _differences(numbers: frozenset[Decimal]) -> set[Decimal]:
    few = sorted(numbers)[-_MOST_COMPARED:]
    return {other - one for one, other in combinations(few, 2)}


def is_named(call: EffectCall, deed: Deed, named: Mapping[str, set[str]]) -> bool:
    """Whether a clause names something that a call was made with: a thing by its name, or a figure of two digits."""
    for argument, value in call.arguments.items():
        if isinstance(value, str) and value.lower() in named.get(argument, ()):
            return True
    figures = {word for word in deed.clause if len(word) > 1 and word.isdecimal()}
    return any(f"{value:g}" in figures for value in call.arguments.values() if type(value) in (int, float))


def _amounts(text: str) -> set[str]:
    """The amounts of money in a text, as their digits."""
    return {(before or after).replace(",", "") for before, after in _AMOUNT.findall(text)}


def find_phrase(phrase: tuple[str, ...], stems: Sequence[str]) -> bool:
    """Whether the words of a phrase stand there in order, with no more than a few others between them."""
    starts = [at for at, stem in enumerate(stems) if stem == phrase[0]]
    for start in starts[:8]:
        at = start
        for word in phrase[1:]:
            window = stems[at + 1 : at + 2 + _WIDEST_GAP]
            if word not in window:
                break
            at += 1 + list(window).index(word)
        else:
            return True
    return False
