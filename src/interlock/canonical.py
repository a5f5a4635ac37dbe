"""JSON as Interlock accepts it: finite, shallow, UTF-8, one spelling per value."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

import msgspec
from msgspec.structs import replace

from interlock.values import FieldProblem, Json, clean, shorten

# Deeper than any contract needs, shallower than the parsers' own recursion limits.
MAX_DEPTH = 32
MAX_BYTES = 1_048_576
WHATEVER = 2**62
"""No limit: for what was let in already."""

_encode = msgspec.json.Encoder(order="deterministic").encode
encode_canonical = _encode
"""What was let in already, in canonical form: without a look at its depth, which a wrapper may have increased."""
_encode_as_given = msgspec.json.Encoder().encode


MOST_PROBLEMS = 10
"""So many problems are told of one value; whoever mends these learns of the rest."""
_LONGEST_MESSAGE = 300


class Refusal(Exception):
    """Arguments that the contract does not accept: one problem for each field that is wrong, up to `MOST_PROBLEMS`.

    Its sentence has a bound, however many names somebody invents and however long they are, and can be written down,
    whatever they are made of. `more`: how many problems
    there are beside those that are given.
    """

    def __init__(self, *problems: FieldProblem | str, more: int = 0) -> None:
        given = [p if isinstance(p, FieldProblem) else FieldProblem("", p) for p in problems[:MOST_PROBLEMS]]
        told = [
            replace(p, field=clean(shorten(p.field)), message=clean(shorten(p.message, _LONGEST_MESSAGE)))
            for p in given
        ]
        more += max(0, len(problems) - MOST_PROBLEMS)
        self.problems = (*told, *((FieldProblem("", f"and {more:,} more problems"),) if more else ()))
        super().__init__("; ".join(map(str, self.problems)))

    @property
    def fields(self) -> tuple[FieldProblem, ...]:
        """Those that are about one field."""
        return tuple(problem for problem in self.problems if problem.field)


def nearest(name: str, known: Iterable[str], count: int = 3, alike: int = 55) -> tuple[str, ...]:
    """The known names that `name` was most likely meant to be, the most alike first; `alike` at the least, of 100."""
    from rapidfuzz import fuzz, process, utils  # only when a name was wrong: not part of the start

    # Case and separators do not count (`Order-ID` is `order_id`). Measured on the names of this tree, 55 finds nearly
    # every name with one or two slips; 50 finds hardly more and suggests something for twice as many unrelated names.
    found = process.extract(
        name, list(known), scorer=fuzz.ratio, processor=utils.default_process, limit=count, score_cutoff=alike
    )
    return tuple(match for match, _, _ in found)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A short question naming the nearest known name, or nothing."""
    close = nearest(name, known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


_LEAVES = frozenset({str, int, bool, type(None)})


def guard(value: Json, path: str = "", depth: int = 0) -> None:
    """Refuse what JSON, the hash or the policy language cannot carry faithfully."""
    if isinstance(value, str | int) or value is None:
        return
    if isinstance(value, float):
        if not isfinite(value):
            raise Refusal(FieldProblem(path or "value", f"must be a finite number, not {value}"))
    elif depth >= MAX_DEPTH:
        raise Refusal(f"nested deeper than {MAX_DEPTH} levels (at {path})")
    elif isinstance(value, dict):
        _guard_object(value, path, depth)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if type(item) not in _LEAVES:
                guard(item, f"{path}[{index}]", depth + 1)
    else:
        raise Refusal(FieldProblem(path or "value", f"{type(value).__name__} is not a JSON value"))


def _guard_object(value: dict[Any, Json], path: str, depth: int) -> None:
    for key, item in dict.items(value):  # its own, as they are written: those of a subclass may have no end
        if type(key) is not str:
            raise Refusal(FieldProblem(path or "value", f"keys must be strings, not {type(key).__name__}"))
        kind = type(item)
        if kind not in _LEAVES and not (kind is float and isfinite(item)):
            guard(item, f"{path}.{key}" if path else key, depth + 1)


def canonical(value: Json, max_bytes: int = MAX_BYTES) -> bytes:
    """The one spelling of a value: sorted keys, no white space, UTF-8. `Refusal` for what JSON cannot carry."""
    try:
        text = _encode(value)
    except UnicodeEncodeError:
        raise Refusal("contains a lone surrogate; text must be valid Unicode") from None
    except RecursionError:
        raise Refusal(f"nested deeper than {MAX_DEPTH} levels") from None
    except (TypeError, ValueError):
        guard(value)
        raise Refusal(f"{type(value).__name__} is not a JSON value") from None
    if len(text) > max_bytes:
        raise Refusal(f"{len(text):,} bytes are more than the {max_bytes:,} allowed")
    # What the walk looks for leaves a trace in the text: NaN is written null, depth shows as brackets.
    # Only a text with such a trace is walked.
    if b"null" in text or (len(text) > 2 * MAX_DEPTH and text.count(b"{") + text.count(b"[") > MAX_DEPTH):
        guard(value)
    return text


def plain_bytes(arguments: Json) -> bytes:
    """Raw arguments for a flat contract without null, which refuses by itself what the walk would look for."""
    if type(arguments) is dict:
        try:
            text = _encode_as_given(arguments)
        except (TypeError, ValueError, RecursionError):
            return canonical(arguments)
        if len(text) <= MAX_BYTES:
            return text
    return arguments_bytes(arguments)


def arguments_bytes(arguments: Json) -> bytes:
    """Raw arguments in canonical form; they must be a JSON object."""
    if type(arguments) is not dict:
        kind = 'a JSON object (for example {"name": "value"})'
        raise Refusal(f"arguments must be {kind}, not {type(arguments).__name__}")
    return canonical(arguments)
