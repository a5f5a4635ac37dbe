"""What the documents promise: the README's program runs, every page they link to is there, every command exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.cli.main import main
from interlock.config import HELP
from interlock.policy.functions import FUNCTIONS
from interlock.policy.packs import PACKS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_programs_in_the_readme_run_as_they_stand(tmp_path: Path) -> None:
    programs = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (policy,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    said = (
        "ok {'trail_id': 'waldo-lake-3536', 'damage_class': 3} surveys 1\n",
        "RETRY_SUCCEEDED Class 3, 41.5 trees a mile. $.value.downed_trees_per_mile\n",
    )
    for code, expected in zip(programs, said, strict=True):
        (tmp_path / "program.py").write_text(code, encoding="utf-8")
        allow = policy if "season" in code else policy.partition('[[rule]]\nid = "winter')[0]
        (tmp_path / "policy.toml").write_text(allow, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "program.py"], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
        )
        assert done.stdout == expected, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_first_screen_of_the_readme_names_both_commands() -> None:
    first = "\n".join(README.splitlines()[:12])
    assert "make demo" in first
    assert "make test" in first


def test_every_command_in_the_readme_exists(capsys: pytest.CaptureFixture[str]) -> None:
    for line in re.findall(r"^interlock (\w+)(?: (\w+(?:\|\w+)+))?", README, re.MULTILINE):
        for action in line[1].split("|") if line[1] else [""]:
            with pytest.raises(SystemExit) as stop:
                main([part for part in (line[0], action, "--help") if part])
            assert stop.value.code == 0
    capsys.readouterr()


def test_settings_packs_and_functions_are_all_documented() -> None:
    settings = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    policy = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    assert [name for name in HELP if f"`{name}`" not in settings] == []
    assert [name for name in PACKS if f"`{name}`" not in policy] == []
    assert [name for name in FUNCTIONS if name not in policy] == []


def test_no_committed_file_names_an_index() -> None:
    for name in ("constraints.txt", "pyproject.toml", "Makefile", "benchmarks/requirements.txt"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "index-url" not in text
        assert "http://" not in text
        assert "https://" not in text
