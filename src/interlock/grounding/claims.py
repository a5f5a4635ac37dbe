"""What an answer claims that can be checked: figures, dates, identifiers, citations, addresses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from interlock.grounding.units import NO_UNIT, SPOKEN, Units, units_of
from interlock.values import Value

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH = "|".join([*_MONTHS, *(f"{name[:3]}\\.?" for name in _MONTHS), r"sept\.?"])
_WORDS = {
    word: number
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
            "twenty",
        ]
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "dozen": 12}
_MAGNITUDE = {
    "lakh": 5,
    "crore": 7,
    "tn": 12,
    "quadrillion": 15,
    "thousand": 3,
    "grand": 3,
    "k": 3,
    "million": 6,
    "m": 6,
    "mn": 6,
    "billion": 9,
    "bn": 9,
    "trillion": 12,
}

_URL = re.compile(r"https?://[^\s<>\"')\]]+[^\s<>\"')\].,;:!?]", re.I)
_SECTION = r"[\w.\-]{0,20}?\d[\w.\-]{0,20}(?:\([\w]{1,6}\)){0,6}"
_CITATION = re.compile(
    r"\b\d+\s+(?:C\.?F\.?R\.?|U\.?S\.?C\.?|F\.?R\.?|Fed\.\s?Reg\.|F\.[23]d|U\.S\.|Stat\.)\s*"
    rf"(?:Part\s+|§{{1,2}}\s?)?{_SECTION}"
    r"|\b(?:FSH|FSM|DOI|EO|E\.O\.|Executive Order|P\.?L\.?|Pub\.\s?L\.|RFC|ISO|ASTM)\s*(?:No\.\s*)?"
    r"\d[\w.\-]*(?:\([\w]+\))*"
    rf"|§{{1,2}}\s?{_SECTION}"
    r"|\b(?:Rule|Section|Sec\.|Article|Art\.|Chapter|Appendix|Annex|Clause|Form|Schedule|Exhibit|Paragraph)\s+"
    r"\d[\w.\-]*(?:\([\w]+\))*"
    r"|\b10\.\d{4,9}/[^\s,;]+"
    r"|\([A-Z][A-Za-z'’\-]+(?: (?:et al\.|and|&) ?(?:[A-Z][A-Za-z'’\-]+)?)?,? (?:1\d|20)\d\d[a-z]?\)"
)
_DATE = re.compile(
    r"\b(?P<y1>(?:1\d|20)\d\d)-(?P<m1>\d\d)(?:-(?P<d1>\d\d))?"
    r"(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?\b"
    rf"|\b(?P<M2>{_MONTH})\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<y2>(?:1\d|20)\d\d))?\b"
    rf"|\b(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?(?P<M3>{_MONTH})(?:,?\s+(?P<y3>(?:1\d|20)\d\d))?\b"
    rf"|\b(?P<M4>{_MONTH})\s+(?P<y4>(?:1\d|20)\d\d)\b"
    r"|\b(?P<d6>\d{1,2})\.(?P<m6>\d{1,2})\.(?P<y6>(?:1\d|20)\d\d)\b"
    r"|\b(?P<m5>\d{1,2})/(?P<d5>\d{1,2})/(?P<y5>(?:1\d|20)?\d\d)\b",
    re.I,
)
_DAYS = re.compile(
    rf"\b(?P<month>{_MONTH})\s+(?P<first>\d{{1,2}})(?:st|nd|rd|th)?\s*(?:and|&|–|-)\s*"
    r"(?P<second>[12]?\d|3[01])(?:st|nd|rd|th)?(?![\d:])(?:,?\s+(?P<year>(?:1\d|20)\d\d))?\b",
    re.I,
)
_PERIOD = re.compile(r"\b(?:FY|CY|Q|H|W)[ -]?(?P<n>\d{1,4})\b")
_TIME = re.compile(
    r"(?<![\d:-])(?P<h>\d{1,2}):(?P<m>\d\d)(?::\d\d)?(?:\s?(?P<half>[ap])\.?m\b\.?)?(?!\d|:\d)"
    r"|\b(?P<h2>\d{1,2})\s?(?P<half2>[ap])\.?m\b\.?",
    re.I,
)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ](\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
_REFERENCE = re.compile(r"\brecords? #?(?P<n>\d+)\b", re.I)
_IDENTIFIER = re.compile(
    r"(?<![\w.])v?\d+\.\d+(?:\.\d+)+(?![\w])|(?<![\w-])[A-Z]{1,4}-[A-Z]{4,}(?![\w-])|"
    r"(?<![\w.,/-])(?=[\w:./-]{0,80}\d)(?=[\w:./-]{0,80}[A-Za-z])[A-Za-z0-9]{1,40}"
    r"(?:[-_:./][A-Za-z0-9]{1,40}){1,12}(?![\w-])"
    r"|(?<![\w-])[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,12}(?![\w-])"
    r"|(?<![\w./-])[A-Z]{1,5}\d\w{0,40}(?![\w-])"
)
_NOT_IDENTIFIERS = re.compile(r"CO2|H2O|CH4|N2O|A[34]", re.I)
_A_RATE = re.compile(r"[\d.,]+/")
_A_KIND = re.compile(r"\d{1,6}-[a-z]{3,}(?:-[a-z]+)*")
_SAME_LETTERS = str.maketrans({"ſ": "s", "\u212a": "K", "\u212b": "A"})  # letters that only look like others
_ZONE = re.compile(r"\b(?:UTC|GMT)\s?[+\-−–]\s?\d{1,2}(?::\d\d)?\b")
_ENUMERATOR = re.compile(r"(?m)^[ \t]{0,12}\(?(?P<n>\d{1,2})[.)](?=[ \t])")
_UNIT = "|".join(map(re.escape, SPOKEN)).replace(r"\ ", r"[\s-]")
_NUMBER = re.compile(
    rf"(?P<minus>(?<![\w)])[-−–](?=[$€£¥₹]))?(?P<lead>(?:US|C|A)\$|[$€£¥₹])?\s?(?P<sign>(?<![\w)])[-−–])?(?<![A-Za-z0-9])(?<!\d[.,])(?P<digits>\d{{1,3}}(?:[,\u202f\u00a0]\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?(?:[eE][+-]?\d{{1,3}})?|\.\d+)"
    rf"(?P<ord>st|nd|rd|th)?(?:[\s-]?(?P<mag>lakh|crore|tn|quadrillion|thousand|grand|million|billion|trillion|bn|mn|k|M)(?![\w/²³]))?"
    rf"(?:[\s-]?(?P<unit>{_UNIT})(?![\w]|\s?\d))?",
    re.I,
)
_LARGE = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
_A_WORD = "|".join([*_WORDS, *_LARGE])
_SPELLED = re.compile(
    rf"\b(?P<part>half|(?:a |one |three )?quarters? of) an? (?P<whole>million|billion)\b"
    rf"|\b(?P<word>(?:a )?(?:{_A_WORD})(?:(?:[\s-]+(?:and\s+)?)(?:{_A_WORD}))*)\b(?:[\s-](?P<unit>{_UNIT})\b)?",
    re.I,
)
_ABOUT = re.compile(
    r"(?:about|around|approximately|close to|approx\.?|roughly|some|~|≈|c\.|circa|(?P<above>over|more than|just over)"
    r"|(?P<below>under|less than|just under|nearly|almost))\s*$",
    re.I,
)
_DIRECTION = re.compile(r"\s?[NESW]\b")
_LOSS = re.compile(
    r"\b(?:decreas|declin|drop|fell|fall|loss|lost|lower|less|below|down|reduc|minus|negative)\w*\b", re.I
)


class Claim(Value, frozen=True):
    """One checkable thing in a text."""

    kind: str
    """number, date, time, identifier, citation, url, mail, reference"""
    text: str
    start: int
    end: int
    number: Decimal | None = None
    digits: Decimal | None = None
    """The number as it is written, before "million"."""
    step: Decimal = Decimal(1)
    """How finely the number is said: 0.1 for 41.5, 1000 for 12 thousand."""
    units: Units = NO_UNIT
    date: tuple[int | None, int | None, int | None] = (None, None, None)
    either: bool = False
    """Day and month of the date may have changed places."""
    minutes: int | None = None
    about: bool = False
    bound: str = ""
    """More (>) or less (<) than the figure, where the words before it say so."""
    turned: bool = False
    """A direction follows (9.87° W), so that the figure may be kept with a sign."""
    falls: bool = False
    """The words before it speak of a decrease, so that a negative figure may be said without its sign."""


def spelled_out(words: str) -> list[int]:
    """The numbers from two on that stand as words in a name: `seven_day_max`."""
    return [_WORDS[word] for word in re.split(r"[_\W]+", words.lower()) if _WORDS.get(word, 0) >= 2]


def claims(text: str) -> tuple[Claim, ...]:
    """Everything in a text that can be checked, in order."""
    found: list[Claim] = []
    text, expected = text.translate(_SAME_LETTERS), 1
    for match in _ENUMERATOR.finditer(text):  # 1. 2. 3. of a list, not a line that begins with a figure
        if int(match["n"]) in (1, expected):
            expected = int(match["n"]) + 1
            text = _blank(text, match.start(), match.end())
    for match in _ZONE.finditer(text):
        text = _blank(text, match.start(), match.end())
    for finder in _FINDERS:
        for claim in finder(text):
            found.append(claim)
            text = _blank(text, claim.start, claim.end)
    return tuple(sorted(found, key=lambda claim: claim.start))


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + "\x00" * (end - start) + text[end:]


def _urls(text: str) -> Iterator[Claim]:
    for match in _URL.finditer(text):
        yield Claim("url", match[0], match.start(), match.end())


def _citations(text: str) -> Iterator[Claim]:
    for match in _CITATION.finditer(text):
        said = match[0].rstrip(".-]")
        yield Claim("citation", said, match.start(), match.start() + len(said))


def _references(text: str) -> Iterator[Claim]:
    for match in _REFERENCE.finditer(text):
        yield Claim("reference", f"record {match['n']}", match.start(), match.end())


def _mails(text: str) -> Iterator[Claim]:
    for match in _MAIL.finditer(text):
        yield Claim("mail", match[0], match.start(), match.end())


def _day_lists(text: str) -> Iterator[Claim]:
    """November 24 and 25, 1978: two dates."""
    for match in _DAYS.finditer(text):
        year, month = int(match["year"]) if match["year"] else None, _month(match["month"])
        yield Claim("date", text[match.start() : match.end("first")], match.start(), match.end("first"),
                    date=(year, month, int(match["first"])))  # fmt: skip
        start = match.start("second")
        yield Claim("date", text[start : match.end()], start, match.end(), date=(year, month, int(match["second"])))


def _periods(text: str) -> Iterator[Claim]:
    """FY2023, Q3, W12: a figure with its kind in front."""
    for match in _PERIOD.finditer(text):
        yield Claim("number", match[0], match.start(), match.end(), number=Decimal(match["n"]))


def _dates(text: str) -> Iterator[Claim]:
    for match in _DATE.finditer(text):
        parts = {key[0]: value for key, value in match.groupdict().items() if value}
        month = _month(parts["M"]) if "M" in parts else int(parts["m"]) if "m" in parts else None
        day = int(parts["d"]) if "d" in parts else None
        year = int(parts["y"]) if "y" in parts else None
        if year is not None and year < 100:
            year += 2000
        either = match["m5"] is not None and month is not None and day is not None and month <= 12
        if match["m5"] is not None and month is not None and month > 12:  # 28/11/2024: the day comes first
            month, day = day, month
        if (month is None or 1 <= month <= 12) and (day is None or 1 <= day <= 31):
            if month == 5 and year is None and match[0].islower():
                continue  # "may 3 people": the verb
            yield Claim("date", match[0], match.start(), match.end(), date=(year, month, day), either=either)


def _month(text: str) -> int:
    return next(n for n, name in enumerate(_MONTHS, 1) if name.startswith(text.lower()[:3]))


def _times(text: str) -> Iterator[Claim]:
    for match in _TIME.finditer(text):
        minutes = minutes_of(match)
        if minutes is not None:
            yield Claim("time", match[0], match.start(), match.end(), minutes=minutes)


def minutes_of(match: re.Match[str]) -> int | None:
    """A time of the day in minutes since midnight."""
    hour, minute = int(match["h"] or match["h2"]), int(match["m"] or 0)
    half = (match["half"] or match["half2"] or "").lower()
    if hour > 24 or minute > 59 or (half and not 1 <= hour <= 12):
        return None
    return (hour % 12 + (12 if half == "p" else 0) if half else hour) * 60 + minute


def times_in(text: str) -> tuple[int, ...]:
    """Every time of the day in a text, also those inside of timestamps, in minutes since midnight."""
    plain = _TIMESTAMP.sub(r" \1 ", text)
    return tuple(found for match in _TIME.finditer(plain) if (found := minutes_of(match)) is not None)


def _identifiers(text: str) -> Iterator[Claim]:
    for match in _IDENTIFIER.finditer(text):
        said = match[0]
        measured = _NUMBER.fullmatch(said.replace("/", " "))
        if _A_RATE.match(said) or _A_KIND.fullmatch(said):  # 73.8/MWh, 64-page
            continue
        figure = measured is not None and (measured["unit"] or measured["mag"])  # "12-month", "5ft" and "1.5M"
        if not figure and not _NOT_IDENTIFIERS.fullmatch(said):
            yield Claim("identifier", said, match.start(), match.end())


def _numbers(text: str) -> Iterator[Claim]:
    for match in _NUMBER.finditer(text):
        digits = re.sub(r"[,\u202f\u00a0]", "", match["digits"])
        places = len(digits.partition(".")[2])
        try:
            number = Decimal(digits)
        except InvalidOperation:  # pragma: no cover - the pattern admits only digits
            continue
        magnitude = match["mag"] or ""
        metres = magnitude == "m" and not match["lead"]
        power = 0 if magnitude == "" or metres else _MAGNITUDE[magnitude.lower()]
        units = units_of(match["lead"] or match["unit"] or ("m" if metres else ""))
        start = next(match.start(part) for part in ("minus", "lead", "sign", "digits") if match[part])
        before = text[max(0, start - 40) : start]
        about = _ABOUT.search(before)
        yield Claim(
            "number",
            text[start : match.end()].strip(),
            start,
            match.end(),
            number=number.scaleb(power) * (-1 if match["sign"] or match["minus"] else 1),
            digits=number if power else None,
            step=Decimal(1).scaleb(power - places),
            units=units,
            about=about is not None,
            bound="" if about is None else ">" if about["above"] else "<" if about["below"] else "",
            falls=_LOSS.search(before) is not None,
            turned=_DIRECTION.match(text, match.end()) is not None,
        )


def _spelled(text: str) -> Iterator[Claim]:
    """Numbers in words from two on: "one" is more often a pronoun."""
    for match in _SPELLED.finditer(text):
        if match["whole"]:
            share = Decimal("0.5") if match["part"].lower() == "half" else Decimal("0.25")
            share = Decimal("0.75") if match["part"].lower().startswith("three") else share
            number = share * _LARGE[match["whole"].lower()]
        else:
            number = Decimal(in_words(match["word"]))
        if number >= 2 or match[0].lower().startswith("zero"):
            units = units_of(match["unit"] or "")
            yield Claim("number", match[0], match.start(), match.end(), number=number, units=units)


def _other_digits(text: str) -> Iterator[Claim]:
    """Digits of other scripts, and characters that are numbers themselves (½); not the ² of m²."""
    for place, c in enumerate(text):
        if (
            not c.isascii()
            and unicodedata.category(c) in ("Nd", "No")
            and not text[max(0, place - 1) : place].isalpha()
        ):
            yield Claim("number", c, place, place + 1, number=Decimal(str(unicodedata.numeric(c))))


def in_words(text: str) -> int:
    """The number that words say: one hundred and twenty thousand."""
    total = group = 0
    for word in re.split(r"[\s-]+", text.lower()):
        if word in _WORDS:
            group += _WORDS[word]
        elif word == "hundred":
            group = max(1, group) * 100
        elif word in _LARGE:
            total += max(1, group) * _LARGE[word]
            group = 0
    return total + group


_FINDERS = (
    _urls,
    _mails,
    _references,
    _citations,
    _day_lists,
    _dates,
    _times,
    _periods,
    _identifiers,
    _numbers,
    _spelled,
    _other_digits,
)
