"""Sampling error enters confidence: what is extrapolated from plots is trusted as far as they agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlock_ranger.timber.sampling import SampledPart, precision, precision_of_sum
from ranger_parts import Call, FireFolder, problem

TREE = {"species": "PSME", "dbh_in": 20.0, "height_ft": 110.0, "defect_pct": 0.0}


def sampled(total: float, error_pct: float | None) -> SampledPart:
    return SampledPart(total=total, error_pct=error_pct)


def test_precision_by_hand() -> None:
    assert [precision(error) for error in (0, 25, 100, 300)] == [1.0, 0.8, 0.5, 0.25]
    assert precision_of_sum([sampled(10, 25)]) == 0.8
    # Half intervals of 30 and 40 make 50 of 200.
    assert precision_of_sum([sampled(100, 30), sampled(100, 40)]) == pytest.approx(1 / 1.25)
    # Three quarters of the timber have an error of 25 %, and of the rest nobody knows it.
    assert precision_of_sum([sampled(75, 25), sampled(25, None)]) == pytest.approx(0.75 * 0.8)
    assert precision_of_sum([sampled(50, None)]) == 0.0
    assert precision_of_sum([]) == 0.0


async def test_the_confidence_of_a_volume_falls_with_its_error(call: Call) -> None:
    for arguments in ({"fire_id": "cedar-creek-2022"}, {"stand_id": "north-fork"}):
        found = await call("estimate_volume", **arguments)
        trust = found.value["evidence"]["confidence"]
        error = found.value["total_error_pct"]
        assert error > 30
        assert trust["precision"] == pytest.approx(1 / (1 + error / 100), abs=0.002)
        assert found.confidence == pytest.approx(
            trust["completeness"] * trust["freshness"] * trust["precision"], abs=0.006
        )


async def test_the_confidence_of_salvage_falls_with_the_error_of_the_dead_timber(call: Call) -> None:
    found = (await call("assess_salvage", stand_id="north-fork", assessment_date="2023-09-30")).value
    (stand,) = found["stands"]
    trust = found["evidence"]["confidence"]
    assert trust["precision"] == pytest.approx(1 / (1 + stand["sampling_error_pct"] / 100), abs=0.002)
    said = (await call("assess_salvage", stand_id="north-fork", assessment_date="2023-09-30")).said
    assert f"sampling error {stand['sampling_error_pct']} %" in said


async def test_plots_of_the_caller_that_agree_are_surer_than_those_that_do_not(call: Call) -> None:
    def plots(*counts: int) -> list[dict[str, object]]:
        return [{"plot_id": f"p{n}", "baf": 20.0, "trees": [TREE] * count} for n, count in enumerate(counts)]

    async def confidence(*counts: int) -> float:
        found = await call("estimate_volume", region="west", plots=plots(*counts))
        return float(found.confidence or 0)

    assert await confidence(5, 5, 5) == 1.0
    assert await confidence(5, 5, 5) > await confidence(4, 5, 6) > await confidence(1, 5, 9)
    twice = await call("estimate_volume", region="west", plots=[*plots(5), *plots(5)])
    assert "p0 more than once" in problem(twice).message


@pytest.fixture
def folder(tmp_path: Path) -> FireFolder:
    return FireFolder(tmp_path / "data")


async def test_a_stand_of_one_plot_lends_no_confidence_to_the_total(folder: FireFolder) -> None:
    async with folder.open() as call:
        before = (await call("estimate_volume", fire_id="cedar-creek-2022")).value
    kept = [line for line in folder.text("plots.csv").splitlines() if not line.startswith(("47-B", "47-G", "47-H"))]
    trees = [line for line in folder.text("trees.csv").splitlines() if not line.startswith(("47-B", "47-G", "47-H"))]
    (folder.path / "plots.csv").write_text("\n".join(kept), encoding="utf-8")
    (folder.path / "trees.csv").write_text("\n".join(trees), encoding="utf-8")
    async with folder.open() as call:
        whole = await call("estimate_volume", fire_id="cedar-creek-2022")
        alone = await call("estimate_volume", stand_id="north-fork")
    trust = whole.value["evidence"]["confidence"]
    assert trust["precision"] < before["evidence"]["confidence"]["precision"]
    assert whole.value["total_error_pct"] is None
    assert "None" not in whole.said
    assert "error not known from 1 plot" in whole.said
    assert alone.confidence == 0.0


async def test_a_stand_without_a_plot_is_named_wherever_it_is_missing(folder: FireFolder) -> None:
    stands = json.loads(folder.text("stands.json"))
    stands["stands"].append({**stands["stands"][0], "stand_id": "new", "name": "New stand"})
    (folder.path / "stands.json").write_text(json.dumps(stands), encoding="utf-8")
    async with folder.open() as call:
        for tool in ("estimate_volume", "assess_salvage", "recommend_methodology"):
            found = await call(tool, fire_id="cedar-creek-2022")
            assert found.value["not_cruised"] == ["New stand"]
            assert "New stand" in found.said
            assert found.value["evidence"]["confidence"]["completeness"] < 1
