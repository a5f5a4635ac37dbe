"""Quantities in words: what is like a number is read and held against the results, or holds the answer back."""

from __future__ import annotations

import pytest

from interlock.answers.grounding import Source, ground

FARM = Source(
    "record 1",
    {
        "farm": "Oakfield",
        "cows": 26,
        "calves": 9,
        "tractors": 3,
        "milk_litres_a_day": 540,
        "milking_time": "05:30",
        "next_vet_visit": "2025-06-12",
        "last_vet_visit": "2025-06-02",
        "fields": [
            {"field": "Upper Meadow", "hectares": 7.5, "crop": "barley"},
            {"field": "Mill Field", "hectares": 3, "crop": "oats"},
            {"field": "Long Acre", "hectares": 12, "crop": "barley"},
            {"field": "Pond Field", "hectares": 4.5, "crop": "clover"},
            {"field": "Church Field", "hectares": 6, "crop": "barley"},
        ],
    },
)
FLIGHT = Source(
    "record 2",
    {
        "flight": "KX 204",
        "route": "Lisbon to Porto",
        "departure": "07:10",
        "arrival": "10:00",
        "delay_minutes": 20,
        "seats_free": 13,
        "bags_included": 1,
        "fare_eur": 240,
        "fare_last_year_eur": 200,
        "gate": "B7",
        "flight_minutes": 170,
    },
)
GYM = Source(
    "record 3",
    {
        "member": "Paulo Reis",
        "visits_in_may": 11,
        "guest_passes_left": 3,
        "monthly_fee_eur": 39,
        "freeze_days": 21,
        "lockers": 2,
        "notice_weeks": 6,
        "contract_months": 18,
    },
)

WRONG = [
    ("Oakfield has a couple of calves.", FARM),
    ("Oakfield has a pair of calves.", FARM),
    ("There is a brace of calves at Oakfield.", FARM),
    ("A couple are calves.", FARM),
    ("Oakfield has a handful of calves.", FARM),
    ("Oakfield has half a dozen calves.", FARM),
    ("Oakfield keeps a score of cows.", FARM),
    ("Oakfield keeps two score cows.", FARM),
    ("Oakfield has a trio of calves.", FARM),
    ("A quartet of calves lives at Oakfield.", FARM),
    ("Oakfield has a baker's dozen of calves.", FARM),
    ("Oakfield keeps thirty-odd cows.", FARM),
    ("Oakfield keeps forty-something cows.", FARM),
    ("Oakfield keeps a few dozen cows.", FARM),
    ("Oakfield keeps dozens of cows.", FARM),
    ("Oakfield keeps twice as many cows as calves.", FARM),
    ("Oakfield keeps double the number of cows.", FARM),
    ("There are four times as many cows as calves.", FARM),
    ("The vet comes in a fortnight.", FARM),
    ("The vet was there a week ago, and comes a month later.", FARM),
    ("The next vet visit is a week after the last.", FARM),
    ("The next vet visit is three weeks after the last.", FARM),
    ("Half of the fields are barley.", FARM),
    ("A third of the fields grow barley.", FARM),
    ("Most fields, four in five, grow barley.", FARM),
    ("Milking starts at half past six.", FARM),
    ("Milking starts at a quarter to six.", FARM),
    ("Milking starts at half six.", FARM),
    ("Milking starts at six on the dot.", FARM),
    ("Oakfield gives 540 litres an hour.", FARM),
    ("Oakfield gives half a thousand litres a week.", FARM),
    ("Long Acre is half as large as Mill Field.", FARM),
    ("Long Acre is triple the size of Mill Field.", FARM),
    ("Oakfield gives over half a ton of milk an hour.", FARM),
    ("KX 204 is half an hour late.", FLIGHT),
    ("KX 204 is a quarter of an hour late.", FLIGHT),
    ("KX 204 is three quarters of an hour late.", FLIGHT),
    ("KX 204 is an hour late.", FLIGHT),
    ("KX 204 runs an hour behind.", FLIGHT),
    ("KX 204 is a day late.", FLIGHT),
    ("KX 204 leaves at a quarter past seven.", FLIGHT),
    ("KX 204 leaves at twenty past seven.", FLIGHT),
    ("KX 204 leaves at ten to seven.", FLIGHT),
    ("The flight takes an hour and a half.", FLIGHT),
    ("The flight takes two and a half hours.", FLIGHT),
    ("The flight takes a couple of hours.", FLIGHT),
    ("The flight takes an hour.", FLIGHT),
    ("The flight takes a good hour.", FLIGHT),
    ("The flight takes one full day.", FLIGHT),
    ("The fare has doubled since last year.", FLIGHT),
    ("The fare went up by half.", FLIGHT),
    ("The fare is up by a quarter.", FLIGHT),
    ("The fare rose threefold.", FLIGHT),
    ("The fare is a grand.", FLIGHT),
    ("The fare is two grand.", FLIGHT),
    ("The fare is a tenner more than last year.", FLIGHT),
    ("The fare is twenty quid more than last year.", FLIGHT),
    ("A pair of seats is free on KX 204.", FLIGHT),
    ("A baker's dozen minus three seats are free.", FLIGHT),
    ("Two bags are included.", FLIGHT),
    ("A couple of bags are included.", FLIGHT),
    ("Double-digit delays: KX 204 is ninety minutes late.", FLIGHT),
    ("The fare has four digits.", FLIGHT),
    ("It costs a three-figure sum, nearly a thousand.", FLIGHT),
    ("Paulo Reis came a dozen times in May.", GYM),
    ("Paulo Reis came once in May.", GYM),
    ("Paulo Reis came twice in May.", GYM),
    ("Paulo Reis came thrice in May.", GYM),
    ("Paulo Reis came every other day in May.", GYM),
    ("Paulo Reis came a couple of times in May.", GYM),
    ("Paulo Reis has a pair of guest passes left.", GYM),
    ("He pays the 39 euros once a year.", GYM),
    ("He pays 39 euros a week.", GYM),
    ("He pays 39 euros per day.", GYM),
    ("The contract runs for a year.", GYM),
    ("The contract runs for half a year.", GYM),
    ("The notice is a fortnight.", GYM),
    ("The notice is a month.", GYM),
    ("The notice period is a full month.", GYM),
    ("He may freeze it for a week.", GYM),
    ("He may freeze it for a month.", GYM),
    ("The contract runs for half a decade.", GYM),
    ("He has three lockers.", GYM),
    ("Paulo Reis has a set of four lockers.", GYM),
    ("He pays under half of that.", GYM),
    ("He has five plus six guest passes left.", GYM),
    ("The fee is thirty-nine dollars.", GYM),
    ("The fee is £39 a month.", GYM),
]
RIGHT = [
    ("Oakfield has nine calves.", FARM),
    ("Oakfield has three tractors.", FARM),
    ("Oakfield has a trio of tractors.", FARM),
    ("Oakfield has twenty-six cows.", FARM),
    ("Oakfield keeps just over two dozen cows.", FARM),
    ("Long Acre is a dozen hectares.", FARM),
    ("Three of the five fields grow barley.", FARM),
    ("Milking starts at half past five.", FARM),
    ("The next vet visit is ten days after the last.", FARM),
    ("Church Field has half a dozen hectares.", FARM),
    ("Upper Meadow has seven and a half hectares.", FARM),
    ("Oakfield gives 540 litres a day.", FARM),
    ("KX 204 is twenty minutes late.", FLIGHT),
    ("KX 204 is a third of an hour late.", FLIGHT),
    ("KX 204 leaves at ten past seven.", FLIGHT),
    ("KX 204 leaves at 7:10.", FLIGHT),
    ("The fare is 40 euros more than last year.", FLIGHT),
    ("The flight lasts 2 hours and 50 minutes.", FLIGHT),
    ("One bag is included.", FLIGHT),
    ("A single bag is included.", FLIGHT),
    ("Thirteen seats are free on KX 204.", FLIGHT),
    ("The flight takes nearly three hours.", FLIGHT),
    ("It leaves within the hour.", FLIGHT),
    ("Paulo Reis has a pair of lockers.", GYM),
    ("Paulo Reis has a couple of lockers.", GYM),
    ("Paulo Reis has three guest passes left.", GYM),
    ("He pays 39 euros a month.", GYM),
    ("He pays the 39 euros once a month.", GYM),
    ("The contract runs for a year and a half.", GYM),
    ("The contract runs for 18 months.", GYM),
    ("He may freeze it for three weeks.", GYM),
    ("The notice period is six weeks.", GYM),
    ("The fee is thirty-nine euros.", GYM),
    ("If you have a minute: the fee is 39 euros.", GYM),
    ("One moment: the contract runs for 18 months.", GYM),
    ("He has two lockers, and pays 39 euros a month for the pair.", GYM),
]


