"""Make the synthetic fires that ship with RANGER: two on one schema, or a large one for measuring.

    python scripts/make_fixtures.py                     # writes src/interlock_ranger/data
    python scripts/make_fixtures.py --large FOLDER      # one fire of 1,000 sectors, 500 trails, 20,000 trees

The names are of real places; the figures are made up here. Geometry comes first and everything else is measured on it:
acres are geodesic areas, sector means are means of the raster's pixels, mileposts lie on their trail. `check_fire`
refuses a fire that does not add up.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
import shapely
from numpy.typing import NDArray
from pyproj import Geod, Transformer
from rasterio.features import geometry_mask
from rasterio.transform import from_origin
from scipy.optimize import linear_sum_assignment
from shapely.geometry import LineString, Point, Polygon, mapping

HERE = Path(__file__).parent
DATA = HERE.parent / "src" / "interlock_ranger" / "data"
UTM = "EPSG:32610"
GEOD = Geod(ellps="WGS84")
TO_LL = Transformer.from_crs(UTM, "EPSG:4326", always_xy=True).transform
TO_UTM = Transformer.from_crs("EPSG:4326", UTM, always_xy=True).transform
ACRE_M2 = 4046.8564224
MILE_M = 1609.344
NODATA = -32768
SCALE = 1000


def geodesic_acres(shape: Any) -> float:
    """The geodesic area of a shape in degrees."""
    return abs(GEOD.geometry_area_perimeter(shape)[0]) / ACRE_M2


def to_degrees(shape: Any) -> Any:
    """A shape in metres, in longitude and latitude of six places (about ten centimetres)."""
    return shapely.set_precision(shapely.transform(shape, TO_LL, interleaved=False), 1e-6)


def draw_outline(plan: dict[str, Any], rng: np.random.Generator) -> Polygon:
    """A fire's outline: a wobbly ellipse, scaled until its area on the globe is what was reported."""
    x, y = TO_UTM(plan["longitude"], plan["latitude"])
    turns = np.linspace(0, 2 * math.pi, 120, endpoint=False)
    wobble = np.sum([rng.uniform(0.02, 0.07) * np.cos(k * turns + rng.uniform(0, 6.28)) for k in range(2, 9)], axis=0)
    shape = Polygon(
        [((1 + w) * math.cos(t) * plan["stretch"], (1 + w) * math.sin(t)) for t, w in zip(turns, wobble, strict=True)]
    )
    size = math.sqrt(plan["reported_acres"] * ACRE_M2 / shape.area)
    for _ in range(6):
        placed = shapely.affinity.translate(shapely.affinity.scale(shape, size, size, origin=(0, 0)), x, y)
        size *= math.sqrt(plan["reported_acres"] / geodesic_acres(to_degrees(placed)))
    return placed


def cut_sectors(perimeter: Polygon, plans: dict[str, dict[str, Any]], rng: np.random.Generator) -> dict[str, Polygon]:
    """The perimeter in as many parts as there are names, no gap and no overlap, each towards where its plan says."""
    names = list(plans)
    left, low, right, high = perimeter.bounds
    seeds: list[Point] = []
    while len(seeds) < len(names):
        point = Point(rng.uniform(left, right), rng.uniform(low, high))
        near = min((point.distance(seed) for seed in seeds), default=math.inf)
        if perimeter.contains(point) and near > 0.55 * math.sqrt(perimeter.area / len(names)):
            seeds.append(point)
    seeds.sort(key=lambda p: (-p.y, p.x))
    cells = shapely.voronoi_polygons(shapely.MultiPoint(seeds), extend_to=perimeter)
    parts = [next(c for c in cells.geoms if c.contains(seed)).intersection(perimeter) for seed in seeds]
    if "towards" not in plans[names[0]]:
        return dict(zip(names, parts, strict=True))
    middle, wide, tall = perimeter.centroid, (right - left) / 2, (high - low) / 2
    offsets = [((p.centroid.x - middle.x) / wide, (p.centroid.y - middle.y) / tall) for p in parts]
    wanted = [plans[name]["towards"] for name in names]
    far = [[math.dist(place, [0.6 * t for t in towards]) for place in offsets] for towards in wanted]
    rows, columns = linear_sum_assignment(far)
    return {names[row]: parts[column] for row, column in zip(rows, columns, strict=True)}


