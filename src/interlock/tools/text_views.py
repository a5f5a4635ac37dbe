"""A text as decoding shows it, with the places kept: escapes resolved, broken lines joined, digits put together."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from unicodedata import category, normalize

import msgspec

Span = tuple[int, int]

_KINDS = {
    # URLs; JSON, Python and JavaScript; HTML and XML.
    "%": r"(?:%[0-9A-Fa-f]{2})+",
    "\\": r"(?:\\u[0-9A-Fa-f]{4})+|\\u\{[0-9A-Fa-f]{1,6}\}|\\U[0-9A-Fa-f]{8}|(?:\\x[0-9A-Fa-f]{2})+|\\[abfnrtv0/\"'\\]",
    "&": r"&(?:#0*[0-9]{1,7};?|#[xX]0*[0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)",
}
_ESCAPES = {mark: re.compile(kind) for mark, kind in _KINDS.items()}
_ANY_ESCAPE = re.compile("|".join(_KINDS.values()))
_MAY_BE_ESCAPED = re.compile(r"[%\\&]")
_BREAKS = re.compile(r"[\r\n\v\f\x85\u2028\u2029]+[ \t]*")
_PLUS = re.compile(r"\+")
_SEPARATORS = re.compile(r"(?<=\d)[,.' _\u00a0\u2009\u2019\u202f-](?=\d\d)")
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
"""What takes no room on a page: what Unicode has ignored by default, and the other marks for formats."""
_MAY_BE_READ_OTHERWISE = re.compile(
    "|".join(pattern.pattern for pattern in (_MAY_BE_ESCAPED, _BREAKS, _SEPARATORS, _UNSEEN))
)
_VOICED = "\uff9e\uff9f"
"""Marks of half-width kana, which are letters of their own there."""
_JAMO = "\u1160\u11ff"
"""Vowels and endings of Korean syllables, from the first to the last: letters that are one with those before them."""
_MOST_ROUNDS = 3
"""How often text may have been escaped on top of itself."""
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}


class View(msgspec.Struct, frozen=True):
    """A text as decoding shows it, and where each of its characters (and its end) stood; no places: where they are."""

    text: str
    places: list[int] | None = None

    def span(self, start: int, end: int) -> Span:
        """A part of it, as a part of the text that was decoded."""
        return (start, end) if self.places is None else (self.places[start], self.places[end])


def views(text: str) -> Iterator[View]:
    """The text, and what else it may be read as."""
    whole = View(text)
    if not text.isascii() and _UNSEEN.search(text) is not None:
        yield whole
        whole = _replace(whole, _UNSEEN, "")
    for view in _decode_view(whole):
        yield from _join(view)


def _decode_view(whole: View) -> Iterator[View]:
    """The text with its escapes resolved, and as forms write it: a plus is a space, one of the text itself escaped."""
    for view in _unescape(whole):
        yield view
        if view is not whole and "+" in view.text:  # a form inside another
            yield _replace(view, _PLUS, " ")
    if "+" in whole.text:
        yield from _unescape(_replace(whole, _PLUS, " "))


def _join(view: View) -> Iterator[View]:
    """The view, and what it is without what may stand between its letters: escapes can hide that as well."""
    yield view
    if not view.text.isascii() and _UNSEEN.search(view.text) is not None:
        view = _replace(view, _UNSEEN, "")
        yield view
    lines = [view]
    if _BREAKS.search(view.text) is not None:  # base64, keys and certificates are broken into lines
        lines.append(_replace(view, _BREAKS, ""))
        yield lines[-1]
    for one in lines:
        if not one.text.isascii():
            yield _normalize(one)
        if _SEPARATORS.search(one.text) is not None:
            yield _replace(one, _SEPARATORS, "")


def _normalize(view: View) -> View:
    """The view in one form: letters that are written as several, or several as one (ß and ss, ﬃ, u and its dots)."""
    text, places, start, letters = list[str](), list[int](), 0, view.text
    for at in range(1, len(letters) + 1):
        if at < len(letters) and _belongs_to_last(letters[at]):
            continue
        made = normal_form(letters[start:at])
        text.append(made)
        places += [start] * len(made)
        start = at
    places.append(len(letters))
    return View("".join(text), places if view.places is None else [view.places[place] for place in places])


def _belongs_to_last(letter: str) -> bool:
    """Whether a letter may be one with that before it."""
    if letter.isascii():
        return False
    return category(letter)[0] == "M" or letter in _VOICED or _JAMO[0] <= letter <= _JAMO[1]


def normal_form(text: str) -> str:
    """One form of a text, whatever its case, its width and how its letters are put together."""
    return normalize("NFKC", normalize("NFKC", text).casefold())


def readings(text: str) -> set[str]:
    """What views of another text would show in place of this one: itself, decoded, in one line, in digits alone."""
    if _MAY_BE_READ_OTHERWISE.search(text) is None:
        return {text}
    seen = _UNSEEN.sub("", text)
    found = {view.text for one in {text, seen} for view in _unescape(View(one))}
    found |= {_UNSEEN.sub("", one) for one in found}
    found |= {_BREAKS.sub("", one) for one in found}
    return found | {_SEPARATORS.sub("", one) for one in found}


def _unescape(view: View) -> Iterator[View]:
    """The view, and what it is when escapes are resolved once, twice, and so on.

    Of several kinds all together, as one may stand inside another, and each alone, as what looks like another may be
    none.
    """
    yield view
    if _MAY_BE_ESCAPED.search(view.text) is None:
        return
    kinds = [kind for mark, kind in _ESCAPES.items() if mark in view.text and kind.search(view.text) is not None]
    for kind in kinds if len(kinds) < 2 else (_ANY_ESCAPE, *kinds):
        again = view
        for _round in range(_MOST_ROUNDS):
            again = _replace(again, kind, None)
            yield again
            if kind.search(again.text) is None:
                break


def _replace(view: View, pattern: re.Pattern[str], by: str | None) -> View:
    """The view with what the pattern finds replaced, or decoded (`None`), and the places kept."""
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
    """The characters of a run of escapes of one kind, and how much of it each takes."""
    match escapes[0], escapes[1]:
        case "%", _:
            return _decode_bytes(escapes.replace("%", ""), 3)
        case "&", "#":
            digits = escapes[2:].rstrip(";").lower()
            return _decode_number(int(digits[1:], 16) if digits[0] == "x" else int(digits), escapes)
        case "&", _:
            shown = html.unescape(escapes)
            return [(shown, len(escapes))] if len(shown) == 1 else _as_it_is(escapes)
        case _, "x":
            return _decode_bytes(escapes.replace("\\x", ""), 4)
        case _, "u":
            if escapes[2] == "{":
                return _decode_number(int(escapes[3:-1], 16), escapes)
            units = bytes.fromhex(escapes.replace("\\u", ""))
            letters = units.decode("utf-16-be", "surrogatepass")
            return [(letter, 6 if ord(letter) < 0x10000 else 12) for letter in letters]
        case _, "U":
            return _decode_number(int(escapes[2:], 16), escapes)
        case _, letter:
            return [(_LETTERS.get(letter, letter), 2)]


def _decode_number(number: int, escapes: str) -> list[tuple[str, int]]:
    return [(chr(number), len(escapes))] if number < 0x110000 else _as_it_is(escapes)


def _as_it_is(escapes: str) -> list[tuple[str, int]]:
    return [(letter, 1) for letter in escapes]


def _decode_bytes(digits: str, width: int) -> list[tuple[str, int]]:
    # A byte that is no part of a character stands for itself: it must not hide those before it.
    letters = bytes.fromhex(digits).decode("utf-8", "surrogateescape")
    return [
        (chr(ord(letter) - 0xDC00), width) if "\udc80" <= letter <= "\udcff" else (letter, width * len(letter.encode()))
        for letter in letters
    ]
