"""Applications that are installed are found by their entry points, and only the one that is asked for is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import ConfigError
from interlock.answers import Agent, App
from interlock.answers.app import find_app
from tests.conftest import install_distribution

MODULE = """
from interlock.answers import Agent, App

APP = App(name="lighthouse", agents=(Agent(name="keeper", tools=()),))
NOT_ONE = "an app"
"""
OWN = App(name="harbour", agents=(Agent(name="pilot", tools=()),))


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = "lighthouse = lighthouses:APP\nplain = lighthouses:NOT_ONE"
    install_distribution(tmp_path, "lighthouses", MODULE, "interlock.apps", points)
    install_distribution(tmp_path, "wrecks", "raise OSError('run aground')", "interlock.apps", "wreck = wrecks:APP")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_one_that_is_broken_does_not_stand_in_the_way_of_another() -> None:
    assert find_app("lighthouse", ()).agents[0].name == "keeper"
    assert find_app("harbour", (OWN,)) is OWN


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("wreck", "the application 'wreck' (wrecks:APP) cannot be loaded: run aground"),
        ("plain", "the application 'plain' (lighthouses:NOT_ONE) is no interlock.answers.App"),
        ("lighthose", "there is no application 'lighthose'; did you mean 'lighthouse'?"),
        ("harbor", "did you mean 'harbour'?"),
    ],
)
def test_one_that_cannot_be_had_is_a_sentence(name: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        find_app(name, (OWN,))
    assert sentence in str(error.value)
