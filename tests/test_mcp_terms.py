"""What `interlock.toml` says of servers: beside what a profile says, without hiding each other's tools, and to whom."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock import Runtime, tool
from interlock.adapters.mcp.http import HttpTerms, http_app, read_token
from interlock.adapters.mcp.servers import McpServers, check_terms
from interlock.adapters.mcp.terms import ServerTerms, ToolTerms
from interlock.cli.main import main
from interlock.errors import ConfigError
from interlock.toml_text import parse_toml
from tests.mcp_address import served_at

SERVER = str(Path(__file__).with_name("mcp_files_server.py"))
SETTINGS = """
[mcp.a]
command = [{python}, {server}, "docs"]
profile = "filesystem"
prefix = "t_"

[mcp.b]
command = [{python}, {server}, "docs"]
profile = "filesystem"
prefix = "{prefix}"
"""


@tool(effect="read")
async def look(key: str) -> str:
    """Look."""
    return key


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(folder: Path, prefix: str) -> None:
    text = SETTINGS.replace("{python}", repr(sys.executable)).replace("{server}", repr(SERVER))
    (folder / "interlock.toml").write_text(text.replace("{prefix}", prefix))


def test_what_is_said_of_a_tool_stands_beside_what_the_profile_says() -> None:
    written = {"mcp": {"files": {"command": ["x"], "profile": "filesystem", "tools": {}}}}
    tools = written["mcp"]["files"]["tools"]
    assert isinstance(tools, dict)
    tools |= {"edit_file": {"repeatable": True}, "move_file": {"effect": "send"}, "other": {"timeout_s": 5.0}}
    terms_of = check_terms(written["mcp"])["files"].terms_of
    assert (terms_of("edit_file").effect, terms_of("edit_file").repeatable) == ("write", True)
    assert terms_of("edit_file").put_back
    assert (terms_of("move_file").effect, terms_of("move_file").look) == ("send", None)
    assert terms_of("other").effect == ""


@pytest.mark.parametrize("pattern", ["*_file", "*", "write_*", "write_file"])
def test_a_pattern_of_the_operators_goes_before_whatever_the_profile_names(pattern: str) -> None:
    stricter: dict[str, Any] = {
        "files": {"command": ["x"], "profile": "filesystem", "tools": {pattern: {"effect": "send"}}}
    }
    assert check_terms(stricter)["files"].terms_of("write_file") == ToolTerms(effect="send")
    slower: dict[str, Any] = {
        "files": {"command": ["x"], "profile": "filesystem", "tools": {pattern: {"timeout_s": 5.0}}}
    }
    terms = check_terms(slower)["files"].terms_of("write_file")
    assert (terms.effect, terms.timeout_s, bool(terms.put_back)) == ("write", 5.0, True)
    known = ServerTerms(command=("x",), profile="filesystem", tools={pattern: ToolTerms(timeout_s=5.0)})
    assert known.terms_of("write_file") == terms


def test_how_it_is_written_is_no_setting() -> None:
    with pytest.raises(ConfigError, match="there is no setting 'written'"):
        check_terms({"files": {"command": ["x"], "written": {}}})


def test_of_two_servers_whose_tools_are_called_the_same_one_is_left_out_and_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(folder, "u_")
    assert main(["mcp", "pin", "a"]) == 0
    assert main(["mcp", "pin", "b"]) == 0
    _write(folder, "t_")
    capsys.readouterr()
    assert main(["mcp", "pin", "b"]) == 2
    assert "another server has a tool 't_" in capsys.readouterr().err
    servers = McpServers(check_terms(parse_toml((folder / "interlock.toml").read_text())["mcp"]), folder)
    assert list(servers.upstreams) == ["a"]
    assert "another prefix" in servers.left_out["b"]
    assert main(["mcp", "list"]) == 1
    assert "another prefix" in capsys.readouterr().out


def test_no_server_takes_the_name_of_what_takes_changes_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(folder, "u_")
    assert main(["mcp", "pin", "b"]) == 0
    _write(folder, "undo.")
    capsys.readouterr()
    assert main(["mcp", "pin", "b"]) == 2
    assert "the name of what takes changes back: give the server a prefix" in capsys.readouterr().err
    servers = McpServers(check_terms(parse_toml((folder / "interlock.toml").read_text())["mcp"]), folder)
    assert "what takes changes back" in servers.left_out["b"]


@pytest.mark.parametrize("option", ["--audience", "--jwks", "--scope"])
def test_terms_of_tokens_without_an_issuer_are_refused(
    option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(folder, "u_")
    (folder / "policy.toml").write_text("version = 1\n")
    assert main(["mcp", "serve", "--http", "127.0.0.1:0", option, "https://here.example"]) == 2
    assert "name that, too" in capsys.readouterr().err


def test_a_token_that_cannot_be_read_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the token cannot be read: No such file"):
        read_token(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe" * 20)
    with pytest.raises(ConfigError, match="it is no text"):
        read_token(tmp_path / "bytes")


@pytest.mark.parametrize(("hosts", "status"), [((), 421), (("box.example",), 200)])
async def test_a_gateway_is_reached_by_the_names_that_are_given(
    hosts: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("a-token-that-nobody-guesses")
    headers = {"Accept": "application/json, text/event-stream", "Authorization": "Bearer a-token-that-nobody-guesses"}
    begin = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    async with Runtime.open("memory://", policy={"version": 1}, tools=[look]) as runtime:
        app = http_app(runtime, HttpTerms(address="0.0.0.0:8300", bearer=str(tmp_path / "token"), hosts=hosts))
        async with served_at(app) as url, httpx.AsyncClient(headers={**headers, "Host": "box.example:8300"}) as http:
            asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin}
            assert (await http.post(url, json=asked)).status_code == status
