"""RANGER's folders: named in interlock.toml or by variables, and a wrong name is a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.errors import ConfigError
from interlock_ranger.app import CORPUS, DATA
from interlock_ranger.settings import load_settings


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_settings_the_shipped_fires_are_used() -> None:
    settings = load_settings().settings
    assert (Path(settings.data), Path(settings.corpus), settings.tables) == (DATA, CORPUS, ())
    assert (DATA.is_dir(), CORPUS.is_dir()) == (True, True)


def test_a_variable_goes_before_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("interlock.toml").write_text('mode = "apply"\n[app.ranger]\ndata = "fires"\ntables = ["a", "b"]\n')
    assert load_settings().settings.data == "fires"
    monkeypatch.setenv("RANGER_DATA", "others")
    monkeypatch.setenv("RANGER_TABLES", "c, d")
    settings = load_settings().settings
    assert (settings.data, settings.tables) == ("others", ("c", "d"))


@pytest.mark.parametrize(
    ("text", "variable", "sentence"),
    [
        ("[app.ranger]\ndaata = 'x'\n", "", "interlock.toml: app.ranger.daata: there is no such setting; did you mean 'data'?"),
        ("", "RANGER_TABELS", "RANGER_TABELS: there is no such setting; did you mean 'RANGER_TABLES'?"),
    ],
)  # fmt: skip
def test_a_wrong_name_says_the_right_one(
    text: str, variable: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("interlock.toml").write_text(text)
    if variable:
        monkeypatch.setenv(variable, "x")
    with pytest.raises(ConfigError) as error:
        load_settings()
    assert sentence in str(error.value)
