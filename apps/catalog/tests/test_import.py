"""The import of free-exercise-db: nothing is dropped, merged or guessed without a word."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from catalog_testing import source_record
from interlock.cli.main import main
from interlock_catalog.backends.embedded import DatabaseBackend
from interlock_catalog.contracts import Doc, value_at
from interlock_catalog.import_account import PLACES
from interlock_catalog.source_records import SourceRecord, read_records, read_source_file
from interlock_catalog.vocabulary import slug

DATA = Path(__file__).parents[4] / "shared" / "data" / "free-exercise-db.json"


GOOD = source_record()
BAD = {
    "null": ("null", "it is null"),
    "a text": ('"curl"', "it is a text"),
    "no name": ("{}", "name"),
    "a number for a name": (json.dumps(source_record(name=3)), "name"),
    "null for a list": (json.dumps(source_record(id="b", primaryMuscles=None)), "primaryMuscles"),
    "a number among muscles": (json.dumps(source_record(id="b", primaryMuscles=["biceps", 3])), "primaryMuscles"),
    "not a number": ('{"name": "Curl", "force": NaN}', "force"),
    "half a surrogate pair": (
        '{"name": "Curl \\ud800", "id": "b"}',
        "holds \\ud800, which is half a character, as in a text that was cut; write it",
    ),
    "a byte order mark in a name": (json.dumps(source_record(name="\ufeffCurl", id="b")), "signs"),
    "the same id": (json.dumps(source_record(name="Another")), "'barbell-curl', which record 1 (Barbell Curl) has"),
    "the same id in other letters": (json.dumps(source_record(name="Another", id="barbell curl")), "which record 1"),
    "an id without Latin letters": (json.dumps(source_record(name="Curl", id="弯举")), "Latin"),
    "a name without Latin letters": (json.dumps(source_record(name="弯举", id="b")), "Latin"),
    "a long id": (json.dumps(source_record(name="Another", id="x" * 129)), "129 characters"),
    "a field twice": ('{"name": "Curl", "force": "push", "force": "pull"}', "twice"),
    "a field of its own": (json.dumps(source_record(name="Another", id="b", video="curl.mp4")), "'video' of 1 record:"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_imported_is_named_and_nothing_is_written(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, said = BAD[case]
    file, home = tmp_path / "source.json", tmp_path / "home"
    file.write_text(f"[{json.dumps(GOOD)},{text}]", encoding="utf-8")
    init = ["catalog", "init", "--home", str(home), "--from", str(file), "--json"]
    assert main(init) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert "--skip" in shown.err
    assert not home.exists()
    assert main([*init, "--skip"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["skipped"]) == 1
    assert said in told["skipped"][0]
    # A field is left out, a record as a whole.
    assert told["exercise"] == (2 if case == "a field of its own" else 1)


@pytest.mark.parametrize("option", ["--skip", "--check"])
def test_an_import_of_nothing_is_refused(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, home = tmp_path / "source.json", tmp_path / "home"
    file.write_text(json.dumps([{"title": "Curl"}] * 30), encoding="utf-8")
    assert main(["catalog", "init", "--home", str(home), "--from", str(file), "--skip", option]) == 2
    told = capsys.readouterr()
    assert f"{file}: nothing of this can be imported" in told.err
    assert "record 1: " in told.err
    assert "and 10 more" in told.err
    assert not home.exists()


def test_a_mark_before_the_text_is_no_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "source.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps([GOOD]).encode())
    assert [item.name for item in read_source_file(file).records] == ["Barbell Curl"]


@pytest.mark.parametrize("text", ["", "nonsense", "{}", "null", "[" * 100_000, "name,equipment\nCurl,barbell\n"])
def test_what_is_no_list_is_a_sentence(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "source.json"
    file.write_text(text)
    assert main(["catalog", "init", "--home", str(tmp_path / "home"), "--from", str(file), "--skip"]) == 2
    told = capsys.readouterr().err
    assert str(file) in told
    assert "no CSV" in told
    assert not (tmp_path / "home").exists()


def test_every_field_that_is_known_arrives() -> None:
    from interlock_catalog.importer import import_exercises

    docs = import_exercises(read_records([GOOD]).records)
    text = json.dumps(docs["exercise:barbell-curl"])
    assert all(
        str(value) in text for value in ("barbell", "biceps", "Curl.", "pull", "beginner", "isolation", "strength")
    )


def test_each_field_goes_where_it_is_said_to_go() -> None:
    from interlock_catalog.importer import import_exercises

    full = source_record(secondaryMuscles=["forearms"], instructions=["Stand.", "Curl."])
    (doc,) = [doc for key, doc in import_exercises(read_records([full]).records).items() if key.startswith("exercise:")]
    for field, place in PLACES.items():
        expected, found = full[field], value_at(doc, place.fields[0])
        assert found in (expected, [expected], slug(str(expected))), field
        assert all(value_at(doc, name) for name in place.fields), field
    assert set(PLACES) == {field.encode_name for field in msgspec.structs.fields(SourceRecord)}
    assert doc["description"] == "Stand."
    bare = source_record(mechanic=None, equipment=None, category="plyometrics")
    other = import_exercises(read_records([bare]).records)["exercise:barbell-curl"]
    assert (other["category"], other["stimulus_tags"], other["equipment"]) == ("plyometrics", [], [])


@pytest.mark.parametrize("json_too", [True, False])
def test_ids_that_are_rewritten_and_places_of_fields_are_said_before_anything_is_written(
    json_too: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, home = tmp_path / "source.json", tmp_path / "home"
    ids = ["Squat_01", "X.5/ä", "../../etc", "fine", None, *(f"A {number}" for number in range(4))]
    file.write_text(json.dumps([{"name": f"Move {n}", "id": i, "instructions": ["Go."]} for n, i in enumerate(ids)]))
    init = ["catalog", "init", "--home", str(home), "--from", str(file), *(["--json"] if json_too else [])]
    assert main([*init, "--check"]) == 0
    assert not home.exists()
    checked = capsys.readouterr()
    said = checked.err if json_too else checked.out
    assert json.loads(checked.out)["written"] is False if json_too else "nothing was written" in checked.out
    assert "7 ids rewritten" in said
    assert "'Squat_01' → 'squat-01', 'X.5/ä' → 'x-5-a', '../../etc' → 'etc'" in said
    assert "and 2 more" in said
    assert "1 id made of the name" in said
    assert "the first one is also the description" in said
    assert "metadata.unilateral false" in said
    assert main(init) == 0
    done = capsys.readouterr()
    assert "7 ids rewritten" in (done.err if json_too else done.out)
    if json_too:
        told = json.loads(done.out)
        assert (len(told["rewritten"]), told["rewritten"]["../../etc"], told["made"]) == (7, "etc", 1)
        assert set(told["fields"]) == {"name", "id", "instructions"}


def test_an_import_goes_into_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "source.json"
    file.write_text(json.dumps([GOOD]))
    init = ["catalog", "init", "--home", str(tmp_path / "home")]
    assert main([*init, "--from", str(file), "--backend", "http://127.0.0.1:1"]) == 2
    assert main([*init, "--skip"]) == 2
    assert "--from" in capsys.readouterr().err
    assert not (tmp_path / "home").exists()


@pytest.mark.skipif(not DATA.exists(), reason="the public data is not here")
def test_of_the_real_data_only_the_images_are_left_out() -> None:
    found = read_source_file(DATA)
    assert (len(found.records), found.rejected, found.dropped) == (873, (), {"images": 873})


def test_the_guide_names_every_field_that_is_imported_and_where_it_goes() -> None:
    guide = Path(__file__).parents[3] / "docs" / "catalog.md"
    text = guide.read_text(encoding="utf-8").partition("<!-- fields")[2].partition("<!-- end of fields -->")[0]
    rows = [row.split("|") for row in text.splitlines() if row.startswith("| `")]
    named = {cells[1].strip(" `"): set(re.findall(r"`([^`]+)`", cells[3])) for cells in rows}
    assert named.keys() == {field.encode_name for field in msgspec.structs.fields(SourceRecord)}
    assert [name for name, place in PLACES.items() if not named[name] >= set(place.fields)] == []


def test_validate_says_that_words_of_fresh_data_are_mended_by_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    record = {"name": "Bench Press", "equipment": "barbell", "primaryMuscles": ["chest"], "instructions": ["Press."]}
    Path("mine.json").write_text(json.dumps([record]), encoding="utf-8")
    assert main(["catalog", "init", "--from", "mine.json"]) == 0
    capsys.readouterr()
    assert main(["catalog", "validate"]) == 1
    said = capsys.readouterr()
    assert "not in the vocabulary" in said.out
    assert "interlock catalog run --dry-run" in said.err


def test_ctrl_c_while_a_catalog_is_filled_leaves_a_whole_one_or_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = DatabaseBackend.fill

    async def interrupted(self: DatabaseBackend, docs: Mapping[str, Doc | None]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await fill(self, docs)

    file, home = tmp_path / "source.json", tmp_path / "home"
    records = [source_record(name=f"Barbell Curl {number}", id=f"curl-{number}") for number in range(700)]
    file.write_text(json.dumps(records), encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(DatabaseBackend, "fill", interrupted)
        assert main(["catalog", "init", "--home", str(home), "--from", str(file)]) == 130
    capsys.readouterr()
    assert main(["catalog", "backup", "--home", str(home), str(tmp_path / "all.jsonl")]) == 0
    kinds = [json.loads(line)["key"].partition(":")[0] for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert kinds.count("exercise") == 700
    assert "family" in kinds


def test_an_init_that_is_refused_leaves_no_catalog_that_points_at_another_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert main(["catalog", "init", "--home", str(first), "--clean"]) == 0
    other = ["catalog", "init", "--home", str(second), "--clean", "--backend", f"sqlite:///{first / 'catalog.db'}"]
    assert main(other) == 2
    assert "there are documents already" in capsys.readouterr().err
    assert list(second.iterdir()) == []


def test_a_file_without_exercises_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "source.json"
    file.write_text("[]", encoding="utf-8")
    assert main(["catalog", "init", "--home", str(tmp_path / "home"), "--from", str(file)]) == 2
    assert "it holds no exercise; an empty catalog is made with --empty" in capsys.readouterr().err


def test_all_that_is_wrong_with_a_record_is_said_at_once() -> None:
    (rejected,) = read_records([source_record(name="弯举", id="弯举")]).rejected
    assert "give it an id that has" in rejected.reason
    assert "write the name in Latin letters" in rejected.reason
    (nameless,) = read_records([{"title": "Curl", "gear": "barbell"}]).rejected
    assert "the fields of the record are title, gear" in nameless.reason


BROKEN = {
    "Windows-1252": (
        b'[{"name": "Curl"},\n {"name": "Caf\xe9 Curl"}]',
        'line 2: the byte 0xe9 after \' {"name": "Caf\' is',
    ),
    "cut": (b'[{"name": "Curl"},\n{"name": "Caf\xc3', "line 2: the byte 0xc3"),
    "half a character in bytes": (b'[\n\n{"name": "\xed\xa0\x80"}]', "line 3: the byte 0xed"),
    "UTF-16": ('[{"name": "Curl"}]'.encode("utf-16"), "line 1: it is in UTF-16; save it as UTF-8"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_utf8_is_said_with_its_line_and_what_to_do(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, said = BROKEN[case]
    file, home = tmp_path / "source.json", tmp_path / "home"
    file.write_bytes(raw)
    assert main(["catalog", "init", "--home", str(home), "--from", str(file)]) == 2
    told = capsys.readouterr().err
    assert f"{file}, {said}" in told
    assert "UTF-8" in told
    assert "codec" not in told
    assert not home.exists()
