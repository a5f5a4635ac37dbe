"""The shipped fires: what the script makes, on one schema, adding up."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import rasterio
from pyproj import Geod
from shapely.geometry import shape

from interlock.errors import ConfigError
from interlock_ranger.app import DATA
from interlock_ranger.burn.pixels import OUTSIDE, read_pixels
from interlock_ranger.fires import Fires
from interlock_ranger.intake.cruise_tables import PLOT_COLUMNS, TREE_COLUMNS
from interlock_ranger.intake.fire_folder import FILES, read_fire
from interlock_ranger.records import DamagePoint, Facts, Imagery, Place, Sector, Stand, Thresholds, Trail

GUIDE = Path(__file__).parents[3] / "docs" / "ranger.md"
SCRIPT = Path(__file__).parent.parent / "scripts" / "make_fixtures.py"
GEOD = Geod(ellps="WGS84")


def test_the_script_makes_exactly_what_is_shipped(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, "--out", tmp_path], check=True, timeout=600)
    shipped = sorted(p.relative_to(DATA) for p in DATA.rglob("*") if p.is_file())
    assert sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file()) == shipped
    for name in shipped:
        if name.suffix == ".tif":  # the same pixels; how they are packed is the library's business
            with rasterio.open(DATA / name) as ours, rasterio.open(tmp_path / name) as made:
                assert (ours.read(1) == made.read(1)).all()
                assert ours.tags()["SYNTHETIC"] == "yes"
        else:
            assert (DATA / name).read_bytes() == (tmp_path / name).read_bytes(), name


@pytest.mark.parametrize("fire_id", ["cedar-creek-2022", "bootleg-2021"])
def test_a_fire_adds_up(fires: Fires, fire_id: str) -> None:
    fire = fires.by_id[fire_id]
    assert fire.facts.synthetic
    assert sum(sector.acres for sector in fire.sectors.values()) == fire.facts.reported_acres
    drawn = abs(GEOD.geometry_area_perimeter(fire.perimeter)[0]) / 4046.8564224
    assert drawn == pytest.approx(fire.facts.reported_acres, rel=1e-4)
    for sector in fire.sectors.values():
        assert abs(GEOD.geometry_area_perimeter(sector.geometry)[0]) / 4046.8564224 == pytest.approx(
            sector.acres, rel=0.002
        )
    for trail in fire.trails.values():
        assert GEOD.geometry_length(shape(trail.line)) / 1609.344 == pytest.approx(trail.miles, rel=0.01)
    assert fire.facts.imagery.pre_date < fire.facts.ignition_date < fire.facts.containment_date
    assert fire.facts.containment_date < fire.facts.imagery.post_date


@pytest.mark.parametrize("fire_id", ["cedar-creek-2022", "bootleg-2021"])
def test_the_table_of_sectors_is_the_mean_of_the_rasters_pixels(fires: Fires, fire_id: str) -> None:
    fire = fires.by_id[fire_id]
    seen = read_pixels(fire)
    for n, sector in enumerate(fire.sectors.values()):
        inside = seen.known & (seen.sector == n)
        assert float(np.mean(seen.dnbr[inside])) == pytest.approx(sector.dnbr_mean, abs=0.006)
    assert (seen.sector != OUTSIDE).any()
    assert (~seen.known).any()


def test_cedar_creek_has_the_damage_of_the_earlier_survey(fires: Fires) -> None:
    """Counts and costs by class as the earlier system reported them: 4, 3, 4, 4 points."""
    points = [p for trail in fires.by_id["cedar-creek-2022"].trails.values() for p in trail.damage_points]
    split = {s: [p.estimated_cost_usd for p in points if p.severity == s] for s in range(1, 6)}
    assert (len(split[5]), sum(split[5])) == (4, 298_000)
    assert (len(split[4]), sum(split[4])) == (3, 91_000)
    assert (len(split[3]), sum(split[3])) == (4, 47_000)
    assert (len(split[1] + split[2]), sum(split[1] + split[2])) == (4, 10_800)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("fire.json", "{", "fire.json cannot be read"),
        ("trails.json", '{"trails": [{"trail_id": 3}]}', "trails.json, entry 1: trail_id '3'"),
        ("sectors.geojson", '{"features": [{"properties": {}}]}', "sectors.geojson, entry 1: feature 1 is without"),
        ("perimeter.geojson", '{"features": []}', "perimeter.geojson cannot be read"),
        ("trees.csv", "plot_id,species\na,b\n", "trees.csv, its header: it has no column"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, file: str, text: str, words: str) -> None:
    folder = tmp_path / "cedar-creek-2022"
    shutil.copytree(DATA / "cedar-creek-2022", folder)
    (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=words):
        read_fire(folder)


def test_a_folder_without_fires_or_with_half_of_one_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no fire here"):
        Fires(tmp_path)
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "fire.json").write_text(json.dumps({}), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"perimeter.geojson.* is missing"):
        Fires(tmp_path)


def test_the_guide_names_every_field_that_the_readers_want() -> None:
    text = GUIDE.read_text(encoding="utf-8").partition("<!-- fields")[2].partition("<!-- end of fields -->")[0]
    rows = {row.split("`")[1]: set(re.findall(r"`([^`]+)`", row)) for row in text.splitlines() if row.startswith("| `")}
    assert tuple(rows) == FILES
    wanted = {
        "fire.json": _names(Facts, Imagery, Thresholds, Place),
        "perimeter.geojson": set(),
        "sectors.geojson": _names(Sector) - {"geometry"},
        "trails.json": {"trails"} | _names(Trail, DamagePoint),
        "stands.json": {"stands"} | _names(Stand),
        "plots.csv": {"sector_id"} | set(PLOT_COLUMNS),
        "trees.csv": {"tree"} | set(TREE_COLUMNS),
    }
    for file, names in rows.items():
        assert names - {file} == wanted[file], file
    assert "RANGER_DATA" in GUIDE.read_text(encoding="utf-8")


def _names(*kinds: type[Any]) -> set[str]:
    return {field.name for kind in kinds for field in msgspec.structs.fields(kind)}
