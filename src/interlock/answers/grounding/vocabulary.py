"""`Vocabulary`: the words and patterns that recognisers look for, from tables that an application can add to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from interlock.answers.grounding.claims import Claim, Recogniser
from interlock.answers.grounding.cues import cue_patterns
from interlock.answers.grounding.figure_kinds import figure_kinds
from interlock.answers.grounding.foreign import ForeignWords
from interlock.answers.grounding.measures import Measures
from interlock.answers.grounding.patterns import one_of
from interlock.answers.grounding.recognisers.addresses import Domains, Mails, Phones, References, Urls
from interlock.answers.grounding.recognisers.citations import Citations
from interlock.answers.grounding.recognisers.dates import Dates, DayLists, MonthNames, Periods, Weekdays
from interlock.answers.grounding.recognisers.durations import Durations
from interlock.answers.grounding.recognisers.identifiers import Identifiers
from interlock.answers.grounding.recognisers.markers import blank, without_markers
from interlock.answers.grounding.recognisers.money import Money
from interlock.answers.grounding.recognisers.number_words import NumberWords, ordinal_words
from interlock.answers.grounding.recognisers.numbers import Numbers, NumbersOfResults, OddNumbers, OtherDigits
from interlock.answers.grounding.recognisers.times import Times
from interlock.answers.grounding.recognisers.unread import Unread
from interlock.answers.grounding.state_words import StateTable
from interlock.answers.grounding.units import UnitTable
from interlock.answers.grounding.words import WordTable
from interlock.errors import ConfigError
from interlock.toml_text import parse_toml

_TABLES = ("units", "numbers", "dates", "citations", "unread", "words", "derivations", "states", "foreign")


_STAMP = re.compile(
    r"(?P<day>(?:1[89]|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))(?:[T ]\d\d:\d\d[\d:.Z+-]{0,16})?"
)
_FIGURE = re.compile(r"[-+−$€£¥₹<>=~≥≤^]{0,3}[\d.½¼¾]")
_A_DIGIT = re.compile(r"\d")
_NUMBER_BEHIND = re.compile(r"(?P<name>(?:[A-Za-z]{1,40} ){1,8})(?P<digits>[0-9]{1,7})")
_SHORT, _MOST_READ = 80, 20_000


class Vocabulary:
    """Units, number words, months and citations, and the recognisers made from them."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables = tables
        self.units = UnitTable(tables["units"])
        self.words = WordTable(tables["words"])
        self.measures = Measures(tables["units"])
        self.measured = {kind: self.words.of_all(said) for kind, said in tables["units"]["measured"].items()}
        """What fields are about that hold a figure in such a unit."""
        self.foreign = ForeignWords(tables["foreign"])
        self.states = StateTable(tables["states"])
        self.figure_kinds = figure_kinds(self.states, self.words)
        self.cues = cue_patterns(tables["derivations"])
        """The words that say how a figure was made from others: total, left, on average."""
        self.field_magnitudes: dict[str, int] = tables["numbers"]["field_magnitudes"]
        """What the end of a field's name multiplies its figure by, as a power of ten: sales_bn."""
        days = tables["dates"]["weekdays"]
        self.calendar = frozenset([*tables["dates"]["months"], *days, *(f"{day}s" for day in days)])
        """Words with a capital that are no names of things."""
        numbers = Numbers(tables["numbers"], self.units)
        self.number_words = NumberWords(tables["numbers"], self.units, numbers)
        self._read: dict[str, tuple[Claim, ...]] = {}
        """Short texts of results that were read before: tables say the same in many rows."""
        self._plain_names: dict[tuple[str, int], bool] = {}
        """Whether a figure of so many digits behind a name is a plain one."""
        self._worth_reading = _worth_reading(tables)
        # The order matters: what one recogniser has found is out of the sight of the next.
        self._recognisers: tuple[Recogniser, ...] = (
            Urls(),
            Mails(),
            Domains(),
            Phones(),
            References(),
            Citations(tables["citations"]),
            DayLists(tables["dates"]),
            Dates(tables["dates"], ordinal_words(tables["numbers"])),
            Times(),
            Durations(tables["numbers"]),
            Weekdays(tables["dates"]),
            MonthNames(tables["dates"]),
            Periods(tables["dates"]),
            Money(self.units, self.number_words),
            Identifiers(numbers),
            OddNumbers(self.units),
            numbers,
            self.number_words,
            OtherDigits(),
            Unread(tables["unread"]),
        )
        # What nobody understands holds an answer back; in a result it says nothing, and comes last.
        plain = NumbersOfResults(numbers)
        self._of_results = tuple(plain if one is numbers else one for one in self._recognisers[:-1])

    def claims(self, text: str) -> tuple[Claim, ...]:
        """Everything in a text that can be checked, in order."""
        return self._find(text, self._recognisers)

    def _find(self, text: str, recognisers: Sequence[Recogniser]) -> tuple[Claim, ...]:
        found: list[Claim] = []
        text = without_markers(text)
        for recogniser in recognisers:
            mine = list(recogniser.find(text))
            if mine:
                found += mine
                text = blank(text, [(claim.start, claim.end) for claim in mine])
        return tuple(sorted(found, key=lambda claim: claim.start))

    def claims_in_evidence(self, text: str) -> tuple[Claim, ...]:
        """The figures and dates in a text of a result. Most are names, codes and timestamps, which cost a look."""
        one_word = " " not in text
        if one_word and text[:1].isalpha():
            return ()  # a code, or a word
        if _A_DIGIT.search(text) is None and self._worth_reading.search(text) is None:
            return ()
        stamp = _STAMP.fullmatch(text)
        if stamp is not None:
            day = tuple(int(part) for part in stamp["day"].split("-"))
            return (Claim("date", text, 0, len(text), date=(day[0], day[1], day[2])),)
        if one_word and _FIGURE.match(text) is None:
            return ()  # one word that begins with no figure: a code
        found = self._read.get(text)
        if found is None:
            found = self._number_behind_name(text)
        if found is None:
            found = tuple(claim for claim in self._find(text, self._of_results) if claim.kind in ("number", "date"))
            if len(text) <= _SHORT and len(self._read) < _MOST_READ:
                self._read[text] = found
        return found

    def _number_behind_name(self, text: str) -> tuple[Claim, ...] | None:
        """The figure of "Thing 12", where a name is followed by nothing but a plain figure; None where it may be more.

        Tables have thousands of such names, one for each row. Whether the words before it make something else of the
        figure (Section 12, June 12) is found out once for the name.
        """
        match = _NUMBER_BEHIND.fullmatch(text) if len(text) <= _SHORT else None
        if match is None:
            return None
        name, digits = match["name"], match["digits"]
        key = (name, len(digits))
        if key not in self._plain_names:
            if len(self._plain_names) >= _MOST_READ:
                return None
            like = self._find(f"{name}1{'0' * (len(digits) - 1)}", self._of_results)
            self._plain_names[key] = (
                len(like) == 1 and like[0].kind == "number" and like[0].start == len(name) and not like[0].units
            )
        if not self._plain_names[key]:
            return None
        return (Claim("number", digits, len(name), len(text), number=Decimal(digits)),)

    def extend(self, file: Path) -> Vocabulary:
        """This vocabulary with the tables of a file added: the same tables, with entries of its own."""
        try:
            more = parse_toml(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{file}: is no vocabulary: {error}") from None
        strange = sorted(set(more) - set(_TABLES))
        if strange:
            raise ConfigError(f"{file}: there is no table {strange[0]!r}; a vocabulary has {', '.join(_TABLES)}")
        try:
            return Vocabulary(_merge(self._tables, more))
        except (ConfigError, re.error) as error:
            raise ConfigError(f"{file}: {error}") from None


@cache
def default_vocabulary() -> Vocabulary:
    """The vocabulary of everyday English."""
    folder = files("interlock.answers.grounding") / "tables"
    return Vocabulary({name: parse_toml((folder / f"{name}.toml").read_text(encoding="utf-8")) for name in _TABLES})


def _worth_reading(tables: Mapping[str, Any]) -> re.Pattern[str]:
    spelled = one_of([*tables["numbers"]["words"], *tables["numbers"]["large"], *tables["dates"]["months"]])
    return re.compile(rf"[\d@½¼¾⅓⅔⅛⅕⅖⅗⅘⅙⅚⅜⅝⅞⅐⅑⅒]|://|\b{spelled}\b|noon|midnight", re.I)


def _merge(one: Any, more: Any) -> Any:
    if isinstance(one, dict) and isinstance(more, dict):
        return {
            key: _merge(one[key], more[key]) if key in one and key in more else (one | more)[key] for key in one | more
        }
    # Lists grow, values are replaced: an application adds spellings and does not lose ours.
    return [*one, *more] if isinstance(one, list) and isinstance(more, list) else more
