"""Sizes in files are held against what the files draw: both numbers are told, and the fire is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock_ranger.intake.fire_folder import read_fire
from interlock_ranger.intake.problems import RefusedFire
from ranger_parts import FireFolder


@pytest.fixture
def folder(tmp_path: Path) -> FireFolder:
    return FireFolder(tmp_path / "data")


def sector(document: Any) -> dict[str, Any]:
    found: dict[str, Any] = document["features"][0]["properties"]
    return found


def straighten(document: Any) -> None:
    """A line of two positions, some 15 miles apart."""
    document["trails"][0]["line"]["coordinates"] = [[-122.07, 43.68], [-122.07, 43.90]]


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        (
            "sectors.geojson",
            lambda d: sector(d).update(acres=250_000),
            "sectors.geojson, NW-1: acres '250,000'; its shape has 15,24\\d, and they may differ by 10 %; correct the",
        ),
        ("sectors.geojson", lambda d: sector(d).update(acres=152), "NW-1: acres '152'; its shape has 15,24"),
        (
            "trails.json",
            lambda d: d["trails"][0].update(miles=40.0),
            "trails.json, waldo-lake-3536: miles '40.0'; its line has 22.0, and they may differ by 25 %; correct the",
        ),
        ("trails.json", straighten, "waldo-lake-3536: miles '22.0'; its line has 15.2"),
        (
            "fire.json",
            lambda d: d.update(reported_acres=5_000),
            "fire.json, the fire: reported_acres '5,000'; the sectors of sectors.geojson have 127,311 together",
        ),
        ("fire.json", lambda d: d.update(reported_acres=1_273_110), "reported_acres '1,273,110'; the sectors of"),
        (
            "stands.json",
            lambda d: d["stands"][0].update(acres=320_000),
            "stands.json, north-fork: acres '320,000'; the sectors that it and its plots are in have",
        ),
        (
            "stands.json",
            lambda d: d["stands"].extend({**d["stands"][0], "stand_id": f"s{n}", "acres": 15_000} for n in range(9)),
            "stands.json, all stands: acres '143,500'; together they are larger than the fire, of which 127,311 are",
        ),
    ],
)
def test_a_size_that_the_drawing_does_not_have_is_refused(
    folder: FireFolder, file: str, change: Any, words: str
) -> None:
    folder.edit(file, change)
    with pytest.raises(RefusedFire, match=words) as caught:
        read_fire(folder.path)
    assert len(caught.value.problems) == 1  # what follows from it is not told again


def test_all_wrong_sizes_are_told_at_once(folder: FireFolder) -> None:
    folder.edit("sectors.geojson", lambda d: [feature["properties"].update(acres=1) for feature in d["features"]] and d)
    folder.edit("trails.json", lambda d: [trail.update(miles=500.0) for trail in d["trails"]] and d)
    with pytest.raises(RefusedFire) as caught:
        read_fire(folder.path)
    found = [problem.field for problem in caught.value.problems]
    assert (found.count("acres"), found.count("miles")) == (8, 5)


def test_what_is_rounded_or_redrawn_is_read(folder: FireFolder) -> None:
    folder.edit("sectors.geojson", lambda d: sector(d).update(acres=16_000))
    folder.edit("trails.json", lambda d: d["trails"][0].update(miles=25.0))
    folder.edit("fire.json", lambda d: d.update(reported_acres=130_000))
    fire = read_fire(folder.path)
    assert fire.sectors["NW-1"].acres == 16_000


async def test_ground_that_no_sector_has_is_no_wrong_size_and_is_told(folder: FireFolder) -> None:
    """The perimeter has the reported acres, so it is the sectors that leave some out."""
    folder.edit("sectors.geojson", lambda d: d["features"].pop() and None)
    async with folder.open() as call:
        found = await call("validate_boundary", fire_id="cedar-creek-2022")
    assert "SECTOR_GAP" in found.said
