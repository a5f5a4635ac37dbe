"""The profiles of servers from PyPI, each against the real server, where `make conformance` has installed it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.main import main

SERVERS = Path(__file__).parent.parent / "build" / "conformance"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _add(name: str, *options: str) -> None:
    program = SERVERS / f"mcp-server-{name}" / "bin" / f"mcp-server-{name}"
    if not program.exists():
        pytest.skip(f"mcp-server-{name} is not here: make conformance installs it")
    assert main(["mcp", "add", name, "--profile", name, "--", str(program), *options]) == 0
    assert main(["mcp", "profile", name, "--test", name]) == 0


def _call(capsys: pytest.CaptureFixture[str], tool: str, arguments: dict[str, Any], *options: str) -> Any:
    capsys.readouterr()
    main(["call", tool, json.dumps(arguments), "--json", *options])
    return json.loads(capsys.readouterr().out)


def test_git_is_read_and_a_commit_waits_for_a_person(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "repo").mkdir()
    for command in (["init", "-q"], ["config", "user.email", "a@b.c"], ["config", "user.name", "a"]):
        subprocess.run(["git", *command], cwd=folder / "repo", check=True)
    (folder / "repo" / "a.txt").write_text("one\n")
    _add("git", "--repository", str(folder / "repo"))
    seen = _call(capsys, "git_git_status", {"repo_path": str(folder / "repo")})
    assert (seen["status"], "a.txt" in str(seen["value"])) == ("ok", True)
    held = _call(capsys, "git_git_add", {"repo_path": str(folder / "repo"), "files": ["a.txt"]})
    assert held["status"] == "parked"


def test_sqlite_is_read_and_a_change_is_made_once_it_is_approved(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _add("sqlite", "--db-path", str(folder / "x.db"))
    create = {"query": "CREATE TABLE t (n INTEGER)"}
    held = _call(capsys, "sqlite_create_table", create, "--call-id", "c1")
    assert held["status"] == "parked"
    assert main(["review", "approve", held["ticket"], "--resume"]) == 0
    again = _call(capsys, "sqlite_create_table", create, "--call-id", "c1")
    assert again["status"] == "ok"
    assert "'t'" in str(_call(capsys, "sqlite_list_tables", {})["value"])
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("t",)]


@pytest.fixture
def page() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = b"<html><body><p>The glacier has 37 metres.</p></body></html>"
            self.send_response(404 if self.path == "/robots.txt" else 200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_given: object) -> None:
            """Not said."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/page"
        server.shutdown()
        thread.join()


def test_a_page_is_read_by_fetch(folder: Path, capsys: pytest.CaptureFixture[str], page: str) -> None:
    _add("fetch", "--allow-private-ips")
    found = _call(capsys, "fetch_fetch", {"url": page})
    assert (found["status"], "37 metres" in str(found["value"])) == ("ok", True)
