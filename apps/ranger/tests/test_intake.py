"""The door for the files of a fire: what can be read is read whole, what cannot be right is refused and listed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import Ambiguous, ConfigError
from interlock_ranger.fires import Fires
from interlock_ranger.intake.fire_folder import read_fire
from interlock_ranger.intake.problems import RefusedFire
from ranger_parts import FireFolder

TABLES = ("trees.csv", "plots.csv")
DOCUMENTS = ("fire.json", "perimeter.geojson", "sectors.geojson", "trails.json", "stands.json")


@pytest.fixture
def folder(tmp_path: Path) -> FireFolder:
    return FireFolder(tmp_path / "data")


Rewrite = Callable[[str], bytes]
DIALECTS: dict[str, Rewrite] = {
    "Excel's mark": lambda text: text.encode("utf-8-sig"),
    "Windows line ends": lambda text: text.replace("\n", "\r\n").encode(),
    "old Mac line ends": lambda text: text.replace("\n", "\r").encode(),
    "semicolons": lambda text: text.replace(",", ";").encode("utf-8-sig"),
    "tabs": lambda text: text.replace(",", "\t").encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "blanks around names": lambda text: text.replace(",", " , ").encode(),
    "empty lines": lambda text: text.replace("\n", "\n\n").encode(),
    "a delimiter that Excel names": lambda text: ("sep=;\n" + text.replace(",", ";")).encode("utf-8-sig"),
    "empty rows below": lambda text: (text + ",,,,,,,,\n" * 3).encode(),
    "a spreadsheet's empty columns": lambda text: text.replace("\n", ",,\n").encode(),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_table_is_the_same_however_a_program_wrote_it(folder: FireFolder, name: str) -> None:
    before = read_fire(folder.path)
    for file in TABLES:
        (folder.path / file).write_bytes(DIALECTS[name](folder.text(file)))
    assert read_fire(folder.path).plots == before.plots


def test_a_quotation_mark_that_is_never_closed_does_not_take_the_rest_of_the_file(folder: FireFolder) -> None:
    lines = folder.text("trees.csv").splitlines()
    cells = lines[10].split(",")
    lines[10] = ",".join([*cells[:-1], f'"{cells[-1]}'])
    (folder.path / "trees.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(RefusedFire, match=r"trees.csv, line .*; save it as plain CSV"):
        read_fire(folder.path)


def _with_tree_last(lines: list[str]) -> list[str]:
    """The free text at the end, where a quotation mark does the most harm."""
    at = lines[0].split(",").index("tree")
    rows = [line.split(",") for line in lines]
    return [",".join([*cells[:at], *cells[at + 1 :], cells[at]]) for cells in rows]


def test_a_cell_that_takes_in_the_rows_below_it_is_refused_with_its_line(folder: FireFolder) -> None:
    lines = _with_tree_last(folder.text("trees.csv").splitlines())
    before, _, number = lines[10].rpartition(",")
    lines[10], lines[40] = f'{before},"{number}', f'{lines[40]}"'
    (folder.path / "trees.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(RefusedFire, match=r"trees.csv, row 11: tree .*; it holds a line end, so that the lines to 41"):
        read_fire(folder.path)


@pytest.mark.parametrize("file", TABLES)
def test_a_row_has_a_cell_for_every_column(folder: FireFolder, file: str) -> None:
    lines = folder.text(file).splitlines()
    lines[4] = lines[4].rpartition(",")[0]
    (folder.path / file).write_text("\n".join(lines) + "\n")
    with pytest.raises(RefusedFire, match=rf"{file}, row 5: has no cell for {lines[0].rpartition(',')[2]}"):
        read_fire(folder.path)


@pytest.mark.parametrize("again", ["01", "1.0", "+1"])
def test_a_tree_is_the_same_however_its_number_is_written(folder: FireFolder, again: str) -> None:
    first = folder.text("trees.csv").splitlines()[1]
    assert ",1," in first
    with (folder.path / "trees.csv").open("a") as out:
        out.write(first.replace(",1,", f",{again},", 1) + "\n")
    with pytest.raises(RefusedFire, match="a tree of a plot may be there once only"):
        read_fire(folder.path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_document_is_the_same_with_a_mark(folder: FireFolder, encoding: str) -> None:
    before = read_fire(folder.path)
    for file in DOCUMENTS:
        (folder.path / file).write_bytes(folder.text(file).encode(encoding))
    after = read_fire(folder.path)
    assert (after.facts, after.trails, after.stands) == (before.facts, before.trails, before.stands)


@pytest.mark.parametrize(("said", "dead"), [("Yes", True), ("TRUE", True), ("1", True), ("No", False), ("0", False)])
def test_dead_is_what_people_write_for_it(folder: FireFolder, said: str, dead: bool) -> None:
    folder.replace("trees.csv", "PSME,29.2,136,yes", f"psme,29.2,136,{said}")
    tree = read_fire(folder.path).plots["47-ALPHA"].trees[0]
    assert (tree.dead, tree.species) == (dead, "PSME")


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("trees.csv", "PSME,29.2", "PSME,nan", "trees.csv, row 2: dbh_in 'nan'; give a number from 1 to 120"),
        ("trees.csv", "PSME,29.2", "PSME,", "row 2: dbh_in ''"),
        ("trees.csv", "PSME,29.2", 'PSME,"29,2"', "row 2: dbh_in '29,2'"),
        ("trees.csv", "PSME,29.2", "PSME,2_9", "row 2: dbh_in '2_9'"),
        ("trees.csv", "PSME,29.2", "PSME,742", "row 2: dbh_in '742"),
        ("trees.csv", "136,yes,0", "136,x,0", "row 2: dead 'x'; give one of yes, true, 1"),
        ("trees.csv", "136,yes,0", "136,,0", "row 2: dead ''"),
        ("trees.csv", "136,yes,0", "136,yes,101", "row 2: defect_pct '101"),
        ("trees.csv", "136,yes,0", "9000,yes,0", "row 2: height_ft '9000"),
        ("trees.csv", "136,yes,0,yes", "136,yes,0,yes,8", "row 2: cells without a column '1'"),
        ("trees.csv", "47-ALPHA,2,", "47-ALPHA,1,", "row 3: tree '47-ALPHA 1'; a tree of a plot may be there once"),
        ("trees.csv", "47-ALPHA,1", "47-ALHPA,1", "trees.csv, row 2: plot_id '47-ALHPA'; plots.csv has no such"),
        ("trees.csv", "dbh_in", "dbh", "trees.csv, its header: it has no column dbh_in; it has plot_id, tree"),
        ("trees.csv", "height_ft", "dbh_in", "more than one column 'dbh_in'"),
        ("plots.csv", "variable,40,,38", "Variable,40,,38", "row 2: plot_type 'Variable'; give one of variable, fixed"),
        ("plots.csv", "variable,40,,38", "variable,0,,38", "row 2: baf '0"),
        ("plots.csv", "variable,40,,38", "variable,,,38", "row 2: baf ''"),
        ("plots.csv", "variable,40,,38", "variable,40,0.2,38", "row 2: plot_acres '0.2'"),
        ("plots.csv", "variable,40,,38", "fixed,,,38", "row 2: plot_acres ''; give a number from 0.001 to 5"),
        ("plots.csv", "variable,40,,38", "variable,40,,-3", "row 2: slope_pct '-3"),
        ("plots.csv", "38,2023-07-11", "38,11.7.2023", "row 2: measured_on '11.7.2023'; give a date as YYYY-MM-DD"),
        ("plots.csv", "47-ALPHA,north-fork", "47-ALPHA,north-frok", "stand_id 'north-frok'; stands.json has no such"),
        (
            "plots.csv",
            "47-ALPHA,north-fork,NW-1",
            "47-ALPHA,north-fork,NW-9",
            "47-ALPHA: sector_id 'NW-9'; sectors.geo",
        ),
        ("plots.csv", "47-BRAVO", "47-ALPHA", "plots.csv, entry 2: plot_id '47-ALPHA'; each may be there once"),
        ("stands.json", '"west"', '"West"', "region 'West'; give one of west, east"),
        ("stands.json", '"very_steep"', '"cliff"', "stands.json, salmon-creek: terrain 'cliff'"),
        ("stands.json", '"acres": 3200', '"acres": 0', "north-fork: acres '0'"),
        ("stands.json", '"wilderness"', '"Wilderness"', "high-divide: designation 'Wilderness'"),
        ("stands.json", '"SW-1"', '"SW-11"', "stands.json, salmon-creek: sector_id 'SW-11'; sectors.geojson has no"),
        ("sectors.geojson", '"dnbr_mean": 0.693', '"dnbr_mean": 693', "NW-1: dnbr_mean '693'; give a number from -2"),
        ("sectors.geojson", '"sector_id": "NW-2"', '"sector_id": "NW-1"', "sector_id 'NW-1'; each may be there once"),
        ("sectors.geojson", '"slope_pct": 42', '"slope_pct": NaN', "sectors.geojson cannot be read"),
        ("stands.json", '"wilderness"', '"none"', "high-divide: designation 'none'; sectors.geojson calls its sector"),
        ("stands.json", '"acres": 2600', '"acres": 9000', "salmon-creek: acres '9,000'; the sectors that it and its"),
        ("plots.csv", "38,2023-07-11", "38,2131-07-11", "47-ALPHA: measured_on '2131-07-11'; it is yet to come"),
        (
            "fire.json",
            '"survey_date": "2023',
            '"survey_date": "2019',
            "ignition_date '2022-08-01'; it may not be after",
        ),
        ("fire.json", '"cruise_date": "2023', '"cruise_date": "2123', "cruise_date '2123-07-20'; it is yet to come"),
        ("fire.json", '"year": 2022', '"year": 1999', "the fire: year '1999'; it was ignited on 2022-08-01"),
        ("trails.json", '"severity": 5', '"severity": 6', "severity '6'; give a whole number from 1 to 5"),
        ("trails.json", '"severity": 5', '"severity": 0', "severity '0'"),
        ("trails.json", '"BRIDGE_FAILURE"', '"BRIDGE_OUT"', "type 'BRIDGE_OUT'; give one of BRIDGE_FAILURE, DEBRIS"),
        ("trails.json", '"CLOSED"', '"closed"', "current_status 'closed'; give one of OPEN"),
        ("trails.json", '"trail_class": 3', '"trail_class": 7', "trail_class '7'"),
        ("trails.json", '"milepost": 3.2', '"milepost": 32', "milepost '32'; give a number from 0 to 22"),
        ("trails.json", '"crew_days": 24', '"crew_days": -1', "crew_days '-1'"),
        ("fire.json", '"baer_implementation"', '"BAER"', "phase 'BAER'; give one of active"),
        ("fire.json", '"reported_acres": 127311', '"reported_acres": 0', "reported_acres '0'"),
        ("fire.json", '"containment_pct": 100', '"containment_pct": 101', "containment_pct '101'"),
        ("fire.json", '"high": 0.6', '"high": 600', "analyst_thresholds: high '600'; give a number from -2 to 2"),
        ("fire.json", '"high": 0.6', '"high": 0.2', "moderate '0.25'; it may not be after 0.2"),
        ("fire.json", '"2022-11-21"', '"2021-11-21"', "ignition_date '2022-08-01'; it may not be after 2021-11-21"),
        ("fire.json", '"2022-07-20"', '"2022-09-20"', "imagery.pre_date '2022-09-20'; it may not be after 2022-08-01"),
        ("fire.json", '"longitude": -122.03', '"longitude": 43.735', "place waldo-lake: position"),
        ("fire.json", '"latitude": 43.735', '"latitude": -122.03', "place waldo-lake: latitude '-122.03'"),
    ],
)
def test_a_value_that_cannot_be_right_is_refused_with_its_place(
    folder: FireFolder, file: str, old: str, new: str, words: str
) -> None:
    folder.replace(file, old, new)
    said = folder.refusal()
    assert words in said
    assert "cedar-creek-2022" in said


def test_everything_that_is_unknown_is_listed_not_only_the_first(folder: FireFolder) -> None:
    folder.replace("trees.csv", "TSHE", "ALRU")
    folder.replace("trees.csv", "THPL", "PSEM")
    folder.replace("trails.json", '"SIGNAGE"', '"SIGN"')
    folder.replace("trails.json", '"DEBRIS_FLOW"', '"MUD"')
    with pytest.raises(RefusedFire) as caught:
        Fires(folder.path.parent)
    found = {(item.file, item.field, item.value) for item in caught.value.problems}
    assert found == {
        ("trees.csv", "species", "ALRU"),
        ("trees.csv", "species", "PSEM"),
        ("trails.json", "type", "SIGN"),
        ("trails.json", "type", "MUD"),
    }
    rows = {item.place for item in caught.value.problems if item.value == "ALRU"}
    assert len(rows) > 1
    assert all(f"{row}" in str(caught.value) for row in rows)


def test_every_file_tells_its_faults_at_once_a_line_each(folder: FireFolder) -> None:
    folder.edit(
        "fire.json",
        lambda facts: {k: v for k, v in facts.items() if k not in ("state", "note")} | {"name": 7, "size": 1},
    )
    folder.replace("trees.csv", "PSME,29.2", "PSME,742")
    folder.replace("trees.csv", "47-BRAVO,1,", "47-BRVAO,1,")  # a plot that is not there
    folder.replace("plots.csv", "variable,40,,38", "variable,40,0.2,38")
    (folder.path / "plots.csv").write_text(_repeat(folder.text("plots.csv"), "47-BRAVO"), encoding="utf-8")
    folder.edit(
        "stands.json",
        lambda document: document["stands"][0].pop("access") and document["stands"][0].pop("acres") and None,
    )
    (folder.path / "trails.json").write_text("{}", encoding="utf-8")
    said = folder.refusal()
    lines = said.splitlines()
    assert lines[0] == "cedar-creek-2022 cannot be used:"
    for words in (
        "trails.json cannot be read: it has no list of trails",
        "fire.json, the fire: state is missing; add it",
        "fire.json, the fire: name '7'; Expected `str`, got `int`",
        "fire.json, the fire: there is no field size; take it out",
        "fire.json, the fire: note is missing; add it",
        "trees.csv, row 2: dbh_in '742.0'; give a number from 1 to 120 (inches)",
        "plot_id '47-BRVAO'; plots.csv has no such",
        "plots.csv, row 2: plot_acres '0.2'; leave it empty",
        "plot_id '47-BRAVO'; each may be there once only",
        "access is missing; add it",
        "acres is missing; add it",
    ):
        assert len([line for line in lines if words in line]) == 1, (words, said)


@pytest.mark.parametrize(
    ("file", "old", "words"),
    [
        ("trails.json", '"miles": 22.0', "miles of trail_id 'waldo-lake-3536' (22.0 and 3.5); keep the one that is"),
        ("stands.json", '"acres": 3200', "acres of stand_id 'north-fork' (3200 and 3.5)"),
        ("sectors.geojson", '"dnbr_mean": 0.693', "dnbr_mean of sector_id 'NW-1' (0.693 and 3.5)"),
        ("fire.json", '"radius_mi": 8.0', "radius_mi (8.0 and 3.5)"),
        ("perimeter.geojson", '"synthetic": true', "synthetic (True and 3.5)"),
    ],
)
def test_a_field_that_stands_twice_in_an_object_is_refused(folder: FireFolder, file: str, old: str, words: str) -> None:
    folder.replace(file, old, f"{old}, {old.partition(':')[0]}: 3.5")
    said = folder.refusal()
    assert f"{file} cannot be read: fields stand twice in one object" in said
    assert words in said


def test_a_document_that_is_nested_without_end_is_refused(folder: FireFolder) -> None:
    (folder.path / "stands.json").write_text("[" * 100_000, encoding="utf-8")
    assert "stands.json cannot be read: it is nested too deep" in folder.refusal()


def test_a_row_that_is_there_again_is_refused_unless_trees_are_numbered(folder: FireFolder) -> None:
    lines = [line.split(",") for line in folder.text("trees.csv").splitlines()]
    plain = [[*cells[:1], *cells[2:]] for cells in lines]  # without the column of numbers
    again = [plain[1][0], plain[1][1].lower(), f"{plain[1][2]}0", plain[1][3], "TRUE", *plain[1][5:]]

    def write(rows: list[list[str]]) -> None:
        (folder.path / "trees.csv").write_text("\n".join(",".join(row) for row in rows), encoding="utf-8")

    write(plain)
    tallied = len(plain) - 1
    assert sum(len(plot.trees) for plot in read_fire(folder.path).plots.values()) == tallied
    write([*plain, plain[1], again])
    said = folder.refusal()
    for row in (tallied + 2, tallied + 3):
        assert f"row {row}" in said
    assert "is row 2 again in every column; take it out, or number the trees of a plot in a column tree" in said
    write([*lines, ["47-ALPHA", "99", *lines[1][2:]]])  # a second tree that measures the same
    assert sum(len(plot.trees) for plot in read_fire(folder.path).plots.values()) == tallied + 1


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        (
            "sectors.geojson",
            '"concern"',
            '"erosion": 3, "concern"',
            "NW-1, NW-2, NE-1, NE-2, SW-1, SW-2, SE-1, CORE-1: there is no field erosion; take it out",
        ),
        ("sectors.geojson", '"geometry": {', '"erosion": 3, "geometry": {', "feature 1, feature 2"),
        ("trails.json", '"trails"', '"surveyor": "x", "trails"', "at its top: there is no field surveyor; take it out"),
        ("trails.json", '"work_type"', '"crew": 2, "work_type"', "there is no field crew; take it out"),
        ("stands.json", '"stands"', '"stand": [], "stands"', "at its top: there is no field stand; take it out"),
        ("plots.csv", "slope_pct", "slope_pct,crew", "plots.csv, its header: there is no column crew; take it out"),
        ("trees.csv", "defect_pct", "defect_pct,note", "trees.csv, its header: there is no column note; take it out"),
        ("fire.json", '"places"', '"file_dates": {"trail.json": "2023-01-01"}, "places"', "file_dates: file 'trail.js"),
    ],
)
def test_what_nobody_would_read_is_refused(folder: FireFolder, file: str, old: str, new: str, words: str) -> None:
    folder.replace(file, old, new)
    assert words in folder.refusal()


def test_a_long_list_says_how_much_more_there_is(folder: FireFolder) -> None:
    lines = folder.text("trees.csv").splitlines()
    wrong = [line.replace("PSME", f"X{n:03}") for n, line in enumerate(lines)]
    (folder.path / "trees.csv").write_text("\n".join(wrong), encoding="utf-8")
    with pytest.raises(RefusedFire, match=r"and \d+ more$") as caught:
        Fires(folder.path.parent)
    assert len(caught.value.problems) == folder.text("trees.csv").count(",X0")


@pytest.mark.parametrize(
    ("file", "raw", "words"),
    [
        ("trees.csv", b"", "no header line"),
        ("trees.csv", "plot_id,tree\n".encode("utf-16-le"), "holds NUL characters"),
        ("trees.csv", b"\xff\xfe\x00", "neither UTF-8"),
        ("trees.csv", b'plot_id,x\n"' + b"a" * 200_000 + b'",1\n', "save it as plain CSV"),
        ("fire.json", b"", "fire.json cannot be read"),
        ("fire.json", b"[]", "it is no JSON object"),
        ("fire.json", '{"name": "caf\xe9"}'.encode("cp1252"), "neither UTF-8 nor UTF-16"),
        ("trails.json", b'{"trails": {}}', "no list of trails"),
        ("trails.json", b'{"trails": [7]}', "entry 1 is no JSON object"),
        ("stands.json", b"{}", "no list of stands"),
    ],
)
def test_what_is_no_such_file_says_so(folder: FireFolder, file: str, raw: bytes, words: str) -> None:
    (folder.path / file).write_bytes(raw)
    assert words in folder.refusal()


@pytest.mark.parametrize("file", DOCUMENTS)
@pytest.mark.parametrize("text", ["[]", "3", "null", '"x"', "{}", '{"features": [3]}', '{"features": {"a": 1}}'])
def test_json_of_another_shape_is_refused_in_a_sentence(folder: FireFolder, file: str, text: str) -> None:
    (folder.path / file).write_text(text, encoding="utf-8")
    assert f"  {file}" in folder.refusal()


def test_half_a_fire_and_a_fire_twice_are_told(folder: FireFolder) -> None:
    parent = folder.path.parent
    FireFolder(parent / "other").path.rename(parent / "cedar-creek-again")
    (parent / "other").rmdir()
    with pytest.raises(ConfigError, match="two fires have one fire_id"):
        Fires(parent)
    (parent / "cedar-creek-again" / "fire.json").rename(parent / "cedar-creek-again" / "Fire.json.txt")
    with pytest.raises(ConfigError, match=r"cedar-creek-again cannot be used:\n  fire.json is missing"):
        Fires(parent)


def test_a_part_that_two_fires_have_is_asked_about(folder: FireFolder) -> None:
    FireFolder(folder.path.parent, "bootleg-2021").edit("sectors.geojson", _call_the_first_nw_1)
    bootleg = folder.path.parent / "bootleg-2021"
    stands = json.loads((bootleg / "stands.json").read_text())
    for stand in stands["stands"]:
        stand["sector_id"] = "NW-1"
    (bootleg / "stands.json").write_text(json.dumps(stands))
    plots = (bootleg / "plots.csv").read_text().replace("B-01", "NW-1")
    (bootleg / "plots.csv").write_text(plots)
    fires = Fires(folder.path.parent)
    with pytest.raises(Ambiguous, match="which fire is meant"):
        fires.find(None, sector="NW-1")
    assert fires.find("bootleg-2021", sector="NW-1").fire.id == "bootleg-2021"
    assert fires.find(None, sector="NW-1", stand="north-fork").fire.id == "cedar-creek-2022"


def _call_the_first_nw_1(document: Any) -> None:
    document["features"][0]["properties"]["sector_id"] = "NW-1"


@pytest.mark.parametrize("file", ["trails.json", "stands.json", "sectors.geojson", "perimeter.geojson"])
def test_a_file_that_calls_itself_real_in_a_synthetic_fire_is_refused(folder: FireFolder, file: str) -> None:
    folder.replace(file, '"synthetic": true', '"synthetic": false')
    assert f"{file}, at its top: synthetic 'False'; fire.json says synthetic: true" in folder.refusal()


def test_rows_and_rasters_that_are_labelled_otherwise_are_refused(folder: FireFolder) -> None:
    folder.replace("fire.json", '"synthetic": true', '"synthetic": false')
    said = folder.refusal()
    for words in ("trees.csv, row 2, row 3", "plots.csv, row 2", "nbr_pre.tif, its tag: synthetic 'yes'"):
        assert words in said


def test_real_data_is_read_as_real(folder: FireFolder) -> None:
    folder.drop_labels(synthetic=False)
    assert read_fire(folder.path).facts.synthetic is False


def _repeat(text: str, start: str) -> str:
    """A table in which the row that begins so stands twice."""
    lines = text.splitlines()
    return "\n".join([*lines, *(line for line in lines if line.startswith(start)), ""])


def test_of_two_things_that_are_wrong_in_fire_json_both_are_told(folder: FireFolder) -> None:
    folder.edit("fire.json", lambda facts: {**facts, "containment_pct": 180, "containment_date": "2022-07-01"})
    said = folder.refusal()
    assert "containment_pct '180'" in said
    assert "ignition_date '2022-08-01'; it may not be after 2022-07-01" in said


def _break_every_file(folder: FireFolder) -> None:
    """Two faults and more in each file, of which one used to hide the next."""
    folder.edit(
        "fire.json", lambda d: {**d, "state": 3, "survey_date": "2099-01-01", "forests": 7, "reported_acres": 5_000}
    )
    folder.edit(
        "fire.json", lambda d: {**d, "file_dates": {"trail.json": "x", "trees.csv": "soon"}, "places": {"a": 3}}
    )
    folder.edit("perimeter.geojson", lambda d: {**d, "synthetic": False})
    folder.edit("sectors.geojson", _break_sectors)
    folder.edit("trails.json", _break_trails)
    folder.edit("stands.json", _break_stands)
    folder.replace("plots.csv", "47-ALPHA,north-fork,NW-1,variable,40", "47-ALPHA,north-frok,NW-9,variable,0")
    folder.replace("trees.csv", "dbh_in", "dbh")
    folder.replace("trees.csv", "47-BRAVO,1,", "47-BRVAO,1,")
    (folder.path / "nbr_pre.tif").write_bytes(b"no raster")
    (folder.path / "nbr_post.tif").unlink()


def _break_sectors(document: Any) -> None:
    first, second, third = document["features"][:3]
    first["geometry"] = None
    first["properties"]["slope_pct"] = -1
    second["geometry"]["coordinates"][0].pop()
    third["properties"].update(acres=1, dnbr_mean=700)


def _break_trails(document: Any) -> None:
    trail = document["trails"][0]
    trail.update(trail_class=9, miles=40.0)
    trail["damage_points"][0].update(severity=9, longitude=0.0)
    trail["damage_points"].append(7)
    document["trails"].append("x")


def _break_stands(document: Any) -> None:
    high_divide = next(stand for stand in document["stands"] if stand["stand_id"] == "high-divide")
    high_divide.update(terrain="cliff", designation="none")
    document["stands"][0].update(region="West", sector_id="NW-7")


def test_one_pass_tells_the_faults_that_another_fault_used_to_hide(folder: FireFolder) -> None:
    _break_every_file(folder)
    said = folder.refusal()
    for words in (
        "fire.json, the fire: state '3'",
        "fire.json, the fire: forests '7'",
        "fire.json, the fire: survey_date '2099-01-01'; it is yet to come",
        "fire.json, file_dates: trees.csv 'soon'; give a date as YYYY-MM-DD",
        "fire.json, file_dates: file 'trail.json'; there is no such file",
        "fire.json, place a: is no JSON object",
        "perimeter.geojson, at its top: synthetic 'False'; fire.json says synthetic: true",
        "sectors.geojson, NW-1: slope_pct '-1'",
        "sectors.geojson, NW-1: feature 1 is without a geometry",
        "sectors.geojson, NW-2: a ring of feature 2 does not end where it begins",
        "sectors.geojson, NE-1: dnbr_mean '700'",
        "sectors.geojson, NE-1: acres '1'; its shape has",
        "trails.json, waldo-lake-3536: trail_class '9'",
        "trails.json, waldo-lake-3536: miles '40.0'; its line has 22.0",
        "severity '9'",
        ": position '0, ",
        "of waldo-lake-3536: is no JSON object",
        "trails.json entry 6 is no JSON object",
        "stands.json, high-divide: terrain 'cliff'",
        "stands.json, high-divide: designation 'none'; sectors.geojson calls its sector NW-2 wilderness",
        "stands.json, north-fork: region 'West'",
        "stands.json, north-fork: sector_id 'NW-7'; sectors.geojson has no such",
        "plots.csv, row 2: baf '0",
        "plots.csv, 47-ALPHA: stand_id 'north-frok'; stands.json has no such",
        "plots.csv, 47-ALPHA: sector_id 'NW-9'; sectors.geojson has no such",
        "trees.csv, its header: it has no column dbh_in",
        "plot_id '47-BRVAO'; plots.csv has no such",
        "nbr_pre.tif is there alone",
        "nbr_pre.tif cannot be read: it is no raster",
    ):
        assert words in said, (words, said)


def test_a_file_that_is_missing_does_not_hide_what_is_wrong_with_the_others(folder: FireFolder) -> None:
    (folder.path / "stands.json").unlink()
    (folder.path / "perimeter.geojson").unlink()
    folder.replace("trees.csv", "PSME,29.2", "PSME,742")
    said = folder.refusal()
    for words in ("stands.json is missing", "perimeter.geojson is missing", "trees.csv, row 2: dbh_in '742.0'"):
        assert words in said
    assert "plots.csv" not in said  # whose stands nobody can know


def test_a_file_with_many_faults_does_not_hide_the_next(folder: FireFolder) -> None:
    lines = folder.text("trees.csv").splitlines()
    wrong = [line.replace("PSME", f"X{n:03}") for n, line in enumerate(lines)]
    (folder.path / "trees.csv").write_text("\n".join(wrong), encoding="utf-8")
    folder.replace("plots.csv", "variable,40,,38", "variable,0,,38")
    said = folder.refusal()
    assert "trees.csv: and " in said
    assert "plots.csv, row 2: baf '0" in said
