"""`interlock mcp`: from nothing to a client whose file edits can be taken back, and what is switched off on the way."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
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
    rows = {row["tool"]: row for row in _said(capsys)["tools"]}
    shown = {tool: row["effect"] for tool, row in rows.items()}
    assert shown["files_write_file"] == "write"
    assert shown["files_read_text_file"] == "read"
    assert shown["files_create_directory"] == "send"
    text = (folder / "interlock.toml").read_text()
    assert text.startswith("record_bytes = 2048 # kept as it is\n\n[mcp.files]\n")
    assert main(["mcp", "list", "--json"]) == 0
    assert _said(capsys)[0]["tools"] == 5
    assert main(["policy", "check"]) == 0
    assert main(["mcp", "show", "files"]) == 0
    text = capsys.readouterr().out
    assert "review: sends, when effect == 'send'" in text
    assert f"pin {rows['files_write_file']['pin'][:12]}" in text
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


def _broken_settings(folder: Path) -> None:
    """A server that works, one whose secret is not there, and one that nobody has looked at."""
    assert _add("--profile", "filesystem") == 0
    assert _add("--env", "HOME", name="keyless") == 0
    text = (folder / "interlock.toml").read_text().replace('env = ["HOME"]', 'env = ["NOT_SET_ANYWHERE"]')
    (folder / "interlock.toml").write_text(f'{text}\n[mcp.unseen]\ncommand = ["x"]\n')


def test_a_server_that_cannot_be_used_is_left_out_and_the_others_are_there(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _broken_settings(folder)
    capsys.readouterr()
    assert main(["mcp", "list", "--json"]) == 1
    rows = {row["server"]: row["problem"] for row in _said(capsys)}
    assert rows["files"] == ""
    assert "NOT_SET_ANYWHERE, which is not set" in rows["keyless"]
    assert "interlock mcp pin unseen" in rows["unseen"]
    path = str(folder / "docs" / "a.txt")
    assert main(["call", "files_write_file", json.dumps({"path": path, "content": "two\n"}), "--json"]) == 0
    assert "the MCP server unseen is left out" in capsys.readouterr().err
    assert main(["call", "keyless_write_file", json.dumps({"path": path, "content": "x"})]) != 0
    assert main(["undo", "--since", "1h", "--yes"]) == 0
    assert (folder / "docs" / "a.txt").read_text() == "one\n"
    for name, said in (("keyless", "NOT_SET_ANYWHERE"), ("unseen", "mcp pin unseen")):
        capsys.readouterr()
        assert main(["mcp", "show", name]) == 1
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('[mpc.b]\ncommand = ["x"]', "mpc: there is no such table; did you mean [mcp.…]?"),
        ('[mcp.b]\ncomand = ["x"]', "[mcp.b]: there is no setting 'comand'; did you mean 'command'?"),
        ('[mcp.b]\ncommand = ["x"]\nqqq = 1', "[mcp.b]: there is no setting 'qqq'; there are command, url"),
        ('[mcp.files.tools.write_file]\nefect = "read"', "[mcp.files.tools.write_file]: there is no setting 'efect'"),
        ('[mcp.files.tools.write_file]\neffect = "rite"', "[mcp.files.tools.write_file]: effect is read, write"),
        ("[mcp.files.tools.write_file]\nmax_bytes = 0", "[mcp.files.tools.write_file]: max_bytes is above 0"),
        ("[mcp.files]\ntools = 3", "not valid TOML"),
        ("[mcp.b]\ntools = 3", "stands in a table of its own: [mcp.b.tools.NAME]"),
    ],
)
def test_a_slip_in_the_settings_is_said_with_what_was_meant(
    folder: Path, capsys: pytest.CaptureFixture[str], written: str, said: str
) -> None:
    assert _add() == 0
    with (folder / "interlock.toml").open("a") as file:
        file.write(f"\n{written}\n")
    capsys.readouterr()
    assert main(["mcp", "list"]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_terms_of_a_tool_that_there_is_not_are_not_passed_over(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _add() == 0
    with (folder / "interlock.toml").open("a") as file:
        file.write('\n[mcp.files.tools.read_txt_file]\neffect = "read"\n')
    capsys.readouterr()
    for command in (["mcp", "list", "--json"], ["mcp", "show", "files", "--json"]):
        assert main(command) == 1
        found = capsys.readouterr()
        text = " ".join((found.out + found.err).split())
        assert "[mcp.files.tools.read_txt_file]: no tool of that name is pinned; did you mean 'read_text_file'?" in text
    assert main(["mcp", "pin", "files"]) == 2
    text = (folder / "interlock.toml").read_text().replace("tools.read_txt_file", 'tools."no_such_*"')
    (folder / "interlock.toml").write_text(text)
    assert main(["mcp", "list"]) == 0, "a pattern may fit none"


def test_what_is_taken_out_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _add() == 0
    with (folder / "interlock.toml").open("a") as file:
        file.write("[mcp.files.tools.write_file]\ntimeout_s = 7\n")
    capsys.readouterr()
    assert main(["mcp", "remove", "files"]) == 0
    assert "timeout_s = 7" in capsys.readouterr().err
    assert main(["mcp", "list"]) == 0
    assert "interlock mcp add NAME" in capsys.readouterr().err


def test_a_profile_is_said_to_fit_or_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _add() == 0
    capsys.readouterr()
    assert main(["mcp", "profile", "filesystem", "--test", "files"]) == 0
    assert "the profile filesystem fits files" in capsys.readouterr().err
    assert main(["mcp", "profile", "memory", "--test", "files"]) == 1


def test_an_address_that_is_taken_is_said_before_any_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _add() == 0
    capsys.readouterr()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["mcp", "serve", "--http", address]) == 2
    said = capsys.readouterr().err
    assert f"nobody can listen at {address}" in said
    assert "/mcp" not in said


async def test_how_to_approve_is_said_with_the_settings_that_it_needs(folder: Path, tmp_path_factory: Any) -> None:
    assert await asyncio.to_thread(_add) == 0
    config = str(folder / "interlock.toml")
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "interlock", "mcp", "serve", "--config", config],
        cwd=str(tmp_path_factory.mktemp("elsewhere")),
        env={**os.environ, "PYTHONPATH": HERE},
    )
    async with Client(started, cache=None) as client:
        held = await client.call_tool("files_create_directory", {"path": str(folder / "docs" / "sub")})
    assert f"interlock review approve --config {config}" in str(held.content)


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


def test_a_change_that_changed_nothing_is_no_failure_of_undo(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _add("--profile", "filesystem") == 0
    path = str(folder / "docs" / "a.txt")
    for run, content in (("r1", "one\n"), ("r2", "two\n")):
        assert main(["call", "files_write_file", json.dumps({"path": path, "content": content}), "--run", run]) == 0
    capsys.readouterr()
    assert main(["undo", "--run", "r1", "--yes"]) == 0
    assert "0 of 0 done, 1 change changed nothing" in capsys.readouterr().out
    assert main(["undo", "--since", "1h", "--yes"]) == 0
    assert "1 of 1 done, 1 change changed nothing" in capsys.readouterr().out
    assert (folder / "docs" / "a.txt").read_text() == "one\n"


def test_a_pin_that_leaves_a_tool_out_is_no_success(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = str(Path(__file__).with_name("mcp_odd_server.py"))
    assert main(["mcp", "add", "odd", "--", sys.executable, odd, "done", "twice-listed"]) == 0
    assert main(["mcp", "pin", "odd"]) == 1
    assert "switched off go: the server offers it twice" in capsys.readouterr().err
    assert main(["mcp", "pin", "odd", "--json"]) == 1
    assert _said(capsys)["switched_off"].keys() == {"go"}


def test_settings_that_are_not_there_are_named_by_their_whole_path(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A client starts the gateway in a folder of its own choice."""
    for arguments in (["serve"], ["show", "files"], ["pin", "files"]):
        assert main(["mcp", *arguments]) == 2
        said = capsys.readouterr().err
        assert str(folder / "interlock.toml") in said.replace("\n", "")
        assert "--config FILE" in said.replace("\n", " ")


def test_servers_that_are_added_and_taken_out_at_once_do_not_lose_each_other(folder: Path) -> None:
    assert _add(name="old") == 0
    command = [sys.executable, "-m", "interlock", "mcp"]
    names = [f"s{n}" for n in range(4)]
    changes = [[*command, "add", name, "--", sys.executable, SERVER, "docs"] for name in names]
    started = [
        subprocess.Popen(change, cwd=folder, env={**os.environ, "PYTHONPATH": HERE}, stderr=subprocess.DEVNULL)
        for change in [*changes, [*command, "remove", "old"]]
    ]
    assert [one.wait() for one in started] == [0] * 5
    servers = parse_toml((folder / "interlock.toml").read_text())["mcp"]
    assert sorted(servers) == names
    assert sorted(json.loads((folder / "interlock.mcp.json").read_text())["servers"]) == names
    assert not list(folder.glob("*.new"))
