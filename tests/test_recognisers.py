"""Recognisers of claims: what each finds, what it must not take, and that no text makes it fail or take for ever."""

from __future__ import annotations

import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlock.answers
from interlock.answers.constrained.tables import bound, negation
from interlock.answers.grounding import default_vocabulary
from interlock.answers.grounding.claims import Claim, Recogniser
from interlock.answers.grounding.patterns import repeats_within_repeat
from interlock.answers.grounding.recognisers.addresses import Domains, Mails, Phones, References, Urls
from interlock.answers.grounding.recognisers.citations import Citations
from interlock.answers.grounding.recognisers.dates import Dates, DayLists, MonthNames, Periods, Weekdays, month_number
from interlock.answers.grounding.recognisers.durations import Durations
from interlock.answers.grounding.recognisers.identifiers import Identifiers
from interlock.answers.grounding.recognisers.markers import without_markers
from interlock.answers.grounding.recognisers.number_words import NumberWords, ordinal_words
from interlock.answers.grounding.recognisers.numbers import Numbers, OddNumbers, OtherDigits
from interlock.answers.grounding.recognisers.times import Times, times_in
from interlock.answers.grounding.recognisers.unread import Unread
from interlock.answers.grounding.units import UnitTable
from tests.growth import LINEAR, growth


def table(name: str) -> dict[str, Any]:
    """One table of the vocabulary, as it is written."""
    text = (files("interlock.answers.grounding") / "tables" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


UNITS = UnitTable(table("units"))
NUMBERS = Numbers(table("numbers"), UNITS)
WORDS = NumberWords(table("numbers"), UNITS, NUMBERS)
DATES = Dates(table("dates"), ordinal_words(table("numbers")))
CITATIONS = Citations(table("citations"))
RECOGNISERS: dict[str, Recogniser] = {
    "urls": Urls(),
    "mails": Mails(),
    "domains": Domains(),
    "phones": Phones(),
    "references": References(),
    "citations": CITATIONS,
    "day lists": DayLists(table("dates")),
    "dates": DATES,
    "times": Times(),
    "durations": Durations(table("numbers")),
    "weekdays": Weekdays(table("dates")),
    "month names": MonthNames(table("dates")),
    "periods": Periods(table("dates")),
    "identifiers": Identifiers(NUMBERS),
    "odd numbers": OddNumbers(UNITS),
    "numbers": NUMBERS,
    "number words": WORDS,
    "other digits": OtherDigits(),
    "unread": Unread(table("unread")),
}


def texts(name: str, text: str) -> list[str]:
    return [claim.text for claim in RECOGNISERS[name].find(text)]


def only(recogniser: Recogniser, text: str) -> Claim:
    (claim,) = recogniser.find(text)
    return claim


# What each finds, and what it must not take


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("urls", "see https://a.example/b?c=d.", ["https://a.example/b?c=d"]),
        ("urls", "(HTTP://a.example/b), <https://c.example>", ["HTTP://a.example/b", "https://c.example"]),
        ("urls", "ftp://a.example, http:// and a.example", []),
        ("mails", "ann.b+c@mail.example.org, or bob@x.example.", ["ann.b+c@mail.example.org", "bob@x.example"]),
        ("mails", "@ann, a@b and 3 @ $5", []),
        ("references", "record 12 and Records #7", ["record 12", "record 7"]),
        ("references", "recorder 12, record twelve, a record of 12", []),
        ("citations", "36 CFR 220.6(e)(13), RFC 9110, § 1508.1", ["36 CFR 220.6(e)(13)", "RFC 9110", "§ 1508.1"]),
        ("citations", "by Section 14.2. (Miller et al., 2019)", ["Section 14.2", "(Miller et al., 2019)"]),
        ("citations", "doi 10.1000/182", ["10.1000/182"]),
        ("citations", "a form of 12, section by section, (see 2019), 3 CFRs", []),
        ("day lists", "November 24 and 25, 1978", ["November 24", "25, 1978"]),
        ("day lists", "Nov 3–5", ["Nov 3", "5"]),
        ("day lists", "November 24, 1978 and 25 trees; Nov 3 - 10:30", []),
        ("periods", "FY2023, Q3 and W-12", ["FY2023", "Q3", "W-12"]),
        ("periods", "Q33333, fy2023, HQ3", []),
        ("times", "15:41, 3:41 pm and 4 p.m.", ["15:41", "3:41 pm", "4 p.m."]),
        ("times", "25:00, 10:75, 13 pm, 16:9, 1:2", []),
        ("identifiers", "waldo-lake-3536, CASE_2024_17, v1.2.3", ["waldo-lake-3536", "CASE_2024_17", "v1.2.3"]),
        ("identifiers", "B-04 and AB-CDEF", ["B-04", "AB-CDEF"]),
        ("identifiers", "12-month, 5ft, CO2, 73.8/MWh, 64-page, well-known", []),
        ("numbers", "$3.5 million for 1,234.5 acres", ["$3.5 million", "1,234.5 acres"]),
        ("numbers", "5 in 3 of the 12th", ["5", "3", "12th"]),
        ("numbers", "x5, no figures, ½", []),
        ("number words", "half a million, or one hundred and two days", ["half a million", "one hundred and two days"]),
        ("number words", "one of them, someone, tenth, often", []),
        ("number words", "the tenth of them, on the twenty-third", ["tenth", "twenty-third"]),
        ("other digits", "½ of ٣", ["½", "٣"]),
        ("other digits", "m², 3, x½", []),
    ],
)
def test_what_is_found_and_what_is_not(name: str, text: str, found: list[str]) -> None:
    assert texts(name, text) == found


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2022-08-14", (2022, 8, 14)),
        ("2022-08-14T10:00:00Z", (2022, 8, 14)),
        ("2022-08", (2022, 8, None)),
        ("August 14, 2022", (2022, 8, 14)),
        ("14th of August", (None, 8, 14)),
        ("Sept. 3", (None, 9, 3)),
        ("14.8.2022", (2022, 8, 14)),
        ("28/11/2024", (2024, 11, 28)),
        ("8/9/24", (2024, 8, 9)),
        ("May 2022", (2022, 5, None)),
        ("May 3", (None, 5, 3)),
    ],
)
def test_a_date_is_a_year_a_month_and_a_day(text: str, date: tuple[int | None, ...]) -> None:
    assert only(DATES, text).date == date


