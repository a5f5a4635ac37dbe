"""Figures that an answer derives itself: only with the sum written out, over figures that are supported."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from interlock.answers.grounding.claims import NO_UNIT, Claim, Units

# What may stand between two figures of a sum: an operator, brackets and up to two words ("12 acres sold + 30"), or
# what leads to its result. Prose that merely has a figure on both sides ("12 of the 30") must not match.
_BETWEEN = re.compile(
    r"^[\s()]*(?:[A-Za-z]+\s+){0,2}(?P<op>[+\-−–×x*·/÷])[\s()]*$|^\s*\)?\s*(?P<eq>=|≈|equals|is|gives)\s*\(?\s*$", re.I
)
_OPERATORS = {"−": "-", "–": "-", "×": "*", "x": "*", "·": "*", "÷": "/"}
# The result first: "42 (12 + 30)", "42 acres: 12 + 30". Short, and within one sentence, so that no figure is supported
# by a sum that belongs to another.
_OPENS = re.compile(r"^[^.;\n()=]{0,40}(?:\(|:|=)\s*\(*\s*$")
_MOST_TERMS = 200
"""A sum of more figures is not computed, and its result is unsupported."""


_IN_A = {
    Decimal(12): re.compile(r"\b(?:year|yearly|annual|annually|months)\b", re.I),
    Decimal(52): re.compile(r"\b(?:year|yearly|annual|annually|weeks)\b", re.I),
    Decimal(7): re.compile(r"\b(?:week|weekly|days)\b", re.I),
}
"""What a year and a week have is no finding: 12 × 1,150 over a year."""


def is_of_calendar(sentence: str, claim: Claim) -> bool:
    """Whether a bare factor is how many months or weeks a year has, or days a week, where one is spoken of."""
    pattern = None if claim.units or claim.number is None else _IN_A.get(claim.number)
    return pattern is not None and pattern.search(sentence) is not None


class _Sum(NamedTuple):
    """An expression that is written out, and the claims that may be its result."""

    first: int
    last: int
    results: tuple[int, ...]
    opens: bool


def derive(text: str, said: Sequence[Claim], supported: Sequence[bool]) -> dict[int, str]:
    """Claims that are the checked result of an expression in the text (`12 + 30 = 42`, `42 (12 + 30)`), or repeat one.

    Each sum is computed once, when the last of its figures is supported: one may rest on the result of another, in
    whatever order they are written. So the work grows with the length of the text, not with the number of sums in it.
    """
    return _Derivation(text, said, supported).run()


class _Derivation:
    """What becomes supported when a figure does: the sums that it stands in, and its repetitions."""

    def __init__(self, text: str, said: Sequence[Claim], supported: Sequence[bool]) -> None:
        self._text, self._said, self._supported = text, said, list(supported)
        self._found: dict[int, str] = {}
        self._sums: dict[int, _Sum] = {}
        """The sum that each figure stands in; no figure stands in two."""
        self._lacks: dict[int, int] = {}
        """How many figures of each sum are unsupported, by its first."""
        for one in _sums(text, said):
            self._sums |= dict.fromkeys(range(one.first, one.last + 1), one)
            self._lacks[one.first] = sum(not supported[n] for n in range(one.first, one.last + 1))
        # Only a derived figure is supported by its repetition: any other finds the fact behind it by itself.
        self._repeated: dict[tuple[Decimal | None, Units], list[int]] = defaultdict(list)
        for place, claim in enumerate(said):
            if not supported[place] and claim.number is not None:
                for number in dict.fromkeys((claim.number, claim.digits)):
                    self._repeated[(number, claim.units)].append(place)
        self._units = {claim.units for claim in said}

    def run(self) -> dict[int, str]:
        """The place of each claim that is derived, and the expression behind it."""
        whole = [one for one in dict.fromkeys(self._sums.values()) if not self._lacks[one.first]]
        waiting = [place for one in whole for place in self._compute(one)]
        while waiting:
            place = waiting.pop()
            one = self._sums.get(place)
            if one is not None:
                self._lacks[one.first] -= 1
                if not self._lacks[one.first]:
                    waiting += self._compute(one)
            waiting += self._repeat(place)
        return self._found

    def _support(self, place: int, path: str) -> bool:
        """Whether a claim is supported that was not before."""
        if self._supported[place]:
            return False
        self._supported[place] = True
        self._found[place] = path
        return True

    def _compute(self, one: _Sum) -> list[int]:
        run = self._said[one.first : one.last + 1]
        written = self._text[run[0].start : run[-1].end]
        open_results = [place for place in one.results if not self._supported[place]]
        return [
            place
            for place in open_results
            if _agrees(self._text, run, self._said[place], opens=one.opens) and self._support(place, written)
        ]

    def _repeat(self, place: int) -> list[int]:
        claim, path = self._said[place], self._found[place]
        assert claim.number is not None
        fresh: list[int] = []
        for units in self._units:
            if not units or not claim.units or units & claim.units:
                # Taken out: nobody who comes later need look at them again.
                same = self._repeated.pop((claim.number, units), [])
                fresh += [other for other in same if self._support(other, path)]
        return fresh


def _sums(text: str, said: Sequence[Claim]) -> Iterator[_Sum]:
    place = 0
    while place < len(said):
        last = _run(text, said, place)
        if 0 < last - place < _MOST_TERMS:
            opens = _has_lead(text, said, place)
            after = (last + 1,) if _equals(text, said, last) else ()
            yield _Sum(place, last, (*after, *((place - 1,) if opens else ())), opens)
        place = max(place + 1, last)


def _gap(text: str, said: Sequence[Claim], left: int) -> str:
    return text[said[left].end : said[left + 1].start]


def _run(text: str, said: Sequence[Claim], first: int) -> int:
    """The last claim of the expression that begins with `first`."""
    last = first
    while last + 1 < len(said) and said[last].number is not None and said[last + 1].number is not None:
        match = _BETWEEN.match(_gap(text, said, last))
        if match is None or not match["op"]:
            break
        last += 1
    return last


def _equals(text: str, said: Sequence[Claim], last: int) -> bool:
    if last + 1 >= len(said):
        return False
    match = _BETWEEN.match(_gap(text, said, last))
    return match is not None and match["eq"] is not None


def _has_lead(text: str, said: Sequence[Claim], first: int) -> bool:
    return first > 0 and _OPENS.match(_gap(text, said, first - 1)) is not None


def _agrees(text: str, run: Sequence[Claim], result: Claim, *, opens: bool) -> bool:
    """Whether the expression comes to the result, within the fineness in which it is said."""
    if result.number is None:
        return False
    written = _as_python(text, run, opens=opens)
    value = _evaluate(written)
    units = NO_UNIT.union(*(claim.units for claim in run))
    other = bool(result.units and units and not result.units & units)
    # A sum keeps its unit, a product or quotient does not: acres and acres are no miles, but $90 / 30 acres is a price.
    if value is None or (other and "*" not in written and "/" not in written):
        return False
    # "12 / 48 = 25%": the quotient is a share of one, and is said in hundredths.
    if "percent" in result.units and "percent" not in units and abs(value) <= 1 < abs(result.number):
        value *= 100
    # Half of the last digit that is said, and never more than a twentieth: "about 40" is not 60.
    off = abs(value - result.number)
    return off <= result.step / 2 and off <= abs(result.number) / 20


def _as_python(text: str, run: Sequence[Claim], *, opens: bool) -> str:
    """The expression with its figures as decimals; a bracket that was opened before it is closed."""
    parts = [f"Decimal('{run[0].number}')"]
    for left, right in pairwise(run):
        marks = [_OPERATORS.get(mark.lower(), mark) for mark in text[left.end : right.start]]
        parts += [mark for mark in marks if mark in "+-*/()"]
        parts.append(f"Decimal('{right.number}')")
    written = "".join(parts)
    opened = opens and "(" in text[max(0, run[0].start - 2) : run[0].start]
    return written + ")" * max(0, written.count("(") - written.count(")")) if opened else written


def _evaluate(written: str) -> Decimal | None:
    """The value of numbers, the four operations and brackets; None for anything else."""
    try:
        # Parsed and walked, never evaluated: the text is a model's.
        tree = ast.parse(written, mode="eval").body
        return _value(tree)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> Decimal:
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        return Decimal(str(node.args[0].value))
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div():
                return left / right
    raise ValueError("not an expression over figures")
