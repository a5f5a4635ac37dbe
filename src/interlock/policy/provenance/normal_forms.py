"""The one form in which values are compared, wherever they stand: texts, numbers, dates, addresses, accounts, links."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from typing import Any

import msgspec

LONGEST_TEXT = 1_000_000
"""Characters of one text that are looked through; what comes after them is from nowhere."""
LEADING = ("address", "link", "account")
"""What leads somewhere, wherever it stands."""
_SHORT = 100
_COUNTED = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBERS = {word: str(number) for number, word in enumerate(_COUNTED, 1)}
"""What people write out."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<{0}>jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]*\.?"
_FILES = frozenset(("txt", "pdf", "doc", "docx", "csv", "md", "json", "png", "jpg", "jpeg", "gif", "xls", "xlsx")) | {
    *("ppt", "pptx", "html", "htm", "xml", "zip", "log", "yaml", "yml", "toml", "py"),
}
"""What a name may end in that is no host: bill.txt is a file."""

_WORDS = re.compile(r"[^\W_]+")
_ADDRESS = re.compile(r"(?<![\w.+%-])[\w.+%-]+@(?:[\w-]+\.)+[^\W\d_]{2,}")
_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"'`|]+|(?<![@\w.-])(?:[\w-]+\.)+[^\W\d_]{2,24}(?:/[^\s<>\"'`|]*)?")
_ACCOUNT = re.compile(r"\b[a-z]{2}\d{2}(?: ?[a-z0-9]{10,30}|(?: [a-z0-9]{4}){2,7}(?: [a-z0-9]{1,4})?)\b")
_CURRENCY = r"(?:eur|usd|gbp|chf|jpy|cny|inr|cad|aud|nzd|sek|nok|dkk|pln|czk|huf)"
_NUMBER = re.compile(
    rf"(?<![\w.,])(?:{_CURRENCY} ?)?"
    r"(?P<pointed>[-−]?(?:\d{1,3}(?:[, ']\d{3})+|\d{1,3}(?:,\d\d)+,\d{3}|\d+)(?:\.\d+)?)"
    rf"(?:{_CURRENCY}\b|(?!\w|[.,]\d))"
)
_WITH_COMMA = re.compile(
    rf"(?<![\w.,])(?:{_CURRENCY} ?)?(?P<comma>[-−]?(?:\d{{1,3}}(?:[. ']\d{{3}})+|\d+),\d\d)"
    rf"(?:{_CURRENCY}\b|(?!\w|[.,]\d))"
)
"""1.240,00 and 240,00, as they are written in most of Europe."""
_TIME = re.compile(
    r"\b(?P<hour>[01]?\d|2[0-3])(?:[:.](?P<minute>[0-5]\d)(?::[0-5]\d)?\s*(?P<half>[ap])?\.?m?\b|\s*(?P<only>[ap])\.?m\b)"
)
_POINTED = re.compile(r"\d+\.\d\d")
_DATE = re.compile(
    r"\b(?P<y1>\d{4})-(?P<m1>\d{1,2})-(?P<d1>\d{1,2})(?!\d)"
    rf"|\b{_MONTH.format('M2')}\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<y2>\d{{4}}))?"
    rf"|\b(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH.format('M3')}(?:,?\s+(?P<y3>\d{{4}}))?"
    r"|\b(?P<d4>\d{1,2})\.(?P<m4>\d{1,2})\.(?P<y4>\d{4})\b"
    r"|\b(?P<m5>\d{1,2})/(?P<d5>\d{1,2})/(?P<y5>\d{4})\b"
)
_DAY = r"(?P<{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_UNTIL = r"\s*(?:-|–|to|until|till|through|and)\s*(?:the\s+)?"
_RANGE = re.compile(
    rf"\b{_DAY.format('a1')}{_UNTIL}{_DAY.format('b1')}\s+(?:of\s+)?{_MONTH.format('M1')}(?:,?\s+(?P<y1>\d{{4}}))?"
    rf"|\b{_MONTH.format('M2')}\s+{_DAY.format('a2')}{_UNTIL}{_DAY.format('b2')}\b(?:,?\s+(?P<y2>\d{{4}}))?"
)


class Found(msgspec.Struct, frozen=True, gc=False):
    """A value of a kind that stands in a text: as it is compared, and as it is written there."""

    kind: str
    form: str
    shown: str


def plain(text: str) -> str:
    """A text without differences that nobody sees: compatibility forms, case, invisible characters, runs of spaces."""
    if text.isascii():
        return " ".join(text.lower().split())
    text = (
        unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u3002", ".")
    )  # an ideographic full stop parts hosts, too
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return " ".join(text.casefold().split())


_plain_short = lru_cache(maxsize=4_096)(plain)
"""A short text is asked for again and again: as an argument, in a result, and in a link."""


def words_of(text: str) -> list[str]:
    """The words of a text that `plain` has made: letters and digits, whatever stands between them."""
    return _WORDS.findall(text)


def form_of(value: Any) -> str:
    """How one value is compared: a number by its amount, a text by `plain`."""
    if type(value) is str:
        return _plain_short(value) if len(value) <= _SHORT else plain(value[:LONGEST_TEXT])
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, int | float | Decimal):
        return number_form(value)
    return plain(str(value)[:LONGEST_TEXT])


