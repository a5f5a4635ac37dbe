"""Names that are not on file: asked about or nothing on file, also where only one thing is there to answer for."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlock import Runtime
from interlock.answers import Answers, App, TurnResult, TurnStatus, run_turn
from interlock.answers.constrained import constrain
from interlock.testing import FirstChoice
from interlock_ranger.app import build_app
from ranger_parts import PATIENCE_S, TODAY, FireFolder, problem

# Names that nothing in the code, the fixtures or the examples of the agents has.
PLACES = ("Odell Butte", "Snake River", "Tumblebug Meadow", "Upper Larison", "Mount Thielsen", "Quartz Canyon")
FIRES = ("Lionshead", "Holiday Farm", "Beachie Creek", "Riverside", "Two Four Two")
TRAILS = (
    "Should the {} trail stay closed in winter?",
    "Is the {} Trail safe to open this fall?",
    "Which trails near {} should stay closed this winter?",
    "What damage is there on the {} trail?",
)
BURNS = ("How badly did {} burn?", "How severe was the {} fire?", "Show the burn severity of {}, please.")
STANDS = (
    "How much timber is on the {} stand?",
    "What is the timber volume of {} stand?",
    "Estimate the net volume of the stand {}.",
)
ASKED = [
    *(("trail_assessor", text, name) for text in TRAILS for name in PLACES),
    *(("burn_analyst", text, name) for text in BURNS for name in FIRES),
    *(("cruising_assistant", text, name) for text in STANDS for name in PLACES),
]
SMALL = [("trail_assessor", TRAILS[0], "odell butte"), ("cruising_assistant", STANDS[0], "quartz canyon")]


def keep_few(folder: FireFolder, count: int) -> None:
    """The fire with so many trails and stands, called by plain names, and the plots and trees of those."""

    def few_trails(document: dict[str, list[dict[str, object]]]) -> None:
        document["trails"] = document["trails"][:count]
        for trail, name in zip(document["trails"], ("River Trail", "Ridge Trail"), strict=False):
            trail["name"] = name

    def few_stands(document: dict[str, list[dict[str, object]]]) -> None:
        document["stands"] = document["stands"][:count]
        for stand, name in zip(document["stands"], ("Stand One", "Meadow Stand"), strict=False):
            stand["name"] = name

    folder.edit("trails.json", few_trails)
    folder.edit("stands.json", few_stands)
    folder.edit("fire.json", lambda facts: {**facts, "places": {}, "name": "My Fire", "fire_id": "my-fire"})
    stands = [stand["stand_id"] for stand in _stands(folder)]
    plots = _filter(folder, "plots.csv", "stand_id", stands)
    _filter(folder, "trees.csv", "plot_id", [row["plot_id"] for row in plots])


def _stands(folder: FireFolder) -> Sequence[dict[str, str]]:
    return json.loads(folder.text("stands.json"))["stands"]  # type: ignore[no-any-return]


def _filter(folder: FireFolder, file: str, column: str, keep: Sequence[str]) -> list[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(folder.text(file)))
    rows = [row for row in reader if row[column] in keep]
    out = io.StringIO()
    writer = csv.DictWriter(out, reader.fieldnames or ())
    writer.writeheader()
    writer.writerows(rows)
    (folder.path / file).write_text(out.getvalue(), encoding="utf-8")
    return rows


@pytest.fixture(params=[1, 2], ids=["one of each", "two of each"])
def own_app(request: pytest.FixtureRequest, tmp_path: Path) -> App:
    """One fire with one trail and one stand, or two of them."""
    folder = FireFolder(tmp_path)
    keep_few(folder, request.param)
    return build_app(tmp_path, today=lambda: TODAY, deadline_s=PATIENCE_S)


async def ask_all(app: App, questions: Sequence[tuple[str, str]]) -> list[TurnResult]:
    async with Runtime.open("memory://", policy=app.policy or "", tools=app.tools) as runtime:
        answers, results = Answers(runtime), []
        for agent, question in questions:
            async with answers.turn(question, agent=app.agent(agent)) as turn:
                results.append(await run_turn(turn, constrain(FirstChoice())))
    return results


async def test_a_name_that_is_not_on_file_is_never_answered_for_another_thing(own_app: App) -> None:
    questions = [(agent, text.format(name)) for agent, text, name in (*ASKED, *SMALL)]
    results = await ask_all(own_app, questions)
    answered = [
        (question, result.answer)
        for (_, question), result in zip(questions, results, strict=True)
        if result.tools  # those that succeeded; nothing on file is no success
    ]
    assert not answered


async def test_most_of_them_are_said_to_be_not_on_file(own_app: App) -> None:
    """Where the question is recognised at all, the name that was not found is in the answer."""
    questions = [("trail_assessor", TRAILS[0].format(name)) for name in PLACES]
    for (_, question), name, result in zip(questions, PLACES, await ask_all(own_app, questions), strict=True):
        assert name.split()[-1] in result.answer, (question, result.answer)


@pytest.mark.parametrize(
    ("agent", "question", "tool"),
    [
        ("trail_assessor", "Should the River Trail stay closed in winter?", "evaluate_closure"),
        ("trail_assessor", "should the river trail stay closed in winter?", "evaluate_closure"),
        ("burn_analyst", "How badly did My Fire burn?", "assess_severity"),
        ("burn_analyst", "How badly did the fire burn?", "assess_severity"),
        ("cruising_assistant", "How much timber is on Stand One?", "estimate_volume"),
    ],
)
async def test_what_is_on_file_is_answered_and_the_only_fire_is_meant_where_none_is_named(
    own_app: App, agent: str, question: str, tool: str
) -> None:
    (result,) = await ask_all(own_app, [(agent, question)])
    assert (result.status, result.tools) == (TurnStatus.VERIFIED, (tool,)), result.answer


class Namesake(NamedTuple):
    """A kind of part: where it is written, how it is asked for, and which record of its file is renamed."""

    file: str
    tool: str
    field: str
    record: Callable[[Any], dict[str, str]]


NAMESAKES = [
    Namesake("stands.json", "estimate_volume", "stand_id", lambda document: document["stands"][0]),
    Namesake("sectors.geojson", "assess_severity", "sector_id", lambda document: document["features"][0]["properties"]),
    Namesake("trails.json", "classify_damage", "trail_id", lambda document: document["trails"][0]),
    Namesake("fire.json", "classify_damage", "near", lambda document: next(iter(document["places"].values()))),
]


def _copy_fire(parent: Path, fire_id: str, renamed: Namesake, name: str) -> None:
    """Cedar Creek under another id, with another name for one of its parts."""
    folder = FireFolder(parent)
    folder.edit("fire.json", lambda facts: {**facts, "fire_id": fire_id, "name": fire_id[:3].title()})
    folder.edit(renamed.file, lambda document: renamed.record(document).update(name=name))
    folder.path.rename(parent / fire_id)


@pytest.mark.parametrize("kind", NAMESAKES, ids=lambda kind: kind.field)
async def test_a_name_belongs_to_a_part_of_one_fire_also_where_two_fires_use_one_id(
    tmp_path: Path, kind: Namesake
) -> None:
    own = {"aaa-2022": "Quartz Ridge", "bbb-2022": "Salmon Valley"}
    for fire_id, name in own.items():
        _copy_fire(tmp_path, fire_id, kind, name)
    app = build_app(tmp_path, today=lambda: TODAY)
    async with Runtime.open("memory://", policy=app.policy or "", tools=app.tools) as runtime:
        for fire_id, name in own.items():
            for given in ({"fire_id": fire_id, kind.field: name}, {kind.field: name}):
                found = await runtime.call(kind.tool, given, actor="operator")
                assert found.status == "ok", found.problem
                assert isinstance(found.value, dict)
                assert found.value["fire_id"] == fire_id
            (other,) = own.keys() - {fire_id}
            refused = await runtime.call(kind.tool, {"fire_id": other, kind.field: name}, actor="operator")
            assert (refused.status, refused.value) == ("no_data", None)
            assert f"; it is of {fire_id[:3].title()}" in problem(refused).message
