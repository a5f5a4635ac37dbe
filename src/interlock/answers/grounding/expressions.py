"""Figures that an answer derives itself: only with the sum written out, over figures that are supported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, DivisionByZero, InvalidOperation
from itertools import pairwise

from interlock.answers.grounding.claims import NO_UNIT, Claim

# What may stand between two figures of a sum: an operator, brackets and up to two words ("12 acres burned + 30"), or
# what leads to its result. Prose that merely has a figure on both sides ("12 of the 30") must not match.
_BETWEEN = re.compile(
    r"^[\s()]*(?:[A-Za-z]+\s+){0,2}(?P<op>[+\-−–×x*·/÷])[\s()]*$|^\s*\)?\s*(?P<eq>=|≈|equals|is|gives)\s*\(?\s*$", re.I
)
_OPERATORS = {"−": "-", "–": "-", "×": "*", "x": "*", "·": "*", "÷": "/"}
# The result first: "42 (12 + 30)", "42 acres: 12 + 30". Short, and within one sentence, so that no figure is supported
# by a sum that belongs to another.
_OPENS = re.compile(r"^[^.;\n()=]{0,40}(?:\(|:|=)\s*\(*\s*$")


def derivations(text: str, said: Sequence[Claim], supported: Sequence[bool]) -> Iterator[tuple[int, str]]:
    """Claims that are the checked result of an expression in the text: `12 + 30 = 42`, or `42 (12 + 30)`."""
    place = 0
    while place < len(said):
        last = _run(text, said, place)
        if last > place and all(supported[n] for n in range(place, last + 1)):
            written = text[said[place].start : said[last].end]
            for result in (
                last + 1 if _equals(text, said, last) else -1,
                place - 1 if _has_lead(text, said, place) else -1,
            ):
                if result >= 0 and _agrees(
                    text, said[place : last + 1], said[result], opens=_has_lead(text, said, place)
                ):
                    yield result, written
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
    except (SyntaxError, ValueError, DivisionByZero, InvalidOperation, RecursionError):
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