@pytest.mark.parametrize("text", ["may 3 people go", "2022-13-01", "31/31/2024", "August 40", "33.1.2022", "3 of 4"])
def test_what_is_no_day_is_no_date(text: str) -> None:
    assert list(DATES.find(text)) == []


def test_day_and_month_may_have_changed_places_only_where_both_can_be_months() -> None:
    assert only(DATES, "8/9/2024").either
    assert not only(DATES, "28/11/2024").either
    assert not only(DATES, "2024-08-09").either


@pytest.mark.parametrize(("text", "number"), [("january", 1), ("Sep", 9), ("DEC.", 12)])
def test_months_are_known_by_their_first_letters(text: str, number: int) -> None:
    assert month_number(table("dates")["months"], text) == number


@pytest.mark.parametrize(
    ("text", "minutes"), [("15:41", 941), ("3:41 pm", 941), ("12 am", 0), ("12:30 p.m.", 750), ("24:00", 1440)]
)
def test_a_time_is_so_many_minutes(text: str, minutes: int) -> None:
    assert only(Times(), text).minutes == minutes


def test_times_inside_timestamps_are_known_too() -> None:
    assert times_in("2022-10-14T09:30:00Z and 15:41") == (570, 941)
    assert times_in("2022-10-14") == ()


@pytest.mark.parametrize(
    ("text", "number", "units"),
    [
        ("$3.5 million", "3500000", {"usd"}),
        ("-40 °C", "-40", {"celsius"}),
        ("-$5", "-5", {"usd"}),
        ("1,234.5 acres", "1234.5", {"acre"}),
        ("5m", "5", {"metre"}),
        ("$5m", "5000000", {"usd"}),
        ("5M", "5000000", set()),
        ("1e3", "1000", set()),
        ("12 km2", "12", {"square_kilometre"}),
        ("3 lakh", "300000", set()),
    ],
)
def test_a_figure_has_a_sign_a_magnitude_and_a_unit(text: str, number: str, units: set[str]) -> None:
    claim = only(NUMBERS, text)
    assert claim.number == Decimal(number)
    assert claim.units == units


