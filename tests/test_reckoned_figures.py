"""Figures in other forms, and figures that follow from others: the right one leaves, and its wrong twin is held."""

from __future__ import annotations

import pytest

from interlock.answers.grounding import Source, default_vocabulary, ground
from interlock.answers.requirements import CallSeen
from interlock.answers.staleness import mark_stale
from interlock.values import Status

FILMS = Source(
    "record 1",
    {
        "films": [
            {
                "film": "Low Tide",
                "starts": "20:40",
                "ends": "22:50",
                "minutes": 130,
                "seats": 120,
                "booked": 90,
                "takings_gbp": 1260,
            },
            {
                "film": "Two Rivers",
                "starts": "17:15",
                "ends": "19:00",
                "minutes": 105,
                "seats": 80,
                "booked": 36,
                "takings_gbp": 432,
            },
        ]
    },
)
QUOTES = Source(
    "record 2",
    {
        "currency": "EUR",
        "quotes": [
            {"quote": "Q-1", "firm": "Ashdown", "totalCents": 91240, "hours": 6},
            {"quote": "Q-2", "firm": "Birch", "totalCents": 65020, "hours": 4},
        ],
    },
)
POSTS = Source(
    "record 3",
    {
        "posts": [
            {"post": "North gate", "manned": True, "locked": False},
            {"post": "South gate", "manned": False, "locked": True},
            {"post": "Boiler room", "manned": True, "locked": False},
            {"post": "Chapel", "manned": False, "locked": True},
        ]
    },
)


def held(answer: str, *sources: Source) -> list[str]:
    return [claim.text for claim in ground(answer, sources).unsupported]


def check_both(right: str, wrong: str, *sources: Source) -> None:
    assert held(right, *sources) == []
    assert held(wrong, *sources) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Low Tide runs 2 h 10.", "Low Tide runs 2 h 40."),
        ("Low Tide runs a good two hours.", "Low Tide runs a good three hours."),
        ("Two Rivers runs a good hour and a half.", "Low Tide runs a good hour and a half."),
        ("Low Tide ends at ten to eleven.", "Low Tide ends at ten to midnight."),
        ("Two Rivers is on from 5:15 to 7 pm.", "Two Rivers is on from 6:15 to 7 pm."),
        ("Low Tide has taken 1,260 pounds.", "Low Tide has taken 1,620 pounds."),
    ],
)
def test_lengths_and_times_in_other_forms(right: str, wrong: str) -> None:
    check_both(right, wrong, FILMS)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("The wait was three quarters of an hour.", "The wait was a quarter of an hour."),
        ("It ran for 45 and a half hours.", "It ran for 46 and a half hours."),
        ("The fare is four euros sixty.", "The fare is four euros sixteen."),
        ("The fare is 4 euros and 60 cents.", "The fare is 4 euros and 6 cents."),
        ("A stop costs 35p.", "A stop costs 53p."),
        ("It is shut from Monday 3 to Friday 7 August.", "It is shut from Monday 3 to Saturday 8 August."),
    ],
)
def test_figures_in_two_parts(right: str, wrong: str) -> None:
    ferry = {
        "wait_min": 45,
        "ran_hours": 45.5,
        "fare_eur": 4.6,
        "stop_pence": 35,
        "shut_from": "2026-08-03",
        "shut_to": "2026-08-07",
    }
    check_both(right, wrong, Source("record 1", ferry))


def test_the_hour_behind_an_of_belongs_to_the_part_before_it() -> None:
    assert held("It took a quarter of an hour, a quarter more than planned.", Source("record 1", {"took_min": 15})) == [
        "a quarter"
    ]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Ashdown is dearer by €262.20.", "Ashdown is dearer by €226.20."),
        ("Q-1 comes to €912.40, €12.40 over your 900 euros.", "Q-1 comes to €912.40, €21.40 over your 900 euros."),
        ("Q-1 is 262.20 euros dearer than Q-2.", "Q-1 is 262.20 euros cheaper than Q-2."),
        ("Q-1 takes two hours longer.", "Q-1 takes three hours longer."),
        ("With 950 euros you have €37.60 to spare for Q-1.", "With 950 euros you have €73.60 to spare for Q-1."),
    ],
)
def test_differences_of_sums_in_cents_and_of_what_is_not_named_again(right: str, wrong: str) -> None:
    asked = Source("question", "I have 900 euros, or 950 euros at most. Which quote?", echo=True)
    check_both(right, wrong, QUOTES, asked)