def smooth_noise(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
    """Noise between -1 and 1 that changes slowly across the land."""
    rows, columns = np.mgrid[0 : shape[0], 0 : shape[1]]
    waves = [
        np.cos(rng.uniform(0.05, 0.5) * rows + rng.uniform(0.05, 0.5) * columns + rng.uniform(0, 6.28))
        for _ in range(8)
    ]
    return np.asarray(sum(waves)) / 8


def among_highest(values: NDArray[np.float64], share: float) -> NDArray[np.bool_]:
    """Where the highest values lie, that share of all."""
    return np.asarray(values > np.quantile(values, 1 - share))


def draw_rasters(
    plan: dict[str, Any], perimeter: Polygon, sectors: dict[str, Polygon], rng: np.random.Generator
) -> tuple[NDArray[np.int16], NDArray[np.int16], Any]:
    """NBR before and after the fire: thousandths as whole numbers, with clouds in the second."""
    step = plan["pixel_m"]
    left, low, right, high = (math.floor(v / step) * step for v in perimeter.buffer(4 * step).bounds)
    shape = (int((high - low) / step) + 1, int((right - left) / step) + 1)
    place = from_origin(left, high, step, step)
    before = 0.55 + 0.12 * smooth_noise(shape, rng)
    change = 0.02 * smooth_noise(shape, rng)
    for name, part in sectors.items():
        inside = geometry_mask([part], shape, place, invert=True)
        change[inside] = plan["sectors"][name]["dnbr"] + (0.42 * smooth_noise(shape, rng))[inside]
    change[among_highest(smooth_noise(shape, rng), 0.015)] = -0.22
    clouds = among_highest(smooth_noise(shape, rng), 0.02)
    pre = np.round(before * SCALE).astype(np.int16)
    post = np.round((before - change) * SCALE).astype(np.int16)
    post[clouds] = NODATA
    return pre, post, place


def write_raster(file: Path, values: NDArray[np.int16], place: Any) -> None:
    """One band of thousandths."""
    profile = {"driver": "GTiff", "height": values.shape[0], "width": values.shape[1], "count": 1, "dtype": "int16"}
    with rasterio.open(
        file, "w", **profile, crs=UTM, transform=place, nodata=NODATA, compress="deflate", predictor=2
    ) as target:
        target.write(values, 1)
        target.scales = (1 / SCALE,)
        target.update_tags(SYNTHETIC="yes", MADE_BY="scripts/make_fixtures.py")


def round_to_total(sizes: dict[str, float], total: int) -> dict[str, int]:
    """Whole numbers that add up to the total: those with the largest fractions are rounded up."""
    scaled = {name: size * total / sum(sizes.values()) for name, size in sizes.items()}
    down = {name: math.floor(size) for name, size in scaled.items()}
    by_fraction = sorted(scaled, key=lambda name: down[name] - scaled[name])
    up = set(by_fraction[: total - sum(down.values())])
    return {name: size + (name in up) for name, size in down.items()}


def sector_features(
    plan: dict[str, Any], sectors: dict[str, Polygon], pre: NDArray[np.int16], post: NDArray[np.int16], place: Any
) -> list[dict[str, Any]]:
    """Sectors as features: acres from their geometry (rounded so that they add up), dNBR from the pixels."""
    shapes = {name: to_degrees(part) for name, part in sectors.items()}
    sizes = round_to_total({name: geodesic_acres(shape) for name, shape in shapes.items()}, plan["reported_acres"])
    known = (pre != NODATA) & (post != NODATA)
    change = (pre.astype(float) - post) / SCALE
    features = []
    for name, part in sectors.items():
        inside = geometry_mask([part], pre.shape, place, invert=True) & known
        given = plan["sectors"][name]
        properties = {
            "sector_id": name,
            "name": given["name"],
            "acres": sizes[name],
            "dnbr_mean": round(float(change[inside].mean()), 3),
            "slope_pct": given["slope_pct"],
            "concern": given["concern"],
            "designation": given.get("designation", "none"),
        }
        features.append({"type": "Feature", "properties": properties, "geometry": mapping(shapes[name])})
    return features


def draw_trail(trail: dict[str, Any], rng: np.random.Generator) -> LineString:
    """A winding line of exactly the trail's miles, starting where the plan says."""
    x, y = TO_UTM(*trail["start"])
    heading = math.radians(90 - trail["bearing_deg"])
    points, turn = [(0.0, 0.0)], 0.0
    for _ in range(60):
        turn = 0.7 * turn + rng.uniform(-0.5, 0.5)
        points.append((points[-1][0] + math.cos(heading + turn), points[-1][1] + math.sin(heading + turn)))
    line, size = LineString(points), trail["miles"] * MILE_M / 60
    for _ in range(5):
        placed = shapely.affinity.translate(shapely.affinity.scale(line, size, size, origin=(0, 0)), x, y)
        size *= trail["miles"] * MILE_M / GEOD.geometry_length(shapely.transform(placed, TO_LL, interleaved=False))
    return placed


def build_trails(plan: dict[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    """Trails with their line, and each damage point at its milepost."""
    found = []
    for trail in plan["trails"]:
        line = draw_trail(trail, rng)
        points = []
        for n, (mile, kind, severity, cost, work, crew_days) in enumerate(trail["damage"], 1):
            lon, lat = TO_LL(*line.interpolate(mile / trail["miles"], normalized=True).coords[0])
            points.append(
                {
                    "damage_id": f"{trail['trail_id'].rpartition('-')[2]}-{n:02d}",
                    "milepost": mile,
                    "type": kind,
                    "severity": severity,
                    "longitude": round(lon, 6),
                    "latitude": round(lat, 6),
                    "estimated_cost_usd": cost,
                    "work_type": work,
                    "crew_days": crew_days,
                }
            )
        kept = {key: value for key, value in trail.items() if key not in ("start", "bearing_deg", "damage")}
        found.append({**kept, "line": mapping(to_degrees(line)), "damage_points": points})
    return found


HEIGHTS = {"PSME": (26, 3.6), "TSHE": (24, 3.7), "THPL": (22, 3.0), "PIPO": (20, 3.4), "PICO": (18, 4.4),
           "ABGR": (20, 4.0), "ABCO": (20, 3.8), "TSME": (18, 3.4), "ABLA": (15, 4.2)}  # fmt: skip


def tally_trees(plan: dict[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    """The trees that were tallied on each plot."""
    rows = []
    for plot in plan["plots"]:
        for n in range(1, plot["trees"] + 1):
            species = str(rng.choice(list(plot["species"]), p=list(plot["species"].values())))
            dbh = round(float(np.clip(rng.normal(plot["dbh_in"], 0.28 * plot["dbh_in"]), 9, 56)), 1)
            base, rise = HEIGHTS[species]
            height = round(float(np.clip(base + rise * dbh + rng.normal(0, 6), 34, 210)))
            rows.append(
                {
                    "plot_id": plot["plot_id"],
                    "tree": n,
                    "species": species,
                    "dbh_in": dbh,
                    "height_ft": height,
                    "dead": "yes" if rng.uniform() < plot["dead"] else "no",
                    "defect_pct": int(rng.choice([0, 0, 5, 5, 10, 10, 15, 20, 30])),
                }
            )
    return rows


def check_fire(fire: dict[str, Any], sectors: list[dict[str, Any]], trails: list[dict[str, Any]]) -> None:
    """Refuse a fire that does not add up."""
    total = sum(part["properties"]["acres"] for part in sectors)
    assert total == fire["reported_acres"], (total, fire["reported_acres"])
    for part in sectors:
        drawn = geodesic_acres(shapely.geometry.shape(part["geometry"]))
        assert abs(drawn - part["properties"]["acres"]) / drawn < 0.005, part["properties"]
    dates = [fire[key] for key in ("ignition_date", "containment_date", "survey_date", "cruise_date")]
    assert dates == sorted(dates), dates
    assert date.fromisoformat(fire["imagery"]["pre_date"]) < date.fromisoformat(fire["ignition_date"])
    assert date.fromisoformat(fire["imagery"]["post_date"]) > date.fromisoformat(fire["containment_date"])
    for trail in trails:
        length = GEOD.geometry_length(shapely.geometry.shape(trail["line"])) / MILE_M
        assert abs(length - trail["miles"]) < 0.01 * trail["miles"], (trail["trail_id"], length)
        assert all(0 <= point["milepost"] <= trail["miles"] for point in trail["damage_points"]), trail["trail_id"]


def write_fire(folder: Path, plan: dict[str, Any]) -> None:
    """Everything about one fire."""
    rng = np.random.default_rng(plan["seed"])
    folder.mkdir(parents=True, exist_ok=True)
    perimeter = draw_outline(plan, rng)
    parts = cut_sectors(perimeter, plan["sectors"], rng)
    pre, post, place = draw_rasters(plan, perimeter, parts, rng)
    sectors = sector_features(plan, parts, pre, post, place)
    trails = build_trails(plan, rng)
    fire = {"synthetic": True, "note": "SYNTHETIC: made by scripts/make_fixtures.py", **plan["fire"]}
    fire["reported_acres"] = plan["reported_acres"]
    check_fire(fire, sectors, trails)
    write_json(folder / "fire.json", fire)
    shape = {"type": "Feature", "properties": {"fire_id": fire["fire_id"]}, "geometry": mapping(to_degrees(perimeter))}
    write_json(folder / "perimeter.geojson", {"type": "FeatureCollection", "synthetic": True, "features": [shape]})
    write_json(folder / "sectors.geojson", {"type": "FeatureCollection", "synthetic": True, "features": sectors})
    write_json(folder / "trails.json", {"synthetic": True, "trails": trails})
    write_json(folder / "stands.json", {"synthetic": True, "stands": plan["stands"]})
    rows = [{k: v for k, v in p.items() if k not in ("trees", "species", "dbh_in", "dead")} for p in plan["plots"]]
    write_csv(folder / "plots.csv", rows)
    write_csv(folder / "trees.csv", tally_trees(plan, rng))
    write_raster(folder / "nbr_pre.tif", pre, place)
    write_raster(folder / "nbr_post.tif", post, place)


def write_json(file: Path, value: Any) -> None:
    """JSON, a line for each feature or field."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def write_csv(file: Path, rows: list[dict[str, Any]]) -> None:
    """CSV."""
    with file.open("w", newline="", encoding="utf-8") as target:
        labelled = [{**row, "synthetic": "yes"} for row in rows]
        writer = csv.DictWriter(target, list(labelled[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(labelled)


def large_plan(seed: int = 7) -> dict[str, Any]:
    """A plan of 1,000 sectors, 500 trails and 20,000 trees."""
    rng = np.random.default_rng(seed)
    kinds = ["BRIDGE_FAILURE", "DEBRIS_FLOW", "HAZARD_TREES", "TREAD_EROSION", "SIGNAGE", "CULVERT_DAMAGE"]
    trails = []
    for n in range(500):
        miles = round(float(rng.uniform(1, 20)), 1)
        damage = [
            [round(float(rng.uniform(0, miles)), 1), str(rng.choice(kinds)), int(rng.integers(1, 6)),
             int(rng.integers(5, 900)) * 100, "REPAIR", int(rng.integers(1, 30))]
            for _ in range(int(rng.integers(0, 8)))
        ]  # fmt: skip
        trails.append(
            {"trail_id": f"large-{1000 + n}", "name": f"Large Trail {1000 + n}", "trail_class": int(rng.integers(1, 6)),
             "miles": miles, "current_status": "OPEN", "jurisdiction": "made up",
             "annual_visits": int(rng.integers(100, 20000)),
             "start": [-120.4 + float(rng.uniform(-0.3, 0.3)), 44.1 + float(rng.uniform(-0.3, 0.3))],
             "bearing_deg": int(rng.integers(0, 360)), "damage": damage}
        )  # fmt: skip
    plots = [
        {"plot_id": f"L-{n:04d}", "stand_id": f"stand-{n % 20:02d}", "sector_id": f"L{n % 1000:04d}",
         "plot_type": "variable",
         "baf": 20, "plot_acres": "", "slope_pct": 20, "trees": 10, "species": {"PSME": 0.7, "ABGR": 0.3}, "dbh_in": 20,
         "dead": 0.8, "measured_on": "2025-06-01"}
        for n in range(2000)
    ]  # fmt: skip
    names = {f"L{n:04d}": {"name": f"Cell {n}", "dnbr": float(rng.uniform(0.05, 0.8)),
                           "slope_pct": int(rng.integers(5, 60)),
                           "concern": "none"} for n in range(1000)}  # fmt: skip
    fire = {
        "fire_id": "large-2024", "name": "Large", "year": 2024, "state": "OR", "forests": ["made up"],
        "phase": "in_restoration",
        "ignition_date": "2024-07-01", "containment_date": "2024-10-01", "survey_date": "2025-05-01",
        "cruise_date": "2025-06-01", "containment_pct": 100, "places": {},
        "imagery": {"pre_date": "2024-06-20", "post_date": "2025-06-22", "sensor": "made up"},
        "analyst_thresholds": {"increased_greenness": -0.15, "low": 0.09, "moderate": 0.25, "high": 0.6},
    }  # fmt: skip
    stands = [{"stand_id": f"stand-{n:02d}", "name": f"Stand {n}", "acres": 500, "sector_id": "L0000", "access": "road",
               "terrain": "moderate", "region": "west", "designation": "none"} for n in range(20)]  # fmt: skip
    return {"seed": seed, "longitude": -120.4, "latitude": 44.1, "stretch": 1.2, "pixel_m": 300,
            "reported_acres": 500_000,
            "fire": fire, "sectors": names, "trails": trails, "stands": stands, "plots": plots}  # fmt: skip


def main() -> None:
    """Write the fires."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", type=Path, metavar="FOLDER", help="write one large fire there instead")
    parser.add_argument("--out", type=Path, default=DATA, help="where the fires go")
    given = parser.parse_args()
    if given.large is not None:
        write_fire(given.large / "large-2024", large_plan())
        return
    for file in sorted((HERE / "plans").glob("*.toml")):
        plan = tomllib.loads(file.read_text(encoding="utf-8"))
        write_fire(given.out / plan["fire"]["fire_id"], plan)


if __name__ == "__main__":
    main()
