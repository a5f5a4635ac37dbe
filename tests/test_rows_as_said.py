"""Rows that an answer counts, names by a plain word, or says something of: three of the five, the gas check, at 16:00."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Status
from interlock.answers.grounding import Source, default_vocabulary, ground
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.requirements import CallSeen
from interlock.answers.staleness import mark_stale


def held(draft: str, value: Any, **names: dict[str, str]) -> list[str]:
    """What nothing supports in a draft about one result; `names` are those that its tool knows, by argument."""
    meanings = {"look": ToolMeaning(names={key: {one: (said,) for one, said in known.items()}
                                           for key, known in names.items()})}  # fmt: skip
    about = {key: next(iter(known)) for key, known in names.items()}
    source = Source("record 1", {"value": value}, tool="look", about=about)
    return [f"{one.text}: {one.why}" for one in ground(draft, [source], meanings=meanings).unsupported]


BOATS = {
    "boats": [
        {"boat": "Heron", "berths": 3, "state": "moored", "insured": True, "fee_owed": 0},
        {"boat": "Curlew", "berths": 2, "state": "repaired", "insured": False, "fee_owed": 40},
        {"boat": "Plover", "berths": 1, "state": "moored", "insured": True, "fee_owed": 15},
        {"boat": "Dunlin", "berths": 4, "state": "hired", "insured": False, "fee_owed": 60},
    ]
}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Two of the four are insured.", "Three of the four are insured."),
        ("Three of the four boats owe a fee.", "Two of the four boats owe a fee."),
        ("Half of the four boats are insured.", "A quarter of the four boats are insured."),
        ("Three of the four are not hired.", "Two of the four are not hired."),
        ("Three boats are in arrears.", "Four boats are in arrears."),
    ],
)
def test_a_part_of_the_rows_is_counted_by_what_is_said_of_them(right: str, wrong: str) -> None:
    assert held(right, BOATS) == []
    assert held(wrong, BOATS) != []


def test_what_was_due_and_was_paid_is_owed_no_more() -> None:
    rows = [{"week": f"2026-0{n}-01", "due": 90, "paid": paid} for n, paid in ((1, 90), (2, 60), (3, 90))]
    club = {"member": "Ida Holm", "owed": 30, "dues": rows}
    assert held("Two of the three dues were paid in full. Ida Holm owes 30.", club) == []
    assert held("Ida Holm owes 30. She paid in full in January.", club) == []
    assert held("Ida Holm owes 30. She paid in full in February.", club) != []
    half = {"member": "Ida Holm", "total": 60, "paid": 30, "due": 30}
    assert held("Ida Holm has paid in full.", half) != []


def test_a_figure_of_a_name_is_no_number_of_things() -> None:
    berths = {"berths": [{"berth": "Pier 24", "price": 80}, {"berth": "Pier 9", "price": 60}]}
    assert held("Besides these there are two dozen more.", berths) != []
    assert held("Pier 24 costs 80.", berths) == []


def test_a_word_of_a_field_is_no_name() -> None:
    known = {"c-1": "Ada Moor", "all": "every contract"}
    contract = {"contract_id": "c-1", "holder": "Ada Moor", "deposit": 350}
    draft = "Ada Moor took over in May. The contract has a deposit of 350."
    assert held(draft.replace(" in May", ""), contract, contract_id=known) == []
    assert held("All set: the deposit is 350.", contract, contract_id=known) == []


CHECKS = {"boiler": {"tested": "2026-01-09", "passed": True}, "lift": {"tested": "2026-02-03", "passed": True}}
CHECKS |= {"alarm": {"tested": "2026-03-02", "passed": False, "fitted": 4, "working": 3}}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("The boiler check was passed.", "The boiler check was not passed."),
        ("The boiler (9 January) and the lift (3 February) both passed.", "The boiler and the alarm, both passed."),
    ],
)
def test_keys_of_a_table_are_things(right: str, wrong: str) -> None:
    assert held(right, {"checks": CHECKS}) == []
    assert held(wrong, {"checks": CHECKS}) != []


def test_a_number_is_no_place_in_an_order() -> None:
    assert held("The alarm failed for the third time.", {"checks": CHECKS}) != []
    assert held("The alarm is on the third floor.", {"alarm": {"floor": 3, "passed": False}}) == []


def test_a_rise_is_one_of_a_field() -> None:
    row = {"plan": "Gold", "fee_eur": 90, "deposit_eur": 100}
    assert held("The fee of Gold is 90 euros, a rise of a tenth.", row) != []


def test_what_there_is_none_of_is_not_there() -> None:
    huts = {"huts": [{"hut": "Alm", "ovens": 0, "price": 70}, {"hut": "Brand", "ovens": 1, "price": 90}]}
    assert held("Alm comes with one oven, at 70.", huts) != []
    assert held("Brand costs 90, and comes with one oven.", huts) == []


def test_a_fee_that_there_is_was_not_waived() -> None:
    assert held("For Alm the booking fee is waived.", {"hut": "Alm", "booking_fee": 12}) != []
    assert held("For Alm the booking fee is waived.", {"hut": "Alm", "booking_fee": 0}) == []


def test_a_day_with_a_time_is_one_row() -> None:
    slots = [{"slot": "2026-05-04T09:30", "free": True}, {"slot": "2026-05-04T14:00", "free": False}]
    court = {"court": "Court 3", "slots": [*slots, {"slot": "2026-05-06T14:00", "free": True}]}
    assert held("On 4 May the 14:00 slot is still open.", court) != []
    assert held("On 4 May the 09:30 slot is still open.", court) == []


def test_hours_between_are_of_the_day() -> None:
    assert held("The fitter comes between 8 and 10 in the morning.", {"fitter": "Ola", "window": "08:00-10:00"}) == []
    assert held("The fitter comes between 8 and 11 in the morning.", {"fitter": "Ola", "window": "08:00-10:00"}) != []


def paid_out(draft: str) -> list[str]:
    """What is held of a draft behind a refund: the points were read, paid out, and read again."""
    values: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("card", {"card_id": "K-12"}, {"card_id": "K-12", "holder": "Ida Holm", "bonus": 45}),
        ("pay", {"payee": "Ida Holm", "amount": 45, "card_id": "K-12"}, {"payment_id": "P-7", "amount": 45}),
        ("card", {"card_id": "K-12"}, {"card_id": "K-12", "holder": "Ida Holm", "bonus": 0}),
    ]
    seen = [
        CallSeen(number, name, Status.OK, arguments=given, changes=name == "pay")
        for number, (name, given, _result) in enumerate(values, 1)
    ]
    sources = [
        Source(f"record {number}", {"value": result}, tool=name, about=given)
        for number, (name, given, result) in enumerate(values, 1)
    ]
    known = mark_stale(sources, seen, default_vocabulary().words)
    return [f"{one.text}: {one.why}" for one in ground(draft, known).unsupported]


def test_what_was_paid_out_is_no_longer_there() -> None:
    assert paid_out("Ida Holm has a bonus of 45.") != []
    assert paid_out("I paid out the bonus of 45. Her bonus is now 0.") == []


def test_a_field_in_a_part_of_a_row_is_that_of_the_part() -> None:
    pump = {"pump": "North", "pressure_bar": 48, "last_repair": {"pressure_bar": 31}}
    assert held("North has 48 bar now, after 31 bar at the last repair.", pump) == []
    assert held("North has 31 bar now, after 48 bar at the last repair.", pump) != []


def test_a_name_of_two_letters_is_one() -> None:
    wines = {"wines": [{"wine": "Rioja", "rack": "C1", "bottles": 7}, {"wine": "Chianti", "rack": "D3", "bottles": 5}]}
    assert held("Rioja lies in rack C1 with 7 bottles.", wines) == []
    assert held("Rioja lies in rack D3 with 7 bottles.", wines) != []


def test_no_open_one_is_none() -> None:
    pad = {"item_id": "I-40", "on_order": 6, "on_hand": 2}
    assert held("There is no open order for I-40; we have 2 on hand.", pad) != []
    assert held("There is no open order for I-40; we have 2 on hand.", {**pad, "on_order": 0}) == []


def test_a_year_has_twelve_months() -> None:
    club = {"club": "Ruder", "fee_eur": 35}
    assert held("Ruder costs €420 over a year (12 × €35).", club) == []
    assert held("Ruder costs €455 over a year (13 × €35).", club) != []


def test_what_the_question_compares_may_be_left_out() -> None:
    value = {"bikes": [{"bike": "Falke", "weight_kg": 14}, {"bike": "Sperber", "weight_kg": 19}]}
    asked = Source("question", "Which is lighter, Falke or Sperber?", echo=True)
    known = [Source("record 1", {"value": value}), asked]
    assert ground("Falke is lighter: 14 kg against 19 kg.", known).unsupported == ()
    assert ground("Falke is lighter: 19 kg against 14 kg.", known).unsupported != ()


def test_a_longer_name_of_a_thing_is_the_same() -> None:
    boats = {"boats": [{"boat": "Red Gull", "berth_m": 9}, {"boat": "Teal", "berth_m": 7}]}
    known = {"B-1": "Mr Voss's Red Gull", "B-2": "Ms Lind's Teal"}
    assert held("The Gull needs 9 m.", boats, boat=known) == []
    assert held("The Gull needs 7 m.", boats, boat=known) != []