def test_what_stands_beside_a_figure_says_how_it_is_meant() -> None:
    assert only(NUMBERS, "about 40").about
    assert only(NUMBERS, "over 10").bound == ">"
    assert only(NUMBERS, "nearly 9").bound == "<"
    assert only(NUMBERS, "it fell by 4").falls
    assert only(NUMBERS, "9.87° W").turned
    plain = only(NUMBERS, "it has 4")
    assert (plain.about, plain.bound, plain.falls, plain.turned) == (False, "", False, False)


@pytest.mark.parametrize(
    ("text", "step"), [("41.5", "0.1"), ("12 thousand", "1000"), ("7", "1"), ("$3.5 million", "1E5")]
)
def test_a_figure_is_as_fine_as_it_is_said(text: str, step: str) -> None:
    assert only(NUMBERS, text).step == Decimal(step)


def test_only_a_figure_with_a_unit_or_magnitude_is_a_figure_and_no_name() -> None:
    assert NUMBERS.is_figure("12-month")
    assert NUMBERS.is_figure("1.5M")
    assert not NUMBERS.is_figure("12")
    assert not NUMBERS.is_figure("waldo-12")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("one hundred and twenty thousand", 120_000),
        ("three million two hundred thousand and five", 3_200_005),
        ("twenty-one", 21),
        ("a hundred", 100),
        ("a dozen", 12),
        ("zero", 0),
        ("three quarters of a million", 750_000),
        ("quarter of a million", 250_000),
    ],
)
def test_words_that_are_a_number(text: str, number: int) -> None:
    assert only(WORDS, text).number == number


def test_numbers_from_two_on_in_a_name() -> None:
    assert WORDS.in_name("seven_day_max") == [7]
    assert WORDS.in_name("one_of_them") == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("1. trees\n2. roads\n3. bridges", []),
        ("(1) trees\n(2) roads", []),
        ("97. downed trees", ["97"]),  # a line that begins with a figure is no list
        ("1. trees\n7. roads", ["7"]),
        ("at noon (UTC+2)", []),
        ("GMT-11:30", []),
    ],
)
def test_numbers_of_a_list_and_offsets_of_time_zones_claim_nothing(text: str, left: list[str]) -> None:
    assert len(without_markers(text)) == len(text)
    assert texts("numbers", without_markers(text)) == left


@pytest.mark.parametrize("text", ["3 mıllıon", "half a mİllion", "ſeptember 3", "12 thouſand", "7 \u212a", "5 \u212b"])
def test_letters_that_only_look_like_others_are_read_as_those(text: str) -> None:
    """A pattern that ignores case takes them for the plain ones, and no table has them."""
    plain = text.translate(str.maketrans("ıİſ\u212a\u212b", "iIsKA"))
    found, expected = default_vocabulary().claims(text), default_vocabulary().claims(plain)
    assert [(claim.number, claim.date) for claim in found] == [(claim.number, claim.date) for claim in expected]
    assert expected


# Together


def test_what_one_has_found_is_out_of_the_sight_of_the_next() -> None:
    text = "1. On August 14, 2022 at 3:41 pm, case B-04 (36 CFR 220.6) cost $3.5 million; see https://a.example/7, record 12."
    found = [(claim.kind, claim.text) for claim in default_vocabulary().claims(text)]
    assert found == [
        ("date", "August 14, 2022"),
        ("time", "3:41 pm"),
        ("identifier", "B-04"),
        ("citation", "36 CFR 220.6"),
        ("number", "$3.5 million"),
        ("url", "https://a.example/7"),
        ("reference", "record 12"),
    ]


# Whatever a text holds

PIECES = (
    "1", "9", ",", ".", "-", "–", " ", "\n", "$", "€", "%", "°", "½", "٣", "²", "million", "mıllıon", "acres", "m", "K",
    "ſept", "May", "may", "August", "14", "2022", "/", ":", "pm", "T", "Z", "UTC+", "v1", "_", "A", "CFR", "§", "(", ")",
    "RFC", "record", "#", "@", "http://", "one", "hundred", "and", "half a", "about", "over", "fell", "W", "\x00", "\ud800",
)  # fmt: skip
ANY_TEXT = st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=24).map("".join)


