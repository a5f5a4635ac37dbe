"""Settings: one file reads them, every value has an origin, wrong keys are errors."""

from __future__ import annotations

import ast
import os
import pwd
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from interlock import ConfigError
from interlock.config import HELP, Settings, SettingsSource, help_texts, load_settings, setting
from interlock.principals import default_principal
from interlock.toml_text import parse_toml
from tests.growth import LINEAR, growth

SOURCE = Path(__file__).parent.parent / "src" / "interlock"


def test_defaults_then_file_then_environment_then_command_line(in_folder: Callable[..., Path]) -> None:
    in_folder(interlock__toml='store = "sqlite:///a.db"\nthreads = 2\nbusy_s = 3\n')
    loaded = load_settings(
        environment={"INTERLOCK_THREADS": "5", "HOME": "/x"},
        given={"store": "memory:x", "policy": None} | {"store": "sqlite:///c.db"},
    )
    assert (loaded.settings.store, loaded.settings.threads, loaded.settings.busy_s) == (
        "sqlite:///c.db",
        5,
        3.0,
    )
    assert loaded.origins["store"] == "command line"
    assert loaded.origins["threads"] == "environment INTERLOCK_THREADS"
    assert loaded.origins["busy_s"] == "interlock.toml"
    assert loaded.origins["repeats"] == "default"


def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "interlock.toml").write_text('store = "sqlite:///a.db"\naudit_key = "k.pem"\n')
    monkeypatch.chdir(tmp_path)
    settings = load_settings("conf/interlock.toml", environment={}).settings
    assert (settings.store, settings.policy, settings.audit_key, settings.anchors) == (
        "sqlite:///conf/a.db", "conf/policy.toml", "conf/k.pem", "conf/anchors.jsonl",
    )  # fmt: skip
    assert load_settings(None, environment={}).settings == Settings()


@pytest.mark.parametrize(
    ("text", "environment", "sentence"),
    [
        ("stroe = 'x'", {}, "there is no such setting; did you mean 'store'?"),
        ("qqqqqq = 1", {}, "settings are store, policy"),
        ("store = ", {}, "not valid TOML"),
        ("a = " + "[" * 5_000 + "]" * 5_000, {}, "more than 64 levels deep; make it shallower"),
        (".".join(["a"] * 5_000) + " = 1", {}, "more than 64 levels deep"),
        ("threads = 'two'", {}, "Expected `int`"),
        ("threads = 0", {}, "threads must be at least 1"),
        ("repeats = 'maybe'", {}, "repeats is answer, stop or allow"),
        ("", {"INTERLOCK_STROE": "x"}, "did you mean 'INTERLOCK_STORE'?"),
        ("", {"INTERLOCK_THREADS": "many"}, "must be a int"),
        ("", {"INTERLOCK_OTEL": "perhaps"}, "must be a bool"),
        ("store = 'memory://'\nbusy_s = 3", {}, 'busy_s has no effect with store = "memory://"'),
        ("store = 'memory://'\nanchors = 'a'", {}, "anchors has no effect"),
    ],
)
def test_a_key_that_nothing_reads_or_that_has_no_effect_is_an_error(
    in_folder: Callable[..., Path], text: str, environment: dict[str, str], sentence: str
) -> None:
    in_folder(interlock__toml=text)
    with pytest.raises(ConfigError) as error:
        load_settings(environment=environment)
    assert sentence in str(error.value)


def test_variables_are_read_in_their_types(in_folder: Callable[..., Path]) -> None:
    in_folder()
    environment = {"INTERLOCK_TOOLS": "a:B, c:D", "INTERLOCK_OTEL": "yes", "INTERLOCK_BUSY_S": "0.5"}
    settings = load_settings(environment=environment).settings
    assert (settings.tools, settings.otel, settings.busy_s) == (("a:B", "c:D"), True, 0.5)


def test_a_named_file_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        load_settings("none.toml", environment={})
    with pytest.raises(ConfigError, match="did you mean"):
        load_settings(environment={}, given={"stor": "x"})


def test_the_principal_is_the_operating_system_user_or_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody-else")
    assert default_principal() == f"os:{pwd.getpwuid(os.getuid()).pw_name}"

    def nobody(_number: int) -> None:
        raise KeyError("no name")

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert default_principal().removeprefix("os:").isdigit()


def test_every_setting_is_explained_and_read_by_something() -> None:
    assert set(HELP) == set(Settings.__struct_fields__)
    read: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        if file.name == "config.py" and file.parent == SOURCE:
            continue
        read |= {node.attr for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)}
    assert set(Settings.__struct_fields__) <= read


def test_the_environment_is_read_in_one_file_only() -> None:
    def reads(node: Any) -> bool:
        return isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")

    found = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if any(reads(node) for node in ast.walk(ast.parse(file.read_text())))
    }
    assert found == {"config.py"}


# Settings of an application


