"""`interlock mcp`: from nothing to a client whose file edits can be taken back, and what is switched off on the way."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keyring
import pytest
import uvicorn
from keyrings.alt.file import PlaintextKeyring  # type: ignore[import-untyped]
from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import Context, MCPServer

from interlock.cli.main import main
from interlock.toml_text import parse_toml

SERVER = str(Path(__file__).with_name("mcp_files_server.py"))
HERE = str(Path(__file__).parent.parent / "src")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("one\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _add(*options: str, name: str = "files") -> int:
    return main(["mcp", "add", name, *options, "--", sys.executable, SERVER, "docs"])


def _said(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_server_is_looked_at_pinned_and_written_down(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "interlock.toml").write_text("record_bytes = 2048 # kept as it is\n")
    assert _add("--profile", "filesystem", "--json") == 0
    shown = {row["tool"]: row["effect"] for row in _said(capsys)["tools"]}
    assert shown["files_write_file"] == "write"
    assert shown["files_read_text_file"] == "read"
    assert shown["files_create_directory"] == "send"
    text = (folder / "interlock.toml").read_text()
    assert text.startswith("record_bytes = 2048 # kept as it is\n\n[mcp.files]\n")
    assert main(["mcp", "list", "--json"]) == 0
    assert _said(capsys)[0]["tools"] == 5
    assert main(["policy", "check"]) == 0
    assert _add() == 2
    assert "there is an MCP server 'files' already" in capsys.readouterr().err
    assert main(["mcp", "remove", "files"]) == 0
    assert (folder / "interlock.toml").read_text().strip() == "record_bytes = 2048 # kept as it is"
    assert main(["mcp", "show", "files"]) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["files"], "a command that starts the server, or its url"),
        (["files", "--url", "http://127.0.0.1:1/mcp"], "did not start"),
        (["files", "--", "no-such-program"], "did not start"),
        (["fi/les", "--", "x"], "cannot be the name"),
        (["files", "--profile", "nope", "--", "x"], "no profile 'nope'"),
        (["files", "--env", "NOT_SET_ANYWHERE", "--", "x"], "NOT_SET_ANYWHERE, which is not set"),
    ],
)
def test_a_server_that_cannot_be_had_is_not_written_down(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(["mcp", "add", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert not (folder / "interlock.toml").exists()


def test_settings_that_cannot_be_are_refused_in_a_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, says in (
        ("[mcp.files]\n", "one of them"),
        ('[mcp.files]\ncommand = ["x"]\nnonsense = 1\n', "nonsense"),
        ('[mcp.files]\ncommand = "x"\n', "array"),
        ('[mcp.files]\ncommand = ["x"]\n[mcp.files.tools.a]\neffect = "nope"\n', "effect is"),
        ('[mcp.files]\ncommand = ["x"]\n', "interlock mcp pin files"),
    ):
        (folder / "interlock.toml").write_text(text)
        (folder / "policy.toml").write_text("version = 1\n")
        assert main(["policy", "check"]) == 2
        assert says in capsys.readouterr().err


def test_a_tool_that_is_another_one_since_is_switched_off(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _add("--profile", "filesystem") == 0
    (folder / "other-tools").touch()
    capsys.readouterr()
    assert main(["mcp", "show", "files"]) == 1
    shown = capsys.readouterr().out
    assert "switched off write_file" in shown
    assert "tell nobody" in shown
    assert "switched off send_away: nobody has pinned it" in shown
    path = str(folder / "docs" / "a.txt")
    assert main(["call", "files_write_file", json.dumps({"path": path, "content": "x"})]) == 1
    assert "switched off" in capsys.readouterr().out
    assert (folder / "docs" / "a.txt").read_text() == "one\n"
    assert main(["call", "files_read_text_file", json.dumps({"path": path}), "--json"]) == 0
    assert _said(capsys)["value"] == {"content": "one\n"}
    assert main(["mcp", "pin", "files"]) == 0
    assert main(["mcp", "list"]) == 0
    assert main(["call", "files_write_file", json.dumps({"path": path, "content": "x"})]) == 0


def test_a_profile_is_shown_and_held_against_a_server(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "profile"]) == 0
    assert capsys.readouterr().out.split() == ["fetch", "filesystem", "git", "memory", "sqlite"]
    assert main(["mcp", "profile", "filesystem"]) == 0
    assert 'look = { tool = "read_text_file", path = "{path}" }' in capsys.readouterr().out
    assert _add() == 0
    capsys.readouterr()
    assert main(["mcp", "profile", "filesystem", "--test", "files"]) == 0
    assert "can be undone" in capsys.readouterr().out
    assert main(["mcp", "profile", "memory", "--test", "files"]) == 1
    assert "no tool 'read_graph'" in capsys.readouterr().err


async def test_a_client_edits_files_through_the_gateway_and_it_is_taken_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await asyncio.to_thread(_add, "--profile", "filesystem") == 0
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "interlock", "mcp", "serve"],
        cwd=str(folder),
        env={**os.environ, "PYTHONPATH": HERE},
    )
    path = str(folder / "docs" / "a.txt")
    async with Client(started, cache=None) as client:
        offered = {one.name: one for one in (await client.list_tools()).tools}
        assert "files_write_file" in offered
        assert "files.resources.read" not in offered
        made = await client.call_tool("files_write_file", {"path": path, "content": "by the assistant\n"})
        assert not made.is_error
        seen = await client.call_tool("files_read_text_file", {"path": path})
        assert seen.structured_content == {"content": "by the assistant\n"}
        held = await client.call_tool("files_create_directory", {"path": str(folder / "docs" / "sub")})
        assert held.is_error
        assert "interlock review approve" in str(held.content)
        resource = await client.read_resource("file:///notes")
        assert "Bring milk" in str(resource.contents)
        prompt = await client.get_prompt("files_summary", {"of": "it"})
        assert "summary of it" in str(prompt.messages)
    capsys.readouterr()
    assert await asyncio.to_thread(main, ["audit", "show", "--json"]) == 0
    tools = [row["tool"] for row in _said(capsys)]
    assert {"files.resources.read", "files.prompts.get", "files_write_file"} <= set(tools)
    assert await asyncio.to_thread(main, ["undo", "--since", "1h", "--yes"]) == 0
    assert (folder / "docs" / "a.txt").read_text() == "one\n"


@contextmanager
def _shop_at(make_app: Callable[[MCPServer], Any]) -> Iterator[str]:
    """A server at an address, which tells what it is known by."""
    shop = MCPServer("shop")

    @shop.tool()
    def whose(ctx: Context[Any, Any]) -> str:
        """Whose request it is."""
        return str((ctx.headers or {}).get("x-key"))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        web = uvicorn.Server(uvicorn.Config(make_app(shop), log_level="error"))
        thread = threading.Thread(target=web.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            web.should_exit = True
            thread.join()


@pytest.mark.parametrize(
    ("make_app", "path", "sse"), [(MCPServer.sse_app, "/sse", True), (MCPServer.streamable_http_app, "/mcp", False)]
)
def test_a_server_at_an_address_is_known_by_a_secret_of_the_keyring(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    make_app: Any,
    path: str,
    sse: bool,
) -> None:
    chain = PlaintextKeyring()
    monkeypatch.setattr(chain, "file_path", str(folder / "keys.cfg"), raising=False)
    monkeypatch.setattr(keyring, "get_password", chain.get_password)
    with _shop_at(make_app) as address:
        add = ["mcp", "add", "shop", "--url", address + path, "--header", "X-Key=keyring:shop/ann"]
        assert main(add) == 2
        assert "keyring set shop ann" in capsys.readouterr().err
        chain.set_password("shop", "ann", "sesame-of-ann")
        assert main(add) == 0
        written = parse_toml((folder / "interlock.toml").read_text())["mcp"]["shop"]
        assert (written.get("sse", False), written["headers"]) == (sse, {"X-Key": "keyring:shop/ann"})
        with (folder / "interlock.toml").open("a") as file:
            file.write('[mcp.shop.tools."*"]\neffect = "read"\n')
        capsys.readouterr()
        assert main(["call", "shop_whose", "--json"]) == 0
        assert "sesame-of-ann" in capsys.readouterr().out
    assert "sesame" not in (folder / "interlock.toml").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--url", "http://127.0.0.1:9", "--header", "X-Key"], "--header is HEADER=VARIABLE"),
        (["--url", "http://127.0.0.1:9", "--header", "X-Key=keyring:shop"], "write keyring:SERVICE/USER"),
        (["--url", "http://127.0.0.1:9", "--header", "X-Key=NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE, which is not set"),
    ],
)
def test_a_secret_that_is_not_there_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert main(["mcp", "add", "shop", *options]) == 2
    assert said in capsys.readouterr().err
    assert not (folder / "interlock.toml").exists()
