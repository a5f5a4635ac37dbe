"""What a server changes is looked at with its own tools, shown, and taken back: byte for byte, or not at all."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Outcome, Runtime, Status
from interlock.adapters.mcp import ToolTerms, mcp_tools
from interlock.adapters.mcp.terms import profile_names, read_profile
from interlock.errors import ConfigError
from tests.conftest import expect

SERVER = str(Path(__file__).with_name("mcp_files_server.py"))
POLICY = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}


class Files:
    """A folder behind a server behind a runtime."""

    def __init__(self, runtime: Runtime, root: Path) -> None:
        self.runtime, self.root = runtime, root

    async def call(self, tool: str, **arguments: str) -> Outcome:
        whole = {key: str(self.root / value) if key in _PATHS else value for key, value in arguments.items()}
        return await self.runtime.call(f"files_{tool}", whole, actor="agent", run="r")

    def state(self) -> dict[str, bytes]:
        return {str(file.relative_to(self.root)): file.read_bytes() for file in self.root.rglob("*") if file.is_file()}


_PATHS = ("path", "source", "destination")


@asynccontextmanager
async def files(tmp_path: Path, **options: Any) -> AsyncIterator[Files]:
    root = tmp_path / "docs"
    root.mkdir(exist_ok=True)
    given: dict[str, Any] = {"profile": "filesystem", **options}
    command = [sys.executable, SERVER, str(root)]
    async with (
        await mcp_tools("files", command=command, **given) as tools,
        Runtime.open(f"sqlite:///{tmp_path / 'ledger.db'}", policy=POLICY, tools=tools) as runtime,
    ):
        yield Files(runtime, root)


@pytest.mark.parametrize(
    "before", [b"one\ntwo\n", b"", b"no end of line", b"\xef\xbb\xbfwith a mark", b"a\r\nb\r\n", "Grüße ☀\n".encode()]
)
async def test_what_was_written_edited_and_moved_is_taken_back_byte_for_byte(tmp_path: Path, before: bytes) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_bytes(before)
    async with files(tmp_path) as world:
        made = [
            await world.call("write_file", path="a.txt", content="three\n"),
            await world.call("edit_file", path="a.txt", old="three", new="four"),
            await world.call("write_file", path="new.txt", content="new\n"),
            await world.call("move_file", source="new.txt", destination="moved.txt"),
        ]
        assert [outcome.status for outcome in made] == [Status.OK] * 4
        assert world.state() == {"a.txt": b"four\n", "moved.txt": b"new\n"}
        done = await world.runtime.operations.undo(run="r")
        assert all(outcome is not None and outcome.ok for _step, outcome in done)
        assert world.state() == {"a.txt": before}


async def test_a_plan_shows_what_would_be_otherwise_line_by_line(tmp_path: Path) -> None:
    async with files(tmp_path) as world:
        await world.call("write_file", path="a.txt", content="one\ntwo\nthree\n")
        path = str(world.root / "a.txt")
        planned = await world.runtime.call(
            "files_write_file", {"path": path, "content": "one\n2\nthree\n"}, actor="agent", run="r2", mode="dry_run"
        )
        lines = expect(expect(planned.plan).diff).splitlines()
        assert [line for line in lines if line[:1] in "+-" and line[1:2] not in "+-"] == ["-two", "+2"]
        assert world.state() == {"a.txt": b"one\ntwo\nthree\n"}


async def test_what_is_no_text_is_not_overwritten(tmp_path: Path) -> None:
    async with files(tmp_path) as world:
        (world.root / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0 and more")
        refused = await world.call("write_file", path="photo.jpg", content="text")
        assert refused.status is Status.FAILED
        assert "could not be put back" in expect(refused.problem).message
        assert world.state() == {"photo.jpg": b"\xff\xd8\xff\xe0 and more"}


async def test_a_path_that_the_server_would_take_from_elsewhere_is_refused(tmp_path: Path) -> None:
    async with files(tmp_path) as world:
        given = {"path": "a.txt", "content": "x"}
        refused = await world.runtime.call("files_write_file", given, actor="agent", run="r")
        assert refused.status is Status.DENIED
        assert "give the whole path" in expect(refused.problem).message
        assert world.state() == {}


async def test_one_file_has_one_key_however_many_strokes_its_path_begins_with(tmp_path: Path) -> None:
    async with files(tmp_path) as world:
        first = await world.call("write_file", path="a.txt", content="one\n")
        given = {"path": f"//{world.root}/./a.txt", "content": "two\n"}
        second = await world.runtime.call("files_write_file", given, actor="agent", run="r")
        assert expect(second.plan).keys == expect(first.plan).keys
        assert second.status is Status.OK
        await world.runtime.operations.undo(run="r")
        assert world.state() == {}


async def test_what_somebody_has_changed_since_is_not_overwritten_by_an_undo(tmp_path: Path) -> None:
    async with files(tmp_path) as world:
        await world.call("write_file", path="a.txt", content="ours\n")
        (world.root / "a.txt").write_text("theirs\n")
        ((step, outcome),) = await world.runtime.operations.undo(run="r")
        assert outcome is None
        assert "changed" in step.obstacle or "not what" in step.obstacle
        assert world.state() == {"a.txt": b"theirs\n"}


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ({"effect": "write"}, "cannot be a write"),
        ({"effect": "send", "look": {"tool": "read_text_file"}}, "is for a write"),
        ({"effect": "write", "key": "{path}", "look": {"tool": "nope"}, "put_back": {"tool": "x"}}, "no tool 'nope'"),
        (
            {
                "effect": "write",
                "key": "{path}",
                "look": {"tool": "read_text_file", "path": "{where}"},
                "put_back": {"tool": "write_file"},
            },
            "nothing fills the gap {where}",
        ),
    ],
)
async def test_terms_that_cannot_be_kept_are_refused(tmp_path: Path, terms: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        async with files(tmp_path, profile="", terms={"write_file": ToolTerms(**terms)}):
            pass


def test_every_profile_can_be_read() -> None:
    assert profile_names() == ("fetch", "filesystem", "git", "memory", "sqlite")
    assert all(read_profile(name) for name in profile_names())
    with pytest.raises(ConfigError, match="there is no profile 'nope'; there are fetch"):
        read_profile("nope")
    with pytest.raises(ConfigError, match="effect is read, write, send"):
        ToolTerms(effect="nope")


async def test_what_undo_would_look_for_elsewhere_is_refused_before_it_is_changed(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "real.txt").write_text("one")
    (tmp_path / "docs" / "link.txt").symlink_to(tmp_path / "docs" / "real.txt")
    async with files(tmp_path) as world:
        moved = await world.call("move_file", source="link.txt", destination="b.txt")
        odd = await world.call("write_file", path="new.txt", content="a sign that is lost: \ufffd")
    assert [moved.status, odd.status] == [Status.FAILED, Status.FAILED]
    assert moved.problem is not None
    assert odd.problem is not None
    assert "is a link" in moved.problem.message
    assert "U+FFFD" in odd.problem.message
    assert world.state() == {"real.txt": b"one", "link.txt": b"one"}


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"tool": "write_file", "path": "{path}"}, "needs content"),
        ({"tool": "write_file", "path": "{path}", "text": "{state}"}, "takes no 'text'"),
        ({"tool": "write_file", "pathh": "{path}", "content": "{state}"}, "did you mean 'path'"),
    ],
)
async def test_a_way_back_that_its_tool_would_not_take_is_found_before_it_is_needed(
    tmp_path: Path, step: dict[str, Any], says: str
) -> None:
    look = {"tool": "read_text_file", "path": "{path}"}
    terms = {"write_file": ToolTerms(effect="write", key="{path}", look=look, put_back=step)}
    with pytest.raises(ConfigError, match=says):
        async with files(tmp_path, profile="", terms=terms):
            pass


async def test_a_folder_under_another_spelling_of_its_name_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    (tmp_path / "docs" / unicodedata.normalize("NFD", "caf\u00e9")).mkdir(parents=True)
    writes = ToolTerms(
        effect="write",
        key="{path}",
        paths=True,
        look={"tool": "read_text_file", "path": "{key}"},
        absent="ENOENT",
        put_back={"tool": "write_file", "path": "{key}", "content": "{state}"},
        remove={"file": "{key}"},
    )
    server = str(Path(__file__).with_name("mcp_files_server.py"))
    command = [sys.executable, server, str(tmp_path / "docs")]
    policy = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}
    async with (
        await mcp_tools("files", command=command, terms={"write_file": writes}) as tools,
        Runtime.open("memory://", policy=policy, tools=tools) as runtime,
    ):
        path = str(tmp_path / "docs" / unicodedata.normalize("NFC", "caf\u00e9") / "a.txt")
        refused = await runtime.call("files_write_file", {"path": path, "content": "x"}, actor="a", run="r")
    assert not refused.ok
    assert "under another spelling" in refused.summary
    assert [file for file in (tmp_path / "docs").rglob("*") if file.is_file()] == []
