"""A claim is supported where value, unit, thing and field fit, now: what each of them holds back, and what it lets out."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.answers.grounding import Grounded, Source, ground
from interlock.answers.grounding.meaning import meaning_of
from interlock.tools import Tool

TRAILS = Source(
    "record 1",
    {
        "trails": [
            {"trail_id": "waldo-lake-3536", "name": "Waldo Lake", "length_km": 32.4, "gain_m": 410, "open": True},
            {"trail_id": "bobby-lake-3526", "name": "Bobby Lake", "length_km": 7.2, "gain_m": 180, "open": False},
        ]
    },
)
LOAN = Source(
    "record 2",
    {"loan_id": "L-7", "name": "Car loan", "original": 14000, "outstanding": 8325.5, "monthly_payment_usd": 271.3},
)
ORDERS = Source(
    "record 3",
    {
        "orders": [
            {"order_id": "O-55", "customer": "Halden Motors", "status": "shipped", "total_usd": 1959.6, "paid": True},
            {"order_id": "O-61", "customer": "Ridgeway Fleet", "status": "packed", "total_usd": 420, "paid": False},
            {"order_id": "O-70", "customer": "Halden Motors", "status": "packed", "total_usd": 80.4, "paid": False},
        ]
    },
)
USAGE = Source(
    "record 4",
    {
        "rows": [
            {"month": "2025-03", "day_kwh": 251, "night_kwh": 120, "total_kwh": 371},
            {"month": "2025-04", "day_kwh": 214, "night_kwh": 108, "total_kwh": 322},
        ]
    },
)


def held(answer: str, *sources: Source) -> list[str]:
    return [claim.text for claim in ground(answer, sources).unsupported]


# Which thing it is said of

RIGHT_THING = [
    "Waldo Lake is 32.4 km long and Bobby Lake 7.2 km.",
    "Waldo Lake and Bobby Lake are 32.4 km and 7.2 km long.",
    "The longer one is Waldo Lake (32.4 km); Bobby Lake has 7.2 km.",
    "32.4 km for Waldo Lake, 7.2 km for Bobby Lake.",
    "| Trail | Length | Gain |\n|---|---|---|\n| Waldo Lake | 32.4 km | 410 m |\n| Bobby Lake | 7.2 km | 180 m |",
]
WRONG_THING = [
    "Bobby Lake is 32.4 km long.",
    "Waldo Lake is 7.2 km long and Bobby Lake 32.4 km.",
    "Waldo Lake and Bobby Lake are 7.2 km and 32.4 km long.",
    "7.2 km for Waldo Lake, 32.4 km for Bobby Lake.",
    "| Trail | Length |\n|---|---|\n| Waldo Lake | 7.2 km |\n| Bobby Lake | 32.4 km |",
]


@pytest.mark.parametrize("answer", RIGHT_THING)
def test_a_figure_of_the_thing_that_is_named_leaves(answer: str) -> None:
    assert held(answer, TRAILS) == []


@pytest.mark.parametrize("answer", WRONG_THING)
def test_a_figure_of_another_thing_is_held(answer: str) -> None:
    assert held(answer, TRAILS) != []


# Which field it is said to be


@pytest.mark.parametrize(
    "answer",
    [
        "Of the original 14,000 you still owe $8,325.50 on the car loan.",
        "The car loan costs $271.30 a month.",
        "| Loan | Still owed | Originally |\n|---|---|---|\n| Car loan | $8,325.50 | $14,000 |",
    ],
)
def test_a_figure_of_the_field_that_is_named_leaves(answer: str) -> None:
    assert held(answer, LOAN) == []


@pytest.mark.parametrize(
    "answer",
    [
        "You originally borrowed $8,325.50 for the car.",
        "The car loan costs $271.30 a week.",
        "| Loan | Still owed | Originally |\n|---|---|---|\n| Car loan | $14,000 | $8,325.50 |",
        "The car loan costs €271.30 a month.",
    ],
)
def test_a_figure_of_another_field_is_held(answer: str) -> None:
    assert held(answer, LOAN) != []


def test_the_author_of_a_tool_says_what_a_field_is() -> None:
    async def body(_arguments: dict[str, Any]) -> Any:
        return None

    fields = {"amt": {"unit": "EUR", "also": ["charge"]}, "lim": {"unit": "EUR", "description": "the ceiling"}}
    schema = {"type": "object", "properties": {}}
    made = Tool.from_schema("get_terms", body, schema=schema, effect="read", description="Terms.", fields=fields)
    meanings = {"get_terms": meaning_of(made)}

    def check(answer: str) -> Grounded:
        source = Source("record 1", {"amt": 35, "lim": 90}, tool="get_terms")
        return ground(answer, [source], meanings=meanings)

    assert check("The charge is €35, with a ceiling of €90.").is_supported
    assert not check("The charge is €90, with a ceiling of €35.").is_supported
    assert not check("The charge is $35.").is_supported


# States and names


@pytest.mark.parametrize(
    "answer",
    [
        "O-55 has shipped and is paid; O-61 is packed.",
        "Two orders are of Halden Motors, O-55 and O-70.",
        "O-61 is not paid.",
        "Bobby Lake is not open.",
    ],
)
def test_what_the_results_say_of_a_thing_leaves(answer: str) -> None:
    assert held(answer, ORDERS, TRAILS) == []


@pytest.mark.parametrize(
    "answer",
    [
        "O-55 is packed, while O-61 has shipped.",
        "O-61 is an order of Halden Motors.",
        "O-61 is paid.",
        "O-55 is not paid.",
        "Bobby Lake is open.",
        "O-55 was placed by Brightwell Garage.",
    ],
)
def test_what_they_do_not_say_of_it_is_held(answer: str) -> None:
    assert held(answer, ORDERS, TRAILS) != []


# What follows from other figures


@pytest.mark.parametrize(
    "answer",
    [
        "The three orders come to $2,460 in total.",
        "Halden Motors has orders for $2,040 altogether.",
        "Waldo Lake is 25.2 km longer than Bobby Lake.",
        "In March 371 kWh were used and in April 322, 49 kWh less.",
        "In April you used 322 kWh, about 13 % less than the 371 kWh of March.",
        "On average you used 346.5 kWh a month.",
    ],
)
def test_a_figure_that_follows_leaves(answer: str) -> None:
    assert held(answer, ORDERS, TRAILS, USAGE) == []


@pytest.mark.parametrize(
    "answer",
    [
        "The three orders come to $2,560 in total.",
        "Waldo Lake is 24.2 km longer than Bobby Lake.",
        "In March 371 kWh were used and in April 322, 59 kWh less.",
        "Half of the April consumption fell at night.",
        "The three orders add up to $2,470.",
    ],
)
def test_one_that_does_not_follow_is_held(answer: str) -> None:
    assert held(answer, ORDERS, TRAILS, USAGE) != []


# Hidden and unread numerals


@pytest.mark.parametrize(
    "figure",
    [
        "3,7", "12,34,567", "$3B", "41.5 mil", "three dozen", "thousands of", "twenty twenty-four", "٣٧", "三十七",
        "XXXVII", "minus 40", "4\u200b1", "4**1**", "example.org", "umpteen", "a handful of", "scores of",
    ],
)  # fmt: skip
def test_a_numeral_of_any_spelling_is_held(figure: str) -> None:
    assert held(f"Waldo Lake had {figure} visitors.", TRAILS) != []


def test_no_number_of_a_result_supports_people_who_died() -> None:
    supported = [n for n in range(2, 101) if not held(f"{n} hikers died at Waldo Lake.", TRAILS, ORDERS)]
    assert supported == []


# Codes


@pytest.mark.parametrize("code", ["6S9", "16CR44019", "W-07", "205/55", "numpy>=1.26", "9fe41c7"])
def test_a_code_may_be_repeated_letter_by_letter(code: str) -> None:
    source = Source("record 1", {"code": f"see {code}"})
    assert held(f"It is {code}.", source) == []
    assert held(f"It is {code[:-1]}8.", source) != []


# What was, and what is


def test_what_a_change_has_replaced_is_said_as_what_was() -> None:
    old = Source("record 1", {"value": {"stock": 530, "bin": "B-2"}}, stale=("stock",))
    new = Source("record 2", {"value": {"stock": 512}})
    assert held("There are 512 in stock, it was 530 before.", old, new) == []
    assert held("There are 530 in stock.", old, new) == ["530"]


# What others say


def test_the_words_of_a_stranger_may_be_repeated_as_theirs() -> None:
    letter = Source("record 1", {"text": "Your rent is $2,950."}, trusted=False)
    assert held("According to the letter the rent is $2,950.", letter) == []
    assert held("Your rent is $2,950.", letter) == ["$2,950"]


# Other languages


def test_a_sentence_in_another_language_needs_a_traced_figure() -> None:
    assert held("Waldo Lake ist 32,4 km lang und die Strecke ist sehr schön.", TRAILS) == []
    assert held("Der Weg ist heute für alle gesperrt und nicht zu begehen.", TRAILS) != []
    assert held("Der Weg hat siebenunddreißig Brücken und ist 32.4 km lang.", TRAILS) != []


@pytest.mark.parametrize(
    ("draft", "leaves"),
    [
        ("The Ivory Room has 14 seats.", True),
        ("The Ivory Room does not have 14 seats.", False),
        ("The Ivory Room hasn't 14 seats.", False),
        ("The Ivory Room is not on floor 3.", False),
        ("The Ivory Room isn't floor 3.", False),
        ("The Ivory Room has not more than 14 seats.", True),
        ("The Ivory Room is never at 14 seats.", False),
    ],
)
def test_a_figure_that_is_denied_is_not_supported_by_the_result_that_has_it(draft: str, leaves: bool) -> None:
    found = ground(draft, [Source("record 1", {"value": {"room": "Ivory Room", "seats": 14, "floor": 3}})])
    assert found.is_supported is leaves, found


ROOM = {"room": "Ivory Room", "seats": 14, "rent_eur": 120, "free_on": "2026-03-14"}


@pytest.mark.parametrize(
    ("question", "draft", "leaves"),
    [
        ("Is the rent 300 EUR?", "The rent of the Ivory Room is 300 EUR.", False),
        ("Is the rent 300 EUR?", "The Ivory Room is 300 EUR.", False),
        ("Is the rent 300 EUR?", "The Ivory Room has a rent of 300 EUR.", False),
        ("Is the rent 300 EUR?", "You said 300 EUR; the Ivory Room costs 120 EUR.", True),
        ("Is the rent 300 EUR?", "No, not 300 EUR: the rent is 120 EUR.", True),
        ("Does it seat 40?", "The Ivory Room seats 40.", False),
        ("We are 9 people, does it fit?", "The Ivory Room has 14 seats, enough for your 9 people.", True),
        ("Is it free on 2026-09-09?", "The Ivory Room is free on 2026-09-09.", False),
        ("Is it free on 2026-09-09?", "You asked for 2026-09-09; it is free on 2026-03-14.", True),
        ("What do 3 days cost?", "3 days cost 3 * 120 = 360 EUR.", True),
    ],
)
def test_a_figure_of_the_user_is_repeated_as_theirs_and_is_no_finding(question: str, draft: str, leaves: bool) -> None:
    found = ground(draft, [Source("record 1", {"value": ROOM}), Source("question", question, echo=True)])
    assert found.is_supported is leaves, found.unsupported


@pytest.mark.parametrize(
    ("draft", "leaves"),
    [
        ("There are 4 rooms with 37 seats.", False),
        ("The rooms have 37 seats.", False),
        ("I searched for 37 seats and found 4 rooms.", True),
        ("There are not more than 4 rooms with at least 37 seats.", True),
    ],
)
def test_what_a_call_asked_for_is_said_as_that_and_is_no_finding(draft: str, leaves: bool) -> None:
    asked = Source("record 1", {"asked": {"seats": 37}}, tool="find_rooms", asked=True)
    found = ground(draft, [Source("record 1", {"value": {"rooms": 4}}, tool="find_rooms"), asked])
    assert found.is_supported is leaves, found.unsupported


def test_the_words_of_a_note_that_was_written_are_no_finding() -> None:
    made = Source("record 2", {"value": True, "made": {"text": "The Ivory Room was robbed, 62 chairs are gone."}})
    assert ground("62 chairs are gone.", [Source("record 1", {"value": ROOM}), made]).unsupported


@pytest.mark.parametrize(
    "draft",
    [
        "The rent is USD 120.",
        "The rent is CHF 120.",
        "The Ivory Room has fortyfour seats.",
        "The Ivory Room seats fortyish.",
        "The Ivory Room has 14 seats. Wysłałem przypomnienie właścicielowi.",
        "The Ivory Room has 14 seats. Hatırlatma gönderildi.",
    ],
)
def test_a_code_before_a_figure_a_joined_number_and_words_of_any_language_are_read_or_held(draft: str) -> None:
    known = [Source("record 1", {"value": ROOM})]
    assert ground("The rent is EUR 120, in the café too.", known).is_supported
    assert ground(draft, known).unsupported


def test_hundredths_of_a_currency_are_turned_into_it() -> None:
    known = [
        Source("record 1", {"value": {"bill": "INV-1", "due_cents": 57440, "paid_cents": 20000, "currency": "EUR"}})
    ]
    assert ground("€200.00 has been paid and €574.40 is still due.", known).is_supported
    for draft in ("The bill is 57,440 euros.", "$574.40 is still due.", "€574.40 has been paid and €200.00 is due."):
        assert ground(draft, known).unsupported, draft


def test_names_before_their_figures_are_not_read_the_other_way_round() -> None:
    people = [
        Source("record 1", {"value": {"member_id": "M-1", "name": "Priya Nair", "fines_usd": 12.6}}),
        Source("record 2", {"value": {"member_id": "M-2", "name": "Tomas Lind", "fines_usd": 4.8}}),
    ]
    assert ground("Priya owes $12.60 and Tomas $4.80, so it's Priya who owes more.", people).is_supported
    assert ground("Tomas owes $12.60 and Priya $4.80, so it's Tomas who owes more.", people).unsupported
    assert ground("$12.60 is owed by Priya and $4.80 by Tomas.", people).is_supported


def test_a_time_is_of_the_field_that_is_named_beside_it() -> None:
    show = [Source("record 1", {"value": {"title": "Blues Night", "start": "19:30", "doors": "18:45"}})]
    assert ground("Doors at 18:45, start at 19:30.", show).is_supported
    assert ground("Doors open at 19:30.", show).unsupported


def test_what_is_said_of_none_is_held_where_some_are_so() -> None:
    cars = [
        {"car": "Corsa", "available": True},
        {"car": "Yaris", "available": True},
        {"car": "Fabia", "available": False},
    ]
    known = [Source("record 1", {"value": {"cars": cars}})]
    for draft in ("None of the cars is available.", "No car is available.", "All of the cars are available."):
        assert ground(draft, known).unsupported, draft
    for draft in ("The Fabia is not available.", "Both the Corsa and the Yaris are available."):
        assert ground(draft, known).is_supported, draft
