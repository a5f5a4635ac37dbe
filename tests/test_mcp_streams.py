"""Messages as lines: what is read, left out and answered, over whatever the gateway is given as its streams."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from interlock.adapters.mcp.lines import LineReads
from interlock.adapters.mcp.standard_streams import answer_to_damaged, open_standard_streams
from tests.conftest import expect

SERVER = str(Path(__file__).with_name("mcp_server.py"))
SOURCE = str(Path(__file__).parent.parent / "src")
INITIALIZE = {
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
BEGUN = {"method": "notifications/initialized"}
LIST = {"id": 2, "method": "tools/list"}


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


async def _read(data: bytes, size: int = 65_536) -> list[Any]:
    reads = LineReads("somebody")
    for start in range(0, len(data), size):
        reads.feed(data[start : start + size])
    reads.feed_end()
    return [one.message if isinstance(one, SessionMessage) else one async for one in reads]


async def test_an_answer_that_speaks_of_log_messages_is_no_log_message() -> None:
    answers = [
        {"result": {"text": '"method": "notifications/message"', "no": n, "method": "notifications/message"}, "id": n}
        for n in range(500)
    ]
    found = await _read(b"".join(map(_line, answers)))
    assert [one.id for one in found] == list(range(500))


async def test_equal_log_lines_are_all_kept_and_equal_changes_of_a_list_are_one() -> None:
    log = {"method": "notifications/message", "params": {"level": "info", "data": "the same"}}
    changed = {"method": "notifications/tools/list_changed"}
    found = await _read(_line(log) * 3 + _line(changed) * 3)
    assert [one.method for one in found] == ["notifications/message"] * 3 + ["notifications/tools/list_changed"]


@pytest.mark.parametrize("size", [1, 7, 65_536])
async def test_lines_are_whole_however_they_come_in(size: int) -> None:
    found = await _read(_line(INITIALIZE) + b"\r\n \n" + _line(BEGUN) + b'{"jsonrpc": "2.0", "half', size)
    assert [one.method for one in found] == ["initialize", "notifications/initialized"]


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"hello", types.PARSE_ERROR, None),
        (b'{"id": 3', types.PARSE_ERROR, None),
        (b"[" * 100_000, types.PARSE_ERROR, None),
        (b'{"id": 7, "method": "ping"}', types.INVALID_REQUEST, 7),
        (b'{"jsonrpc": "2.0", "id": 7}', types.INVALID_REQUEST, None),
        (b'{"id": "a", "method": 3}', types.INVALID_REQUEST, None),
        (b'{"id": true, "method": "ping"}', types.INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', types.INVALID_REQUEST, None),
        (b"[]", types.INVALID_REQUEST, None),
    ],
)
def test_what_json_rpc_says_to_a_line_that_is_no_message(line: bytes, code: int, number: Any) -> None:
    said = expect(answer_to_damaged(line))
    assert (said.error.code, said.id) == (code, number)
    assert said.model_dump_json()


def test_nothing_is_said_to_an_answer_that_is_damaged() -> None:
    """Its id is that of a question of ours, and perhaps that of a call of theirs."""
    assert answer_to_damaged(b'{"jsonrpc": "2.0", "id": 1, "result": 3}') is None


async def test_a_flood_of_damaged_lines_keeps_nobody_else_waiting() -> None:
    told: list[bytes] = []

    async def refuse(line: bytes) -> None:
        told.append(line)

    reads = LineReads("somebody", refuse=refuse)
    reads.feed(b"x\n" * 1_000)
    reads.feed_end()
    reading = asyncio.create_task(_drain(reads))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 0 < len(told) < 1_000
    await reading
    assert len(told) == 1_000


async def _drain(reads: LineReads) -> None:
    async for _message in reads:
        pass


def _streams(monkeypatch: pytest.MonkeyPatch, stdin: int, stdout: int) -> None:
    monkeypatch.setattr("sys.stdin", os.fdopen(stdin, "r"))
    monkeypatch.setattr("sys.stdout", os.fdopen(stdout, "w"))


LARGE = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "x" * 3_000_000})


def test_what_was_answered_goes_out_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    (their_in, our_in), (our_out, their_out) = os.pipe(), os.pipe()
    _streams(monkeypatch, their_in, their_out)
    got = bytearray()

    def read() -> None:
        while data := os.read(our_out, 65_536):
            got.extend(data)
            if got.endswith(b"\n"):
                return

    async def answer() -> threading.Thread:
        async with open_standard_streams(None) as (_reads, writes):
            sending = asyncio.create_task(writes.send(SessionMessage(LARGE)))
            await asyncio.sleep(0)
            reader = threading.Thread(target=read)
            reader.start()
            sending.cancel()
        return reader

    asyncio.run(answer()).join()
    assert len(got) > 3_000_000
    for stream in (sys.stdin, sys.stdout):
        stream.close()
    os.close(our_in)
    os.close(our_out)


def test_an_answer_that_nobody_reads_goes_into_no_other_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("interlock.adapters.mcp.standard_streams._LAST_WORDS_S", 0.01)
    ours, theirs = socket.socketpair()
    _streams(monkeypatch, theirs.fileno(), os.dup(theirs.detach()))

    async def answer() -> None:
        async with open_standard_streams(None) as (_reads, writes):
            sending = asyncio.create_task(writes.send(SessionMessage(LARGE)))
            await asyncio.sleep(0)
            sending.cancel()

    asyncio.run(answer())
    with (tmp_path / "precious").open("wb") as precious:
        precious.write(b"mine")
        precious.flush()
        got = 0
        while got < 3_000_000:
            got += len(ours.recv(65_536))
    assert (tmp_path / "precious").read_bytes() == b"mine"
    for stream in (sys.stdin, sys.stdout):
        stream.close()
    ours.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a gateway can be started."""
    made = tmp_path
    command = [sys.executable, SERVER, str(made / "done")]
    (made / "policy.toml").write_text(
        'version = 1\nmode = "apply"\n[[rule]]\nid = "all"\ntools = ["*"]\ndecision = "allow"\n'
    )
    add = subprocess.run([*_interlock("add", "shop", "--"), *command], cwd=made, capture_output=True, env=_env())
    assert add.returncode == 0, add.stderr
    return made