@pytest.mark.parametrize("name", RECOGNISERS)
@given(text=ANY_TEXT)
def test_no_text_makes_it_fail_and_what_it_finds_stands_there(name: str, text: str) -> None:
    read = without_markers(text)
    assert len(read) == len(text)
    end = 0
    for claim in RECOGNISERS[name].find(read):
        assert end <= claim.start < claim.end <= len(text)
        assert name == "references" or claim.text in read[claim.start : claim.end]
        end = claim.end


@given(ANY_TEXT)
def test_claims_do_not_overlap_and_lie_inside_the_text(text: str) -> None:
    found = default_vocabulary().claims(text)
    places = [0, *(place for claim in found for place in (claim.start, claim.end)), len(text)]
    assert places == sorted(places)
    assert all(claim.start < claim.end for claim in found)


HOSTILE = (
    "9", "9,", "9.", "1,234", "9-", "a1-", "A_", "a.1", "a@", "a@b.", "http://", "§", "7 CFR ", "(A a, ", "January 1 and ",
    "one ", "a hundred and ", "12:", "1/", "$-", "½", "1. \n", "UTC+1 ", "record 1 ", "v1.", "ab-cd-", "3 million ", "   ",
)  # fmt: skip


@pytest.mark.parametrize("part", HOSTILE)
def test_four_times_the_text_takes_about_four_times_as_long(part: str) -> None:
    vocabulary = default_vocabulary()
    assert growth(lambda size: vocabulary.claims(part * (size // len(part))), 800) < LINEAR


def test_figures_in_a_row_are_all_claimed() -> None:
    claims = default_vocabulary().claims
    assert [claim.number for claim in claims("Classes 1,2,9")] == [1, 2, 9]
    assert [claim.number for claim in claims("1,234,567; 12,34,5; 1,2345")] == [1_234_567, 12, 34, 5, 1, 2345]
    assert [claim.text for claim in claims("3.5,4.5 and 1,234.5")] == ["3.5", "4.5", "1,234.5"]


@pytest.mark.parametrize("text", ["10:30-11:00", "10:30–11:00", "10:30 am-11:00 am", "10:30 a.m.-11:00 a.m."])
def test_from_one_time_to_another_are_two_times(text: str) -> None:
    assert [claim.minutes for claim in default_vocabulary().claims(text)] == [630, 660]
    assert times_in(text) == (630, 660)


def test_a_hyphen_before_a_time_otherwise_makes_it_none() -> None:
    assert [claim.kind for claim in default_vocabulary().claims("UTC-05:00")] == []
    assert times_in("2022-08-14T10:30:00-05:00") == (630,)


def patterns() -> Iterator[tuple[str, str]]:
    """Every pattern of the half that reads texts, whether it is a constant or made from a table."""
    for module in pkgutil.walk_packages(interlock.answers.__path__, "interlock.answers."):
        for name, value in vars(importlib.import_module(module.name)).items():
            held = value if isinstance(value, list | tuple) else [value, *getattr(value, "__dict__", {}).values()]
            for item in (part for one in held for part in (one if isinstance(one, tuple) else (one,))):
                if isinstance(item, re.Pattern):
                    yield f"{module.name}.{name}", item.pattern
    for recogniser in default_vocabulary()._recognisers:
        for name, item in vars(recogniser).items():
            if isinstance(item, re.Pattern):
                yield f"{type(recogniser).__name__}.{name}", item.pattern
    for made in (bound, negation):
        yield made.__name__, made().pattern


def test_no_pattern_repeats_without_bound_inside_of_another_repetition() -> None:
    found = dict(patterns())
    assert len(found) > 40
    assert [name for name, pattern in found.items() if repeats_within_repeat(pattern)] == []
    for pattern in ("(a+)+$", "(?:a|b*)*", "((a{2,})b)+", "(?:x(?=y*))+"):
        assert repeats_within_repeat(pattern)
    for pattern in ("(a{1,9})+$", "a+b+", "(?:a++b)*+", "(?:[^a]++)*+", "(ab)+"):
        assert not repeats_within_repeat(pattern)