class Kitchen(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an application, for tests."""

    pantry: Annotated[str, setting("where supplies are", anchor="database")] = "sqlite:///pantry.db"
    recipes: Annotated[tuple[str, ...], setting("files of recipes", anchor="file")] = ("house.md",)
    cooks: Annotated[int, setting("people at work")] = 2
    gas: bool = True


def _check_kitchen(settings: Kitchen, origins: Mapping[str, str]) -> None:
    if settings.cooks < 1:
        raise ConfigError(f"{origins['cooks']}: cooks are at least 1")


OWN_FILE = SettingsSource(
    kind=Kitchen, file="kitchen.toml", prefix="KITCHEN_", home="KITCHEN_HOME", check=_check_kitchen
)
TABLE = SettingsSource(kind=Kitchen, file="interlock.toml", table="app.kitchen", prefix="KITCHEN_")


def test_an_application_loads_its_settings_in_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "kitchen.toml").write_text('recipes = ["a.md", "~/b.md", "/c.md"]\ncooks = 3\n')
    environment = {"KITCHEN_COOKS": "5", "KITCHEN_GAS": "no", "INTERLOCK_STORE": "x"}
    loaded = OWN_FILE.load(folder=tmp_path, environment=environment, given={"cooks": None})
    assert loaded.settings == Kitchen(
        pantry=f"sqlite:///{tmp_path}/pantry.db",
        recipes=(f"{tmp_path}/a.md", str(Path.home() / "b.md"), "/c.md"),
        cooks=5,
        gas=False,
    )
    assert loaded.folder == tmp_path
    assert loaded.origins == {
        "pantry": "default",
        "recipes": str(tmp_path / "kitchen.toml"),
        "cooks": "environment KITCHEN_COOKS",
        "gas": "environment KITCHEN_GAS",
    }


def test_what_is_named_on_the_way_is_relative_to_where_one_is(tmp_path: Path) -> None:
    """A variable and the command line name files as a shell does; only the file names them beside itself."""
    environment = {"KITCHEN_HOME": str(tmp_path), "KITCHEN_RECIPES": "a.md, b.md"}
    loaded = OWN_FILE.load(environment=environment, given={"pantry": "sqlite:///here.db"})
    assert (loaded.settings.recipes, loaded.settings.pantry) == (("a.md", "b.md"), "sqlite:///here.db")
    assert loaded.folder == tmp_path


def test_an_application_may_have_a_table_of_the_librarys_file(in_folder: Callable[..., Path]) -> None:
    in_folder(interlock__toml="threads = 3\n[app.kitchen]\ncooks = 4\n[app.other]\nanything = 1\n")
    assert TABLE.load(environment={}).settings.cooks == 4
    assert load_settings(environment={}).settings.threads == 3
    in_folder(interlock__toml="[app]\nkitchen = 1\n")
    with pytest.raises(ConfigError, match=r"app\.kitchen: must be a table"):
        TABLE.load(environment={})
    in_folder(interlock__toml="[ap.kitchen]\ncooks = 4\n")
    with pytest.raises(ConfigError, match=r"interlock\.toml: ap: there is no such table; did you mean \[app"):
        load_settings(environment={})


@pytest.mark.parametrize(
    ("text", "environment", "sentence"),
    [
        (
            "[app.kitchen]\nkooks = 1",
            {},
            "interlock.toml: app.kitchen.kooks: there is no such setting; did you mean 'cooks'?",
        ),
        ("[app.kitchen]\ncooks = 'two'", {}, "interlock.toml: cooks: Expected `int`"),
        ("", {"KITCHEN_KOOKS": "1"}, "KITCHEN_KOOKS: there is no such setting; did you mean 'KITCHEN_COOKS'?"),
        ("", {"KITCHEN_COOKS": "two"}, "KITCHEN_COOKS='two': must be a int"),
    ],
)
def test_what_is_wrong_names_the_place_where_it_is_written(
    in_folder: Callable[..., Path], text: str, environment: dict[str, str], sentence: str
) -> None:
    in_folder(interlock__toml=text)
    with pytest.raises(ConfigError) as error:
        TABLE.load(environment=environment)
    assert sentence in str(error.value)


def test_what_must_hold_between_settings_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="command line: cooks are at least 1"):
        OWN_FILE.load(folder=tmp_path, environment={}, given={"cooks": 0})


def test_fields_say_what_they_are() -> None:
    assert help_texts(Kitchen)["cooks"] == "people at work"
    assert help_texts(Kitchen)["gas"] == ""
    assert all(HELP.values())


def test_a_long_name_of_a_setting_makes_a_short_sentence(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("s" * 200_000 + " = 1\n")
    with pytest.raises(ConfigError, match="there is no such setting") as refused:
        load_settings(tmp_path / "interlock.toml", environment={})
    assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize("key", ["a", '"a b"', "'a'"])
def test_a_key_of_many_parts_is_refused_before_it_is_read(key: str) -> None:
    def read(parts: int) -> None:
        with pytest.raises(ValueError, match="more than 64 levels deep"):
            parse_toml(".".join([key] * parts) + " = 1")

    assert growth(read, 5_000) < LINEAR
    assert parse_toml('a.b."c.d" = "' + ".".join(["x"] * 60) + '"\n')["a"]["b"]
