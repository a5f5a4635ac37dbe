"""What an utterance says by itself, held against the arguments of one tool: values, references, and what is left."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from interlock.answers.grounding import Vocabulary
from interlock.answers.sessions.closed_arguments import ToolArguments
from interlock.answers.sessions.reference_words import openings, ordinals, words_of
from interlock.answers.sessions.units import asked_units
from interlock.tools import normalize
from interlock.values import Value

LONGEST = 16
"""Words: what is longer than this says by itself what it asks for."""
_LONGEST_NAME = 8
_VALUE = "…"
"""Stands where a value was named, so that what is on both sides of it is not taken together."""
_MOST_WORDS = 4_000
_LONGEST_OPENING = 200
_CAPITALISED = re.compile(r"(?<![.?!:]\s)(?<!^)(?<![\w'’-])[A-Z][\w'’-]{1,60}")


class Utterance(Value, frozen=True):
    """What was found in an utterance."""

    opens: bool = False
    """It begins as a question does that goes on from another."""
    refers: bool = False
    """It, that, there, she."""
    several: bool = False
    """They, those: all that was spoken of last."""
    is_contrast: bool = False
    """It says nothing but "and him?": whoever says so means another one than was spoken of last."""
    repeats: bool = False
    ordinal: int | None = None
    other: bool = False
    values: dict[str, tuple[str, ...]] = {}
    """For each argument the values that are named; words as they were said, where they fit several."""
    figures: bool = False
    units: tuple[str, ...] = ()
    """Those in which it wants to be answered."""
    denies: bool = False
    """It says what is not meant, or that nothing is answered."""
    compares: bool = False
    """It speaks of several, or of how it was before."""
    left: tuple[str, ...] = ()
    """Words that nothing is known of."""
    is_short: bool = True

    @property
    def is_reference(self) -> bool:
        """Whether it names something that an earlier turn has told about."""
        return self.refers or self.repeats or self.other or self.ordinal is not None

    @property
    def says_something(self) -> bool:
        """Whether it names a value, a place in a list, a figure, or a unit."""
        return bool(self.values or self.figures or self.units or self.other or self.ordinal is not None)


def without_opening(text: str) -> str:
    """What is left of a text when the words are taken away by which it goes on: "what about" names nothing."""
    begins, parts = _opening_length(normalize(text[:_LONGEST_OPENING]).split()), text.split()
    while begins > 0 and parts:
        begins -= len(normalize(parts.pop(0)).split())
    return " ".join(parts)


def is_correction(text: str) -> bool:
    """Whether a text begins as one does that says something better: "I mean"."""
    words = normalize(text[:_LONGEST_OPENING]).split()
    return " ".join(words[: _opening_length(words)]) in words_of("correcting")


def is_question(text: str) -> bool:
    """Whether a text asks something, with a question mark or by its first word."""
    first = normalize(text[:_LONGEST_OPENING]).split()[:1]
    return text.rstrip().endswith("?") or bool(words_of("asking") & {*first})


def _opening_length(words: Sequence[str]) -> int:
    return next((len(opening) for opening in openings() if tuple(words[: len(opening)]) == opening), 0)


def read_utterance(
    text: str, arguments: ToolArguments, vocabulary: Vocabulary, before: Mapping[str, object]
) -> Utterance:
    """What the words say for a tool that was called with `before`."""
    words = normalize(text).split()[:_MOST_WORDS]
    begins = _opening_length(words)
    values, rest, denied = _find_values(words[begins:], arguments, before)
    figures, units = _figure_words(text, vocabulary, arguments, before), asked_units(text, vocabulary)
    pointing = words_of("references") | words_of("repeats") | words_of("others")
    known = pointing | words_of("fillers") | arguments.kinds() | figures | {_VALUE, *map(normalize, units)}
    places = _places(rest, arguments)
    left = tuple(word for n, word in enumerate(rest) if word not in known and n not in places)
    which = set(places.values())
    is_short = len(words) <= LONGEST
    if left and is_short:
        guessed, left = _guess_values(left, arguments, before, values)
        values = {**values, **guessed}
    if (denied and not values) or len(which) > 1:
        left = (*left, "which")  # nobody knows which one is meant
    persons = words_of("persons") & {*rest}
    says_more = values or figures or units or left or places or words_of("repeats") & {*rest}
    # "Mean" and "in" begin no question that goes on; beside a value they only fill.
    return Utterance(
        opens=bool(begins),
        refers=any(word in words_of("references") for word in rest),
        several=any(word in words_of("several") for word in rest),
        is_contrast=bool(begins and persons and not says_more),
        repeats=any(word in words_of("repeats") for word in rest),
        ordinal=which.pop() if len(which) == 1 else None,
        other=any(word in words_of("others") for word in rest),
        values=values,
        figures=bool(figures),
        units=units,
        denies=_denies(words, rest) or (denied and not values),
        compares=any(word in words_of("comparisons") for word in words),
        left=left,
        is_short=is_short,
    )


def _denies(words: Sequence[str], rest: Sequence[str]) -> bool:
    return any(word in words_of("negations") for word in rest) or " ".join(words) in words_of("refusals")


def _find_values(
    words: Sequence[str], arguments: ToolArguments, before: Mapping[str, object]
) -> tuple[dict[str, tuple[str, ...]], list[str], bool]:
    """The values whose names stand there as they are, the longest first; the other words; whether one is denied."""
    names, found, rest, place, denied = arguments.names(), dict[str, list[str]](), list[str](), 0, False
    while place < len(words):
        run = next(_runs(words, place, names), "")
        meant = _choose_argument(names[run], before) if run else []
        if not meant:
            rest.append(words[place])
            place += 1
            continue
        place += len(run.split())
        if _take_denial(rest, words[place : place + 1], denied=denied):
            denied = True
            continue
        # One name for two things is said as it is: then the tool asks which one is meant.
        found.setdefault(meant[0][0], []).append(meant[0][1] if len(meant) == 1 else run)
        rest.append(_VALUE)
    return {name: tuple(dict.fromkeys(values)) for name, values in found.items()}, rest, denied


def _take_denial(rest: list[str], after: Sequence[str], *, denied: bool) -> bool:
    """Whether the name behind these words is not meant ("not Rex, Bella"); the words that say so are taken away.

    Where it is one of several ("not Rex or Bella"), nobody knows how far that reaches, and the words stay.
    """
    at = len(rest)
    while at and rest[at - 1] in words_of("fillers") | words_of("articles"):
        at -= 1
    if denied and at and rest[at - 1] == "but":  # "not Rex but Bella"
        del rest[at - 1 :]
        return False
    if not at or rest[at - 1] not in words_of("denials") or {*after} & words_of("joining"):
        return False
    begins = at - 2 if at > 1 and rest[at - 2] == "no" else at - 1  # "no, not Rex"
    rest[begins:] = [_VALUE]
    return True


def _runs(words: Sequence[str], place: int, names: Mapping[str, object]) -> Iterator[str]:
    for length in range(min(_LONGEST_NAME, len(words) - place), 0, -1):
        run = " ".join(words[place : place + length])
        if run in names:
            yield run


def _choose_argument(meant: Sequence[tuple[str, str]], before: Mapping[str, object]) -> list[tuple[str, str]]:
    """Of several arguments that a name could be for, the one that the earlier call had; none if that does not tell."""
    arguments = list(dict.fromkeys(argument for argument, _value in meant))
    if len(arguments) > 1:
        arguments = [argument for argument in arguments if argument in before]
    return [item for item in meant if item[0] == arguments[0]] if len(arguments) == 1 else []


def _guess_values(
    left: tuple[str, ...], arguments: ToolArguments, before: Mapping[str, object], named: Mapping[str, object]
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """A part of a name, or one that is misspelled: all words that are left have to belong to it."""
    said = " ".join(left)
    free = [argument for name, argument in arguments.closed.items() if name not in named]
    fits = {argument.name: found for argument in free if (found := argument.match(said))}
    meant = _choose_argument([(name, value) for name, found in fits.items() for value in found], before)
    if not meant:
        return {}, left
    return {meant[0][0]: (meant[0][1],) if len(meant) == 1 else (said,)}, ()


def _places(words: Sequence[str], arguments: ToolArguments) -> dict[int, int]:
    """Where a place in a list is named, and which one: the last one, but not last winter, nor who came first."""
    numbers, after = ordinals(), words_of("after_ordinals") | arguments.kinds()
    between = words_of("joining") | words_of("articles")
    found: dict[int, int] = {}
    for place in reversed(range(len(words))):
        if words[place] not in numbers:
            continue
        following = next((n for n in range(place + 1, len(words)) if words[n] not in between), len(words))
        ends = _is_place(words[:place]) if following == len(words) else words[place + 1] in after
        is_one = ends or following in found  # "the first and the second one" are two places
        if is_one:
            found[place] = numbers[words[place]]
    return found


def _is_place(before: Sequence[str]) -> bool:
    """Whether "second" at the end of a text, behind these words, is a place in a list."""
    return not before or before[-1] in words_of("articles") or all(word in words_of("fillers") for word in before)


def _figure_words(
    text: str, vocabulary: Vocabulary, arguments: ToolArguments, before: Mapping[str, object]
) -> frozenset[str]:
    """The words of figures that one of the arguments takes: of its unit, or without any for the one that was given."""
    if not arguments.figures:
        return frozenset()
    said = [claim for claim in vocabulary.claims(text[:_MOST_WORDS]) if claim.number is not None]
    units = frozenset[str]().union(*(vocabulary.units.in_name(name) for name in arguments.figures))
    alone = sum(name in before for name in arguments.figures) == 1
    fits = [claim for claim in said if claim.units & units or (alone and not claim.units)]
    return frozenset(word for claim in fits for word in normalize(claim.text).split())


def may_name_another(text: str, left: Sequence[str], arguments: ToolArguments) -> bool:
    """Whether words that are left may be the name of something that is not on file, or half of a name that is.

    Then what was spoken of last is not taken for it.
    """
    telling = frozenset(left)
    part_of_names = {word for name in arguments.names() for word in name.split()} - words_of("fillers")
    if telling & part_of_names:
        return True
    if any(normalize(word) in telling for word in _CAPITALISED.findall(text[:_MOST_WORDS])):
        return True
    words, after = normalize(text).split()[:_MOST_WORDS], False
    for word in words:
        if after and word in telling:
            return True
        after = word in words_of("before_names") or (after and word in words_of("articles"))
    return False
