"""Files that other programs load: GeoJSON, CSV and briefing events, each labelled with what the data is."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from shapely.geometry import mapping

from interlock_ranger.briefing.compose import Briefing
from interlock_ranger.briefing.events import build_events


def write_exports(briefing: Briefing, folder: Path, timestamp: str) -> tuple[Path, ...]:
    """Write everything into a folder, and say which files."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "sectors.geojson": _to_json(sector_features(briefing)),
        "trails.geojson": _to_json(trail_features(briefing)),
        "damage.csv": to_csv(damage_rows(briefing)),
        "volume.csv": to_csv(volume_rows(briefing)),
        "events.json": _to_json([event.model_dump(mode="json") for event in build_events(briefing, timestamp)]),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return tuple(folder / name for name in texts)


def _to_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _first_result(briefing: Briefing, tool: str) -> tuple[dict[str, Any], int]:
    """The value of a tool's first result, and its record; nothing if it has none."""
    results = briefing.results_of(tool)
    return (results[0].value, results[0].record) if results else ({}, 0)


def _collection(briefing: Briefing, features: list[dict[str, Any]]) -> dict[str, Any]:
    facts = briefing.fire.facts
    return {"type": "FeatureCollection", "synthetic": facts.synthetic, "fire_id": facts.fire_id, "features": features}


def sector_features(briefing: Briefing) -> dict[str, Any]:
    """Sectors with how they burned."""
    value, record = _first_result(briefing, "assess_severity")
    found = {sector["sector_id"]: sector for sector in value.get("sectors", ())}
    label = {"synthetic": briefing.fire.facts.synthetic}
    features = [
        {
            "type": "Feature",
            "geometry": mapping(sector.geometry),
            # A result lists sixty sectors at the most; the others are exported as shapes without findings.
            "properties": {**found.get(name, {"sector_id": name}), **label, "record": record},
        }
        for name, sector in briefing.fire.sectors.items()
    ]
    return _collection(briefing, features)


def trail_features(briefing: Briefing) -> dict[str, Any]:
    """Trails with the advice on them, and damage points."""
    value, record = _first_result(briefing, "evaluate_closure")
    advice = {trail["trail_id"]: trail for trail in value.get("trails", ())}
    features: list[dict[str, Any]] = []
    for name, trail in briefing.fire.trails.items():
        own = advice.get(name, {})
        label = {"synthetic": briefing.fire.facts.synthetic, "record": record}
        closure = {key: own.get(key) for key in ("advice", "risk_score", "reason", "rule")}
        properties = {"trail_id": name, "name": trail.name, **closure, **label}
        features.append({"type": "Feature", "geometry": trail.line, "properties": properties})
        for point in trail.damage_points:
            known = {"damage_id": point.damage_id, "type": point.type, "severity": point.severity}
            place = {"type": "Point", "coordinates": [point.longitude, point.latitude]}
            features.append({"type": "Feature", "geometry": place, "properties": {"trail_id": name, **known, **label}})
    return _collection(briefing, features)


def damage_rows(briefing: Briefing) -> list[dict[str, Any]]:
    """A row for each damage point."""
    value, record = _first_result(briefing, "classify_damage")
    return [
        {
            "fire_id": briefing.fire.id,
            "trail_id": trail["trail_id"],
            "trail": trail["name"],
            **point,
            "synthetic": "yes" if briefing.fire.facts.synthetic else "no",
            "record": record,
            "rule": trail["rule"],
        }
        for trail in value.get("trails", ())
        for point in trail["damage_points"]
    ]


def volume_rows(briefing: Briefing) -> list[dict[str, Any]]:
    """A row for each stand."""
    value, record = _first_result(briefing, "estimate_volume")
    rows = []
    for stand in value.get("stands", ()):
        own = {key: item for key, item in stand.items() if key != "species"}
        label = "yes" if briefing.fire.facts.synthetic else "no"
        rows.append(
            {"fire_id": briefing.fire.id, **own, "log_rule": value["log_rule"], "synthetic": label, "record": record}
        )
    return rows


def to_csv(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV; text that a spreadsheet would run as a formula is made harmless."""
    target = io.StringIO()
    if rows:
        writer = csv.DictWriter(target, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _defuse_formula(item) for key, item in row.items()} for row in rows)
    return target.getvalue()


_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


def _defuse_formula(value: Any) -> Any:
    """Spreadsheets run a cell that begins with one of these."""
    # Texts only: a negative number is no formula, and behind a quote it would be no number any more.
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_SIGNS) else value
