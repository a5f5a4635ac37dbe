"""The door for shapes and rasters: every part counts, projections are read or refused, NBR is NBR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pyproj import Transformer
from shapely.geometry import box, mapping

from interlock_ranger.burn.boundary import measure
from interlock_ranger.intake.fire_folder import read_fire
from interlock_ranger.view import terminal_map
from interlock_ranger.view.svg import draw_map
from ranger_parts import FireFolder, problem

ISLAND = box(-121.2, 44.4, -121.1, 44.5)
"""A part some forty miles away from the others."""


# Made once: one for every position would take longer than all else here.
TO_UTM = Transformer.from_crs("EPSG:4326", "EPSG:26910", always_xy=True)


@pytest.fixture
def folder(tmp_path: Path) -> FireFolder:
    return FireFolder(tmp_path / "data")


def geometry_of(document: Any) -> Any:
    return document["features"][0]["geometry"]


def as_features(document: Any) -> Any:
    document["features"].append({"type": "Feature", "properties": {}, "geometry": mapping(ISLAND)})


def as_multi_polygon(document: Any) -> Any:
    parts = [geometry_of(document)["coordinates"], mapping(ISLAND)["coordinates"]]
    document["features"][0]["geometry"] = {"type": "MultiPolygon", "coordinates": parts}


def as_collection(document: Any) -> Any:
    parts = [geometry_of(document), mapping(ISLAND)]
    document["features"][0]["geometry"] = {"type": "GeometryCollection", "geometries": parts}


def as_bare_geometry(document: Any) -> Any:
    as_multi_polygon(document)
    return geometry_of(document)


def as_one_feature(document: Any) -> Any:
    as_multi_polygon(document)
    return document["features"][0]


@pytest.mark.parametrize("form", [as_features, as_multi_polygon, as_collection, as_bare_geometry, as_one_feature])
async def test_every_part_of_a_perimeter_counts(folder: FireFolder, form: Any) -> None:
    whole = measure(read_fire(folder.path).perimeter).area_acres
    island = measure(ISLAND).area_acres
    folder.edit("perimeter.geojson", form)
    async with folder.open() as call:
        found = await call("validate_boundary", fire_id="cedar-creek-2022")
    assert found.value["measured"]["parts"] == 2
    assert found.value["measured"]["area_acres"] == pytest.approx(whole + island, abs=1)
    assert "in 2 parts" in found.said
    assert found.value["verdict"] == "WARNING"  # larger than what was reported, by the island


def test_ground_that_two_parts_share_counts_once(folder: FireFolder) -> None:
    whole = measure(read_fire(folder.path).perimeter).area_acres
    folder.edit("perimeter.geojson", lambda d: d["features"].append(dict(d["features"][0])))
    assert measure(read_fire(folder.path).perimeter).area_acres == pytest.approx(whole, abs=1)


def test_a_hole_is_no_burned_ground_and_heights_are_dropped(folder: FireFolder) -> None:
    hole = box(-122.1, 43.75, -122.05, 43.8)
    before = measure(read_fire(folder.path).perimeter)

    def cut(document: Any) -> None:
        rings = geometry_of(document)["coordinates"]
        rings.append(mapping(hole)["coordinates"][0])
        geometry_of(document)["coordinates"] = [[[*p[:2], 1200.0] for p in ring] for ring in rings]

    folder.edit("perimeter.geojson", cut)
    after = read_fire(folder.path).perimeter
    assert not after.has_z
    assert measure(after).holes == 1
    assert measure(after).area_acres == pytest.approx(before.area_acres - measure(hole).area_acres, abs=1)


def to_utm(coordinates: Any) -> Any:
    if isinstance(coordinates[0], list):
        return [to_utm(item) for item in coordinates]
    return list(TO_UTM.transform(*coordinates))


def project(document: Any, name: str | None) -> None:
    for feature in document["features"]:
        feature["geometry"]["coordinates"] = to_utm(feature["geometry"]["coordinates"])
    if name is not None:
        document["crs"] = {"type": "name", "properties": {"name": name}}


@pytest.mark.parametrize("file", ["perimeter.geojson", "sectors.geojson"])
def test_a_projection_that_is_named_is_read_and_one_that_is_not_is_refused(folder: FireFolder, file: str) -> None:
    before = read_fire(folder.path)
    original = folder.text(file)
    folder.edit(file, lambda d: project(d, "urn:ogc:def:crs:EPSG::26910"))
    after = read_fire(folder.path)
    assert after.perimeter.hausdorff_distance(before.perimeter) < 1e-5
    assert after.sectors["NW-1"].geometry.hausdorff_distance(before.sectors["NW-1"].geometry) < 1e-5
    (folder.path / file).write_text(original)
    folder.edit(file, lambda d: project(d, None))
    said = folder.refusal()
    assert f"\n  {file}" in said
    assert "looks like metres of a projection: save the file in WGS 84" in said
    (folder.path / file).write_text(original)
    folder.edit(file, lambda d: project(d, "the projection of my uncle"))
    assert "its projection" in folder.refusal()


@pytest.mark.parametrize("name", ["urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326", "urn:ogc:def:crs:EPSG::4326"])
def test_wgs84_may_be_said(folder: FireFolder, name: str) -> None:
    before = read_fire(folder.path)
    folder.edit("perimeter.geojson", lambda d: d.update(crs={"type": "name", "properties": {"name": name}}))
    assert read_fire(folder.path).perimeter.equals(before.perimeter)


def swap(coordinates: Any) -> Any:
    return [swap(item) for item in coordinates] if isinstance(coordinates[0], list) else coordinates[::-1]


def swap_all(document: Any) -> None:
    geometry_of(document)["coordinates"] = swap(geometry_of(document)["coordinates"])


def count_eastward(document: Any) -> None:
    for ring in geometry_of(document)["coordinates"]:
        ring[:] = [[x + 360, y] for x, y in ring]


def open_ring(document: Any) -> None:
    geometry_of(document)["coordinates"][0].pop()


def cross_itself(document: Any) -> None:
    ring = geometry_of(document)["coordinates"][0]
    ring[1], ring[len(ring) // 2] = ring[len(ring) // 2], ring[1]


def into_the_sea(document: Any) -> None:
    geometry_of(document)["coordinates"] = mapping(box(-140, 43, -139, 44))["coordinates"]


def as_line(document: Any) -> None:
    document["features"][0]["geometry"] = {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("perimeter.geojson", swap_all, "that looks like latitude first"),
        ("sectors.geojson", swap_all, "that looks like latitude first"),
        ("perimeter.geojson", count_eastward, "subtract 360 from those over 180"),
        ("perimeter.geojson", open_ring, "does not end where it begins"),
        ("perimeter.geojson", as_line, "feature 1 is LineString; an area is a Polygon"),
        ("perimeter.geojson", lambda d: d["features"].clear(), "there is no feature in it"),
        ("perimeter.geojson", lambda d: d["features"][0].update(geometry=None), "feature 1 is without a geometry"),
        ("sectors.geojson", cross_itself, "sectors.geojson, NW-1: geometry 'Self-intersection"),
        ("sectors.geojson", into_the_sea, "sector NW-1: position"),
        ("perimeter.geojson", into_the_sea, "over a hundred miles from the perimeter"),
    ],
)
def test_a_shape_that_cannot_be_right_is_refused(folder: FireFolder, file: str, change: Any, words: str) -> None:
    folder.edit(file, change)
    assert words in folder.refusal()


def test_a_perimeter_that_crosses_itself_is_read_for_its_check(folder: FireFolder) -> None:
    folder.edit("perimeter.geojson", cross_itself)
    fire = read_fire(folder.path)
    assert not fire.perimeter.is_valid
    assert "<svg" in draw_map(fire, {}, {})
    assert "map of Cedar Creek" in terminal_map.draw_map(fire, {}).plain


def test_a_trail_of_two_positions_is_a_line_on_the_terminal_map(folder: FireFolder) -> None:
    ends = [[-122.25, 43.70], [-122.05, 43.85]]

    def straighten(document: Any) -> None:
        document["trails"] = document["trails"][:1]
        document["trails"][0].update(miles=14.4, damage_points=[])
        document["trails"][0]["line"]["coordinates"] = ends

    folder.edit("trails.json", straighten)
    drawn = terminal_map.draw_map(read_fire(folder.path), {"waldo-lake-3536": "CLOSED"}).plain.splitlines()[1:-3]
    cells = sorted((row, column) for row, text in enumerate(drawn) for column, sign in enumerate(text) if sign == "A")
    assert len(cells) > 20
    rows, columns = {row for row, _ in cells}, {column for _, column in cells}
    # No row and no column between the ends is left out.
    assert rows == set(range(min(rows), max(rows) + 1))
    assert columns == set(range(min(columns), max(columns) + 1))


def test_a_part_that_no_sector_has_is_on_the_maps(folder: FireFolder) -> None:
    folder.edit("perimeter.geojson", as_features)
    fire = read_fire(folder.path)
    assert "- inside the perimeter, but in no sector" in terminal_map.draw_map(fire, {}).plain
    assert draw_map(fire, {}, {}).count("Z") == len(fire.sectors) + 2


def test_pieces_of_a_trail_that_meet_are_one_and_others_are_refused(folder: FireFolder) -> None:
    before = read_fire(folder.path).trails["waldo-lake-3536"].line["coordinates"]

    def split(document: Any, gap: int) -> None:
        line = document["trails"][0]["line"]
        pieces = [line["coordinates"][:20], line["coordinates"][19 + gap :]]
        document["trails"][0]["line"] = {"type": "MultiLineString", "coordinates": pieces}

    original = folder.text("trails.json")
    folder.edit("trails.json", lambda d: split(d, 0))
    line = read_fire(folder.path).trails["waldo-lake-3536"].line
    assert (line["type"], len(line["coordinates"])) == ("LineString", len(before))
    (folder.path / "trails.json").write_text(original)
    folder.edit("trails.json", lambda d: split(d, 3))
    assert "waldo-lake-3536: its line is in pieces that do not meet" in folder.refusal()


def test_every_part_of_a_sector_is_drawn_with_its_holes(folder: FireFolder) -> None:
    middle = read_fire(folder.path).sectors["NW-1"].geometry.representative_point()
    hole = mapping(middle.buffer(0.001))["coordinates"][0]

    def split(document: Any) -> None:
        parts = [[geometry_of(document)["coordinates"][0], hole], mapping(ISLAND)["coordinates"]]
        document["features"][0]["geometry"] = {"type": "MultiPolygon", "coordinates": parts}
        document["features"][0]["properties"]["acres"] += round(measure(ISLAND).area_acres)

    whole = draw_map(read_fire(folder.path), {}, {}).count("Z")
    folder.edit("sectors.geojson", split)
    folder.edit("perimeter.geojson", as_features)
    folder.edit("fire.json", lambda d: d.update(reported_acres=d["reported_acres"] + 21_850))  # the island, too
    picture = draw_map(read_fire(folder.path), {}, {})
    assert picture.count("Z") == whole + 3  # a hole, an island, and the island of the perimeter
    assert "- inside the perimeter, but in no sector" not in terminal_map.draw_map(read_fire(folder.path), {}).plain
    assert 'fill-rule="evenodd"' in picture


def thousandths(values: NDArray[Any]) -> NDArray[Any]:
    return values


@pytest.mark.parametrize(
    ("change", "profile", "words"),
    [
        (thousandths, {"scales": (1.0,)}, "pixels are no NBR, which lies between -1 and 1"),
        (lambda v: np.where(v == v.max(), 1500, v), {}, "state the right scale in the file"),
        (thousandths, {"crs": None}, "it does not say where it lies"),
    ],
)
def test_a_raster_that_is_no_nbr_is_refused_at_the_door(
    folder: FireFolder, change: Any, profile: dict[str, Any], words: str
) -> None:
    folder.edit_raster("nbr_post.tif", change, **profile)
    said = folder.refusal()
    assert "nbr_post.tif cannot be read" in said
    assert words in said


def test_a_raster_alone_or_on_another_grid_or_no_raster_is_refused(folder: FireFolder) -> None:
    kept = (folder.path / "nbr_post.tif").read_bytes()
    (folder.path / "nbr_post.tif").write_bytes(b"no raster")
    assert "it is no raster that can be read" in folder.refusal()
    (folder.path / "nbr_post.tif").unlink()
    assert "nbr_pre.tif is there alone" in folder.refusal()
    (folder.path / "nbr_post.tif").write_bytes(kept)
    folder.edit_raster("nbr_post.tif", lambda v: v[:-1], height=83)
    assert "do not lie on one grid" in folder.refusal()


async def test_a_pixel_that_is_no_number_is_unseen_and_not_burned(folder: FireFolder) -> None:
    def blank(values: NDArray[Any]) -> NDArray[Any]:
        plain = np.where(values == -32768, np.nan, values / 1000).astype("float32")
        plain[:42] = np.nan
        return plain

    async with folder.open() as call:
        before = (await call("assess_severity", fire_id="cedar-creek-2022")).value
    for file in ("nbr_pre.tif", "nbr_post.tif"):
        folder.edit_raster(file, blank, dtype="float32", nodata=None, scales=(1.0,))
    async with folder.open() as call:
        after = (await call("assess_severity", fire_id="cedar-creek-2022")).value
    known = after["evidence"]["confidence"]["completeness"]
    assert 0 < known < before["evidence"]["confidence"]["completeness"]
    assert after["unseen_sectors"]
    assert after["acres"] + after["unseen_acres"] == before["acres"]


def mask(values: NDArray[Any]) -> NDArray[Any]:
    return np.full_like(values, -32768)


async def test_a_fire_that_nobody_can_see_is_no_data_and_does_not_hide_the_others(folder: FireFolder) -> None:
    folder.edit_raster("nbr_post.tif", mask)
    FireFolder(folder.path.parent, "bootleg-2021")
    async with folder.open() as call:
        whole = await call("assess_severity", fire_id="cedar-creek-2022")
        sector = await call("assess_severity", sector_id="SW-1")
        classes = await call("classify_mtbs", fire_id="cedar-creek-2022")
        triage = await call("portfolio_triage")
    for found in (whole, sector, classes):
        assert found.status == "no_data"
        assert "can be seen in nbr_pre.tif and nbr_post.tif" in problem(found).message
    assert [fire["fire_id"] for fire in triage.value["fires"]] == ["bootleg-2021"]
    assert triage.value["unranked"][0].startswith("Cedar Creek: no pixel")
    assert "not ranked: Cedar Creek" in triage.said
    assert triage.value["evidence"]["confidence"]["completeness"] < 0.6


async def test_ground_beyond_the_rasters_is_not_called_seen(folder: FireFolder) -> None:
    """The western half of the rasters alone: what lies east of it is told, and lowers confidence."""
    for file in ("nbr_pre.tif", "nbr_post.tif"):
        folder.edit_raster(file, lambda values: values[:, :60], width=60)
    async with folder.open() as call:
        found = await call("assess_severity", fire_id="cedar-creek-2022")
        classes = (await call("classify_mtbs", fire_id="cedar-creek-2022")).value
    assert found.value["unseen_sectors"]
    assert found.value["evidence"]["confidence"]["completeness"] < 0.7
    assert all(name in found.said for name in found.value["unseen_sectors"])
    mask_class = classes["classes"][-1]
    assert mask_class["pct"] > 30
    assert classes["seen_pct"] == pytest.approx(100 - mask_class["pct"], abs=0.2)