def test_cents_are_what_is_left_of_a_sum() -> None:
    bill = Source("record 1", {"bill_id": "B-3", "total_usd": 19.9})
    asked = Source("question", "Will my 20 dollars do?", echo=True)
    right = "Your 20 dollars cover the $19.90 with ten cents to spare."
    check_both(right, right.replace("ten cents", "forty cents"), bill, asked)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Low Tide is longer: 130 minutes against 105.", "Two Rivers is longer: 130 minutes against 105."),
        (
            "Two Rivers is the shorter one, but Low Tide earns more: £1,260 against £432.",
            "Low Tide is the longer one, but Two Rivers earns more: £1,260 against £432.",
        ),
        ("Low Tide has 90 booked versus 36 for Two Rivers.", "Low Tide has 36 booked versus 90 for Two Rivers."),
    ],
)
def test_two_figures_that_are_held_against_each_other(right: str, wrong: str) -> None:
    named = " Two Rivers and Low Tide are both on."
    check_both(right + named, wrong + named, FILMS)


def test_what_stands_behind_a_part_and_its_whole_is_said_of_the_part() -> None:
    check_both("Low Tide: 90 of 120 booked.", "Low Tide: 80 of 120 booked.", FILMS)
    check_both("Two Rivers: 36 of 80 booked.", "Two Rivers: 63 of 80 booked.", FILMS)


def test_a_share_of_two_figures_that_stand_beside_it() -> None:
    right = "Together 126 of 200 seats are booked, about 63%."
    check_both(right, right.replace("63%", "57%"), FILMS)


def test_rows_are_counted_by_each_value_that_they_share() -> None:
    check_both("Two of the four are manned.", "Three of the four are manned.", POSTS)
    check_both("Two of the four are locked.", "Three of the four are locked.", POSTS)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("18 bags of 25 kg are 450 kg.", "18 bags of 25 kg are 540 kg."),
        (
            "The yard holds 900 kg, so your 450 leave 450 kg free.",
            "The yard holds 900 kg, so your 540 leave 360 kg free.",
        ),
        ("A bag is $4.20, so 18 come to $75.60.", "A bag is $4.20, so 18 come to $57.60."),
        ("A bag is $4.20, so 18 come to $75.60.", "A bag is $4.20, so 16 come to $75.60."),
    ],
)
def test_what_figures_of_the_question_come_to(right: str, wrong: str) -> None:
    asked = Source("question", "I need 18 bags of 25 kg each. Is there room in the yard?", echo=True)
    check_both(right, wrong, Source("record 1", {"yard": "Mill Road", "holds_kg": 900, "bag_usd": 4.2}), asked)


def test_what_is_needed_is_no_product_with_a_value_of_the_results() -> None:
    asked = Source("question", "May I take 2 ladders?", echo=True)
    rules = Source("record 1", {"deposit_usd": 10, "ladders": 2})
    assert held("Loans over twenty dollars need a deposit.", rules, asked) == ["twenty dollars"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Low Tide: 30 of 120 seats are still free.", "Low Tide: 40 of 120 seats are still free."),
        ("90 are booked for Low Tide, 36 for Two Rivers.", "36 are booked for Low Tide, 90 for Two Rivers."),
        ("Low Tide: 90 of 120 gone.", "Low Tide: 90 of 150 gone."),
    ],
)
def test_parts_of_one_thing_and_figures_before_their_thing(right: str, wrong: str) -> None:
    check_both(right, wrong, FILMS)


def test_a_sum_that_is_due_takes_the_place_of_no_day() -> None:
    arguments = {"rent_id": "M-4"}
    rent = Source("record 1", {"rent_id": "M-4", "due_eur": 640, "due": "2026-03-05"}, about=arguments)
    credit = Source("record 2", {"rent_id": "M-4", "due_eur": 600}, about=arguments)
    calls = [
        CallSeen(1, "get_rent", Status.OK, arguments=arguments),
        CallSeen(2, "credit_rent", Status.OK, arguments=arguments, changes=True),
    ]
    known = mark_stale([rent, credit], calls, default_vocabulary().words)
    check_both("M-4 now comes to €600, due on 5 March.", "M-4 now comes to €640, due on 5 March.", *known)
