"""Wrong twins of right answers without a wrong figure: none for some, one row for another, what was for what is."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.answers.grounding import Source, default_vocabulary, ground
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.requirements import CallSeen
from interlock.answers.staleness import mark_stale
from interlock.values import Status

FERRY = Source("record 1", {"ferry": "Sea Lark", "delay_min": 18, "berths": 40, "cabins_free": 6, "fare_eur": 0})
CAMP = Source("record 2", {"camp": "Pine Camp", "beds": 24, "booked": 21, "total_due_eur": 60, "deposit_paid_eur": 20})
FULL = Source("record 3", {"camp": "Lake Camp", "beds": 12, "booked": 12, "total_due_eur": 0, "stock_of_wood": 0})
ROOMS = Source(
    "record 4",
    {"rooms": [{"room": "Blue Salon", "free_slots": []}, {"room": "Red Salon", "free_slots": [{"from": "10:00"}]}]},
)
BILL = Source(
    "record 5",
    {
        "bill_id": "B-77",
        "lines": [
            {"text": "Rope set", "cents": 4400, "days_open": 3},
            {"text": "Life jacket (pair)", "cents": 9900, "days_open": 8},
        ],
        "paid_cents": 5000,
        "due_cents": 9300,
        "status": "partly_paid",
    },
)
BOATS = Source(
    "record 6",
    {
        "boats": [
            {"boat": "Heron", "capacity_kg": 900, "load_kg": 250, "state": "inRepair", "paint_valid": True},
            {"boat": "Osprey", "capacity_kg": 700, "load_kg": 600, "state": "waiting", "paint_valid": False},
        ]
    },
)
TRIP = Source("record 7", {"from": "2026-03-16", "to": "2026-03-20", "days": 5, "charter": "Heron"})
PLAN = Source("preview 1", {"to": ["Ida Holm"], "text": "Please come at 07:30 instead of 08:00."})
CREW = Source("record 8", {"crew": [{"person": "Ida Holm", "role": "mate"}, {"person": "Nils Berg", "role": "cook"}]})
CREWS = {"list_crew": ToolMeaning(names={"person": {"P-9": ("Vera Lund",), "P-1": ("Ida Holm",)}})}


def held(draft: str, *sources: Source) -> bool:
    return bool(ground(draft, sources, meanings=CREWS).unsupported)


@pytest.mark.parametrize(
    ("right", "wrong", "sources"),
    [
        ("The Sea Lark is delayed.", "The Sea Lark is on time.", [FERRY]),
        ("Cabins on the Sea Lark are available.", "The Sea Lark is fully booked.", [FERRY]),
        ("The Sea Lark is free of charge.", "The Sea Lark is not free of charge.", [FERRY]),
        ("Lake Camp is full.", "Pine Camp is full.", [CAMP, FULL]),
        ("Lake Camp owes nothing.", "Pine Camp doesn't owe anything.", [CAMP, FULL]),
        ("Pine Camp owes 60 euros.", "For Pine Camp no money has come in.", [CAMP]),
        ("Lake Camp is out of stock.", "There is wood in stock at Lake Camp.", [FULL]),
        ("The Red Salon is available.", "The Blue Salon is still available.", [ROOMS]),
        ("The Red Salon is available.", "Red Salon and Blue Salon are both available.", [ROOMS]),
        ("$50.00 has been paid and $93.00 is due.", "$93.00 has been paid and $50.00 is due.", [BILL]),
        ("The ropes are $44.00, the jackets $99.00.", "The ropes are $99.00, the jackets $44.00.", [BILL]),
        ("Heron has 650 kg free, Osprey 100 kg.", "Heron has 100 kg free, Osprey 650 kg.", [BOATS]),
        ("The Osprey is waiting.", "The Osprey is finished.", [BOATS]),
        ("The paint of Heron is valid.", "Both are up to date.", [BOATS]),
        ("The charter lasts 5 days.", "The charter lasts 4 days.", [TRIP]),
        ("Ida comes at 07:30 instead of 08:00.", "Ida comes at 08:00 instead of 07:30.", [PLAN]),
        ("The message would go to Ida Holm.", "The message would go to Nils Berg.", [PLAN, CREW]),
        ("Ida Holm is the mate.", "Vera Lund is ill today, Ida Holm is the mate.", [CREW]),
    ],
)
def test_the_wrong_twin_is_held(right: str, wrong: str, sources: list[Source]) -> None:
    assert not held(right, *sources)
    assert held(wrong, *sources)


def test_many_are_on_time_although_some_are_late() -> None:
    ferries = Source("record 1", {"line": "North", "average_delay_min": 4, "on_time_percent": 87})
    assert not held("87% were on time.", ferries)


def test_what_was_not_found_is_not_said_to_exist() -> None:
    asked = Source("record 9", {"asked": {"boat": "B-90"}}, asked=True)
    assert held("Boat B-90 exists. Ida Holm is the mate.", CREW, asked)
    assert not held("There is no boat B-90. Ida Holm is the mate.", CREW, asked)


def test_nothing_is_reckoned_from_what_was_replaced() -> None:
    before = {"tour": "Reef", "places": 30, "signed_up": 26}
    after = {"tour": "Reef", "signed_up": 27, "places_left": 3}
    sources: list[Any] = [
        Source("record 1", {"value": before}, tool="get_tour", about={"tour": "Reef"}),
        Source("record 2", {"value": after}, tool="join_tour", about={"tour": "Reef"}),
    ]
    calls = [
        CallSeen(1, "get_tour", Status.OK, arguments={"tour": "Reef"}),
        CallSeen(2, "join_tour", Status.OK, arguments={"tour": "Reef"}, changes=True),
    ]
    known = mark_stale(sources, calls, default_vocabulary().words)
    assert not ground("The Reef tour has 27 guests signed up and 3 places left.", known).unsupported
    assert ground("The Reef tour has 26 guests signed up and 4 places left.", known).unsupported


def test_a_total_is_not_added_to_its_parts() -> None:
    rows = [{"name": "Ida", "crates": 2}, {"name": "Nils", "crates": 5}]
    crates = Source("record 1", {"rows": rows, "totals": {"crates": 7}})
    assert not held("They carried 7 crates between them.", crates)
    assert held("They carried 9 crates between them.", crates)