def _interlock(*words: str) -> list[str]:
    return [sys.executable, "-m", "interlock", "mcp", *words]


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCE}


@contextlib.contextmanager
def _gateway(folder: Path, stdin: Any, stdout: Any) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        _interlock("serve"), cwd=folder, stdin=stdin, stdout=stdout, env=_env(), start_new_session=True
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def _answers(data: bytes) -> dict[Any, dict[str, Any]]:
    return {said["id"]: said for said in map(json.loads, data.splitlines()) if "id" in said}


def _read_until(fd: int, number: Any) -> dict[str, Any]:
    data = b""
    while True:
        data += os.read(fd, 65_536)
        whole = data[: data.rfind(b"\n") + 1]
        # A terminal says again what was typed.
        said = [json.loads(one) for one in whole.splitlines() if one.startswith(b"{")]
        found = [one for one in said if one.get("id") == number and "method" not in one]
        if found:
            return dict(found[0])


@pytest.mark.parametrize("kind", ["pipes", "one socket", "terminal", "a socket that does not block"])
def test_one_ctrl_c_ends_it_whatever_its_streams_are(folder: Path, kind: str) -> None:
    if kind == "pipes":
        (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
    elif kind == "terminal":
        ours_in, theirs_in = pty.openpty()
        ours_out, theirs_out = os.dup(ours_in), os.dup(theirs_in)
    else:
        ours, theirs = socket.socketpair()
        ours_in, theirs_in = ours.detach(), theirs.detach()
        ours_out, theirs_out = os.dup(ours_in), os.dup(theirs_in)
        os.set_blocking(theirs_in, kind == "one socket")
    try:
        with _gateway(folder, theirs_in, theirs_out) as started:
            os.write(ours_in, _line(INITIALIZE))
            assert _read_until(ours_out, 1)["result"]["serverInfo"]["name"] == "interlock"
            os.write(ours_in, b"no JSON\n")
            assert _read_until(ours_out, None)["error"]["code"] == types.PARSE_ERROR
            os.write(ours_in, _line(BEGUN) + _line(LIST))
            names = {one["name"] for one in _read_until(ours_out, 2)["result"]["tools"]}
            assert "shop_pay" in names
            started.send_signal(signal.SIGINT)
            assert started.wait(60) == 130
    finally:
        for fd in (ours_in, ours_out, theirs_in, theirs_out):
            os.close(fd)


def test_requests_in_a_file_are_answered_into_a_file(folder: Path) -> None:
    (folder / "asked").write_bytes(_line(INITIALIZE) + _line(BEGUN) + _line(LIST))
    with (
        (folder / "asked").open("rb") as asked,
        (folder / "said").open("wb") as said,
        _gateway(folder, asked, said) as started,
    ):
        assert started.wait(60) == 0
    assert set(_answers((folder / "said").read_bytes())) == {1, 2}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_gateway_that_is_ended_in_the_middle_of_a_call_does_not_make_it_again(
    folder: Path, number: int, code: int
) -> None:
    done, to = folder / "done", f"ann-{code}"
    params = {"name": "shop_hang", "arguments": {"to": to}, "_meta": {"interlock/idempotency-key": to}}
    for delivery in range(2):
        with _gateway(folder, subprocess.PIPE, subprocess.PIPE) as started:
            assert started.stdin is not None
            assert started.stdout is not None
            started.stdin.write(
                _line(INITIALIZE) + _line(BEGUN) + _line({"id": 3, "method": "tools/call", "params": params})
            )
            started.stdin.flush()
            if delivery:
                said = _read_until(started.stdout.fileno(), 3)
                assert "Do not try it again" in str(said)
                continue
            asyncio.run(_until(done, to))
            started.send_signal(number)
            assert started.wait(60) == code
    assert done.read_text().splitlines().count(f"paid {to}") == 1


async def _until(file: Path, said: str) -> None:
    while not file.exists() or said not in file.read_text():  # noqa: ASYNC110
        await asyncio.sleep(0.02)
