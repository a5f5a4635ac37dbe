"""Wordings in which a deed, a flag or a number is said without its usual word: right ones leave, their twins are held."""

from __future__ import annotations

import pytest

from interlock import Status
from interlock.answers.grounding import Source, ground
from interlock.answers.requirements import CallSeen
from interlock.answers.staleness import asked_for
from interlock.answers.statements import TurnRecords, check_statements, effects_of
from interlock.reasons import Reason
from tests.test_statements import called, held, made

FARM = (
    made("find_order", "read", "Looks a herd up."),
    made("text_vet", description="Sends a text message to the vet.", says=("text", "message")),
    made("move_cow", description="Moves a cow to another pen.", says=("move", "moved")),
)
HERD = {"cow": "Daisy", "pen": "12", "charges": 40, "hand": "H-1"}
UNSURE = called("text_vet", Status.UNKNOWN, order_id="C-7")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("I had her hay brought over.", "I would have her hay brought over."),
        ("All arranged: Daisy stays in pen 12.", "Nothing was arranged: Daisy stays in pen 12."),
        ("Daisy is on the watch list now.", "Daisy is in the pen now."),
        ("The 40 has been charged to the card of the farm.", "The charges are 40."),
    ],
)
def test_deeds_that_no_call_did(wrong: str, right: str) -> None:
    failed = called("move_cow", Status.DENIED, order_id="C-7")
    assert held(wrong, failed, data=HERD, tools=FARM)
    assert not held(right, failed, data=HERD, tools=FARM)


def test_what_somebody_has_was_sent() -> None:
    assert held("Daisy stays, and the vet has the confirmation by text.", UNSURE, data=HERD, tools=FARM)
    sent = called("text_vet", order_id="C-7")
    assert not held("Daisy stays, and the vet has the confirmation by text.", sent, data=HERD, tools=FARM)


def test_a_failure_is_of_what_was_tried() -> None:
    row = {"order_id": "C-7", "hand_id": "H-1", "cow": "Daisy"}
    failed = called("assign_job", Status.FAILED, order_id="C-7", hand_id="H-1")
    hands = {"hand_id": {"H-1": "Tom Reed", "H-2": "Eva Lind"}}
    schema = {"type": "object", "properties": {"order_id": {"type": "string"}, "hand_id": {"type": "string"}}}
    tools = (FARM[0], made("assign_job", description="Gives a job to a hand.", schema=schema, known_values=hands))
    assert not held("The job for Tom could not be assigned.", failed, data=row, tools=tools)
    assert held("The job for Eva could not be assigned.", failed, data=row, tools=tools)


def test_a_preview_waits_for_whoever_asked_for_it() -> None:
    planned = called("text_vet", Status.PLANNED, order_id="C-7")
    assert not held("It's waiting for your go-ahead.", planned, tools=FARM)
    assert held("It's waiting for approval by the manager.", planned, tools=FARM)


def test_a_flag_says_what_a_call_left_undone() -> None:
    seen = (CallSeen(record=1, tool="move_cow", status=Status.OK, arguments={"order_id": "C-7"}, changes=True),)
    source = Source("record 1", {"value": {"order_id": "C-7", "calf_moved": False}}, tool="move_cow")
    turn = TurnRecords(FARM, seen, effects_of(seen), (source,))
    assert all(one.agrees for one in check_statements("Her calf has not been moved.", turn))
    assert not all(one.agrees for one in check_statements("Daisy has not been moved.", turn))


SHEDS = Source(
    "record 1",
    {
        "sheds": [
            {"name": "Barn Nord", "grade": "A1", "loft": False, "vet": "Ida Berg", "fee_paid": False, "hens": 120,
             "days": [{"day": "Mon", "eggs": 90}, {"day": "Tue", "eggs": 110}, {"day": "Wed", "eggs": 103}]},
            {"name": "Barn Sued", "grade": "B2", "loft": True, "vet": None, "fee_paid": True, "hens": 80,
             "days": [{"day": "Mon", "eggs": 60}, {"day": "Tue", "eggs": 71}, {"day": "Wed", "eggs": 73}]},
            {"name": "Barn West", "grade": "C3", "loft": True, "vet": "Ola Nes", "fee_paid": True, "hens": 90,
             "days": [{"day": "Mon", "eggs": 80}, {"day": "Tue", "eggs": 80}, {"day": "Wed", "eggs": 83}]},
        ],
        "fee_eur": 396,
        "old_gates_locked": True,
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("You should know that Barn Sued has a loft.", "You should know that Barn Nord has a loft."),
        ("Barn Sued has no vet assigned yet.", "Barn Nord has no vet assigned yet."),
        ("Shed A1 is Barn Nord.", "Shed A1 is Barn Sued."),
        ("Two of the three sheds have paid the fee.", "⅔ of the sheds still lack the fee."),
        ("The fee is 396 euros.", "The fee is 396 US dollars."),
        ("Barn Nord has neither a loft nor a paid fee.", "Barn West has neither a loft nor a paid fee."),
        ("On average Barn Nord gives 101 eggs a day.", "On average Barn Nord gives 68 eggs a day."),
        ("The old gates are locked.", "The old gates can still be used."),
        ("There are 290 hens in all.", "There are 291 hens in all."),
        ("Barn Nord has 120 hens.", "Barn Nord has had 120 hens for a whole week."),
    ],
)
def test_what_rows_say(right: str, wrong: str) -> None:
    assert not ground(right, [SHEDS]).unsupported
    assert ground(wrong, [SHEDS]).unsupported


def test_why_nothing_was_found_may_be_said() -> None:
    call = CallSeen(
        record=1, tool="find_cow", status=Status.NO_DATA, arguments={"query": "brown calf"}, reason=Reason.NOT_FOUND,
        message="No calf matching 'brown calf' between 2026-03-10 and 2026-03-17.",
    )  # fmt: skip
    known = asked_for([call])
    assert not ground("No brown calf was entered between 10 and 17 March.", known).unsupported
    assert ground("The brown calf was entered on 17 March.", known).unsupported