def number_form(value: object) -> str:
    """5, 5.0 and 5.00 are one number."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return plain(str(value))
    return f"{number.normalize():f}" if number.is_finite() else plain(str(value))


def find_values(text: str) -> Sequence[Found]:
    """Everything in a plain text that is of a kind: addresses, links, accounts, dates, times, numbers."""
    if _HINT.search(text) is None:
        return ()
    return _find_in_short(text) if len(text) <= _SHORT else _find(text)


def _find(text: str) -> tuple[Found, ...]:
    found: list[Found] = []

    def take(match: re.Match[str], read: Callable[[re.Match[str]], Iterator[Found]]) -> str:
        values = list(read(match))
        found.extend(values)
        return " " * len(match[0]) if values else match[0]  # what is a part of one is none of its own

    for pattern, read, hint in _KINDS:
        if hint is None or hint.search(text) is not None:
            text = pattern.sub(partial(take, read=read), text)
        if hint is _DOTTED and _DIGITS.search(text) is None:
            break
    return tuple(found)


_find_in_short = lru_cache(maxsize=4_096)(_find)
"""What is returned is asked for next: a short text is looked at once."""


def _address(match: re.Match[str]) -> Iterator[Found]:
    yield Found("address", match[0].strip(".-"), match[0])


def _account(match: re.Match[str]) -> Iterator[Found]:
    yield Found("account", match[0].replace(" ", ""), match[0])


def _number(match: re.Match[str]) -> Iterator[Found]:
    bare = match["pointed"].replace(",", "").replace(" ", "").replace("'", "").replace("−", "-")
    yield Found("number", number_form(bare), match[0])


def _with_comma(match: re.Match[str]) -> Iterator[Found]:
    bare = re.sub(r"[. ']", "", match["comma"]).replace(",", ".").replace("−", "-")
    yield Found("number", number_form(bare), match[0])


def _link(match: re.Match[str]) -> Iterator[Found]:
    shown = match[0].rstrip(".,;:!?)]}")
    form = shown.removeprefix("https://").removeprefix("http://").removeprefix("www.").rstrip("/")
    host = form.partition("/")[0]
    if "." in host and (shown != form or "/" in form or host.rpartition(".")[2] not in _FILES):
        yield Found("link", form, shown)


def _dates(match: re.Match[str]) -> Iterator[Found]:
    """With its year, and without: a user who says May 15 means the year that the tool is told."""
    parts = {key[0]: value for key, value in match.groupdict().items() if value}
    month = _MONTHS.index(parts["M"][:3]) + 1 if "M" in parts else int(parts["m"])
    day, year = int(parts["d"]), parts.get("y")
    pairs = [(month, day)]
    if match["m5"] is not None and day <= 12:
        pairs.append((day, month))
    for first, second in pairs:
        if 1 <= first <= 12 and 1 <= second <= 31:
            without = f"{first:02d}-{second:02d}"
            yield Found("date", without if year is None else f"{year}-{without}", match[0])


def _range(match: re.Match[str]) -> Iterator[Found]:
    """From one day to another of the same month: both."""
    parts = {key[0]: value for key, value in match.groupdict().items() if value}
    month, year = _MONTHS.index(parts["M"][:3]) + 1, parts.get("y")
    for day in (int(parts["a"]), int(parts["b"])):
        if 1 <= day <= 31:
            form = f"{month:02d}-{day:02d}"
            yield Found("date", form if year is None else f"{year}-{form}", match[0])


def _time(match: re.Match[str]) -> Iterator[Found]:
    hour, half = int(match["hour"]), match["half"] or match["only"]
    if half == "p" and hour < 12:
        hour += 12
    if half == "a" and hour == 12:
        hour = 0
    yield Found("time", f"{hour:02d}:{match['minute'] or '00'}", match[0])
    if half is None and _POINTED.fullmatch(match[0].strip()):  # 12.50 is as often an amount
        yield Found("number", number_form(match[0].strip()), match[0])


_AT, _DOTTED, _DIGITS = re.compile("@"), re.compile(r"\.\w"), re.compile(r"\d")
"""What has to stand in a text so that it is worth looking for a kind: to look for that is quicker."""
_HINT = re.compile(r"[\d@]|\.\w")
"""A text without any of these has nothing of a kind."""
_KINDS = (
    (_ADDRESS, _address, _AT),
    (_LINK, _link, _DOTTED),
    (_ACCOUNT, _account, re.compile(r"[a-z]\d\d")),
    (_RANGE, _range, re.compile(r"[a-z]\.?\s+\d|\d(?:st|nd|rd|th)?\s+[a-z]")),
    (_DATE, _dates, re.compile(r"\d[-./]\d|[a-z]\.?\s+\d|\d(?:st|nd|rd|th)?\s+[a-z]")),
    (_TIME, _time, re.compile(r"\d[:.]\d|\d\s*[ap]\.?m")),
    (_WITH_COMMA, _with_comma, re.compile(r"\d,\d\d(?!\d)")),
    (_NUMBER, _number, None),
)
