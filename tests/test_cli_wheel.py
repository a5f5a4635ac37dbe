"""What is installed: the wheel holds the program that verifies an export without Interlock."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from interlock.cli.main import main

ROOT = Path(__file__).parent.parent
VERIFIER = "interlock/audit/verify_ledger.py"
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from this tree by its own build backend; nothing is fetched."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-c", BUILD, str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(folder / built.stdout.split()[-1])


def test_the_wheel_holds_the_library_and_nothing_of_the_workshop(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert VERIFIER in names
    assert "interlock/py.typed" in names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"interlock"}
    points = next(name for name in names if name.endswith("entry_points.txt"))
    assert "interlock = interlock.__main__:start" in wheel.read(points).decode()


def test_the_verifier_of_the_wheel_runs_alone(
    wheel: zipfile.ZipFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text("version = 1\n")
    assert main(["call", "nothing"]) == 1
    assert main(["audit", "export", "--out", "ledger.jsonl"]) == 0
    program = tmp_path / "verify_ledger.py"
    program.write_bytes(wheel.read(VERIFIER))
    command = [sys.executable, "-I", str(program), "ledger.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "intact: 1 record, 1 not anchored\n", "")


def test_the_verifier_is_found_and_printed(wheel: zipfile.ZipFile, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "verifier", "--path"]) == 0
    path = Path(capsys.readouterr().out.rstrip("\n"))
    assert path.read_bytes() == wheel.read(VERIFIER)
    assert main(["audit", "verifier", "--print"]) == 0
    assert capsys.readouterr().out == path.read_text(encoding="utf-8")
    assert main(["audit", "verifier", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(path), "text": None}
