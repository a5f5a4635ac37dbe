"""A text as a reader sees it: markup, unseen characters and letters that only look like ours are taken out.

What is found in it is shown to people in the text as it was written, so every character knows where it came from.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right

from interlock.values import Value

# Marks around a word; an underscore or a star between two letters or digits is part of a name or of a product.
_MARKUP = re.compile(
    r"\*{2,3}|~~|`{1,3}|</?[A-Za-z][^<>\n]{0,60}>|<!--[^\n]{0,80}?-->"
    r"|(?<!\w)[*_](?=[^\s*_])|(?<=[^\s*_])[*_](?!\w)|\\(?=[*_`~#$%&{}])"
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});")
_LIKE_OURS = str.maketrans(
    {
        **dict(zip("АВЕКМНОРСТУХаеорсухіјѕԁһӏ", "ABEKMHOPCTYXaeopcyxijsdhl", strict=True)),
        **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονι", "ABEZHIKMNOPTYXovi", strict=True)),
        "ſ": "s",
        "ı": "i",
        "İ": "I",
        "\u2044": "/",
        "\u2215": "/",
        "\u066b": ".",
        "\u066c": ",",
    }
)
_SPACES = re.compile(r"[\u2000-\u200a\u205f\u3000]")
_KEPT = frozenset("²³°µΩ℃℉½¼¾⅓⅔⅛⅕⅖⅗⅘⅙⅚⅜⅝⅞⅐⅑⅒™№")
"""What NFKC would turn into something that is read otherwise: m² is not m2 of a name, ½ is no 1⁄2 behind a 3."""
_LATIN = re.compile(r"[A-Za-z]")


class NormalText(Value, frozen=True):
    """A text as it is read, and where its characters stand in the text as it was written."""

    text: str
    _starts: tuple[int, ...] = ()
    """Where runs begin in the normal text; both are in order."""
    _shifts: tuple[int, ...] = ()
    """How far a run has moved."""
    _written: int = 0

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """The span in the text as it was written."""
        first = self._origin(start)
        return first, max(first, min(self._written, self._origin(end - 1) + 1)) if end > start else first

    def _origin(self, place: int) -> int:
        if not self._starts:
            return place
        at = bisect_right(self._starts, place) - 1
        return place + self._shifts[at] if at >= 0 else place


def normalise(written: str) -> NormalText:
    """The text as a reader sees it. Most texts are so already, and cost one look."""
    if written.isascii() and _MARKUP.search(written) is None and "&" not in written:
        return NormalText(written, _written=len(written))
    parts: list[str] = []
    starts: list[int] = []
    shifts: list[int] = []
    length = at = 0

    def add(text: str, origin: int) -> None:
        nonlocal length
        if not shifts or shifts[-1] != origin - length:
            starts.append(length)
            shifts.append(origin - length)
        parts.append(text)
        length += len(text)

    for start, end, instead in _replacements(written):
        for place, char in enumerate(written[at:start], at):
            if shown := _show(char):
                add(shown, place)
        for char in instead:
            add(char, start)
        at = end
    for place, char in enumerate(written[at:], at):
        if shown := _show(char):
            add(shown, place)
    return NormalText(_fold_mixed_words("".join(parts)), tuple(starts), tuple(shifts), len(written))


def _replacements(written: str) -> list[tuple[int, int, str]]:
    found = [(match.start(), match.end(), "") for match in _MARKUP.finditer(written)]
    found += [(match.start(), match.end(), html.unescape(match[0])) for match in _ENTITY.finditer(written)]
    kept: list[tuple[int, int, str]] = []
    for one in sorted(found):
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
    return kept


def _show(char: str) -> str:
    if char.isascii() or char in _KEPT:
        return char
    if _SPACES.match(char):
        return " "
    category = unicodedata.category(char)
    if category in ("Cf", "Mn", "Me") or char in "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0":
        return ""  # what is not seen: zero-width spaces, joiners, marks above a digit
    if category == "Nd":
        return str(unicodedata.digit(char))  # the figure that a reader of that script sees
    return unicodedata.normalize("NFKC", char)


_WORDS = re.compile(r"\w+")


def _fold_mixed_words(text: str) -> str:
    """Words that mix our letters with those that look like them, written in ours; a word of another script stays."""
    if text.isascii():
        return text

    def fold(match: re.Match[str]) -> str:
        word = match[0]
        ours = word.translate(_LIKE_OURS)
        # A word that mixes scripts becomes one of ours alone; a Russian word has letters that look like none of them.
        return ours if ours.isascii() and len(ours) == len(word) else word

    return _WORDS.sub(fold, text)
