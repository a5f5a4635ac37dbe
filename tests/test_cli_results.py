"""What a command prints, and what becomes of that: no reader, disk, encoding or print of others changes its verdict."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.main import main
from interlock.resources import Documents

MODULE = """
from interlock import Context, tool
from interlock.resources import Documents
print("imported")
shelf = Documents("sqlite:///shelf.db", "shelf")

@tool(effect="write", key="{k}", resource=shelf, simulate=lambda state, arguments: {"v": arguments["v"]})
async def put(k: str, v: str, context: Context) -> str:
    "Put."
    print("putting")
    await shelf.write(k, {"v": v}, context)
    return "é 漢字 \\U0001f600"

@tool(effect="read")
async def other() -> str:
    "Not allowed."
    return ""

TOOLS = [put, other]
"""
POLICY = 'version = 1\n[[rule]]\nid = "a"\ntools = ["put"]\ndecision = "allow"\n'
PUT = ("call", "put", '{"k": "a", "v": "1"}', "--mode", "apply")
DENIED = ("call", "other", "{}")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "desk_tools.py").write_text(MODULE)
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "interlock.toml").write_text('tools = ["desk_tools:TOOLS"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "desk_tools", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def is_written(folder: Path) -> bool:
    async def look() -> bool:
        shelf = Documents(f"sqlite:///{folder / 'shelf.db'}", "shelf")
        try:
            return await shelf.read_state("a") is not None
        finally:
            await shelf.close()

    return asyncio.run(look())


def encoded(monkeypatch: pytest.MonkeyPatch, encoding: str) -> io.BytesIO:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding, write_through=True))
    return out


class Failing(io.StringIO):
    """A stream that cannot be written to."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_an_encoding_that_lacks_letters_changes_no_verdict(
    desk: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    out = encoded(monkeypatch, encoding)
    assert main([*PUT, "--json"]) == 0
    assert json.loads(out.getvalue().decode(encoding))["value"] == "é 漢字 😀"
    out = encoded(monkeypatch, encoding)
    assert main([*PUT]) == 0
    assert b"ok" in out.getvalue()
    assert is_written(desk)


@pytest.mark.parametrize(("command", "verdict"), [(PUT, 0), (DENIED, 1)], ids=["made", "denied"])
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["plain", "json"])
def test_a_reader_that_has_gone_changes_no_verdict(
    desk: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], verdict: int, form: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "stdout", Failing(BrokenPipeError()))
    assert main([*command, *form]) == verdict


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["plain", "json"])
@pytest.mark.parametrize("out", [Failing(OSError(errno.ENOSPC, "No space left")), None], ids=["full", "closed"])
def test_what_could_not_be_written_is_said_and_is_not_taken_for_a_wrong_command(
    desk: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    out: io.StringIO | None,
    form: tuple[str, ...],
) -> None:
    monkeypatch.setattr(sys, "stdout", out)
    assert main([*PUT, *form]) == 1
    assert "what it had to say could not be written" in capsys.readouterr().err
    assert is_written(desk)


def test_a_closed_input_is_an_empty_one(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["call", "other", "-"]) == 2
    assert "JSON" in capsys.readouterr().err


def test_what_tools_and_modules_print_is_no_result(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PUT, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["status"] == "ok"
    assert {"imported", "putting"} <= set(said.err.split())


@pytest.mark.parametrize(
    "prints",
    [
        "sys.stdout.writelines(['putting\\n'])",
        "sys.stdout.buffer.write(b'putting\\n')",
        "print(sys.stdout.encoding.replace(sys.stdout.encoding, 'putting'), flush=True)",
        "subprocess.run(['echo', 'putting'], stdout=sys.stdout, check=True)",
    ],
)
def test_a_tool_may_use_its_standard_output_as_any_other(
    desk: Path, capfd: pytest.CaptureFixture[str], prints: str
) -> None:
    text = MODULE.replace('print("putting")', prints)
    (desk / "desk_tools.py").write_text(f"import subprocess, sys\n{text}")
    assert main([*PUT, "--json"]) == 0
    said = capfd.readouterr()
    assert json.loads(said.out)["status"] == "ok"
    assert "putting" in said.err


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), BrokenPipeError()], ids=["full", "gone"])
@pytest.mark.parametrize(("words", "code"), [(PUT, 0), (DENIED, 1), (("nonsense",), 2)], ids=["put", "denied", "wrong"])
def test_a_standard_error_that_cannot_be_written_changes_no_code(
    desk: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, error: OSError
) -> None:
    monkeypatch.setattr(sys, "stderr", Failing(error))
    assert main([*words]) == code
    assert is_written(desk) is (words is PUT)


def test_a_reader_that_has_gone_is_noticed_with_escapes_too(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.BytesIO):
        def write(self, data: Any) -> int:
            if b"\\u" in bytes(data):
                raise BrokenPipeError
            return len(data)

    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(Gone(), "ascii", write_through=True))
    assert main([*PUT]) == 0


def test_a_help_that_could_not_be_written_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Failing(OSError(errno.ENOSPC, "full")))
    assert main(["--help"]) == 1
    assert "what it had to say could not be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [("policy", "check"), ("recover",), ("undo", "--run", "r", "--yes"), ("tools", "show", "put"), DENIED],
    ids=lambda words: words[0],
)
def test_a_module_that_ends_the_process_is_a_wrong_setting(
    desk: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sets: Callable[[], None]
) -> None:
    sets()
    assert main([*words]) == 2
    assert "it ends the process (0) when it is imported; put that under a __main__ guard" in capsys.readouterr().err


@pytest.fixture
def sets(desk: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[], None]:
    """Makes the module end the process, once there is a ledger."""

    def end() -> None:
        assert main([*PUT]) == 0
        sys.modules.pop("desk_tools", None)
        (desk / "desk_tools.py").write_text("import sys\nsys.exit(0)\n")
        capsys.readouterr()

    return end


@pytest.mark.slow
@pytest.mark.parametrize("where", [">/dev/full", ">&-", "| (exec 0<&-; sleep 1)"])
def test_a_process_ends_with_its_verdict_and_without_a_traceback(desk: Path, where: str) -> None:
    command = f"set -o pipefail; {sys.executable} -m interlock call other '{{}}' --json {where}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, "Traceback" in done.stderr, "Exception ignored" in done.stderr) == (1, False, False)
