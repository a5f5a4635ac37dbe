"""Ctrl-C: one line and exit code 130, at once; what was begun in the world is waited for."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.main import main

pytestmark = pytest.mark.slow

DISTRICT = Path(__file__).parent.parent / "examples" / "district"
SLOW = '''
import asyncio, time
from pathlib import Path
from interlock import tool
from interlock.values import Versioned


async def until(file):
    Path("started").touch()
    while not Path(file).exists():
        await asyncio.sleep(0.02)


class Board:
    """A resource whose every restoring takes until somebody allows it."""

    name = "board"

    async def read_state(self, key):
        file = Path(f"{key}.txt")
        return Versioned(file.read_text(), file.read_text()) if file.exists() else None

    async def restore(self, key, state, context):
        await until("finish")
        Path(f"{key}.txt").unlink() if state is None else Path(f"{key}.txt").write_text(state)


@tool(effect="read", timeout_s=600)
def look() -> str:
    """Look, in a thread that nothing can stop."""
    Path("started").touch()
    time.sleep(600)
    return "seen"


@tool(effect="send")
async def mail(to: str) -> str:
    """Send a mail, when somebody allows it."""
    await until("finish")
    return "sent"


@tool(effect="write", key="{id}", resource=Board())
async def write(id: str, text: str) -> str:
    """Write on the board."""
    Path(f"{id}.txt").write_text(text)
    return text


class Model:
    """A model that never answers."""

    name = "slow"
    instructable = True

    async def reply(self, request):
        await until("never")

    async def close(self):
        pass


TOOLS = [look, mail, write]
'''
POLICY = 'version = 1\nmode = "apply"\n[[rule]]\nid = "open"\ntools = ["*", "undo.*"]\ndecision = "allow"\n'
INTERRUPTED = "interlock: interrupted\n"
WAITING = "interlock: stopping when it is known whether what was begun has landed (Ctrl-C again: do not wait)\n"
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a command in a folder of its own, and comes back when it is in the middle of its work."""
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "interlock.toml").write_text('tools = ["slow:TOOLS"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    # What a shell starts in the background ignores Ctrl-C, and hands that on to all that it starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    running = []

    def go(*arguments: str, program: tuple[str, ...] = ("-m", "interlock")) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = [sys.executable, *program, *arguments]
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        running.append(process)
        wait_until(lambda: Path("started").exists() or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        return process

    yield go
    for process in running:
        process.kill()
        process.communicate()
    signal.signal(signal.SIGINT, before)
    sys.modules.pop("slow", None)


def wait_until(come: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not come():
        assert time.monotonic() < end
        time.sleep(0.02)


def interrupt(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Ctrl-C, and how it ended."""
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=600)
    return process.returncode, out, error.removeprefix(WAITING)  # it is said on a machine that is busy, too


def interrupt_what_was_begun(process: subprocess.Popen[str]) -> None:
    """Ctrl-C where an effect is under way: it is said that it is waited for."""
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == WAITING


def let_finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The effect may end now, and with it the command."""
    Path("finish").touch()
    out, error = process.communicate(timeout=600)
    return process.returncode, out, error


def shown(capsys: pytest.CaptureFixture[str], *filters: str) -> list[dict[str, Any]]:
    assert main(["audit", "show", "--json", *filters]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def records(capsys: pytest.CaptureFixture[str], *filters: str) -> list[tuple[str, str]]:
    return [(row["tool"], row["outcome"]) for row in shown(capsys, *filters)]


def test_a_read_that_nothing_can_stop_is_left(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    assert interrupt(start("call", "look")) == (130, "", INTERRUPTED)
    assert records(capsys) == [("look", "failed")]


def test_what_was_begun_is_waited_for_and_that_is_said(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    process = start("call", "mail", '{"to": "a"}')
    interrupt_what_was_begun(process)
    code, out, error = let_finish(process)
    (number,) = [
        row["id"] for row in shown(capsys) if (row["tool"], row["outcome"], row["kind"]) == ("mail", "ok", "call")
    ]
    assert (code, out) == (130, "")
    assert error == f"ok  mail  record {number}: interlock audit show --id {number}\n{INTERRUPTED}"


def test_the_second_time_it_is_not_waited_for(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    process = start("call", "mail", '{"to": "a"}')
    interrupt_what_was_begun(process)
    code, out, error = interrupt(process)
    assert (code, out) == (130, "")
    assert error.endswith(INTERRUPTED)
    assert not error.startswith("ok")
    assert ("mail", "ok") not in records(capsys)


def test_an_undo_is_interrupted_between_its_steps(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("first", "second"):
        assert main(["call", "write", json.dumps({"id": "a", "text": text}), "--run", "r"]) == 0
    capsys.readouterr()
    process = start("undo", "--run", "r", "--yes")
    interrupt_what_was_begun(process)
    assert let_finish(process) == (130, "", INTERRUPTED)
    assert Path("a.txt").read_text() == "first", "one step was taken, and the next one was not begun"


def test_a_question_is_interrupted_while_the_model_thinks(start: Start, tmp_path: Path) -> None:
    for file in DISTRICT.glob("*.*"):
        shutil.copy(file, tmp_path / file.name)
    with (tmp_path / "interlock.toml").open("a") as settings:
        settings.write('model = "python:slow:Model"\n')
    code, out, error = interrupt(start("ask", "district", "How much timber is in plot 47-bravo?", "--quiet"))
    assert (code, out, error) == (130, "", INTERRUPTED)


VERIFYING = """
import asyncio, sys
from pathlib import Path
from interlock.cli import audit
from interlock.__main__ import start

async def verify(*_arguments, **_options):
    Path("started").touch()
    await asyncio.sleep(600)

audit.verify = verify
start()
"""


def test_a_verification_is_interrupted(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "write", '{"id": "a", "text": "x"}']) == 0
    assert interrupt(start("audit", "verify", program=("-c", VERIFYING))) == (130, "", INTERRUPTED)


@pytest.mark.parametrize("arguments", [("call", "look", "-"), ("plan-set", "-", "--name", "n"), ("ask", "x", "-")])
def test_waiting_for_standard_input_is_interrupted(start: Start, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "interlock.toml").write_text('tools = ["slow:TOOLS"]\napps = ["app:APP"]\n')
    (tmp_path / "app.py").write_text(
        "from interlock.answers import Agent, App\nAPP = App(name='x', agents=(Agent(name='a', tools=()),))\n"
    )
    reading = "import sys, pathlib\nfrom interlock.__main__ import start\n"
    reading += "class Input:\n    def __init__(self, file): self.file, self.buffer = file, self\n"
    reading += "    def read(self):\n        pathlib.Path('started').touch()\n        return self.file.read()\n"
    reading += "sys.stdin = Input(sys.stdin)\nstart()\n"
    assert interrupt(start(*arguments, program=("-c", reading))) == (130, "", INTERRUPTED)
