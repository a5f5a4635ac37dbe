"""Where secrets stand in a text: as they are, in other case, quoted, percent-encoded, in hexadecimal or base64."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator

import msgspec

from interlock.canonical import encode_canonical

Span = tuple[int, int]

_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_BREAKS = re.compile(r"[\r\n]+")
_PLUS = re.compile(r"\+")
_MOST_ROUNDS = 3
"""How often percent-encoding may have been applied on top of itself."""
_LEAST_CORE = 4
"""Fewer characters of base64 than these stand in ordinary words."""
_MOST_OVERLAPS = 256
"""Of one secret with itself, in one text: beyond, the whole text is taken for it instead of searching on and on."""


class View(msgspec.Struct, frozen=True):
    """A text as decoding shows it, and where each of its characters (and its end) stood; no places: where they are."""

    text: str
    places: list[int] | None = None

    def span(self, start: int, end: int) -> Span:
        """A part of it, as a part of the text that was decoded."""
        return (start, end) if self.places is None else (self.places[start], self.places[end])


class Spellings:
    """Secrets, and every spelling of them that is looked for."""

    def __init__(self, secrets: Iterable[str]) -> None:
        plain, cores = set[str](), set[tuple[str, int]]()
        for secret in secrets:
            plain.update(map(_fold, _plain_forms(secret)))
            cores.update(_base64_cores(secret))
        self._plain = sorted(plain)
        self._cores = sorted(cores)
        self._shortest = min(map(len, plain), default=0)

    def find(self, text: str) -> list[Span]:
        """The parts of the text that are a secret in any spelling, in their order, none touching another."""
        if not self._plain or len(text) < self._shortest:
            return []
        return _merge(sorted({span for view in _views(text) for span in self._in_view(view)}))

    def _in_view(self, view: View) -> Iterator[Span]:
        folded = _fold(view.text)
        for form in self._plain:
            for start, end in _occurrences(folded, form):
                yield view.span(start, end)
        # One alphabet of the two; no case is folded, as base64 in another case is another text.
        encoded = view.text.replace("-", "+").replace("_", "/")
        for core, before in self._cores:
            for start, end in _occurrences(encoded, core):
                # The characters on either side hold bits of the secret, too.
                yield view.span(max(0, start - before), min(len(encoded), end + 1))


def _plain_forms(secret: str) -> Iterator[str]:
    """The secret, as JSON and Python quote it, and in hexadecimal."""
    yield secret
    yield encode_canonical(secret).decode()[1:-1]
    yield json.dumps(secret)[1:-1]
    yield repr(secret)[1:-1]
    yield secret.encode("utf-8", "replace").hex()


def _base64_cores(secret: str) -> Iterator[tuple[str, int]]:
    """What base64 makes of the secret alone, whatever stands beside it, and how many characters before hold some of it.

    Three bytes are four characters, so there are three ways in which a secret can lie in a longer text.
    """
    data = secret.encode("utf-8", "replace")
    for shift in range(3):
        text = b64encode(b"\0" * shift + data).decode().rstrip("=")
        first, last = -(-8 * shift // 6), 8 * (shift + len(data)) // 6
        if last - first >= _LEAST_CORE:
            yield text[first:last], 1 if shift else 0


def _views(text: str) -> Iterator[View]:
    """The text, and what it is without line breaks (base64 is often broken into lines) and percent-encoding."""
    yield View(text)
    if "\n" in text:
        yield _replace(View(text), _BREAKS, "")
    yield from _unescape(View(text))
    if "+" in text:  # how forms write a space; a plus of the text itself is escaped there
        spaced = _replace(View(text), _PLUS, " ")
        yield spaced
        yield from _unescape(spaced)


def _unescape(view: View) -> Iterator[View]:
    for _round in range(_MOST_ROUNDS):
        if _ESCAPES.search(view.text) is None:
            return
        view = _replace(view, _ESCAPES, None)
        yield view


def _replace(view: View, pattern: re.Pattern[str], by: str | None) -> View:
    """The view with what the pattern finds replaced, or percent-decoded (`None`), and the places kept."""
    text, places, at = list[str](), list[int](), 0
    for match in pattern.finditer(view.text):
        text.append(view.text[at : match.start()])
        places += range(at, match.start())
        made = _decode(match[0]) if by is None else [(letter, len(match[0])) for letter in by]
        place = match.start()
        for letter, width in made:
            text.append(letter)
            places.append(place)
            place += width
        at = match.end()
    text.append(view.text[at:])
    places += range(at, len(view.text) + 1)
    if view.places is not None:
        places = [view.places[place] for place in places]
    return View("".join(text), places)


def _decode(escapes: str) -> list[tuple[str, int]]:
    """The characters of a run of percent escapes, and how much of it each takes."""
    data = bytes.fromhex(escapes.replace("%", ""))
    try:
        return [(letter, 3 * len(letter.encode())) for letter in data.decode()]
    except UnicodeDecodeError:
        return [(letter, 3) for letter in data.decode("latin-1")]


def _fold(text: str) -> str:
    """The text without regard to case, in which every character keeps its place."""
    if text.isascii():
        return text.lower()
    # One by one: what a letter becomes must neither depend on those beside it (Σ) nor take more room (ß).
    return "".join([one if len(one := letter.casefold()) == 1 else letter for letter in text])


def _occurrences(text: str, part: str) -> Iterator[Span]:
    """Every place of a part in a text, also where it overlaps itself."""
    start, last_end, overlaps = text.find(part), 0, 0
    while start >= 0:
        if start < last_end:
            overlaps += 1
            if overlaps > _MOST_OVERLAPS:
                yield 0, len(text)
                return
        last_end = start + len(part)
        yield start, last_end
        start = text.find(part, start + 1)


def _merge(spans: list[Span]) -> list[Span]:
    """Spans in order, those that touch made one."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