def held(answer: str, source: Source) -> list[str]:
    return [claim.text for claim in ground(answer, [source]).unsupported]


@pytest.mark.parametrize(("answer", "source"), WRONG)
def test_a_wrong_quantity_in_words_is_held(answer: str, source: Source) -> None:
    assert held(answer, source)


@pytest.mark.parametrize(("answer", "source"), RIGHT)
def test_a_right_quantity_in_words_leaves(answer: str, source: Source) -> None:
    assert held(answer, source) == []


CABIN = Source("record 9", {"cabin": "double", "guest": "Zoë Brandt", "deck": "B"})


@pytest.mark.parametrize(
    "wrong",
    [
        "Zoë Brandt is on deck XIX.",  # also where the sentence ends with it
        "It was refused for the third time this year.",
        "The cabin costs double.",
        "It is double the fare.",
        "Ĉu ŝi venos?",
    ],
)
def test_numerals_at_the_end_of_a_sentence_and_how_often_are_held(wrong: str) -> None:
    assert not ground(wrong, [CABIN]).is_supported


@pytest.mark.parametrize(
    "right",
    [
        "Zoë’s cabin is a double.",
        "Zoë's cabin is on deck B.",
        "The system stopped halfway.",
        "Zoë Brandt is here for the first time.",
    ],
)
def test_words_of_the_results_are_no_numerals(right: str) -> None:
    assert ground(right, [CABIN]).unsupported == ()


@pytest.mark.parametrize("draft", ["It has .0¼ hectares.", "It has .5¼ hectares."])
def test_a_figure_with_two_fractions_is_held_and_breaks_nothing(draft: str) -> None:
    assert ground(draft, [FARM]).unsupported
