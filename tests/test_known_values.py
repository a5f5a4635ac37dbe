"""Known values: names become ids, several fits are a question, none is nothing on file; on the path, for every caller."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from interlock import Runtime, Status, tool
from interlock.answers.constrained.argument_extraction import extract_arguments
from interlock.answers.constrained.recognisers.names import find_names
from interlock.answers.grounding import default_vocabulary
from interlock.answers.runner import card
from interlock.errors import ContractError
from interlock.policy import parse_policy
from interlock.ports import Query
from interlock.tools import Unclear, resolve

OPEN = 'version = 1\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'
TRAILS = {
    "waldo-lake-3536": "Waldo Lake Trail",
    "waldo-mtn-3540": "Waldo Mountain",
    "bobby-lake-3526": ("Bobby Lake", "Bobby"),
    "charlton-lake-3578": "Charlton Lake",
}


class Season(StrEnum):
    """When."""

    summer = "summer"
    winter = "winter"


def one(said: Any, known: Any = TRAILS) -> Any:
    found = resolve({"trail": known}, {"trail": said})
    return found if isinstance(found, Unclear) else found[0]["trail"]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("waldo-lake-3536", "waldo-lake-3536"),
        ("Waldo Lake", "waldo-lake-3536"),
        ("WALDO  LAKE trail", "waldo-lake-3536"),
        ("Wldo Lake", "waldo-lake-3536"),
        ("Charlten", "charlton-lake-3578"),
        ("bobby", "bobby-lake-3526"),
        ("bobbylake", "bobby-lake-3526"),
        ("3540", "waldo-mtn-3540"),
        (["Bobby", "waldo-mtn-3540"], ["bobby-lake-3526", "waldo-mtn-3540"]),
    ],
)
def test_what_somebody_calls_it_becomes_its_id(said: Any, meant: Any) -> None:
    assert one(said) == meant


@pytest.mark.parametrize("said", ["waldo-lake-3537", "Waldo Lake Trail 3537", "Fuji Mountain", "zzz"])
def test_digits_are_never_guessed_and_what_is_not_there_is_not_there(said: str) -> None:
    found = one(said)
    assert isinstance(found, Unclear)
    assert not found.several
    assert "on file; the nearest are" in found.message


@pytest.mark.parametrize("said", ["Snake River Trail", "upper river trail", "River Trail North"])
def test_a_name_within_a_longer_one_is_another_thing(said: str) -> None:
    found = one(said, {"river-1": "River Trail"})
    assert isinstance(found, Unclear)
    assert one("the Bobby Lake Trail, please", {"bobby-1": "Bobby Lake"}) == "bobby-1"


def test_several_are_a_question() -> None:
    found = one("Waldo")
    assert isinstance(found, Unclear)
    assert found.fits == ("waldo-lake-3536", "waldo-mtn-3540")
    assert found.message == (
        "which trail is meant by 'Waldo': Waldo Lake Trail (waldo-lake-3536) or Waldo Mountain (waldo-mtn-3540)?"
    )


def test_functions_enums_and_lists_may_say_what_is_known() -> None:
    asked: list[str] = []

    def find(text: str) -> dict[str, str]:
        asked.append(text)
        return {key: str(name) for key, name in TRAILS.items() if "lake" in key}

    assert one("Charlton", find) == "charlton-lake-3578"
    assert asked == ["Charlton"]
    assert one("Winter", Season) == "winter"
    assert one("ALPHA", ["alpha", "beta"]) == "alpha"
    assert resolve({"trail": TRAILS}, ["not", "an", "object"]) == (["not", "an", "object"], ())
    assert one(7) == 7


async def test_it_happens_on_the_path_and_is_recorded() -> None:
    @tool(effect="read", known_values={"trail": TRAILS})
    async def look(trail: str) -> str:
        """Look."""
        return trail

    runtime = Runtime.open("memory://", policy=parse_policy(OPEN), tools=[look])
    outcome = await runtime.call("look", {"trail": "Bobby Lake"}, actor="a")
    assert outcome.value == "bobby-lake-3526"
    assert outcome.verdict is not None
    (rewrite,) = outcome.verdict.rewrites
    assert (rewrite.before, rewrite.after, rewrite.rule) == ("Bobby Lake", "bobby-lake-3526", "known_values")
    assert (await runtime.call("look", {"trail": "Waldo"}, actor="a")).status is Status.DENIED
    assert (await runtime.call("look", {"trail": "Fuji"}, actor="a")).status is Status.NO_DATA
    assert (await runtime.call("look", {"trail": "Bobby"}, actor="a", turn="t")).ok
    again = await runtime.call("look", {"trail": "bobby-lake-3526"}, actor="a", turn="t")
    assert again.ok
    records = [record async for record in runtime.store.records(Query(turn="t"))]
    assert records[1].content().repeats == records[0].id  # the same call by another name
    await runtime.close()


def test_a_contract_with_known_values_that_make_no_sense_is_refused() -> None:
    for given, words in (({"nope": TRAILS}, "no parameters"), ("x", "mapping"), ({"trail": "x"}, "values")):
        with pytest.raises(ContractError, match=words):

            @tool(effect="read", known_values=given)
            async def look(trail: str) -> str:
                """Look."""
                return trail


def test_what_a_question_mentions() -> None:
    known = {key: (key, *((name,) if isinstance(name, str) else name)) for key, name in TRAILS.items()}
    assert find_names("How bad is Bobby Lake, or Charlton Lake?", known) == ("bobby-lake-3526", "charlton-lake-3578")
    assert find_names("how bad is it at charlton?", known) == ("charlton-lake-3578",)
    assert find_names("What about Waldo?", known) == ("Waldo",)
    assert find_names("Is Fuji Mountain open?", known) == ("Fuji Mountain",)
    assert find_names("Can we open the lake?", known) == ("lake",)
    assert find_names("What is it like?", known) == ()

    @tool(effect="read", known_values={"trail": TRAILS})
    async def look(trail: str, budget: int, season: Season = Season.summer, deep: bool = False) -> str:
        """Look."""
        return trail

    assert extract_arguments(card(look), "Bobby Lake in winter for $50k", default_vocabulary()) == {
        "trail": ("bobby-lake-3526",), "budget": (50_000,), "season": ("winter",), "deep": (),
    }  # fmt: skip
    assert extract_arguments(card(look), "Bobby Lake", default_vocabulary()) == {
        "trail": ("bobby-lake-3526",),
        "budget": (),
        "season": (),
        "deep": (),
    }
