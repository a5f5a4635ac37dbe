"""What is opened below a root is what was checked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interlock.errors import Forbidden, NotFound
from interlock.tools import paths
from interlock.tools.paths import open_within


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "sub" / "a.txt").write_text("inside")
    (tmp_path / "data-old").mkdir()
    (tmp_path / "data-old" / "a.txt").write_text("outside")
    (tmp_path / "data" / "link").symlink_to(tmp_path / "data-old")
    (tmp_path / "data" / "own").symlink_to(tmp_path / "data" / "sub")
    return tmp_path / "data"


def test_files_below_a_root_are_read_and_written(root: Path) -> None:
    with open_within(root / "sub" / "a.txt", [str(root)]) as file:
        assert file.read() == "inside"
    with open_within(root / "own" / ".." / "own" / "a.txt", [str(root)], "rb") as file:  # a link that stays inside
        assert file.read() == b"inside"
    with open_within(root / "new.txt", ["/nowhere", str(root)], "w", encoding="utf-8") as file:
        file.write("new")
    assert (root / "new.txt").read_text() == "new"


@pytest.mark.parametrize("path", ["../data-old/a.txt", "link/a.txt", "sub/../../data-old/a.txt", ".", "sub/../../data"])
def test_what_leads_out_is_refused(root: Path, path: str) -> None:
    with pytest.raises((Forbidden, IsADirectoryError)):
        open_within(root / path, [str(root)])


def test_what_is_not_there_and_what_is_not_expanded(root: Path) -> None:
    with pytest.raises(NotFound, match="there is no"):
        open_within(root / "sub" / "b.txt", [str(root)])
    with pytest.raises(Forbidden, match="write it out"):
        open_within("~/a.txt", [str(root)])


@pytest.mark.parametrize("swapped", ["sub", "sub/a.txt"])
def test_a_link_that_is_put_there_after_the_check_is_not_followed(
    root: Path, swapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = {"sub": root.parent / "data-old", "sub/a.txt": root.parent / "data-old" / "a.txt"}[swapped]
    real = paths._root_of

    def swap_after_the_check(*arguments: object) -> str | None:
        found = real(*arguments)  # type: ignore[arg-type]
        (root / swapped).rename(root / "moved")
        (root / swapped).symlink_to(target)
        return found

    monkeypatch.setattr(paths, "_root_of", swap_after_the_check)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(Forbidden, match="leads elsewhere"):
        open_within(root / "sub" / "a.txt", [str(root)])
    assert len(os.listdir("/proc/self/fd")) == before, "nothing is left open"
